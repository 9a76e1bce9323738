r"""Steps of a body with a fixed point, whose unknown is its mean angular velocity.

In a step the body turns by $h W$, in the frame of the mid-point: a moment $\mu$ does the work
$h\,W \cdot \mu$. Energy is conserved if that of the potential is $U_n - U_{n+1}$. The potential's
own moment at the mid-point misses that by a defect of third order (none if the potential is
linear), which a moment along the motion makes up for.
"""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...bodies.euler_equations import angular_momentum, solve_inertia
from ...bodies.fixed_point import FixedPointBody
from ...bodies.inertia import euler_tensor
from ...bodies.potentials import AbstractPotential
from ...native.ops import cross
from ...rotations.base import AbstractRotation
from ...rotations.euler_map import euler_map
from ...rotations.guarded import safe_divide
from ...rotations.matrix import product
from ...rotations.so3 import dot, skew, unskew
from .discrete_gradient import defect
from .equations import AbstractMotionStep
from .increments import Map, RotationIncrement, cayley, conformal, rotated
from .motion import BodyMotion, polished, turned


class Turn(NamedTuple):
    """A rotation by `one` from the `start`, with the mean angular velocity `omega`, in a step of
    length `h` whose middle is at `t`; `mean_directors`, whether potentials act where the directors
    are the means of both ends, and not where the quaternion is."""

    rotation: AbstractRotation
    t: Float[Array, ""]
    h: Float[Array, ""]
    start: Float[Array, " n"]
    omega: Float[Array, "3"]
    one: RotationIncrement
    mean_directors: bool = False

    @property
    def matrix(self) -> Float[Array, "3 3"]:
        """Rotation matrix of the middle."""
        half = turned(self.rotation, self.start, self.one.half)
        return self.rotation.to_matrix(half) / self.one.square

    @property
    def last(self) -> Float[Array, " n"]:
        """Coordinates at the end, as the next step starts with them.

        Energies of coordinates that are off by round-off would not add up from step to step: 4e-11
        of 7 J in a million steps, all in one direction.
        """
        return polished(self.rotation, turned(self.rotation, self.start, self.one.whole))


def mean_moment(body: FixedPointBody, turn: Turn, conserves: bool) -> Float[Array, "3"] | None:
    """Moment over a step, in the frame of its middle; `None` if there is none.

    **Arguments:** `conserves`, whether the potential does exactly the work that it loses.
    """
    R, W, h = turn.matrix, turn.omega, turn.h
    total = None if body.moment is None else body.extra_moment(turn.t, R, W)
    if body.potential is None:
        return total
    if not conserves:
        moment = body.potential.moment(R)
    else:
        mean, moment = _potential_moment(turn, body.potential, R)
        if not body.potential.is_linear:
            missed = _missed(turn, body.potential, R, mean, h * dot(W, moment))
            moment = moment - safe_divide(missed, h * dot(W, W)) * W
    return moment if total is None else total + moment


def _potential_moment(
    turn: Turn, potential: AbstractPotential, R: Float[Array, "3 3"]
) -> tuple[Float[Array, "3 3"], Float[Array, "3"]]:
    """Moment of a potential that does the right work if that is linear in the rotation matrix.

    **Returns:** the matrix at which the gradient is taken; the moment, in components of the frame
    of the mid-point, `R`.
    """
    one = turn.one
    if not turn.mean_directors:
        # With the mean quaternion: a stretched rotation.
        mean = one.chord * R
        return mean, potential.moment(mean)
    # With the mean directors: (R_n + R_{n+1}) / 2 = R (F + F^T) / 2.
    F = euler_map(one.half) / one.square
    mean = product(R, 0.5 * (F + F.T))
    torque = product(product(R.T, potential.gradient(mean)), product(mean.T, R))
    return mean, -2.0 * unskew(torque)


