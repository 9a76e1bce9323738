"""The generalised-alpha method on Lie groups."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Args, Count, InterpolationClass, Scalar, StepResult, Terms, Time, Vector
from ...bodies.euler_equations import angular_momentum
from ...formulations import Absolute, AbstractFormulation, NullSpace
from ...mechanics import has_joints
from ...rotations.quaternion import Quaternion
from ...rotations.so3 import dot
from ...small_arrays import cross, vmap_rows
from ..base.implicit import attach_derivatives
from ..base.replayable import Start
from ..base.step_results import RESULTS
from ..base.terms import apply_direction, unwrap
from ..conserving.base import AbstractStructureSolver
from .alpha_step import AlphaCoefficients, AlphaStep, coefficients, solve_by_newton
from .base import GroupUnknowns, PoseInterpolation, is_inside_chart
from .chart import Chart
from .dynamics import Dynamics, Pose


class AlphaState(NamedTuple):
    r"""State of the solver between two steps.

    **Attributes:** `pseudo`, pseudo-accelerations $a_n$; `rate`, $\dot w_n$; `extra`, a correction
    of the twists in the next step; `h`, length of the step for which these are valid, s; `low`, the
    rounding error of the unknowns; `evaluations`, Newton iterations of the last step.
    """

    pseudo: Float[Array, "L k"]
    rate: Float[Array, "L k"]
    extra: Float[Array, "L k"]
    h: Scalar
    low: Vector
    evaluations: Count


class GeneralizedAlpha(AbstractStructureSolver):
    r"""The Lie-group generalised-alpha method for equations of index 3.

    Newmark's formulas for the twists $w$ of all bodies, with poses updated by the exponential map:

    $$q_{n+1} = q_n \circ \exp(h w_n + (\tfrac12 - \beta) h^2 a_n + \beta h^2 a_{n+1}), \quad
    w_{n+1} = w_n + (1 - \gamma) h a_n + \gamma h a_{n+1},$$
    $$(1 - \alpha_m) a_{n+1} + \alpha_m a_n = (1 - \alpha_f) \dot w_{n+1} + \alpha_f \dot w_n,
    \quad M \dot w + G^T \lambda = f, \quad g(q) = 0 \text{ at } t_{n+1}.$$

    Positions satisfy the joints to round-off, and velocities within the error of the method.
    Quaternions keep their length, and their multipliers follow from those of the joints. Positions,
    velocities and multipliers are of second order from the first step on: in the directions that
    the joints forbid, the initial values are $a_0 = \dot w(t_0 + (\alpha_m - \alpha_f)h)$ and a
    velocity that cancels the first-order error of the multipliers.

    The solver takes `Absolute(system, Quaternion(), index=3)`, also with closed loops, redundant
    constraints (joint multipliers of least norm) and prescribed motions, and
    `NullSpace(system, Quaternion())` of a system without joints. Steps are fixed. The equations of
    a step are solved by Newton's method to round-off; a failure ends the run with
    `nonlinear_divergence`. Derivatives are those of the solution.

    **Arguments:** `spectral_radius`, of the method at infinite frequency, from 0 (high frequencies
    are removed in one step) to 1 (no damping).
    **Raises:** `ValueError` for a radius outside [0, 1].
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
        """Raise `ValueError` for a model that the scheme is not defined on.

        The scheme needs `Absolute(index=3)` in quaternions, or `NullSpace` without joints. The
        message says what to use instead.
        """
        needs = "`GeneralizedAlpha` needs `rj.Absolute(system, rj.Quaternion(), index=3)`"
        if not isinstance(model.rotation, Quaternion):
            raise ValueError(
                f"{needs}: it updates unit quaternions; got `{type(model.rotation).__name__}`. For "
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
                f"{needs}: it imposes the joints on positions; got index={model.index}. For "
                "another index use `rj.solvers.Radau5()`."
            )
        raise ValueError(
            f"{needs}, or without joints `rj.NullSpace(system, rj.Quaternion())` in body rates; "
            f"got `{kind}` with joints or with other rates. For null-space coordinates with joints "
            "use `rj.solvers.MuntheKaas()`."
        )

    def order(self, terms: Terms) -> int:
        return 2

    def evaluations(self, solver_state: AlphaState) -> Count:
        """Return the Newton iterations of the last step."""
        return solver_state.evaluations

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Vector, args: Args) -> AlphaState:
        """Return consistent accelerations and initial values of second order."""
        term, direction = unwrap(terms)
        self.check_model(term.model)
        unknowns, dynamics = GroupUnknowns(term.model), Dynamics(term.model.prepared_system)
        c, (t0, t1) = coefficients(self.spectral_radius), _model_times(direction, t0, t1)
        h = t1 - t0
        pose, w = unknowns.pose(y0), unknowns.twists(y0)
        if unknowns.num_multipliers == 0:
            rate = dynamics.accelerations(t0, pose, w)
            return AlphaState(rate, rate, jnp.zeros_like(w), h, jnp.zeros_like(y0), jnp.array(0))
        rate, jerk = _acceleration_and_jerk(dynamics, t0, pose, w)
        # The position error of a step divided by its length. The correction of the twists contains
        # its part in the directions that the joints forbid.
        error = (1 / 6 - c.beta - 0.5 * c.lead) * jerk
        error = error.at[:, -3:].add(vmap_rows(cross, w[:, -3:], rate[:, -3:]) / 12)
        G = dynamics.constraint_jacobian(t0, pose)
        extra = dynamics.normal_twists(t0, pose, h**2 * (G @ error.ravel()))
        # In the directions that the joints allow, the pseudo-acceleration may start with an error
        # of order h. Extrapolating it there would excite stiff springs.
        lead = dynamics.normal_twists(t0, pose, c.lead * h * (G @ jerk.ravel()))
        return AlphaState(rate + lead, rate, extra, h, jnp.zeros_like(y0), jnp.array(0))

    def make_step(self, start: Start) -> StepResult[AlphaState]:
        _, terms, t0, t1, y0, _, _, solver_state = start
        term, direction = unwrap(terms)
        unknowns, (t0, t1) = GroupUnknowns(term.model), _model_times(direction, t0, t1)
        dynamics, c = Dynamics(unknowns.model.prepared_system), coefficients(self.spectral_radius)
        h, pose, w = t1 - t0, unknowns.pose(y0), unknowns.twists(y0)
        state = _adapt_to_length(dynamics, t0, pose, w, solver_state, h)
        w = w + state.extra
        step = _step_equations(unknowns, dynamics, t0, t1, y0, pose, w, state, c)
        guess = [c.beta * h**2 * state.pseudo.ravel(), step.scale * unknowns.multipliers(y0)]
        z, okay, count = solve_by_newton(step, jnp.concatenate(guess))
        z = attach_derivatives(step, z, okay)
        y1, state = _conclude_step(unknowns, step, z, state, count)
        inside = okay & is_inside_chart(step.increment(z).rotation)
        result = RESULTS.where(inside, RESULTS.successful, RESULTS.nonlinear_divergence)
        dense = dict(
            y0=y0, y1=y1, h=h, w=w, w_rate=solver_state.rate, end=state.rate, unknowns=unknowns
        )
        return y1, None, dense, state, result


