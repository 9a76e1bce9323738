"""Least squares over all runs, with exact Jacobians and a growing horizon."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .evaluation import Evaluation, evaluate
from .losses import AbstractLoss
from .problem import Problem
from .trust_region import AbstractRegion, Damped, LinearProblem, Shortened, reduced

# Tolerance of the stages before the last.
_COARSE = 1e-3

# At the optimum the offset is at most so many times the tolerance.
_OFFSET = 100.0
# A step is taken if it gains this part of what the linearisation promises.
_ENOUGH = 1e-2
# Readings are explained if what is left to gain is this many times the tolerance of them.
_EXPLAINED = 1e-2


class Minimum(eqx.Module):
    """Where the minimisation ended.

    **Attributes:**

    - `shared` (S,), `own` (B, P): the coordinates.
    - `leaves`: of all parameters in every run, with the runs in front.
    - `first`, `last`: the problem evaluated at the start and at the end.
    - `converged`: whether a criterion was met in the last stage.
    - `removable`, `scatter`: at the end, see `LinearProblem.offset`.
    - `iterations`: of each stage, each one evaluation of residuals and Jacobian.
    - `failures`: how many of them had a simulation that failed, and were rejected.
    - `cost`: half the sum of squares after every iteration of each stage, `inf` beyond the end.
    """

    shared: Float[Array, " S"]
    own: Float[Array, "B P"]
    leaves: list[Array]
    first: Evaluation
    last: Evaluation
    converged: Bool[Array, ""]
    removable: Float[Array, ""]
    scatter: Float[Array, ""]
    iterations: Int[Array, " K"]
    failures: Int[Array, ""]
    cost: Float[Array, "K M"]

    def offset(self, least: Any = 0.0) -> Float[Array, ""]:
        """Distance to the optimum of the linearisation, root mean square, in standard errors.

        **Arguments:** `least`, square of the noise below which scatter is not noise.
        """
        return jnp.sqrt(self.removable / jnp.maximum(self.scatter, least))


class Search(eqx.Module):
    """How the minimum is searched for.

    **Attributes:** `horizons`, increasing to 1; `tolerance`, relative, of the last stage;
    `max_iterations` of a stage; `loss`; `damped`, Levenberg-Marquardt, else Gauss-Newton.
    """

    horizons: Float[Array, " K"]
    tolerance: Float[Array, ""]
    max_iterations: int = eqx.field(static=True)
    loss: AbstractLoss
    damped: bool = eqx.field(static=True, default=True)

    @property
    def reach(self) -> Float[Array, ""]:
        """How many standard errors from the optimum the search may end."""
        return _OFFSET * self.tolerance

    def region(self, dtype: Any) -> AbstractRegion:
        """How far steps go at first."""
        return (Damped if self.damped else Shortened).new(dtype)

    def undivided(self) -> "Search":
        """The same with the whole horizon at once."""
        return dataclasses.replace(self, horizons=jnp.ones_like(self.horizons[:1]))

    def repeated(self) -> "Search":
        """The same with the whole horizon in every stage, for which the same program serves."""
        return dataclasses.replace(self, horizons=jnp.ones_like(self.horizons))


class Iteration(NamedTuple):
    """What is told of a minimisation while it runs: the horizon, the number in it, the cost."""

    horizon: float
    number: int
    cost: float


_told: contextvars.ContextVar[Callable[[Iteration], None] | None] = contextvars.ContextVar(
    "told", default=None
)


@contextlib.contextmanager
def telling(function: Callable[[Iteration], None]) -> Iterator[None]:
    """Minimisations inside call a function after every iteration."""
    token = _told.set(function)
    try:
        yield
    finally:
        _told.reset(token)


def minimise(problem: Problem, search: Search) -> Minimum:
    """Minimise the sum of the losses of the weighted residuals, from the start of the problem."""
    told = _told.get()
    return _minimise(problem, search) if told is None else _minimise_telling(problem, search, told)


@eqx.filter_jit
def _minimise(problem: Problem, search: Search) -> Minimum:
    return minimise_from(problem, *problem.start(), search)


def _minimise_telling(problem: Problem, search: Search, told) -> Minimum:
    """As `minimise`. Iterations are made here: a program that calls back is never cached."""
    reached = eqx.filter_jit(begin)(problem, *problem.start(), search)
    while bool(goes_on(search, reached)):
        stage, before = int(reached.stage), reached
        reached = _iterated_compiled(problem, search, before)
        if stage > 0:
            number = int(before.iterations[stage]) + 1
            cost = float(reached.cost[stage, number - 1])
            told(Iteration(float(search.horizons[stage - 1]), number, cost))
    return eqx.filter_jit(minimum_of)(problem, reached)


def minimise_from(
    problem: Problem, shared: Float[Array, " S"], own: Float[Array, "B P"], search: Search
) -> Minimum:
    """Minimise the sum of the losses of the weighted residuals.

    In stage k only samples in the first `horizons[k]` of each run count: over a short time a
    trajectory depends on its parameters almost linearly, over a long one there are local minima.
    The stages before the last keep coordinates with a natural scale (logarithms and angles) near
    where they are, since little is known of them yet, and take at most a quarter of
    `max_iterations`; the last one does not. Priors of parameters count in every stage. If the
    simulation fails at the start, nothing is done.

    **Arguments:** `problem`; `shared`, `own`, start coordinates; `search`.
    """
    reached = jax.lax.while_loop(
        lambda reached: goes_on(search, reached),
        lambda reached: iterated(problem, search, reached),
        begin(problem, shared, own, search),
    )
    return minimum_of(problem, reached)


class Reached(NamedTuple):
    """Where the search is: its stage, where that began, and the residuals there.

    Before the first stage there is one iteration: the problem evaluated at the start. `iterations`
    and `cost` are those of all stages.
    """

    stage: Array
    x: Array
    residuals: Array
    feasible: Array
    steps: "_Steps"
    first: Evaluation
    converged: Array
    removable: Array
    scatter: Array
    failures: Array
    iterations: Array
    cost: Array


class _Steps(NamedTuple):
    """Where the iterations of a stage are."""

    place: "Place"
    region: AbstractRegion
    iterations: Array
    done: Array


def begin(
    problem: Problem, shared: Float[Array, " S"], own: Float[Array, "B P"], search: Search
) -> Reached:
    """Where the search begins."""
    x = jnp.concatenate([shared, own.reshape(-1)])
    count = search.horizons.shape[0] + 1
    blank = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
        eqx.filter_eval_shape(evaluate, problem, shared, own),
    )
    nothing = jnp.zeros_like(x[0])
    return Reached(
        stage=jnp.array(0),
        x=x,
        residuals=blank.residuals,
        feasible=jnp.array(True),
        steps=_first_steps(search, x, blank),
        first=blank,
        converged=jnp.array(False),
        removable=nothing,
        scatter=nothing,
        failures=jnp.array(0),
        iterations=jnp.zeros(count, int),
        cost=jnp.full((count, search.max_iterations), jnp.inf, x.dtype),
    )


def goes_on(search: Search, reached: Reached) -> Bool[Array, ""]:
    """Whether there is another iteration."""
    return (reached.stage <= search.horizons.shape[0]) & reached.feasible


def iterated(problem: Problem, search: Search, reached: Reached) -> Reached:
    """One more iteration, and the end of the stage if it was the last one of it."""
    stage, number = reached.stage, reached.steps.iterations
    steps, okay = _step(problem, search, reached)
    place = steps.place
    is_last = stage == search.horizons.shape[0]
    limit = jnp.where(is_last, search.max_iterations, search.max_iterations // 4)
    ended = steps.done | (steps.iterations >= jnp.where(stage == 0, 1, limit))
    cost = jnp.where(place.okay, place.line.cost, jnp.inf)
    here = reached._replace(
        steps=steps,
        first=_chosen(stage == 0, place.found, reached.first),
        failures=reached.failures + ~okay,
        iterations=reached.iterations.at[stage].set(steps.iterations),
        cost=reached.cost.at[stage, number].set(cost),
    )
    following = here._replace(
        stage=stage + 1,
        x=place.x,
        residuals=place.found.residuals,
        feasible=jnp.all(place.found.okay),
        steps=_first_steps(search, place.x, place.found),
        converged=steps.done & place.okay,
        removable=place.removable,
        scatter=place.scatter,
    )
    return _chosen(ended, following, here)


_iterated_compiled = eqx.filter_jit(iterated)


def _chosen(which, first, second):
    return jax.tree.map(lambda a, b: jnp.where(which, a, b), first, second)


def minimum_of(problem: Problem, reached: Reached) -> Minimum:
    """Where a search has ended."""
    shape = problem.start()[1].shape
    size = reached.x.shape[0] - shape[0] * shape[1]
    shared, own = reached.x[:size], reached.x[size:].reshape(shape)
    return Minimum(
        shared=shared,
        own=own,
        leaves=problem.all_leaves(shared, own),
        first=reached.first,
        last=reached.steps.place.found,
        converged=reached.converged & reached.feasible,
        removable=reached.removable,
        scatter=reached.scatter,
        iterations=reached.iterations[1:],
        failures=reached.failures,
        cost=reached.cost[1:],
    )


def _step(problem, search, reached: Reached) -> tuple[_Steps, Array]:
    """One iteration of a stage, and whether its simulations succeeded."""
    start, before, stage = reached.x, reached.residuals, reached.stage
    last = stage == search.horizons.shape[0]
    horizon = jnp.where(stage == 0, 1.0, search.horizons[jnp.maximum(stage - 1, 0)])
    tolerance = jnp.where(last, search.tolerance, _COARSE)
    num_runs, size = problem.num_runs, reached.first.shared_chain.shape[1]
    elapsed = problem.runs.ts - problem.runs.ts[:, :1]
    within = elapsed <= horizon * elapsed[:, -1:] * (1 + 1e-9)
    within = [jnp.repeat(within, w.shape[-1], axis=1) for w in problem.runs.weights]
    weighs = [w.reshape(num_runs, -1) > 0 for w in problem.runs.weights]
    counts = jnp.concatenate(within, axis=1) & jnp.concatenate(weighs, axis=1)
    # In the early stages a change by `spread` costs as much as one sample is off at their start.
    roots = jnp.where(counts, search.loss.root(before), 0.0)
    square = jnp.sum(roots**2) / jnp.maximum(counts.sum(), 1)
    spread = problem.spread()
    kept = jnp.where(last, 0.0, jnp.sqrt(square)) / jnp.concatenate(
        [spread[0], jnp.tile(spread[1], num_runs)]
    )

    def linearise(x):
        found = evaluate(problem, x[:size], x[size:].reshape(num_runs, -1))
        okay = jnp.all(found.okay)
        used = jnp.where(counts & okay, found.residuals, 0.0)
        use = okay & counts.reshape(-1, 1)
        slopes = search.loss.slope(used).reshape(-1, 1)
        J = jnp.where(use, slopes * found.by_coordinates(), 0.0)
        prior = found.prior.by_coordinates(found.shared_chain, found.own_chain)
        r = [search.loss.root(used).reshape(-1), found.prior.residuals, kept * (x - start)]
        J = [J, prior, jnp.diag(kept)]
        r, J = (jnp.where(okay, jnp.concatenate(parts), 0.0) for parts in (r, J))
        line = reduced(J, r)
        return Place(x, line, found, okay, *line.offset(r.size))

    explained = (_EXPLAINED * tolerance) ** 2 * _square(problem.runs)
    return _next(linearise, tolerance, explained, reached.steps)


def _square(runs):
    """Sum of squares of all readings, in units of the noise."""
    total = 0.0
    for values, weights in zip(runs.values, runs.weights, strict=True):
        w = weights.max(axis=-1).reshape(*values.shape[:2], *[1] * (values.ndim - 2))
        total += jnp.sum(jnp.where(w > 0, w * jnp.where(w > 0, values, 0.0), 0.0) ** 2)
    return total


class Place(eqx.Module):
    """Where the search is: coordinates, the problem linearised there, and how far to the optimum.

    `removable` and `scatter`: see `LinearProblem.offset`.
    """

    x: Float[Array, " U"]
    line: LinearProblem
    found: Evaluation
    okay: Bool[Array, ""]
    removable: Float[Array, ""]
    scatter: Float[Array, ""]

    @property
    def offset(self) -> Float[Array, ""]:
        """Distance to the optimum of the linearisation, in standard errors."""
        return jnp.sqrt(self.removable / self.scatter)


def _first_steps(search, x, found) -> _Steps:
    zeros = jnp.zeros((x.shape[0], x.shape[0]), x.dtype)
    nowhere = reduced(zeros, zeros[0])
    place = Place(x, nowhere, found, jnp.array(False), zeros[0, 0], zeros[0, 0])
    return _Steps(place, search.region(x.dtype), jnp.array(0), jnp.array(False))


def _next(evaluated, tolerance, explained, steps: _Steps) -> tuple[_Steps, Array]:
    """A step from one place to the next, if that gains anything; whether that could be tried."""
    place, region, iterations, _ = steps
    # The first iteration evaluates where it starts, for which the step from nowhere is zero.
    step = region.step(place.line)
    trial = evaluated(place.x + step)
    first = iterations == 0
    size = jnp.maximum(place.line.size, trial.line.size)
    trial = eqx.tree_at(lambda p: p.line.size, trial, size)
    gained = place.line.cost - trial.line.cost
    promised = place.line.gain(step)
    # Near the optimum the sum of squares is flat, and errors of the integration in it are as
    # large as what is to be gained; the gradient is as good as ever. A step that halves it
    # counts, if it costs less than one standard error of each parameter.
    settles = (trial.offset < 0.5 * place.offset) & (trial.offset < 1)
    settles = settles & (gained > -0.5 * place.x.shape[0] * place.scatter)
    accepted = first | (trial.okay & ((gained > _ENOUGH * promised) | settles))
    level = promised <= jnp.maximum(tolerance * place.line.cost, explained)
    done = (trial.offset < _OFFSET * tolerance) & accepted | (level & trial.okay & ~first)
    ratio = jnp.where(first | settles, 0.0, gained / promised)
    region = region.updated(jnp.where(settles, 1.0, ratio), accepted)
    place = _chosen(accepted, trial, place)
    return _Steps(place, region, iterations + 1, done), trial.okay