def _missed(turn: Turn, potential: AbstractPotential, R, mean, work) -> Float[Array, ""]:
    """What a potential gains in a step beyond the `work` against its mean moment.

    Slopes are those of the parabola of matrices through start, `mean` and end.
    """
    R0, R1 = (turn.rotation.to_matrix(a) for a in (turn.start, turn.last))
    change = turn.one.chord * product(R, skew(turn.h * turn.omega))
    bend = 2.0 * (R0 + R1) - 4.0 * mean
    G0, G1 = potential.gradient(R0), potential.gradient(R1)
    slopes = jnp.sum(G0 * (change - bend)), -work, jnp.sum(G1 * (change + bend))
    size = jax.lax.stop_gradient(jnp.sum(jnp.abs(G0 * R0)) + jnp.sum(jnp.abs(G1 * R1)))
    return defect((potential(R0), potential(R1)), slopes, size)


class AbstractMeanRateStep(AbstractMotionStep):
    r"""Equations for the mean angular velocity $Z = W$, rad/s.

    The body turns about $W$, which has the same components in the frames of start, middle and end.

    **Attributes:** `body`; `rotation`; `t0`, `h`, start and length of the step; `start`, the motion
    there.
    """

    body: FixedPointBody
    rotation: AbstractRotation
    t0: Float[Array, ""]
    h: Float[Array, ""]
    start: BodyMotion

    @abc.abstractmethod
    def increment(self, psi: Float[Array, "3"]) -> RotationIncrement:
        """The rotation for $h W$."""

    def turn(self, W: Float[Array, "3"], mean_directors: bool = False) -> Turn:
        """The rotation of the step."""
        t, one = self.t0 + 0.5 * self.h, self.increment(self.h * W)
        return Turn(self.rotation, t, self.h, self.start.coordinates, W, one, mean_directors)

    def guess(self) -> Float[Array, "3"]:
        """The angular velocity at the start."""
        return self.start.omega

    def measures(self) -> Float[Array, "3"]:
        """A radian in a step."""
        return jnp.ones_like(self.start.omega) / jnp.abs(self.h)


class TrapezoidalTurn(AbstractMeanRateStep):
    r"""$W$ is the mean of the angular velocities at both ends.

    $F I \Omega_{n+1} - F^T I \Omega_n = h \mu$ in the frame of the mid-point with the half rotation
    $F$. Whatever the angle of the rotation about $W$, angular momentum is conserved without
    moments, and the gain of kinetic energy is the work $h\,W \cdot \mu$.

    **Attributes:** `map`, the rotation for $h W$; `conserves`, whether the potential does the work
    that it loses.
    """

    map: Map = eqx.field(static=True)
    conserves: bool = eqx.field(static=True)

    def increment(self, psi):
        return self.map(psi)

    def residual(self, Z):
        turn, inertia, omega = self.turn(Z, self.map is cayley), self.body.inertia, self.start.omega
        after = rotated(turn.one, angular_momentum(inertia, 2.0 * Z - omega))
        gain = after - rotated(turn.one, angular_momentum(inertia, omega), back=True)
        moment = mean_moment(self.body, turn, self.conserves)
        return gain if moment is None else gain - self.h * moment

    def end(self, Z):
        return BodyMotion(self.turn(Z).last, 2.0 * Z - self.start.omega)


class DirectorTurn(AbstractMeanRateStep):
    r"""$d_{n+1} - d_n = \frac h2 (\dot d_n + \dot d_{n+1})$ and
    $M_9(\dot d_{n+1} - \dot d_n) = h (f - G(d_{n+1/2})^T \lambda)$ with $\lambda$ eliminated.

    The constraints hold at both ends, their rates $G\dot d$ in the middle alone: $\dot d_{n+1}$ has
    a part that is not tangent, and the energy that is conserved is $\frac12 \dot d^T M_9 \dot d$
    with it.
    """

    def increment(self, psi):
        return cayley(psi)

    def residual(self, Z):
        turn, start = self.turn(Z, True), self.start
        assert start.rates is not None
        rates = self.rotation.to_matrix(start.rates)
        R0 = self.rotation.to_matrix(start.coordinates)
        gain = director_gain(self.body.inertia, turn.one, R0, rates, self.h * Z, self.h) / self.h
        moment = mean_moment(self.body, turn, True)
        return gain if moment is None else gain - self.h * moment

    def end(self, Z):
        turn = self.turn(Z)
        assert self.start.rates is not None
        rates = director_rates(turn.one, turn.matrix, self.start.rates, self.h * Z, self.h)
        return BodyMotion(turn.last, self.rotation.angular_velocity(turn.last, rates), rates)


