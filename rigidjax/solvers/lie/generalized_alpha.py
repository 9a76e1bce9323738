"""The generalised-alpha method on Lie groups."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Count, InterpolationClass, Scalar, StepResult, Vector, Y
from ...bodies.euler_equations import angular_momentum
from ...formulations import Absolute, AbstractFormulation, NullSpace
from ...mechanics import has_joints
from ...native.ops import cross, vmap_rows
from ...rotations.quaternion import Quaternion
from ...rotations.so3 import dot
from ..conserving.base import AbstractStructureSolver
from ..implicit import attach_derivatives
from ..step_results import RESULTS
from ..terms import apply_direction, unwrap
from .alpha_step import AlphaCoefficients, AlphaStep, coefficients, newton
from .base import is_inside
from .chart import Chart
from .dynamics import Dynamics, Pose
from .interpolation import PoseInterpolation
from .unknowns import GroupUnknowns


class AlphaState(NamedTuple):
    r"""What a step leaves to the next one.

    **Attributes:** `pseudo`, pseudo-accelerations $a_n$, `rate`, $\dot w_n$, and `extra`, what is
    added to the twists of the unknowns, (L, k); `h`, length of the step that they belong to; `low`,
    what rounding took from positions and quaternions, (N,); `evaluations`.
    """

    pseudo: Float[Array, "L k"]
    rate: Float[Array, "L k"]
    extra: Float[Array, "L k"]
    h: Scalar
    low: Vector
    evaluations: Count


class GeneralizedAlpha(AbstractStructureSolver):
    r"""The Lie-group generalised-alpha method for equations of index 3.

    Newmark's formulas for the twists $w$ of all bodies, poses moved by their exponential map:

    $$q_{n+1} = q_n \circ \exp(h w_n + (\tfrac12 - \beta) h^2 a_n + \beta h^2 a_{n+1}), \quad
    w_{n+1} = w_n + (1 - \gamma) h a_n + \gamma h a_{n+1},$$
    $$(1 - \alpha_m) a_{n+1} + \alpha_m a_n = (1 - \alpha_f) \dot w_{n+1} + \alpha_f \dot w_n,
    \quad M \dot w + G^T \lambda = f, \quad g(q) = 0 \text{ at } t_{n+1}.$$

    Joints are satisfied on positions, to round-off; quaternions keep their length by themselves,
    and their multipliers follow from the others. Second order in positions, velocities and
    multipliers, from the first step on: in the directions that the joints forbid the start has
    $a_0 = \dot w(t_0 + (\alpha_m - \alpha_f)h)$ and the velocity that the errors of a step ask for.
    Velocities violate the joints by the error of the method.

    Takes `Absolute(system, Quaternion(), index=3)`, with joints, closed loops, redundant
    constraints (joint multipliers of least norm) and prescribed motions, or without joints, also
    `NullSpace(system, Quaternion())`. Fixed steps. Newton iterations to round-off; one that fails
    ends the run with `nonlinear_divergence`. Derivatives are those of the solution of the
    equations of the steps.

    **Arguments:** `spectral_radius`, of the method at infinite frequency, 0 to 1: 1 damps nothing,
    0 takes a high frequency away in one step.
    **Raises:** `ValueError` for a radius outside of [0, 1].
    **Source:** Bruels, Cardona (2010); Bruels, Cardona, Arnold (2012); starting values: Arnold,
    Bruels, Cardona (2015).
    """

    spectral_radius: float = eqx.field(static=True, default=0.9)

    is_adaptive: ClassVar[bool] = False
    forces_may_jump: ClassVar[bool] = False
    interpolation_cls: ClassVar[InterpolationClass] = PoseInterpolation

    def __check_init__(self):
        radius = self.spectral_radius
        if not (isinstance(radius, int | float) and 0 <= radius <= 1):
            raise ValueError(
                "`GeneralizedAlpha(spectral_radius=...)` must be a number from 0 (strongest "
                f"damping of high frequencies) to 1 (none); got {radius!r}."
            )

    def check_model(self, model: AbstractFormulation) -> None:
        """Raise unless it is `Absolute(index=3)` in quaternions, or `NullSpace` without joints.

        **Raises:** `ValueError` that says what to use instead.
        """
        needs = "`GeneralizedAlpha` needs `rj.Absolute(system, rj.Quaternion(), index=3)`"
        if not isinstance(model.rotation, Quaternion):
            raise ValueError(
                f"{needs}: it moves unit quaternions; got `{type(model.rotation).__name__}`. For "
                "other parametrizations use `rj.solvers.Radau5()`."
            )
        if model.multibody.velocity_constraints:
            raise ValueError(
                "`GeneralizedAlpha` imposes constraints on positions, which a "
                "`VelocityConstraint` does not have. Use `rj.solvers.Radau5()`, or an explicit "
                "solver such as `diffrax.Dopri8()`."
            )
        if isinstance(model, Absolute) and model.index == 3:
            return
        if isinstance(model, NullSpace) and not has_joints(model.system) and model.rates == "body":
            return
        kind = type(model).__name__
        if isinstance(model, Absolute):
            raise ValueError(
                f"{needs}: the joints on positions; got index={model.index}. For another index use "
                "`rj.solvers.Radau5()`."
            )
        raise ValueError(
            f"{needs}, or without joints `rj.NullSpace(system, rj.Quaternion())` in body rates; "
            f"got `{kind}` of another kind. For null-space coordinates with joints use "
            "`rj.solvers.MuntheKaas()`."
        )

    def order(self, terms) -> int:
        return 2

    def func(self, terms, t0, y0, args) -> Y:
        """Vector field at a point, where the model has one."""
        return terms.vf(t0, y0, args)

    def evaluations(self, solver_state: AlphaState) -> Count:
        """Iterations of the last step."""
        return solver_state.evaluations

    def init(self, terms, t0, t1, y0, args) -> AlphaState:
        """Consistent accelerations, and the starting values of second order."""
        term, direction = unwrap(terms)
        self.check_model(term.model)
        unknowns, dynamics = GroupUnknowns(term.model), Dynamics(term.model.mechanics)
        c, (t0, t1) = coefficients(self.spectral_radius), _times(direction, t0, t1)
        h = t1 - t0
        pose, w = unknowns.pose(y0), unknowns.twists(y0)
        if unknowns.num_multipliers == 0:
            rate = dynamics.accelerations(t0, pose, w)
            return AlphaState(rate, rate, jnp.zeros_like(w), h, jnp.zeros_like(y0), jnp.array(0))
        rate, jerk = _acceleration_and_jerk(dynamics, t0, pose, w)
        # Of the error of the positions of a step, divided by its length, what the joints see.
        error = (1 / 6 - c.beta - 0.5 * c.lead) * jerk
        error = error.at[:, -3:].add(vmap_rows(cross, w[:, -3:], rate[:, -3:]) / 12)
        G = dynamics.constraint_jacobian(t0, pose)
        extra = dynamics.normal(t0, pose, h**2 * (G @ error.ravel()))
        # Where forces alone decide, the pseudo-acceleration may start with an error of order h. An
        # extrapolation there would throw stiff springs far off.
        lead = dynamics.normal(t0, pose, c.lead * h * (G @ jerk.ravel()))
        return AlphaState(rate + lead, rate, extra, h, jnp.zeros_like(y0), jnp.array(0))

    def step(
        self, terms, t0, t1, y0, args, solver_state: AlphaState, made_jump
    ) -> StepResult[AlphaState]:
        term, direction = unwrap(terms)
        unknowns, (t0, t1) = GroupUnknowns(term.model), _times(direction, t0, t1)
        dynamics, c = Dynamics(unknowns.model.mechanics), coefficients(self.spectral_radius)
        h, pose, w = t1 - t0, unknowns.pose(y0), unknowns.twists(y0)
        state = _for_length(dynamics, t0, pose, w, solver_state, h)
        w = w + state.extra
        step = _equations(unknowns, dynamics, t0, t1, y0, pose, w, state, c)
        start = [c.beta * h**2 * state.pseudo.ravel(), step.scale * unknowns.multipliers(y0)]
        z, okay, count = newton(step, jnp.concatenate(start))
        z = attach_derivatives(step, z, okay)
        y1, state = _concluded(unknowns, step, z, state, count)
        inside = okay & is_inside(step.increment(z).turn)
        result = RESULTS.where(inside, RESULTS.successful, RESULTS.nonlinear_divergence)
        dense = dict(
            y0=y0, y1=y1, h=h, w=w, w_rate=solver_state.rate, end=state.rate, unknowns=unknowns
        )
        return y1, None, dense, state, result


def _times(direction, *ts):
    """Times of the model, which run backwards if a run does."""
    return tuple(jnp.asarray(apply_direction(direction, t)) for t in ts)


def _acceleration_and_jerk(dynamics, t, pose: Pose, w):
    """Derivatives of the twists and, along the motion, of those."""

    def along(t, x, p, w):
        return dynamics.accelerations(t, Pose(x, p, pose.angles), w)

    p_dot = vmap_rows(Quaternion().rate, pose.p, w[:, -3:])
    rate = along(t, pose.x, pose.p, w)
    moved = (jnp.ones_like(t), dynamics.twists(w).linear, p_dot, rate)
    return jax.jvp(along, (t, pose.x, pose.p, w), moved)


def _for_length(dynamics, t, pose, w, state: AlphaState, h):
    """The state for a step of another length.

    Pseudo-accelerations belong to a time that is a part of a step later, and the velocities in
    forbidden directions to errors that go with its square.
    """
    ratio = h / state.h
    pseudo = state.rate + ratio * (state.pseudo - state.rate)

    def adapted():
        gap = dynamics.constraint_rate(t, pose, w + state.extra)
        return state.extra + dynamics.normal(t, pose, (ratio**2 - 1) * gap)

    other = jnp.abs(ratio - 1) > 1e-6
    extra = jax.lax.cond(other, adapted, lambda: state.extra)
    return state._replace(pseudo=jnp.where(other, pseudo, state.pseudo), extra=extra, h=h)


def _equations(unknowns, dynamics, t0, t1, y0, pose, w, state: AlphaState, c: AlphaCoefficients):
    h = t1 - t0
    idle = dynamics.redundancy(t0, pose)
    return AlphaStep(
        dynamics=dynamics,
        chart=Chart(y0, unknowns.model.layout, "body"),
        angles=pose.angles + h * dynamics.angle_rates(t0, pose, w),
        t1=t1,
        h=h,
        shift=h * w + (0.5 - c.beta) * h**2 * state.pseudo,
        twist=w + (1 - c.gamma) * h * state.pseudo,
        rate=(c.mass * state.pseudo - c.force * state.rate) / (1 - c.force),
        idle=None if idle is None else jax.lax.stop_gradient(idle),
        c=c,
    )


def _concluded(unknowns, step: AlphaStep, z, state: AlphaState, count):
    """GroupUnknowns at the end of a step and the state behind it."""
    dynamics, layout = step.dynamics, unknowns.model.layout
    pose, w, rate, pseudo = step.end(z)
    lam = dynamics.least_norm(step.t1, pose, step.split(z)[1] / step.scale)
    y, low = step.chart.end(step.increment(z), state.low)
    x, p = layout.poses(y)
    pose = Pose(x, p, dynamics.angles(Pose(x, p, step.angles)))
    internal = jnp.zeros(0)
    if unknowns.is_absolute:
        internal = dynamics.virials(step.t1, pose, w, lam) + _twice_energy(unknowns, w)
    y1 = unknowns.join(pose, w, internal, lam)
    return y1, AlphaState(pseudo, rate, jnp.zeros_like(w), state.h, low, count)


def _twice_energy(unknowns, w):
    r"""$2\,\Omega \cdot I\,\Omega$ of each body: the inertial part of the multiplier, Lang (40)."""
    inertias = unknowns.model.mechanics.inertias
    return jax.vmap(lambda I, w: 2.0 * dot(w, angular_momentum(I, w)))(inertias, w[:, -3:])