def _model_times(direction: int | Array, *ts: Time) -> tuple[Array, ...]:
    """Return the times of the model, which decrease in a run backwards."""
    return tuple(jnp.asarray(apply_direction(direction, jnp.asarray(t))) for t in ts)


def _acceleration_and_jerk(
    dynamics: Dynamics, t: Scalar, pose: Pose, w: Float[Array, "L k"]
) -> tuple[Float[Array, "L k"], Float[Array, "L k"]]:
    """Return the first and second derivatives of the twists along the motion."""

    def acceleration(t, x, p, w):
        return dynamics.accelerations(t, Pose(x, p, pose.angles), w)

    p_dot = vmap_rows(Quaternion().rate, pose.p, w[:, -3:])
    rate = acceleration(t, pose.x, pose.p, w)
    rates = (jnp.ones_like(t), dynamics.twists(w).linear, p_dot, rate)
    return jax.jvp(acceleration, (t, pose.x, pose.p, w), rates)


def _adapt_to_length(
    dynamics: Dynamics, t: Scalar, pose: Pose, w: Float[Array, "L k"], state: AlphaState, h: Scalar
) -> AlphaState:
    """Adapt the state of the solver to a step of another length `h`.

    Pseudo-accelerations are ahead in time by a fraction of the step, and the velocities in
    forbidden directions correct an error proportional to its square.
    """
    ratio = h / state.h
    pseudo = state.rate + ratio * (state.pseudo - state.rate)

    def adapt_extra():
        gap = dynamics.constraint_rate(t, pose, w + state.extra)
        return state.extra + dynamics.normal_twists(t, pose, (ratio**2 - 1) * gap)

    other = jnp.abs(ratio - 1) > 1e-6
    extra = jax.lax.cond(other, adapt_extra, lambda: state.extra)
    return state._replace(pseudo=jnp.where(other, pseudo, state.pseudo), extra=extra, h=h)


