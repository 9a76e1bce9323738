r"""Steps of a body with a fixed point, whose unknown is the mean angular velocity $W$.

In the mid-point frame the body rotates by $h W$ in a step, and a moment $\mu$ does the work
$h\,W \cdot \mu$. Energy is conserved if the work of the potential is $U_n - U_{n+1}$. The moment
of the potential at the mid-point does this work up to a defect of third order, which is zero for a
linear potential. An additional moment along the motion removes the defect.
"""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Matrix3, Scalar, Vector, Vector3
from ...bodies.euler_equations import angular_momentum, solve_inertia
from ...bodies.fixed_point import FixedPointBody
from ...bodies.inertia import euler_tensor
from ...bodies.potentials import AbstractPotential
from ...rotations.base import AbstractRotation
from ...rotations.euler_map import euler_map
from ...rotations.guarded import safe_divide
from ...rotations.matrix import product
from ...rotations.so3 import dot, skew, unskew
from ...small_arrays import cross
from .discrete_gradient import defect
from .equations import AbstractMotionStep
from .increments import Map, RotationIncrement, cayley, conformal, rotate_by_half
from .motion import BodyMotion, compose_rotation, renormalize


class StepRotation(NamedTuple):
    """Rotation of a body in a step.

    **Attributes:** `rotation`, the parametrization; `t`, the middle of the step, s; `h`, its
    length, s; `start`, coordinates at its start; `omega`, the mean angular velocity, rad/s, body
    components; `increment`, from the start to the end; `mean_directors`, whether potentials are
    evaluated at the mean of the directors at both ends instead of the mean quaternion.
    """

    rotation: AbstractRotation
    t: Scalar
    h: Scalar
    start: Vector
    omega: Vector3
    increment: RotationIncrement
    mean_directors: bool = False

    @property
    def matrix(self) -> Matrix3:
        """Rotation matrix in the middle of the step."""
        half = compose_rotation(self.rotation, self.start, self.increment.half)
        return self.rotation.to_matrix(half) / self.increment.half_squared

    @property
    def last(self) -> Vector:
        """Coordinates at the end of the step, from which the next one starts.

        They are renormalised, because round-off of the constraints would add up to a drift of the
        energy.
        """
        return renormalize(
            self.rotation, compose_rotation(self.rotation, self.start, self.increment.quaternion)
        )


def mean_moment(
    body: FixedPointBody, step_rotation: StepRotation, conserves: bool
) -> Vector3 | None:
    """Return the mean moment of a step in body components of its middle, `None` without moments.

    **Arguments:** `body`; `step_rotation`; `conserves`, whether the work of the potential is
    exactly the potential energy that it loses.
    """
    R, W, h = step_rotation.matrix, step_rotation.omega, step_rotation.h
    total = None if body.moment is None else body.extra_moment(step_rotation.t, R, W)
    if body.potential is None:
        return total
    if not conserves:
        moment = body.potential.moment(R)
    else:
        mean, moment = _potential_moment(step_rotation, body.potential, R)
        if not body.potential.is_linear:
            defect_of_work = _defect_of_work(
                step_rotation, body.potential, R, mean, h * dot(W, moment)
            )
            moment = moment - safe_divide(defect_of_work, h * dot(W, W)) * W
    return moment if total is None else total + moment


def _potential_moment(
    step_rotation: StepRotation, potential: AbstractPotential, R: Matrix3
) -> tuple[Matrix3, Vector3]:
    """Return the moment of a potential in the middle of a step.

    For a potential that is linear in the rotation matrix its work is exact.

    **Returns:** the matrix at which the gradient is evaluated; the moment, body components of the
    middle `R`.
    """
    increment = step_rotation.increment
    if not step_rotation.mean_directors:
        # The matrix of the mean quaternion is a stretched rotation.
        mean = increment.chord * R
        return mean, potential.moment(mean)
    # Mean of the directors: (R_n + R_{n+1}) / 2 = R (F + F^T) / 2.
    F = euler_map(increment.half) / increment.half_squared
    mean = product(R, 0.5 * (F + F.T))
    torque = product(product(R.T, potential.gradient(mean)), product(mean.T, R))
    return mean, -2.0 * unskew(torque)


def _defect_of_work(
    step_rotation: StepRotation, potential: AbstractPotential, R: Matrix3,
    mean: Matrix3, work: Scalar,
) -> Scalar:  # fmt: skip
    """Return the gain of potential energy plus `work`, the work of the mean moment.

    Slopes are along the parabola of matrices through the start, `mean` and the end.
    """
    R0, R1 = (
        step_rotation.rotation.to_matrix(a) for a in (step_rotation.start, step_rotation.last)
    )
    change = step_rotation.increment.chord * product(R, skew(step_rotation.h * step_rotation.omega))
    bend = 2.0 * (R0 + R1) - 4.0 * mean
    G0, G1 = potential.gradient(R0), potential.gradient(R1)
    slopes = jnp.sum(G0 * (change - bend)), -work, jnp.sum(G1 * (change + bend))
    size = jax.lax.stop_gradient(jnp.sum(jnp.abs(G0 * R0)) + jnp.sum(jnp.abs(G1 * R1)))
    return defect((potential(R0), potential(R1)), slopes, size)


