"""The variational integrator in quaternions."""

from functools import singledispatch
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...bodies.euler_equations import angular_momentum, solve_inertia
from ...formulations import AbstractFormulation
from ...rotations.quaternion import Quaternion
from ...rotations.so3 import cross
from ...system import AbstractMechanics, System, has_joints
from ...system.fixed_point import FixedPointMechanics
from .increments import conformal
from .jointed import AbstractSystemSolver, variational_step
from .mean_twist import AbstractMeanTwistStep
from .midpoint_loads import MidPoint
from .model_checks import check_form, check_free_bodies
from .motion import Motion


class Variational(AbstractSystemSolver):
    r"""QUAT.VI, the variational integrator of the discrete Lagrangian at the mid-point.

    Symplectic; conserves the momentum that belongs to a symmetry exactly, the energy to second
    order without drift (exactly in free rotation). A step starts from the discrete momentum
    $p_n = -D_1 L_d(q_n, q_{n+1}) + \frac h2 q_n \lambda_n$, as the scheme of the paper is started,
    and ends with $p_{n+1} = D_2 L_d$: the discrete Euler-Lagrange equations (E1) say that both
    agree. The unknowns are those momenta turned into $\Omega = I^{-1}\,\frac12 G(q)\,p$.

    In the frame of the body, with $(c, e) = \bar q_n \circ q_{n+1}$ and without forces, a step is
    $I\Omega_n = \frac2h (c\,I e + e \times I e)$ and
    $I\Omega_{n+1} = \frac2h (c\,I e - e \times I e)$. The right-hand side is bounded: about a
    principal axis it is $\frac1h I \sin\varphi$. **No step exists for $h |\Omega|$ above 1 or so**,
    and the run ends with `nonlinear_divergence`: the steady top of the paper has
    $\Omega_3 = 140.6$ rad/s, so that $h = 0.007$ s works and 0.01 s cannot.

    Forces without potential enter by the discrete principle of d'Alembert at the mid-point.

    For `Quaternion()` in `NullSpace` and `Absolute(index=0)` of a `FixedPointBody` or a `System`.
    With joints, closed loops and redundant constraints included, positions and velocities at the
    ends of steps satisfy all constraints to round-off; potentials then act at the ends.

    **Arguments:** `max_iterations` of Newton's method.
    **Source:** Betsch-Siebert, Appendix E.
    """

    max_iterations: int = eqx.field(static=True, default=30)

    def check_model(self, model: AbstractFormulation) -> None:
        check = check_form if has_joints(model.system) else check_free_bodies
        check(self, model, (Quaternion,))

    def step_of_joints(self, model, t0, h, start, multipliers):
        return variational_step(model, t0, h, start, multipliers)

    def checked(self, model: AbstractFormulation, value: Any) -> Any:
        return value

    def equations(self, model: AbstractFormulation, t0: Any, h: Any, start: Motion) -> Any:
        return VariationalStep(model.mechanics, model.rotation, t0, h, start)


class VariationalStep(AbstractMeanTwistStep):
    r"""$q_{n+1}$ from the discrete momentum at the start, by its conformal vector $h W$."""

    @property
    def mean_directors(self):
        return False

    def increment(self, psi):
        return conformal(psi)

    def conclude(self, V, W, increments, coordinates):
        h = self.h
        velocities, omegas = list(V), []
        loads = split_loads(self.mechanics, self.middle(V, W, increments))
        for i, (one, inertia) in enumerate(zip(increments, self.mechanics.inertias(), strict=True)):
            force, _, after = loads[i]
            m = momentum(inertia, one.whole, -1.0) * (2.0 / h)
            m = m if after is None else m + 0.5 * h * after
            omegas.append(solve_inertia(inertia, m))
            if force is not None and velocities:
                velocities[i] = V[i] + 0.5 * h * force / self.mechanics.masses()[i]
        return velocities, omegas, None

    def balance(self, V, W, increments):
        h, start = self.h, self.start
        loads = split_loads(self.mechanics, self.middle(V, W, increments))
        linear = [
            mass * (mean - v)
            for mass, mean, v in zip(self.mechanics.masses(), V, start.velocities, strict=True)
        ]
        angular = [
            momentum(inertia, one.whole, 1.0) * (2.0 / h) - angular_momentum(inertia, omega)
            for inertia, one, omega in zip(
                self.mechanics.inertias(), increments, start.omegas, strict=True
            )
        ]
        for i, (force, before, _) in enumerate(loads):
            if force is not None and linear:
                linear[i] = linear[i] - 0.5 * h * force
            if before is not None:
                angular[i] = angular[i] - 0.5 * h * before
        return linear, angular


def momentum(inertia, p: Float[Array, "4"], sign: float) -> Float[Array, "3"]:
    r"""$c\,I e \pm e \times I e$ of the unit quaternion $(c, e)$, shape (3,)."""
    e = p[1:]
    m = angular_momentum(inertia, e)
    return p[0] * m + sign * cross(e, m)


@singledispatch
def split_loads(mechanics: AbstractMechanics, point: MidPoint) -> list[Any]:
    r"""Force, and the moments $\tau^-$, $\tau^+$ that act for half a step at either end.

    What virtual rotations of the ends do to the middle: with $u = h W/4$ and the moment $\mu$ in
    the frame of the mid-point $\tau^\mp = \mu \pm u \times \mu$.
    """
    raise NotImplementedError(f"There is no loads for `{type(mechanics).__name__}`.")


@split_loads.register
def _of_system(mechanics: System, point: MidPoint):
    return [
        (force, *_both(moment, 0.25 * point.h * w))
        for (force, moment), w in zip(
            mechanics.wrenches(point.t, point.kinematics()), point.omegas, strict=True
        )
    ]


@split_loads.register
def _of_fixed_point(mechanics: FixedPointMechanics, point: MidPoint):
    body = mechanics.body
    if body.is_free:
        return [(None, None, None)]
    middle = point.kinematics()
    R, W = middle.rotations[0], middle.angular_velocities[0]
    u = 0.25 * point.h * W
    moment, stretch = jnp.zeros_like(W), jnp.zeros_like(W)
    if body.moment is not None:
        moment = body.extra_moment(point.t, R, W)
    if body.potential is not None:
        # At the mean quaternion b, a stretched rotation; the radial derivative b . grad V counts.
        mean = point.increments[0].chord * R
        moment = moment + body.potential.moment(mean)
        stretch = jnp.sum(body.potential.gradient(mean) * mean) * u
    before, after = _both(moment, u)
    return [(None, before - stretch, after + stretch)]


def _both(moment: Any, u: Float[Array, "3"]) -> tuple[Any, Any]:
    if moment is None:
        return None, None
    turned = cross(u, moment)
    return moment + turned, moment - turned
