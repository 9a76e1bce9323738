"""Radau IIA methods."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
from jaxtyping import Array, Float, PyTree

from ....annotations import (
    Args,
    Count,
    Flag,
    Matrix,
    Norm,
    Number,
    ReplayResult,
    Scalar,
    StepResult,
    Terms,
    Time,
    Vector,
    Y,
)
from ...base.dense import AbstractDenseOutput
from ...base.implicit import attach_derivatives
from ...base.linear import Inverse, check_linear_solver, inverse_size, solve
from ...base.replayable import Start
from ...base.step_results import newton_result, stop_at_roundoff
from ...base.terms import flatten
from ...explicit.continuous import continuous
from ..base import AbstractDAESolver, check_problem
from ..controllers import PredictiveController
from ..equations import (
    Point,
    build_equations,
    differentiation_index,
    index_scaling,
    step_length,
    stop_gradients,
)
from ..newton import NewtonSolution, SimplifiedNewton, default_newton, iterate
from ..start import check_start_consistency
from .stages import (
    RefinedStages,
    StageEquations,
    StageFactors,
    StageValues,
    combine_stages,
    dense_increments,
    extrapolate_stages,
    factorise_newton_matrix,
    refine_stages,
    solve_newton_equations,
    zero_refined_stages,
    zero_stage_factors,
)
from .tableau import RadauTableau, lagrange_basis, radau_tableau


class CollocationInterpolation(AbstractDenseOutput):
    r"""The collocation polynomial of a step, $y_0 + \sum_i \ell_i(\theta) z_i$, of degree s.

    The local error is of order s + 1 within the step, and of the order of the method at its end.

    **Attributes:** `y0`, start; `z`, increments of the s stages along the leading axis.
    **Source:** Hairer-Wanner II, IV.8, "continuous output".
    """

    t0: Time
    t1: Time
    y0: Y
    z: PyTree[Float[Array, "s ..."]]

    def evaluate_at(self, t: Time) -> Y:
        """Return the unknowns at `t`, s."""
        theta = self.fraction(t)
        stages = len(jax.tree.leaves(self.z)[0])
        basis = jnp.stack(lagrange_basis(radau_tableau(stages).c, theta))
        return jax.tree.map(
            lambda y, z: y + jnp.tensordot(basis.astype(z.dtype), z, axes=1), self.y0, self.z
        )


# Stages of an iteration that does not converge with a new Jacobian are used if its last increment,
# in units of the admitted error of a step, is at most this: after a step that did not converge
# either, and after one that converged. The second bound is lower because a shorter step resolves a
# kink, but no jump.
_STALLED_INCREMENTS = 3.0, 0.3


class RadauState(NamedTuple):
    r"""State between two steps; affects the cost of a step, but not its solution.

    **Attributes:**

    - `M`, `K`: linearisation, (n, n).
    - `factors`: of the Newton matrices for the step length `h_factors`.
    - `stale`: whether the linearisation must be renewed.
    - `Z`: increments of the stages of the last step, (s, n), and `h`, its length.
    - `refined_stages`: for dense output of the last step, see `refine_stages`.
    - `rate`: $\dot y$ at the end of the last step, (n,).
    - `stalled`: whether the last Newton iteration did not converge, see `_STALLED_INCREMENTS`.
    - `evaluations`: in the last attempted step.
    """

    M: Matrix
    K: Matrix
    factors: tuple[StageFactors, ...]
    h_factors: Scalar
    stale: Flag
    Z: StageValues
    refined_stages: RefinedStages | None
    h: Scalar
    rate: Vector
    stalled: Flag
    evaluations: Count


class AbstractRadau(AbstractDAESolver):
    r"""A Radau IIA collocation method of s stages, order 2 s - 1, for stiff equations and DAEs.

    Accepts a `diffrax.ODETerm`, a `MassMatrixTerm` or an `ImplicitTerm`, of index up to 3. The
    stage equations are solved by simplified Newton iterations with one real and (s - 1)/2 complex
    linear systems. Jacobian and factorisations are reused over several steps while the iteration
    converges fast. The collocation polynomial of the last step provides starting values. It is also
    the dense output, of degree s and less accurate than the end of the step. Derivatives are those
    of the solution of the stage equations, not of the iteration.

    Where the right-hand side jumps, the iteration need not converge. Its stages are then used if
    the last increment is of the size of the tolerance, and the error estimate decides about the
    step.

    A step that cannot be solved has an infinite error estimate, so that an adaptive controller
    shortens it. If the step cannot be solved even at round-off length, or if its length is fixed,
    the run ends with `nonlinear_divergence`, `singular`, `nonfinite` or `dt_min_reached`. With
    `PredictiveController` the step sizes are those of the original code; diffrax's `PIDController`
    is equally possible.

    **Arguments:**

    - `root_finder`: a `SimplifiedNewton`.
    - `linear_solver`: any linear solver of lineax for square matrices, real and complex.
    - `refined`: whether dense output is as accurate as the steps, by the method of 2 s - 1 stages
      over the same step; `rj.simulate` sets it if values between steps are saved.
    - `root_find_max_steps`: without effect; see `max_steps` of `SimplifiedNewton`.

    **Raises:** `TypeError`, `ValueError` for an unsuitable linear solver.
    **Source:** Hairer-Wanner II, IV.5, IV.8; for DAEs VI.1, VII.4.
    """

    stages: eqx.AbstractClassVar[int]
    root_finder: SimplifiedNewton = eqx.field(default_factory=default_newton)
    root_find_max_steps: int = eqx.field(static=True, default=8)
    linear_solver: lx.AbstractLinearSolver = eqx.field(default_factory=Inverse)
    refined: bool = eqx.field(static=True, default=False)

    max_index: ClassVar[int] = 3
    takes_residuals: ClassVar[bool] = True
    # The first iterate of the probe is computed at the start of the step. For index 3 its error in
    # the constraints is as large as the increment of the step.
    probe_patience: ClassVar[int | None] = 2
    interpolation_cls: ClassVar = CollocationInterpolation  # pyright: ignore

    def __check_init__(self):
        check_linear_solver(type(self).__name__, self.linear_solver)

    @property
    def tableaus(self) -> tuple[RadauTableau, ...]:
        """Tableaus of the method and, if `refined`, of the method for dense output."""
        counts = (self.stages, 2 * self.stages - 1) if self.refined else (self.stages,)
        return tuple(map(radau_tableau, counts))

    def order(self, terms: Terms) -> int:
        """Return the order of the method."""
        return 2 * self.stages - 1

    def error_order(self, terms: Terms) -> int:
        """Return the order of the error estimate."""
        return self.stages + 1

    def controller(self, rtol: Number, atol: Number, norm: Norm) -> PredictiveController:
        """Return Gustafsson's predictive controller."""
        return PredictiveController(rtol=rtol, atol=atol, norm=norm)

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args) -> RadauState:
        """Return the initial state, without a linearisation."""
        check_problem(self, terms, y0)
        y, _ = flatten(y0)
        n, s, dtype = y.size, self.stages, y.dtype
        square, zero = jnp.zeros((n, n), dtype), jnp.zeros((), dtype)
        eqs = build_equations(terms, t0, y0, args)
        rate = stop_gradients(eqs).start_rate(*stop_gradients((t0, y)))
        state = RadauState(
            M=square, K=square, h_factors=zero,
            factors=tuple(
                zero_stage_factors(self.linear_solver, n, dtype, tableau, eqs.rates)
                for tableau in self.tableaus
            ),
            stale=jnp.array(True), Z=jnp.zeros((s, n), dtype),
            refined_stages=zero_refined_stages(s, n, dtype) if self.refined else None, h=zero + 1,
            rate=rate, stalled=jnp.array(False), evaluations=jnp.array(0),
        )  # fmt: skip
        return check_start_consistency(self, terms, t0, y0, eqs, state)

    def make_step(self, start: Start) -> StepResult[RadauState]:
        _, terms, t0, t1, y0, args, made_jump, solver_state = start
        y, unravel = flatten(y0)
        step = StageEquations(build_equations(terms, t0, y0, args), t0, t1, y, self.stages)
        fixed, state = stop_gradients((step, solver_state))
        # `True` means a projection, a small change of the unknowns: the Jacobian remains valid.
        if made_jump is not True:
            state = state._replace(
                stale=state.stale | made_jump, Z=jnp.where(made_jump, 0.0, state.Z)
            )
        before = state
        finder, tableau = self.root_finder, self.tableaus[0]
        h = step_length(fixed.t0, fixed.t1, y.dtype)
        index = differentiation_index(terms)
        scale = finder.scale(unravel(fixed.y0), index, h)

        def norm(v):
            return finder.norm(unravel(v / scale)).astype(y.dtype)

        def stage_norm(change):
            # The root mean square over all stages, as in the code RADAU5.
            return jnp.sqrt(jnp.mean(jax.vmap(norm)(change) ** 2))

        tolerance = finder.tolerance(unravel(fixed.y0), scale)
        linear = stop_gradients(self.linear_solver)
        point, state, outcome = _solve_stages(
            fixed, state, h, tolerance, stage_norm, finder, self.tableaus, linear
        )
        okay = outcome.converged
        Z = jnp.where(okay, outcome.Z, 0.0)
        real = state.factors[0].real
        if self.refined:
            refined_stages, count = refine_stages(
                fixed, Z, state.factors[1], outcome.eta, tolerance, stage_norm, finder.max_steps,
                linear,
            )  # fmt: skip
            state = state._replace(
                refined_stages=refined_stages, evaluations=state.evaluations + count
            )

        def filter_error(r):
            return -solve(linear, real, r)

        refilters = jnp.all(before.Z == 0) | (h < before.h)
        error, count = _estimate_error(fixed, point, filter_error, Z, h, norm, tableau, refilters)
        size = jnp.where(okay, norm(error), jnp.inf)
        result = newton_result(okay, state.K, inverse_size(linear, real, y.size, y.dtype))
        error = jnp.where(okay, index_scaling(index, h) * error, jnp.inf)
        error, result = stop_at_roundoff(fixed.t0, fixed.t1, size, error, result)

        state = state._replace(
            stale=(outcome.theta > finder.reuse) | ~okay,
            Z=Z,
            h=h,
            rate=combine_stages(tableau.A_inverse[-1], Z) / h,
            evaluations=state.evaluations + count,
        )
        y1, dense = _finish_step(step, Z, okay, state.refined_stages, unravel, self.linear_solver)
        return y1, unravel(error), dense, state, result

    def history(self, solver_state: RadauState) -> tuple[None, None]:
        """Return no history: this is a one-step method."""
        return None, None

    def step_record(
        self, before: RadauState, after: RadauState
    ) -> tuple[StageValues, RefinedStages | None]:
        """Return the stages of a step and its refined stages."""
        return after.Z, after.refined_stages

    def replay(
        self, start: Start, step_record: tuple[StageValues, RefinedStages | None]
    ) -> ReplayResult:
        """Repeat a step of known stages."""
        _, terms, t0, t1, y0, args, _, _ = start
        y, unravel = flatten(y0)
        step = StageEquations(build_equations(terms, t0, y0, args), t0, t1, y, self.stages)
        Z, refined_stages = step_record
        return *_finish_step(step, Z, True, refined_stages, unravel, self.linear_solver), (
            None,
            None,
        )