def _step_equations(
    unknowns: GroupUnknowns,
    dynamics: Dynamics,
    t0: Scalar,
    t1: Scalar,
    y0: Vector,
    pose: Pose,
    w: Float[Array, "L k"],
    state: AlphaState,
    c: AlphaCoefficients,
) -> AlphaStep:
    h = t1 - t0
    redundant = dynamics.redundant_projection(t0, pose)
    return AlphaStep(
        dynamics=dynamics,
        chart=Chart(y0, unknowns.model.layout, "body"),
        angles=pose.angles + h * dynamics.angle_rates(t0, pose, w),
        t1=t1,
        h=h,
        shift=h * w + (0.5 - c.beta) * h**2 * state.pseudo,
        twist=w + (1 - c.gamma) * h * state.pseudo,
        rate=(c.mass * state.pseudo - c.force * state.rate) / (1 - c.force),
        redundant=None if redundant is None else jax.lax.stop_gradient(redundant),
        c=c,
    )


def _conclude_step(
    unknowns: GroupUnknowns, step: AlphaStep, z: Vector, state: AlphaState, count: Count
) -> tuple[Vector, AlphaState]:
    """Return the unknowns and the state of the solver at the end of a step."""
    dynamics, layout = step.dynamics, unknowns.model.layout
    pose, w, rate, pseudo = step.end(z)
    lam = dynamics.least_norm_multipliers(step.t1, pose, step.split_unknowns(z)[1] / step.scale)
    y, low = step.chart.compensated_point(step.increment(z), state.low)
    x, p = layout.poses(y)
    pose = Pose(x, p, dynamics.angles(Pose(x, p, step.angles)))
    internal = jnp.zeros(0)
    if unknowns.is_absolute:
        internal = dynamics.quaternion_virials(step.t1, pose, w, lam) + _twice_energy(unknowns, w)
    y1 = unknowns.join(pose, w, internal, lam)
    return y1, AlphaState(pseudo, rate, jnp.zeros_like(w), state.h, low, count)


def _twice_energy(unknowns: GroupUnknowns, w: Float[Array, "L k"]) -> Float[Array, " L"]:
    r"""Return $2\,\Omega \cdot I\,\Omega$, the inertial part of the multipliers, Lang (40)."""
    inertias = unknowns.model.prepared_system.inertias
    return jax.vmap(lambda I, w: 2.0 * dot(w, angular_momentum(I, w)))(inertias, w[:, -3:])
