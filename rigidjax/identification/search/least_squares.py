"""Trust-region minimisation over all runs, with exact Jacobians and a growing horizon."""

import contextlib
import contextvars
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ...native import gc_paused
from ...persistent_jit import persistent_jit
from .evaluation import Evaluation, evaluate, in_horizon
from .losses import AbstractLoss, Squares
from .problem import FitProblem, RunData
from .trust_region import (
    AbstractRegion,
    DampedRegion,
    LinearProblem,
    LineSearchRegion,
    StepBounds,
    reduce_problem,
    triangular_factor,
)

T = TypeVar("T")

# Tolerance of all stages except the last, and the distance to the optimum at which they end, in
# standard errors. Closer is not worth while: a longer horizon moves the optimum by as much.
_COARSE, _COARSE_DISTANCE = 1e-3, 3.0

# Largest distance to the optimum of a converged fit, in standard errors.
MAX_DISTANCE = 0.1
# Largest distance to the optimum at convergence, in multiples of the tolerance.
_OFFSET = 100.0
# Fraction of the predicted reduction that a step must achieve to be accepted.
_ENOUGH = 1e-2
# Multiple of the tolerance, relative to the readings, below which the remaining reduction is nil.
_EXPLAINED = 1e-2


class Minimum(eqx.Module):
    """Result of a minimisation.

    **Attributes:**

    - `shared` (S,), `per_run` (B, P): the coordinates.
    - `leaves`: of all parameters in every run, with a leading run axis.
    - `first`, `last`: evaluations at the start and at the end.
    - `converged`: whether a criterion was met in the last stage.
    - `removable`, `scatter`: at the end, see `LinearProblem.residual_split`.
    - `sides`: of each coordinate, see `LinearProblem`.
    - `iterations`: of each stage; an iteration is one evaluation of residuals and Jacobian.
    - `failures`: number of iterations that were rejected because a simulation failed.
    - `cost`: half the sum of squares after every iteration of each stage, `inf` after its end.
    """

    shared: Float[Array, " S"]
    per_run: Float[Array, "B P"]
    leaves: list[Array]
    first: Evaluation
    last: Evaluation
    converged: Bool[Array, ""]
    removable: Float[Array, ""]
    scatter: Float[Array, ""]
    sides: Int[Array, " U"]
    iterations: Int[Array, " K"]
    failures: Int[Array, ""]
    cost: Float[Array, "K M"]

    def distance_to_optimum(self, least: Any = 0.0, xp: Any = jnp) -> Any:
        """Return the RMS distance to the optimum of the linearisation, in standard errors.

        **Arguments:** `least`, the variance below which scatter is not noise; `xp`, `jax.numpy` or
        `numpy`.
        """
        removable, scatter = xp.asarray(self.removable), xp.asarray(self.scatter)
        return xp.sqrt(removable / xp.maximum(scatter, least))


class Search(eqx.Module):
    """Options of the search for a minimum.

    **Attributes:** `horizons`, increasing to 1; `tolerance`, relative, of the last stage;
    `max_iterations` of a stage; `loss`; `damped`, whether to use Levenberg-Marquardt instead of
    Gauss-Newton.
    """

    horizons: Float[np.ndarray | Array, " K"]
    tolerance: Float[np.ndarray | Array, ""]
    max_iterations: int = eqx.field(static=True)
    loss: AbstractLoss
    damped: bool = eqx.field(static=True, default=True)

    @property
    def distance_tolerance(self) -> Float[np.ndarray | Array, ""]:
        """Largest distance to the optimum at which the search may end, in standard errors."""
        return _OFFSET * self.tolerance

    def region(self, dtype: Any) -> AbstractRegion:
        """Return the initial trust region."""
        return (DampedRegion if self.damped else LineSearchRegion).new(dtype)

    def with_full_horizon(self) -> "Search":
        """Return the options with one stage over the whole horizon."""
        return dataclasses.replace(self, horizons=np.ones_like(self.horizons[:1]))

    def with_full_horizons(self) -> "Search":
        """Return the options with the whole horizon in every stage, which reuse compiled code."""
        return dataclasses.replace(self, horizons=np.ones_like(self.horizons))