class AbstractMeanRateStep(AbstractMotionStep):
    r"""Equations for the mean angular velocity $Z = W$, rad/s.

    The body rotates about $W$, which has the same components in the frames of the start, middle and
    end.

    **Attributes:** `body`; `rotation`, the parametrization; `t0`, start of the step, and `h`, its
    length, s; `start`, the motion at its start.
    """

    body: FixedPointBody
    rotation: AbstractRotation
    t0: Scalar
    h: Scalar
    start: BodyMotion

    @abc.abstractmethod
    def increment(self, psi: Vector3) -> RotationIncrement:
        """Return the rotation of the step for `psi`, $h W$."""

    def step_rotation(self, W: Vector3, mean_directors: bool = False) -> StepRotation:
        t, increment = self.t0 + 0.5 * self.h, self.increment(self.h * W)
        return StepRotation(
            self.rotation, t, self.h, self.start.coordinates, W, increment, mean_directors
        )

    def guess(self) -> Vector3:
        """Return the angular velocity at the start."""
        return self.start.omega

    def unknown_scales(self) -> Vector3:
        """Return the angular velocity of a rotation by one radian in the step."""
        return jnp.ones_like(self.start.omega) / jnp.abs(self.h)


class TrapezoidalRateStep(AbstractMeanRateStep):
    r"""Equations in which $W$ is the mean of the angular velocities at both ends.

    In the mid-point frame $F I \Omega_{n+1} - F^T I \Omega_n = h \mu$ with the half rotation $F$.
    For every angle of the rotation about $W$, angular momentum is conserved without moments, and
    the gain of kinetic energy is the work $h\,W \cdot \mu$.

    **Attributes:** `map`, from $h W$ to the rotation; `conserves`, whether the work of the
    potential is exactly the potential energy that it loses.
    """

    map: Map = eqx.field(static=True)
    conserves: bool = eqx.field(static=True)

    def increment(self, psi: Vector3) -> RotationIncrement:
        return self.map(psi)

    def residual(self, Z: Vector3) -> Vector3:
        step_rotation, inertia, omega = (
            self.step_rotation(Z, self.map is cayley),
            self.body.inertia,
            self.start.omega,
        )
        after = rotate_by_half(step_rotation.increment, angular_momentum(inertia, 2.0 * Z - omega))
        gain = after - rotate_by_half(
            step_rotation.increment, angular_momentum(inertia, omega), inverse=True
        )
        moment = mean_moment(self.body, step_rotation, self.conserves)
        return gain if moment is None else gain - self.h * moment

    def end(self, Z: Vector3) -> BodyMotion:
        return BodyMotion(self.step_rotation(Z).last, 2.0 * Z - self.start.omega)


class DirectorRateStep(AbstractMeanRateStep):
    r"""Equations of DIR.EM with the multipliers $\lambda$ eliminated.

    $d_{n+1} - d_n = \frac h2 (\dot d_n + \dot d_{n+1})$ and
    $M_9(\dot d_{n+1} - \dot d_n) = h (f - G(d_{n+1/2})^T \lambda)$. The constraints hold at both
    ends, but their rates $G\dot d$ vanish in the middle only: $\dot d_{n+1}$ has a part that is not
    tangent, which is included in the conserved energy $\frac12 \dot d^T M_9 \dot d$.
    """

    def increment(self, psi: Vector3) -> RotationIncrement:
        return cayley(psi)

    def residual(self, Z: Vector3) -> Vector3:
        step_rotation, start = self.step_rotation(Z, True), self.start
        assert start.rates is not None
        rates = self.rotation.to_matrix(start.rates)
        R0 = self.rotation.to_matrix(start.coordinates)
        gain = (
            director_gain(self.body.inertia, step_rotation.increment, R0, rates, self.h * Z, self.h)
            / self.h
        )
        moment = mean_moment(self.body, step_rotation, True)
        return gain if moment is None else gain - self.h * moment

    def end(self, Z: Vector3) -> BodyMotion:
        step_rotation = self.step_rotation(Z)
        assert self.start.rates is not None
        rates = director_rates(
            step_rotation.increment, step_rotation.matrix, self.start.rates, self.h * Z, self.h
        )
        return BodyMotion(
            step_rotation.last, self.rotation.angular_velocity(step_rotation.last, rates), rates
        )