@continuous.register
def _refine_dense_output(solver: AbstractRadau) -> AbstractRadau:
    # For a single stage, both polynomials have degree 1.
    return dataclasses.replace(solver, refined=True) if solver.stages > 1 else solver


def _finish_step(
    step: StageEquations,
    Z: StageValues,
    okay: bool | Flag,
    refined_stages: RefinedStages | None,
    unravel: Callable[[Vector], Y],
    linear_solver: lx.AbstractLinearSolver,
):
    """Return the unknowns at the end of a step and its dense information."""
    Z = attach_derivatives(step, Z, okay, linear_solver)
    inner = (
        Z if refined_stages is None else dense_increments(step, Z, refined_stages, linear_solver)
    )
    return unravel(step.y0 + Z[-1]), dict(y0=unravel(step.y0), z=jax.vmap(unravel)(inner))


def _solve_stages(
    step: StageEquations,
    state: RadauState,
    h: Scalar,
    tolerance: Scalar,
    stage_norm: Callable[[StageValues], Scalar],
    finder: SimplifiedNewton,
    tableaus: tuple[RadauTableau, ...],
    linear_solver: lx.AbstractLinearSolver,
):
    """Solve for the stages with the old Jacobian, or with a new one if that fails."""
    tableau = tableaus[0]
    start = extrapolate_stages(state.Z, h / state.h, tableau)
    n = step.y0.size
    limit = jnp.where(state.stalled, *_STALLED_INCREMENTS)
    # RADAU5 uses the rate of the last step and accepts a first iterate by it. A step into a kink
    # would then be solved with the Jacobian of the side that it leaves, and the kink be missed.
    unknown = jnp.ones_like(h)

    def attempt(carry):
        tries, _, _, state, _ = carry
        count = jnp.where(tries == 0, 1, state.evaluations + 1)
        fresh = state.stale | (tries > 0)
        point, M, K = jax.lax.cond(
            fresh,
            lambda: step.equations.linearize(step.t0, step.y0, state.rate),
            lambda: (step.equations.evaluate(step.t0, step.y0), state.M, state.K),
        )
        same = jnp.abs(h - state.h_factors) <= 4 * jnp.finfo(h.dtype).eps * h
        systems = jax.lax.cond(
            fresh | ~same,
            lambda: tuple(
                factorise_newton_matrix(linear_solver, M, K, h, t, step.equations.rates)
                for t in tableaus
            ),
            lambda: state.factors,
        )
        outcome = iterate(
            step.residual,
            lambda r: solve_newton_equations(linear_solver, systems[0], r, tableau),
            start, unknown, tolerance, stage_norm, finder.max_steps, finder.patience,
        )  # fmt: skip
        # No shorter step makes an iteration across a jump converge. Its increments have the size of
        # the jump times the length of the step, and so has the error estimate, which decides.
        stalled = ~outcome.converged
        outcome = outcome._replace(converged=outcome.converged | (fresh & (outcome.size <= limit)))
        state = state._replace(
            M=M, K=K, factors=systems, h_factors=h, stalled=stalled,
            evaluations=count + len(tableau.c) * outcome.count,
        )  # fmt: skip
        return tries + 1, fresh, point, state, outcome

    def tries_again(carry):
        tries, fresh, _, _, outcome = carry
        return (tries == 0) | ((tries == 1) & ~fresh & ~outcome.converged)

    no, zero = jnp.array(False), jnp.zeros((), h.dtype)
    shapes = jax.eval_shape(step.equations.evaluate, step.t0, step.y0)
    point = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    outcome = NewtonSolution(
        jnp.zeros((len(tableau.c), n), h.dtype), no, zero, zero, zero, jnp.array(0)
    )
    carry = jnp.array(0), no, point, state, outcome
    _, _, point, state, outcome = jax.lax.while_loop(tries_again, attempt, carry)
    return point, state, outcome