class Iteration(NamedTuple):
    """Progress of a minimisation: the horizon of the stage, the iteration in it, and the cost.

    Number 0, with NaN as the cost, precedes the first iteration and its compilation.
    """

    horizon: float
    number: int
    cost: float


_on_iteration: contextvars.ContextVar[Callable[[Iteration], None] | None] = contextvars.ContextVar(
    "on_iteration", default=None
)


@contextlib.contextmanager
def on_iteration(function: Callable[[Iteration], None]) -> Iterator[None]:
    """Call a function before the first and after every iteration inside the context."""
    token = _on_iteration.set(function)
    try:
        yield
    finally:
        _on_iteration.reset(token)


@gc_paused()
def minimise(problem: FitProblem, search: Search) -> Minimum:
    """Minimise the sum of the losses of the weighted residuals, from the start of the problem."""
    callback = _on_iteration.get()
    return (
        _minimise(problem, search)
        if callback is None
        else _minimise_with_callback(problem, search, callback)
    )


@persistent_jit
def _minimise(problem: FitProblem, search: Search) -> Minimum:
    return minimise_from(problem, *problem.start_coordinates(), search)


def _minimise_with_callback(
    problem: FitProblem, search: Search, callback: Callable[[Iteration], None]
) -> Minimum:
    """Minimise with the loop in Python, since compiled code with callbacks is never cached."""
    callback(Iteration(float(search.horizons[0]), 0, math.nan))
    state = persistent_jit(begin_search)(problem, *problem.start_coordinates(), search)
    while bool(is_searching(search, state)):
        stage, number = int(state.stage), int(state.stage_state.iterations) + 1
        state = _advance_search_compiled(problem, search, state)
        cost = float(state.cost[stage, number - 1])
        callback(Iteration(float(search.horizons[stage]), number, cost))
    return persistent_jit(make_minimum)(problem, state)


def minimise_from(
    problem: FitProblem, shared: Float[Array, " S"], per_run: Float[Array, "B P"], search: Search
) -> Minimum:
    """Minimise the sum of the losses of the weighted residuals.

    In stage k only samples in the first fraction `horizons[k]` of each run count, and runs end
    there. Over a short time a trajectory depends on its parameters almost linearly, over a long
    time there are local minima. All stages but the last penalise changes of coordinates with a
    natural scale (logarithms and angles), which are still poorly known, take at most a quarter of
    `max_iterations`, and end where the remaining step is below three standard errors. Priors of
    parameters count in every stage. If the simulation fails at the start, the search ends at once.

    **Arguments:** `problem`; `shared`, `per_run`, start coordinates; `search`.
    """
    state = jax.lax.while_loop(
        lambda state: is_searching(search, state),
        lambda state: advance_search(problem, search, state),
        begin_search(problem, shared, per_run, search),
    )
    return make_minimum(problem, state)


class SearchState(NamedTuple):
    """State of the search: its stage, and the coordinates and residuals at the start of the stage.

    `origin`, the coordinates at the start of the search. `first` is valid after the first
    iteration, and `residuals` after the first iteration of a stage.
    """

    stage: Array
    origin: Array
    x: Array
    residuals: Array
    feasible: Array
    stage_state: "StageState"
    first: Evaluation
    converged: Array
    removable: Array
    scatter: Array
    sides: Array
    failures: Array
    iterations: Array
    cost: Array


class StageState(NamedTuple):
    """State of the iterations within a stage."""

    iterate: "Iterate"
    region: AbstractRegion
    iterations: Array
    done: Array


def begin_search(
    problem: FitProblem, shared: Float[Array, " S"], per_run: Float[Array, "B P"], search: Search
) -> SearchState:
    """Return the initial state of a search."""
    x = _join_coordinates(shared, per_run)
    count = search.horizons.shape[0]
    box = _step_bounds(problem, x)
    shapes = eqx.filter_eval_shape(evaluate, problem, shared, per_run)
    num_runs, _, size = shapes.jacobian.shape
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    blank = _replace_jacobian(blank, jnp.zeros((num_runs, size + 1, size), x.dtype))
    nothing = jnp.zeros_like(x[0])
    return SearchState(
        stage=jnp.array(0),
        origin=x,
        x=x,
        residuals=blank.residuals,
        feasible=jnp.array(True),
        stage_state=_begin_stage(search, x, blank, box),
        first=blank,
        converged=jnp.array(False),
        removable=nothing,
        scatter=nothing,
        sides=jnp.zeros(x.shape, int),
        failures=jnp.array(0),
        iterations=jnp.zeros(count, int),
        cost=jnp.full((count, search.max_iterations), jnp.inf, x.dtype),
    )


