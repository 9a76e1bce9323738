"""Backward differentiation formulas."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx

from ....annotations import (
    Args,
    Count,
    Flag,
    History,
    Jump,
    ReplayResult,
    Scalar,
    StepResult,
    Terms,
    Time,
    Vector,
    Y,
)
from ...base.dense import DifferenceInterpolation
from ...base.implicit import attach_derivatives
from ...base.linear import (
    Factorisation,
    Inverse,
    check_linear_solver,
    factorise,
    inverse_size,
    solve,
    zero_factorisation,
)
from ...base.rate_elimination import Pairs
from ...base.replayable import Start
from ...base.step_results import newton_result, stop_at_roundoff
from ...base.terms import Index, flatten
from ..base import AbstractProposingSolver, check_problem
from ..controllers import controller_scale, encode_step_factor
from ..equations import (
    AbstractEquations,
    build_equations,
    differentiation_index,
    step_length,
    stop_gradients,
)
from ..newton import NewtonSolution, SimplifiedNewton, default_newton, iterate
from ..start import check_start_consistency
from .multistep import (
    MAX_ORDER,
    Correction,
    DifferenceCoefficients,
    DifferenceHistory,
    Differences,
    choose_order_and_step,
    correction_equations,
    estimate_errors,
    restart_history,
    retry_factor,
    update_differences,
)

# Fraction of the tolerance that the error of a step may reach: errors of the steps of an undamped
# motion add up.
_FRACTION = 0.1
# For index 3 the fraction is smaller: the error of a position enters the rates divided by the step,
# and the rates change the positions. Errors below `_LEAST_ERROR` units of round-off are not
# resolved in the multipliers.
_FRACTION_OF_INDEX_3, _LEAST_ERROR = 5e-5, 225.0
# Length relative to the last step below which the method restarts, reached after three rejections.
_RESTART = 0.06


class BDFState(NamedTuple):
    """State of the BDF method between two steps.

    **Attributes:**

    - `history`: the differences.
    - `order`: of the next step.
    - `rising`: whether the order has never fallen.
    - `last_order`, `h`, `cj`: order, length and leading coefficient of the last step.
    - `equal`: number of successive steps of this length and order.
    - `factors`: of the Newton matrix, (n, n), for the leading coefficient `cj_factors`.
    - `largest`: largest entry of the Jacobian in this matrix.
    - `eta`: of the last Newton iteration, see `NewtonSolution`.
    - `evaluations`: in the last attempted step.
    """

    history: DifferenceHistory
    order: Count
    rising: Flag
    last_order: Count
    h: Scalar
    cj: Scalar
    equal: Count
    factors: Factorisation
    cj_factors: Scalar
    largest: Scalar
    eta: Scalar
    evaluations: Count


def _default_root_finder() -> SimplifiedNewton:
    # A smaller `kappa` costs more iterations than it saves steps; with 0.3 steps are rejected.
    return default_newton(kappa=0.1)


class BDF(AbstractProposingSolver):
    r"""BDF method of variable order 1 to 5 and variable step, with fixed leading coefficient.

    The formulas have reduced error constants, see `formulas`. Accepts a `diffrax.ODETerm`, a
    `MassMatrixTerm` or an `ImplicitTerm`, of index up to 3. The error of a step may reach a tenth
    of the tolerance. With constraints on positions the limit is 5e-5 of the tolerance, because
    errors of positions enter the velocities divided by the step; `Radau5` or a lower index takes
    fewer steps there.

    `rtol` and `atol` bound the error of each step. The global error is larger: errors of steps add
    up, and the equations amplify them, for example by about 1e4 over one revolution of an orbit of
    eccentricity 0.9. `Radau5` and explicit methods of high order have smaller global errors on such
    problems.

    The history is stored as modified divided differences. A Newton matrix is reused while the
    leading coefficient stays within a factor of 0.6. The method proposes its own steps, see
    `ProposedStepController`. Unknowns that are changed between steps, for example by a projection,
    replace the last value of the history; after a jump the method restarts with order 1. Failures
    are handled as in `AbstractRadau`.

    **Arguments:** `root_finder`, a `SimplifiedNewton`; `linear_solver`, any linear solver of lineax
    for square matrices; `max_order`, 1 to 5; `root_find_max_steps`, largest number of Newton
    iterations in a step.
    **Raises:** `ValueError` for another order; `TypeError`, `ValueError` for an unsuitable linear
    solver.
    **Source:** Brenan-Campbell-Petzold, chapter 5 (the code DASSL); Shampine-Reichelt, The MATLAB
    ODE suite, 2.
    """

    root_finder: SimplifiedNewton = eqx.field(default_factory=_default_root_finder)
    root_find_max_steps: int = eqx.field(static=True, default=5)

    linear_solver: lx.AbstractLinearSolver = eqx.field(default_factory=Inverse)

    max_order: int = eqx.field(static=True, default=MAX_ORDER)

    max_index: ClassVar[int] = 3
    is_multistep: ClassVar[bool] = True
    takes_residuals: ClassVar[bool] = True
    interpolation_cls: ClassVar = DifferenceInterpolation  # pyright: ignore

    def __check_init__(self):
        if self.max_order not in range(1, MAX_ORDER + 1):
            raise ValueError(f"`BDF(max_order=...)` must be 1 to 5; got {self.max_order!r}.")
        check_linear_solver("BDF", self.linear_solver)

    def order(self, terms: Terms) -> int:
        """Return the largest order."""
        return self.max_order

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args) -> BDFState:
        """Return the initial state, with order 1."""
        check_problem(self, terms, y0)
        y, _ = flatten(y0)
        h = step_length(t0, t1, y.dtype)
        eqs = build_equations(terms, t0, y0, args)
        state = _reset_state(
            restart_history(eqs, t0, h, y, differentiation_index(terms)),
            y,
            self.linear_solver,
            eqs.rates,
        )
        return check_start_consistency(self, terms, t0, y0, eqs, state)

    def make_step(self, start: Start) -> StepResult[BDFState]:
        _, terms, t0, t1, y0, args, made_jump, solver_state = start
        y, unravel = flatten(y0)
        eqs = build_equations(terms, t0, y0, args)
        state, h = solver_state, step_length(t0, t1, y.dtype)
        history = _history_at_start(
            eqs, t0, h, y, state.history, made_jump, differentiation_index(terms)
        )
        if isinstance(made_jump, bool):
            state = state._replace(history=history)
        else:
            fresh = _reset_state(history, y, self.linear_solver, eqs.rates)
            unchanged = state._replace(history=history)
            state = jax.tree.map(lambda a, b: jnp.where(made_jump, a, b), fresh, unchanged)
        # A step this short follows several rejections, for example at a discontinuity: restart.
        restarts = h < _RESTART * state.h
        k = jnp.where(restarts, 1, state.order)
        rising = restarts | state.rising
        problem, phi, c = correction_equations(eqs, t1, h, state.history, k)

        fixed, fixed_state, fixed_phi, fixed_c = stop_gradients((problem, state, phi, c))
        finder, index = self.root_finder, differentiation_index(terms)
        # The scale is that of the end of the step. If an algebraic unknown shrinks during the step,
        # an iteration error admitted by the scale of the start can be too large for the next step,
        # however short that is.
        fraction = _tolerance_fraction(index, eqs.rates, finder, y.dtype)
        scale = fraction * finder.scale(unravel(fixed.y), index, stop_gradients(h))

        def norm(v):
            return finder.norm(unravel(v / scale)).astype(y.dtype)

        tolerance = finder.tolerance(unravel(fixed.y), scale)
        limit = self.root_find_max_steps
        linear = stop_gradients(self.linear_solver)
        fixed_state, outcome = _solve_correction(fixed, fixed_state, tolerance, norm, limit, linear)
        okay = outcome.converged
        E = jnp.where(okay, outcome.Z, 0.0)
        same = (jnp.abs(h - state.h) <= 1e-9 * h) & (k == state.last_order)
        equal = jnp.minimum(jnp.where(same, state.equal, 0) + 1, state.last_order + 2)
        last = (k + 1 < equal) & (k - state.last_order != 1)
        estimates = estimate_errors(fixed_phi, E, last, fixed_c, k, norm)
        size = jnp.where(okay, estimates.size, jnp.inf)
        accept = size < 1
        choice = choose_order_and_step(estimates, k, rising, self.max_order)
        factor = jnp.where(accept, choice.factor, retry_factor(estimates, k))
        unit_error = controller_scale(finder, y0, unravel(fixed.y + E))
        error = jnp.where(okay, encode_step_factor(unit_error, accept, factor), jnp.inf)
        inverse = inverse_size(linear, fixed_state.factors, y.size, y.dtype)
        result = newton_result(okay, fixed_state.largest, inverse)
        error, result = stop_at_roundoff(
            stop_gradients(t0), stop_gradients(t1), size, error, result
        )

        y1, dense, history = _finish_step(problem, phi, c, E, okay, k, unravel, self.linear_solver)
        state = fixed_state._replace(
            history=history, order=choice.order, rising=choice.rising, last_order=k,
            h=stop_gradients(h), cj=fixed.cj, equal=equal, eta=outcome.eta,
        )  # fmt: skip
        return y1, unravel(error), dense, state, result

    def history(self, solver_state: BDFState) -> History:
        """Return the differences and the sums of step lengths."""
        return solver_state.history.phi, solver_state.history.psi

    def step_record(self, before: BDFState, after: BDFState) -> tuple[Vector, Count]:
        """Return the correction and the order of a step."""
        return after.history.phi[after.last_order + 1], after.last_order

    def replay(self, start: Start, step_record: tuple[Vector, Count]) -> ReplayResult:
        """Repeat a step of known correction and order."""
        _, terms, t0, t1, y0, args, made_jump, history = start
        y, unravel = flatten(y0)
        eqs = build_equations(terms, t0, y0, args)
        h = step_length(t0, t1, y.dtype)
        E, k = step_record
        differences = _history_at_start(
            eqs, t0, h, y, DifferenceHistory(*history), made_jump, differentiation_index(terms)
        )
        problem, phi, c = correction_equations(eqs, t1, h, differences, k)
        y1, dense, last = _finish_step(problem, phi, c, E, True, k, unravel, self.linear_solver)
        return y1, dense, (last.phi, last.psi)


def _tolerance_fraction(index: Index, rates: Pairs, finder: SimplifiedNewton, dtype: jnp.dtype):
    """Return the fraction of the tolerance that the error of a step may reach.

    Constraints on positions are recognised by velocities of index 2, also where multipliers are
    eliminated.
    """
    if index is None or (max(index) < 3 and all(index[j] < 2 for _, j in rates)):
        return _FRACTION
    rtol, limits = jnp.max(jnp.asarray(finder.rtol, dtype)), jnp.finfo(dtype)
    least = _LEAST_ERROR * limits.eps / jnp.maximum(rtol, limits.tiny)
    return jnp.clip(least, _FRACTION_OF_INDEX_3, _FRACTION)


def _history_at_start(
    eqs: AbstractEquations,
    t0: Time,
    h: Scalar,
    y: Vector,
    history: DifferenceHistory,
    made_jump: Jump,
    index: Index,
):
    """Return the history at the start of a step, after a jump (`True` means a projection)."""
    if made_jump is False:
        return history
    if made_jump is True:
        return history.with_last_value(y)
    return jax.lax.cond(
        made_jump, lambda: restart_history(eqs, t0, h, y, index), lambda: history.with_last_value(y)
    )


def _finish_step(
    problem: Correction,
    phi: Differences,
    c: DifferenceCoefficients,
    E: Vector,
    okay: bool | Flag,
    k: Count,
    unravel: Callable[[Vector], Y],
    linear_solver: lx.AbstractLinearSolver,
):
    """Return the unknowns at the end of a step, its dense information and the history."""
    E = attach_derivatives(problem, E, okay, linear_solver)
    history = DifferenceHistory(update_differences(phi, E, k), c.psi)
    inside = (jnp.arange(phi.shape[0]) <= k)[:, None]
    dense = dict(phi=jax.vmap(unravel)(jnp.where(inside, history.phi, 0.0)), psi=c.psi)
    return unravel(problem.y + E), dense, history


def _reset_state(
    history: DifferenceHistory, y: Vector, linear_solver: lx.AbstractLinearSolver, rates: Pairs
):
    n, dtype = y.size, y.dtype
    zero, one = jnp.zeros((), dtype), jnp.ones((), dtype)
    count = jnp.array(1)
    return BDFState(
        history=history, order=count, rising=jnp.array(True), last_order=count, h=zero, cj=zero,
        equal=count - 1, factors=zero_factorisation(linear_solver, n, dtype, rates),
        cj_factors=zero, largest=zero, eta=one, evaluations=count - 1,
    )  # fmt: skip


def _solve_correction(
    problem: Correction,
    state: BDFState,
    tolerance: Scalar,
    norm: Callable[[Vector], Scalar],
    limit: int,
    linear_solver: lx.AbstractLinearSolver,
):
    """Solve for the correction with the old Jacobian, or with a new one if that fails."""
    eqs, cj = problem.equations, problem.cj
    start = jnp.zeros_like(problem.y)
    ratio = cj / jnp.where(state.cj_factors > 0, state.cj_factors, jnp.inf)
    stale = ~((ratio > 0.6) & (ratio < 1.0 / 0.6))

    def attempt(carry):
        tries, _, state, _ = carry
        fresh = stale | (tries > 0)

        def refactorise():
            _, M, K = eqs.linearize(problem.t, problem.y, problem.rate)
            return factorise(linear_solver, cj * M + K, eqs.rates), jnp.max(jnp.abs(K)), cj

        system, largest, cj_factors = jax.lax.cond(
            fresh, refactorise, lambda: (state.factors, state.largest, state.cj_factors)
        )
        # Compensates increments for a matrix with another leading coefficient.
        damping = 2.0 / (1.0 + cj / cj_factors)
        eta = jnp.where(fresh | (jnp.abs(cj - state.cj) > 1e-9 * cj), 1.0, state.eta)
        outcome = iterate(
            problem.residual,
            lambda r: damping * solve(linear_solver, system, r),
            start, eta, tolerance, norm, limit,
        )  # fmt: skip
        count = jnp.where(tries == 0, 0, state.evaluations) + outcome.count
        state = state._replace(
            factors=system, largest=largest, cj_factors=cj_factors, evaluations=count
        )
        return tries + 1, fresh, state, outcome

    def tries_again(carry):
        tries, fresh, _, outcome = carry
        return (tries == 0) | ((tries == 1) & ~fresh & ~outcome.converged)

    no, zero = jnp.array(False), jnp.zeros((), cj.dtype)
    outcome = NewtonSolution(start, no, zero, zero, zero, jnp.array(0))
    _, _, state, outcome = jax.lax.while_loop(
        tries_again, attempt, (jnp.array(0), no, state, outcome)
    )
    return state, outcome