def director_gain(
    inertia: Vector3 | Matrix3,
    increment: RotationIncrement,
    R0: Matrix3,
    rates: Matrix3,
    psi: Vector3,
    h: Scalar,
) -> Vector3:
    r"""Return $h \sum_i E_i\,d_{i,n+1/2} \times (\dot d_{i,n+1} - \dot d_{i,n})$.

    **Arguments:** `inertia`; `increment`, rotation of the step; `R0` and `rates`, the rotation
    matrix at the start and its rate; `psi`, $h W$; `h`, length of the step, s.
    **Returns:** shape (3,), body components of the middle.
    """
    F = euler_map(increment.half) / increment.half_squared
    gain = 2.0 * increment.chord * skew(psi) - 2.0 * h * product(F.T, product(R0.T, rates))
    E = euler_tensor(inertia)
    weighted = gain * E[None, :] if E.ndim == 1 else product(gain, E)
    return 2.0 * unskew(product(weighted, 0.5 * (F + F.T)))


def director_rates(
    increment: RotationIncrement, R: Matrix3, rates: Float[Array, "9"], psi: Vector3, h: Scalar
) -> Float[Array, "9"]:
    """Return the rates of the directors at the end of a step.

    They are not computed from the difference of the directors, because its round-off would be
    divided by the length of the step.

    **Arguments:** `increment`, rotation of the step; `R`, the rotation matrix in its middle;
    `rates`, at its start; `psi`, $h W$; `h`, its length, s.
    """
    return 2.0 / h * increment.chord * product(R, skew(psi)).T.reshape(9) - rates


class VariationalRateStep(AbstractMeanRateStep):
    r"""Equations of QUAT.VI for the conformal rotation vector $h W$ of the step.

    The discrete angular momentum at the start is given.
    """

    def increment(self, psi: Vector3) -> RotationIncrement:
        return conformal(psi)

    def residual(self, Z: Vector3) -> Vector3:
        step_rotation, inertia = self.step_rotation(Z), self.body.inertia
        before, _ = self._end_moments(step_rotation)
        start = angular_momentum(inertia, self.start.omega)
        gain = (
            boundary_momentum(inertia, step_rotation.increment.quaternion, 1.0) * (2.0 / self.h)
            - start
        )
        return gain if before is None else gain - 0.5 * self.h * before

    def end(self, Z: Vector3) -> BodyMotion:
        step_rotation, inertia = self.step_rotation(Z), self.body.inertia
        _, after = self._end_moments(step_rotation)
        m = boundary_momentum(inertia, step_rotation.increment.quaternion, -1.0) * (2.0 / self.h)
        m = m if after is None else m + 0.5 * self.h * after
        return BodyMotion(step_rotation.last, solve_inertia(inertia, m))

    def _end_moments(self, step_rotation: StepRotation) -> tuple[Array, Array] | tuple[None, None]:
        """Return the moments that act for half a step at the start and end, see `split_moment`."""
        body = self.body
        if body.is_free:
            return None, None
        R, W = step_rotation.matrix, step_rotation.omega
        u = 0.25 * step_rotation.h * W
        moment, stretch = jnp.zeros_like(W), jnp.zeros_like(W)
        if body.moment is not None:
            moment = body.extra_moment(step_rotation.t, R, W)
        if body.potential is not None:
            # The matrix of the mean quaternion b is a stretched rotation. The radial derivative
            # b . grad V contributes to the discrete momenta.
            mean = step_rotation.increment.chord * R
            moment = moment + body.potential.moment(mean)
            stretch = jnp.sum(body.potential.gradient(mean) * mean) * u
        before, after = split_moment(moment, step_rotation.h * W)
        return before - stretch, after + stretch


def boundary_momentum(inertia: Vector3 | Matrix3, p: Float[Array, "4"], side: float) -> Vector3:
    r"""Return $c\,I e \pm e \times I e$ for the unit quaternion $p = (c, e)$, shape (3,).

    Multiplied by $2/h$ it is the discrete angular momentum at the start (`side` 1) or at the end
    (`side` -1) of the step, in body components of that time.

    **Source:** Betsch-Siebert, Appendix E.
    """
    e = p[1:]
    m = angular_momentum(inertia, e)
    return p[0] * m + side * cross(e, m)


def split_moment(moment: Vector3, psi: Vector3) -> tuple[Array, Array]:
    r"""Return the moments $\tau^-$, $\tau^+$ that act for half a step at the start and at the end.

    The virtual rotations of both ends determine that of the middle, which gives
    $\tau^\mp = \mu \pm u \times \mu$ with $u = \psi/4$.

    **Arguments:** `moment`, $\mu$, body components of the middle; `psi`, the conformal rotation
    vector of the step.
    """
    shift = cross(0.25 * psi, moment)
    return moment + shift, moment - shift