def is_searching(search: Search, state: SearchState) -> Bool[Array, ""]:
    """Return whether there is another iteration."""
    return (state.stage < search.horizons.shape[0]) & state.feasible


def advance_search(
    problem: FitProblem, search: Search, state: SearchState, running: Any = True
) -> SearchState:
    """Perform one iteration, and end the stage if it was its last one.

    **Arguments:** `running`, whether the new state will be used; if not, nothing is simulated.
    """
    stage, iteration = state.stage, state.stage_state.iterations
    stage_state, okay = _stage_step(problem, search, state, running)
    iterate = stage_state.iterate
    is_last = stage == search.horizons.shape[0] - 1
    max_iterations = jnp.where(is_last, search.max_iterations, search.max_iterations // 4)
    is_first = (stage == 0) & (iteration == 0)
    feasible = jnp.where(is_first, okay, state.feasible)
    # Motions beyond the horizon were not simulated before: if they fail, the stage begins with the
    # start of the search.
    fails = (iteration == 0) & ~okay & jnp.any(state.x != state.origin)
    stage_ends = stage_state.done | (stage_state.iterations >= max_iterations) | ~feasible
    cost = jnp.where(iterate.okay, iterate.linear.cost, jnp.inf)
    same_stage = state._replace(
        stage_state=stage_state,
        first=_select(is_first, iterate.evaluation, state.first),
        residuals=jnp.where(iteration == 0, iterate.evaluation.residuals, state.residuals),
        feasible=feasible,
        failures=state.failures + jnp.where(okay, 0, 1),
        iterations=state.iterations.at[stage].set(stage_state.iterations),
        cost=state.cost.at[stage, iteration].set(cost),
    )
    next_stage = same_stage._replace(
        stage=stage + 1,
        x=iterate.x,
        feasible=feasible & jnp.all(iterate.evaluation.okay),
        stage_state=_begin_stage(search, iterate.x, iterate.evaluation, iterate.linear.box),
        converged=stage_state.done & iterate.okay,
        removable=iterate.removable,
        scatter=iterate.scatter,
        sides=iterate.linear.sides,
    )
    begun = _begin_stage(
        search, state.origin, iterate.evaluation, _step_bounds(problem, state.origin)
    )
    again = same_stage._replace(x=state.origin, stage_state=begun)
    return _select(fails, again, _select(stage_ends, next_stage, same_stage))


_advance_search_compiled = persistent_jit(advance_search)


def _select(which: Bool[Array, ""], first: T, second: T) -> T:
    return jax.tree.map(lambda a, b: jnp.where(which, a, b), first, second)


def make_minimum(problem: FitProblem, state: SearchState) -> Minimum:
    """Return the result of a search that has ended."""
    shape = problem.start_coordinates()[1].shape
    size = state.x.shape[0] - shape[0] * shape[1]
    shared, per_run = state.x[:size], state.x[size:].reshape(shape)
    return Minimum(
        shared=shared,
        per_run=per_run,
        leaves=problem.all_leaves(shared, per_run),
        first=state.first,
        last=state.stage_state.iterate.evaluation,
        converged=state.converged & state.feasible,
        removable=state.removable,
        scatter=state.scatter,
        sides=state.sides,
        iterations=state.iterations,
        failures=state.failures,
        cost=state.cost,
    )


def _stage_step(
    problem: FitProblem, search: Search, state: SearchState, running: Any
) -> tuple[StageState, Bool[Array, ""]]:
    """Perform one iteration of a stage; return also whether its simulations succeeded."""
    start, stage, is_stage_start = state.x, state.stage, state.stage_state.iterations == 0
    is_search_start = is_stage_start & (stage == 0)
    is_last = stage == search.horizons.shape[0] - 1
    tolerance = jnp.where(is_last, search.tolerance, _COARSE)
    distance = jnp.where(is_last, search.distance_tolerance, _COARSE_DISTANCE)
    num_runs, size = problem.num_runs, state.first.shared_chain.shape[1]
    horizon = jnp.asarray(search.horizons)[stage]
    inside = in_horizon(problem.runs.ts, horizon)
    inside = [jnp.repeat(inside, w.shape[-1], axis=1) for w in problem.runs.weights]
    has_weight = [w.reshape(num_runs, -1) > 0 for w in problem.runs.weights]
    counts = jnp.concatenate(inside, axis=1) & jnp.concatenate(has_weight, axis=1)
    # The start must be feasible in all stages, and its identifiability is reported. Searches of a
    # batch that have ended wait for others.
    simulated = jnp.where(is_search_start, 1.0, horizon)
    advances = running & is_searching(search, state)
    simulated = jnp.where(advances, simulated, 0.0).astype(start.dtype)
    spread = _join_coordinates(*problem.natural_scales())

    def proximity_weights(before):
        # A change by `spread` costs as much as one sample's residual at the start of the stage.
        roots = jnp.where(counts, search.loss.root(before), 0.0)
        return jnp.sqrt(jnp.sum(roots**2) / jnp.maximum(counts.sum(dtype=roots.dtype), 1)) / spread

    def linearise(x):
        evaluation = evaluate(problem, x[:size], x[size:].reshape(num_runs, -1), simulated)
        okay = jnp.all(evaluation.okay)
        before = jnp.where(is_stage_start, evaluation.residuals, state.residuals)
        proximity = jax.lax.cond(
            is_last, lambda _: jnp.zeros_like(spread), proximity_weights, before
        )
        r, J = _triangularise_runs(search.loss, evaluation, counts & okay)
        # Identifiability does not depend on the loss; the first and the last evaluation need it.
        squares, reported = isinstance(search.loss, Squares), J
        if not squares or search.horizons.shape[0] > 1:
            all_residuals = jnp.broadcast_to(okay, counts.shape)
            reported = jax.lax.cond(
                is_search_start | (is_last & (not squares)),
                lambda: _triangularise_runs(Squares(), evaluation, all_residuals)[1],
                lambda: J,
            )
        num_residuals = evaluation.residuals.size + evaluation.prior.count + proximity.size
        evaluation = _replace_jacobian(evaluation, J)
        J = [evaluation.coordinate_jacobian(), evaluation.prior_jacobian(), jnp.diag(proximity)]
        r = [r.reshape(-1), evaluation.prior.residuals, proximity * (x - start)]
        r, J = (jnp.where(okay, jnp.concatenate(parts), 0.0) for parts in (r, J))
        linear = reduce_problem(J, r, num_residuals, _step_bounds(problem, x))
        evaluation = _replace_jacobian(evaluation, reported)
        return Iterate(x, linear, evaluation, okay, *linear.residual_split(num_residuals))

    explained = (_EXPLAINED * tolerance) ** 2 * _sum_of_squared_readings(problem.runs)
    return accept_or_reject(linearise, tolerance, distance, explained, state.stage_state)


def _triangularise_runs(
    loss: AbstractLoss, evaluation: Evaluation, counts: Bool[Array, "B N"]
) -> tuple[Float[Array, "B Q"], Float[Array, "B Q E"]]:
    """Return the residuals and the Jacobian of each run, reduced by their triangular factor.

    Their sum of squares is the same up to a constant. Shapes (B, E + 1) and (B, E + 1, E).

    **Arguments:** `counts`, which residuals count, (B, N).
    """
    used = jnp.where(counts, evaluation.residuals, 0.0)
    rows = jnp.concatenate(
        [loss.slope(used)[..., None] * evaluation.jacobian, loss.root(used)[..., None]], axis=2
    )
    R = jax.vmap(triangular_factor)(jnp.where(counts[..., None], rows, 0.0))
    return R[..., -1], R[..., :-1]


def _replace_jacobian(evaluation: Evaluation, rows: Array) -> Evaluation:
    """Return the evaluation with fewer rows that have the same $J^T J$."""
    return eqx.tree_at(lambda e: e.jacobian, evaluation, rows)


def _sum_of_squared_readings(runs: RunData) -> Float[Array, ""] | float:
    """Return the sum of squares of all readings, in units of the noise."""
    total = 0.0
    for values, weights in zip(runs.values, runs.weights, strict=True):
        w = weights.max(axis=-1).reshape(*values.shape[:2], *[1] * (values.ndim - 2))
        total += jnp.sum(jnp.where(w > 0, w * jnp.where(w > 0, values, 0.0), 0.0) ** 2)
    return total


class Iterate(eqx.Module):
    """Point of the search: coordinates, linearised problem, evaluation and distance to the optimum.

    `removable` and `scatter`: see `LinearProblem.residual_split`.
    """

    x: Float[Array, " U"]
    linear: LinearProblem
    evaluation: Evaluation
    okay: Bool[Array, ""]
    removable: Float[Array, ""]
    scatter: Float[Array, ""]

    @property
    def distance(self) -> Float[Array, ""]:
        """Distance to the optimum of the linearisation, in standard errors."""
        return jnp.sqrt(self.removable / self.scatter)


def _join_coordinates(
    shared: Float[Array, " S"], per_run: Float[Array, "B P"]
) -> Float[Array, " U"]:
    return jnp.concatenate([shared, per_run.reshape(-1)])


def _step_bounds(problem: FitProblem, x: Float[Array, " U"]) -> StepBounds | None:
    """Return the steps that lead to the limits of the coordinates, `None` without limits."""
    limits = problem.limits()
    if limits is None:
        return None
    lower, upper, distance_tolerance = jax.tree.map(_join_coordinates, *limits)
    return StepBounds(lower - x, upper - x, distance_tolerance)


def _begin_stage(
    search: Search, x: Float[Array, " U"], evaluation: Evaluation, box: StepBounds | None
) -> StageState:
    zeros = jnp.zeros((x.shape[0], x.shape[0]), x.dtype)
    zero_problem = reduce_problem(zeros, zeros[0], x.shape[0], box)
    iterate = Iterate(x, zero_problem, evaluation, jnp.array(False), zeros[0, 0], zeros[0, 0])
    return StageState(iterate, search.region(x.dtype), jnp.array(0), jnp.array(False))


def accept_or_reject(
    linearise: Callable[[Float[Array, " U"]], Iterate],
    tolerance: Float[Array, ""],
    distance: Float[Array, ""],
    explained: Float[Array, ""] | float,
    stage_state: StageState,
) -> tuple[StageState, Bool[Array, ""]]:
    """Evaluate a trial step, accept or reject it, and update the trust region.

    **Arguments:** `linearise`, a function that evaluates coordinates; `tolerance`; `distance` to
    the optimum at which the search has converged, in standard errors; `explained`, the predicted
    reduction below which it has converged.
    **Returns:** the new state, and whether the trial could be simulated.
    """
    iterate, region, iterations, _ = stage_state
    # The first iteration evaluates the start: its linear problem is zero, and so is its step.
    step = region.step(iterate.linear)
    trial = linearise(iterate.x + step)
    is_first = iterations == 0
    size = jnp.maximum(iterate.linear.size, trial.linear.size)
    trial = eqx.tree_at(lambda p: p.linear.size, trial, size)
    actual = iterate.linear.cost - trial.linear.cost
    predicted = iterate.linear.gain(step)
    # Near the optimum the sum of squares is flat, and its integration errors are as large as the
    # remaining reduction, whereas the gradient is still accurate. A step that halves the distance
    # to the optimum is accepted if it costs less than one standard error of each parameter.
    halves_distance = (trial.distance < 0.5 * iterate.distance) & (trial.distance < 1)
    halves_distance = halves_distance & (actual > -0.5 * iterate.x.shape[0] * iterate.scatter)
    accepted = is_first | (trial.okay & ((actual > _ENOUGH * predicted) | halves_distance))
    is_flat = predicted <= jnp.maximum(tolerance * iterate.linear.cost, explained)
    done = (trial.distance < distance) & accepted | (is_flat & trial.okay & ~is_first)
    ratio = jnp.where(is_first | halves_distance, 0.0, actual / predicted)
    region = region.update(jnp.where(halves_distance, 1.0, ratio), accepted)
    iterate = _select(accepted, trial, iterate)
    return StageState(iterate, region, iterations + 1, done), trial.okay
