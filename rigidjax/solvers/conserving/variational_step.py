"""Variational step of systems."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Scalar, Vector
from ...bodies import FixedPointBody
from ...formulations import AbstractFormulation
from ...mechanics import has_joints
from ...mechanics.dynamics.loads import apply_inverse_mass
from ...mechanics.kinematics.constraints import (
    constraint_jacobian,
    constraint_rates,
    constraint_values,
)
from ...mechanics.kinematics.poses import joint_frames_at
from ...mechanics.stacked.joints import Poses
from ...mechanics.stacked.system import PreparedSystem
from ...rotations.quaternion import Quaternion
from .base import check_form, check_free_bodies
from .discrete_gradient import wrenches_in_pose
from .equations import AbstractMotionStep, AbstractMultiplierEquations, Root, find_root
from .fixed_point import VariationalRateStep, boundary_momentum, split_moment
from .increments import conformal
from .motion import BodyMotion
from .one_step import AbstractSystemStepSolver
from .phase import (
    Phase,
    increment_scales,
    midpoint_poses,
    momenta,
    rotate_quaternions,
    split_twists,
)


def variational_step(
    model: AbstractFormulation, t0: Scalar, h: Scalar, start: Phase, multipliers: Vector, limit: int
) -> tuple[Phase, Root]:
    r"""Make a step of the discrete Lagrangian with constraints on positions and velocities.

    Bodies rotate as in QUAT.VI, $R_1 = R_0\,R(c, e)$, with the discrete angular momenta $\frac2h
    (c\,I e \pm e \times I e)$ at the ends and loads in the middle. Joints act at both ends:
    positions satisfy them at the end of the step, and a second set of multipliers makes the momenta
    there consistent. The step is symplectic and of second order. It conserves the momentum of a
    free system, and the energy oscillates without drift. Forces that depend on velocities are
    evaluated with the mean twist of the step.

    **Arguments:** `model`, in quaternions; `t0`, start of the step, and `h`, its length, s;
    `start`, poses and twists; `multipliers`, their initial iterate, from the step before; `limit`,
    the largest number of Newton iterations.
    **Returns:** poses and twists at the end; the result of Newton's method, with displacements
    $h\,\bar v$, conformal rotation vectors and multipliers $h^2\lambda/2$.
    **Source:** Betsch-Siebert, Appendix E; joints as in RATTLE (Andersen 1983; Leimkuhler, Skeel).
    """
    prepared = model.prepared_system
    first = start.poses(prepared)
    constraint_jacobian = _jacobian(prepared, t0, first)
    scales = increment_scales(prepared, start.positions)
    equations = _Equations(prepared, scales, t0, h, start, constraint_jacobian)
    root = find_root(equations, jnp.concatenate([h * start.twists.ravel(), multipliers]), limit)
    change, _ = equations.split_unknowns(root.Z)
    end = equations.end(change)
    after = _boundary_momenta(prepared, change, -1.0) / h + equations.impulses(change)[1] / h
    if prepared.is_free:
        return eqx.tree_at(
            lambda phase: phase.twists, end, apply_inverse_mass(prepared, after)
        ), root
    equations_and_guess = _momentum_equations(
        prepared, t0 + h, end.poses(prepared), after, change / h, scales, h
    )
    second = find_root(*equations_and_guess, limit)
    end = eqx.tree_at(
        lambda phase: phase.twists, end, equations_and_guess[0].split_unknowns(second.Z)[0]
    )
    return end, root._replace(okay=root.okay & second.okay)


class _Equations(AbstractMultiplierEquations):
    prepared: PreparedSystem
    scales: Float[Array, "L 6"]
    t0: Scalar
    h: Scalar
    start: Phase
    constraint_jacobian: Float[Array, "m 6L"]  # at the start of the step

    def end(self, change: Float[Array, "L 6"]) -> Phase:
        """Return the poses at the end with the twists of the start."""
        start = self.start
        quaternions = rotate_quaternions(start.quaternions, jax.vmap(conformal)(change[:, 3:]))
        return Phase(start.positions + change[:, :3], quaternions, start.twists, start.angles)

    def impulses(
        self, change: Float[Array, "L 6"]
    ) -> tuple[Float[Array, "L 6"], Float[Array, "L 6"]]:
        """Return the impulses of the loads on the momenta at the start and the end, times $h$."""
        prepared, h = self.prepared, self.h
        middle = midpoint_poses(prepared, self.start, self.end(change))
        loads = 0.5 * h * h * wrenches_in_pose(prepared, self.t0 + 0.5 * h, middle, change / h)
        before, after = jax.vmap(split_moment)(loads[:, 3:], change[:, 3:])
        force = loads[:, :3]
        return jnp.concatenate([force, before], axis=1), jnp.concatenate([force, after], axis=1)

    def residual(self, Z: Vector) -> Vector:
        prepared, h = self.prepared, self.h
        change, mu = self.split_unknowns(Z)
        gain = _boundary_momenta(prepared, change, 1.0) - h * momenta(prepared, self.start.twists)
        balance = (gain - self.impulses(change)[0]).ravel()
        if prepared.is_free:
            return balance
        last = self.end(change).poses(prepared)
        gap = constraint_values(prepared, self.t0 + h, joint_frames_at(prepared, last))
        return jnp.concatenate([balance + mu @ self.constraint_jacobian, gap])


def _boundary_momenta(
    prepared: PreparedSystem, change: Float[Array, "L 6"], side: float
) -> Float[Array, "L 6"]:
    """Return the discrete momenta times $h$ at the start (`side` 1) or end (-1) of the step."""
    quaternions = jax.vmap(lambda psi: conformal(psi).quaternion)(change[:, 3:])
    angular = jax.vmap(lambda I, p: boundary_momentum(I, p, side))(prepared.inertias, quaternions)
    return jnp.concatenate([prepared.masses[:, None] * change[:, :3], 2.0 * angular], axis=1)


def _jacobian(prepared: PreparedSystem, t: Scalar, poses: Poses) -> Float[Array, "m 6L"]:
    G = constraint_jacobian(prepared, t, joint_frames_at(prepared, poses))
    return G.reshape(-1, 6 * prepared.num_bodies)


def _momentum_equations(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    momentum: Float[Array, "L 6"],
    guess: Float[Array, "L 6"],
    scales: Float[Array, "L 6"],
    h: Scalar,
) -> tuple["_MomentumEquations", Vector]:
    """Return the equations of twists that the joints allow, and their initial iterate.

    The unknowns are the twists and the impulses of the joints, which together have the given
    momenta.
    """
    rest = constraint_rates(
        prepared, t, joint_frames_at(prepared, poses), split_twists(jnp.zeros_like(guess))
    )
    constraint_jacobian = _jacobian(prepared, t, poses)
    start = jnp.concatenate([guess.ravel(), jnp.zeros_like(rest)])
    return _MomentumEquations(
        prepared, scales / jnp.abs(h), constraint_jacobian, momentum, rest
    ), start


class _MomentumEquations(AbstractMultiplierEquations):
    prepared: PreparedSystem
    scales: Float[Array, "L 6"]
    constraint_jacobian: Float[Array, "m 6L"]
    momentum: Float[Array, "L 6"]
    rest: Float[Array, " m"]

    def residual(self, Z: Vector) -> Vector:
        w, impulses = self.split_unknowns(Z)
        balance = (
            momenta(self.prepared, w) - self.momentum
        ).ravel() + impulses @ self.constraint_jacobian
        return jnp.concatenate([balance, self.constraint_jacobian @ w.ravel() + self.rest])


class Variational(AbstractSystemStepSolver):
    r"""QUAT.VI, the variational integrator of the discrete Lagrangian at the mid-point.

    The scheme is symplectic. It conserves momentum maps exactly and the energy to second order
    without drift (in free rotation exactly). A step starts from the discrete momentum
    $p_n = -D_1 L_d(q_n, q_{n+1}) + \frac h2 q_n \lambda_n$, as the first step of the paper does,
    and ends with $p_{n+1} = D_2 L_d$; the discrete Euler-Lagrange equations (E1) state that both
    agree. The angular velocities among the unknowns are $\Omega = I^{-1}\,\frac12 G(q)\,p$ of these
    momenta.

    In body components, with $(c, e) = \bar q_n \circ q_{n+1}$ and without forces, a step is
    $I\Omega_n = \frac2h (c\,I e + e \times I e)$ and
    $I\Omega_{n+1} = \frac2h (c\,I e - e \times I e)$. The right-hand side is bounded: about a
    principal axis it is $\frac1h I \sin\varphi$. **There is no solution for $h |\Omega|$ above
    about 1**, and the run ends with `nonlinear_divergence`.

    Forces without potential enter by the discrete principle of d'Alembert at the mid-point.

    The scheme takes `NullSpace` and `Absolute(index=0)` in `Quaternion()` of a `FixedPointBody` or
    a `System`. With joints, also in closed loops and with redundant constraints, positions and
    velocities at the ends of steps satisfy all constraints to round-off.

    **Arguments:** `max_iterations`, of Newton's method.
    **Source:** Betsch-Siebert, Appendix E.
    """

    max_iterations: int = eqx.field(static=True, default=30)

    def check_model(self, model: AbstractFormulation) -> None:
        check = check_form if has_joints(model.system) else check_free_bodies
        check(self, model, (Quaternion,))

    def step_of_system(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: Phase, multipliers: Vector
    ) -> tuple[Phase, Root]:
        return variational_step(model, t0, h, start, multipliers, self.max_iterations)

    def step_of_body(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: BodyMotion
    ) -> AbstractMotionStep:
        assert isinstance(model.system, FixedPointBody)
        return VariationalRateStep(model.system, model.rotation, t0, h, start)