def _estimate_error(
    step: StageEquations,
    point: Point,
    filter_error: Callable[[Vector], Vector],
    Z: StageValues,
    h: Scalar,
    norm: Callable[[Vector], Scalar],
    tableau: RadauTableau,
    refilters: Flag,
):
    r"""Return the error estimate, (n,), and its number of evaluations.

    The estimate is filtered a second time if `refilters` is set and the first result is too large.
    **Source:** Hairer-Wanner II, IV.8 (8.19), (8.20); for $M(t, y)\dot y = f$ and $F = 0$ the
    residual at the rate $-\sum_i d_i z_i/h$ replaces $f_0 + M \sum_i d_i z_i / h$.
    """
    rate = -combine_stages(tableau.error, Z) / h
    error = filter_error(step.equations.residual_at(point, step.t0, step.y0, rate))

    def filter_again():
        return filter_error(step.equations.residual(step.t0, step.y0 + error, rate))

    large = (norm(error) >= 1) & refilters
    return jax.lax.cond(large, filter_again, lambda: error), jnp.where(large, 1, 0)


class Radau5(AbstractRadau):
    """Radau IIA with three stages, order 5; see `AbstractRadau`."""

    stages: ClassVar[int] = 3


class Radau1(AbstractRadau):
    """Radau IIA with one stage, order 1: the implicit Euler method; see `AbstractRadau`."""

    stages: ClassVar[int] = 1


class Radau9(AbstractRadau):
    """Radau IIA with five stages, order 9; see `AbstractRadau`."""

    stages: ClassVar[int] = 5


class Radau13(AbstractRadau):
    """Radau IIA with seven stages, order 13; see `AbstractRadau`."""

    stages: ClassVar[int] = 7