def director_gain(inertia, one: RotationIncrement, R0, rates, psi, h) -> Float[Array, "3"]:
    r"""$h \sum_i E_i\,d_{i,n+1/2} \times (\dot d_{i,n+1} - \dot d_{i,n})$, in the middle frame.

    **Arguments:** rotation matrix and its rate at the start, (3, 3); `psi`, $h W$.
    """
    F = euler_map(one.half) / one.square
    gain = 2.0 * one.chord * skew(psi) - 2.0 * h * product(F.T, product(R0.T, rates))
    E = euler_tensor(inertia)
    weighted = gain * E[None, :] if E.ndim == 1 else product(gain, E)
    return 2.0 * unskew(product(weighted, 0.5 * (F + F.T)))


def director_rates(one: RotationIncrement, R, rates, psi, h) -> Float[Array, "9"]:
    """Rates of the directors at the end; `R`, the matrix in the middle; `rates` at the start, (9,).

    Not the difference of the directors, whose round-off would be divided by the step length.
    """
    return 2.0 / h * one.chord * product(R, skew(psi)).T.reshape(9) - rates


class VariationalTurn(AbstractMeanRateStep):
    r"""$q_{n+1}$ from the discrete momentum at the start, by its conformal vector $h W$."""

    def increment(self, psi):
        return conformal(psi)

    def residual(self, Z):
        turn, inertia = self.turn(Z), self.body.inertia
        before, _ = self._moments(turn)
        start = angular_momentum(inertia, self.start.omega)
        gain = boundary_momentum(inertia, turn.one.whole, 1.0) * (2.0 / self.h) - start
        return gain if before is None else gain - 0.5 * self.h * before

    def end(self, Z):
        turn, inertia = self.turn(Z), self.body.inertia
        _, after = self._moments(turn)
        m = boundary_momentum(inertia, turn.one.whole, -1.0) * (2.0 / self.h)
        m = m if after is None else m + 0.5 * self.h * after
        return BodyMotion(turn.last, solve_inertia(inertia, m))

    def _moments(self, turn: Turn) -> tuple[Array, Array] | tuple[None, None]:
        """Moments that act for half a step at either end, see `split_moment`."""
        body = self.body
        if body.is_free:
            return None, None
        R, W = turn.matrix, turn.omega
        u = 0.25 * turn.h * W
        moment, stretch = jnp.zeros_like(W), jnp.zeros_like(W)
        if body.moment is not None:
            moment = body.extra_moment(turn.t, R, W)
        if body.potential is not None:
            # At the mean quaternion b, a stretched rotation; the radial derivative b . grad V
            # counts.
            mean = turn.one.chord * R
            moment = moment + body.potential.moment(mean)
            stretch = jnp.sum(body.potential.gradient(mean) * mean) * u
        before, after = split_moment(moment, turn.h * W)
        return before - stretch, after + stretch


def boundary_momentum(inertia, p: Float[Array, "4"], side: float) -> Float[Array, "3"]:
    r"""$c\,I e \pm e \times I e$ of the unit quaternion $(c, e)$, shape (3,).

    Times $2/h$ the discrete angular momentum at the start (`side` 1) or at the end (-1), in body
    components there. **Source:** Betsch-Siebert, Appendix E.
    """
    e = p[1:]
    m = angular_momentum(inertia, e)
    return p[0] * m + side * cross(e, m)


def split_moment(moment: Float[Array, "3"], psi: Float[Array, "3"]) -> tuple[Array, Array]:
    r"""The moments $\tau^-$, $\tau^+$ that act for half a step at either end.

    What virtual rotations of the ends do to the middle: $\tau^\mp = \mu \pm u \times \mu$ with
    $u = \psi/4$, `psi` the conformal rotation vector of the step.
    """
    turned = cross(0.25 * psi, moment)
    return moment + turned, moment - turned
