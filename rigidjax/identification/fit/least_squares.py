"""Least squares over all runs, with exact Jacobians and a growing horizon."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .evaluation import Evaluation, evaluate
from .losses import AbstractLoss, Squares
from .problem import Problem
from .trust_region import (
    AbstractRegion,
    Box,
    Damped,
    LinearProblem,
    Shortened,
    reduced,
    triangular_factor,
)

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
    - `sides`: of each coordinate, see `LinearProblem`.
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
    sides: Int[Array, " U"]
    iterations: Int[Array, " K"]
    failures: Int[Array, ""]
    cost: Float[Array, "K M"]

    def offset(self, least: Any = 0.0, xp: Any = jnp) -> Any:
        """Distance to the optimum of the linearisation, root mean square, in standard errors.

        **Arguments:** `least`, square of the noise below which scatter is not noise; `xp`, JAX's
        NumPy, or NumPy itself for a number.
        """
        removable, scatter = xp.asarray(self.removable), xp.asarray(self.scatter)
        return xp.sqrt(removable / xp.maximum(scatter, least))


class Search(eqx.Module):
    """How the minimum is searched for.

    **Attributes:** `horizons`, increasing to 1; `tolerance`, relative, of the last stage;
    `max_iterations` of a stage; `loss`; `damped`, Levenberg-Marquardt, else Gauss-Newton.
    """

    horizons: Float[np.ndarray | Array, " K"]
    tolerance: Float[np.ndarray | Array, ""]
    max_iterations: int = eqx.field(static=True)
    loss: AbstractLoss
    damped: bool = eqx.field(static=True, default=True)

    @property
    def reach(self) -> Float[np.ndarray | Array, ""]:
        """How many standard errors from the optimum the search may end."""
        return _OFFSET * self.tolerance

    def region(self, dtype: Any) -> AbstractRegion:
        """How far steps go at first."""
        return (Damped if self.damped else Shortened).new(dtype)

    def undivided(self) -> "Search":
        """The same with the whole horizon at once."""
        return dataclasses.replace(self, horizons=np.ones_like(self.horizons[:1]))

    def repeated(self) -> "Search":
        """The same with the whole horizon in every stage, for which the same program serves."""
        return dataclasses.replace(self, horizons=np.ones_like(self.horizons))


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
        stage, number = int(reached.stage), int(reached.steps.iterations) + 1
        reached = _iterated_compiled(problem, search, reached)
        cost = float(reached.cost[stage, number - 1])
        told(Iteration(float(search.horizons[stage]), number, cost))
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

    `first` is known after the first iteration, as are the residuals after the first one of a stage.
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
    sides: Array
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
    x = _joined(shared, own)
    count = search.horizons.shape[0]
    box = _box(problem, x)
    shapes = eqx.filter_eval_shape(evaluate, problem, shared, own)
    num_runs, _, size = shapes.jacobian.shape
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    blank = _reduced_to(blank, jnp.zeros((num_runs, size + 1, size), x.dtype))
    nothing = jnp.zeros_like(x[0])
    return Reached(
        stage=jnp.array(0),
        x=x,
        residuals=blank.residuals,
        feasible=jnp.array(True),
        steps=_first_steps(search, x, blank, box),
        first=blank,
        converged=jnp.array(False),
        removable=nothing,
        scatter=nothing,
        sides=jnp.zeros(x.shape, int),
        failures=jnp.array(0),
        iterations=jnp.zeros(count, int),
        cost=jnp.full((count, search.max_iterations), jnp.inf, x.dtype),
    )


def goes_on(search: Search, reached: Reached) -> Bool[Array, ""]:
    """Whether there is another iteration."""
    return (reached.stage < search.horizons.shape[0]) & reached.feasible


def iterated(problem: Problem, search: Search, reached: Reached) -> Reached:
    """One more iteration, and the end of the stage if it was the last one of it."""
    stage, number = reached.stage, reached.steps.iterations
    steps, okay = _step(problem, search, reached)
    place = steps.place
    is_last = stage == search.horizons.shape[0] - 1
    limit = jnp.where(is_last, search.max_iterations, search.max_iterations // 4)
    starts = (stage == 0) & (number == 0)
    feasible = jnp.where(starts, okay, reached.feasible)
    ended = steps.done | (steps.iterations >= limit) | ~feasible
    cost = jnp.where(place.okay, place.line.cost, jnp.inf)
    here = reached._replace(
        steps=steps,
        first=_chosen(starts, place.found, reached.first),
        residuals=jnp.where(number == 0, place.found.residuals, reached.residuals),
        feasible=feasible,
        failures=reached.failures + jnp.where(okay, 0, 1),
        iterations=reached.iterations.at[stage].set(steps.iterations),
        cost=reached.cost.at[stage, number].set(cost),
    )
    following = here._replace(
        stage=stage + 1,
        x=place.x,
        feasible=feasible & jnp.all(place.found.okay),
        steps=_first_steps(search, place.x, place.found, place.line.box),
        converged=steps.done & place.okay,
        removable=place.removable,
        scatter=place.scatter,
        sides=place.line.sides,
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
        sides=reached.sides,
        iterations=reached.iterations,
        failures=reached.failures,
        cost=reached.cost,
    )


def _step(problem, search, reached: Reached) -> tuple[_Steps, Array]:
    """One iteration of a stage, and whether its simulations succeeded."""
    start, stage, begins = reached.x, reached.stage, reached.steps.iterations == 0
    starts = begins & (stage == 0)
    last = stage == search.horizons.shape[0] - 1
    tolerance = jnp.where(last, search.tolerance, _COARSE)
    num_runs, size = problem.num_runs, reached.first.shared_chain.shape[1]
    elapsed = problem.runs.ts - problem.runs.ts[:, :1]
    horizon = jnp.asarray(search.horizons)[stage]
    within = elapsed <= horizon * elapsed[:, -1:] * (1 + 1e-9)
    within = [jnp.repeat(within, w.shape[-1], axis=1) for w in problem.runs.weights]
    weighs = [w.reshape(num_runs, -1) > 0 for w in problem.runs.weights]
    counts = jnp.concatenate(within, axis=1) & jnp.concatenate(weighs, axis=1)
    spread = _joined(*problem.spread())

    def keeping(before):
        # A change by `spread` costs as much as one sample is off at the start of the stage.
        roots = jnp.where(counts, search.loss.root(before), 0.0)
        return jnp.sqrt(jnp.sum(roots**2) / jnp.maximum(counts.sum(dtype=roots.dtype), 1)) / spread

    def linearise(x):
        found = evaluate(problem, x[:size], x[size:].reshape(num_runs, -1))
        okay = jnp.all(found.okay)
        before = jnp.where(begins, found.residuals, reached.residuals)
        kept = jax.lax.cond(last, lambda _: jnp.zeros_like(spread), keeping, before)
        r, J = _factors(search.loss, found, counts & okay)
        # What data determine does not depend on the loss, and is asked for at both ends.
        squares, seen = isinstance(search.loss, Squares), J
        if not squares or search.horizons.shape[0] > 1:
            everything = jnp.broadcast_to(okay, counts.shape)
            seen = jax.lax.cond(
                starts | (last & (not squares)),
                lambda: _factors(Squares(), found, everything)[1],
                lambda: J,
            )
        num_residuals = found.residuals.size + found.prior.count + kept.size
        prior = found.prior.by_coordinates(found.shared_chain, found.own_chain)
        found = _reduced_to(found, J)
        J = [found.by_coordinates(), prior, jnp.diag(kept)]
        r = [r.reshape(-1), found.prior.residuals, kept * (x - start)]
        r, J = (jnp.where(okay, jnp.concatenate(parts), 0.0) for parts in (r, J))
        line = reduced(J, r, num_residuals, _box(problem, x))
        found = _reduced_to(found, seen)
        return Place(x, line, found, okay, *line.offset(num_residuals))

    explained = (_EXPLAINED * tolerance) ** 2 * _square(problem.runs)
    return _next(linearise, tolerance, explained, reached.steps)


def _factors(loss, found, counts):
    """Residuals in the column space of the Jacobian, and this, by the triangular factors of runs.

    Rows of a sum of squares that is the same, but for a constant: (B, E + 1) and (B, E + 1, E).

    **Arguments:** `counts`, the residuals that count, (B, N).
    """
    used = jnp.where(counts, found.residuals, 0.0)
    rows = jnp.concatenate(
        [loss.slope(used)[..., None] * found.jacobian, loss.root(used)[..., None]], axis=2
    )
    R = jax.vmap(triangular_factor)(jnp.where(counts[..., None], rows, 0.0))
    return R[..., -1], R[..., :-1]


def _reduced_to(found: Evaluation, rows: Array) -> Evaluation:
    """The evaluation with fewer rows that have the products of those of its Jacobian."""
    return eqx.tree_at(lambda e: e.jacobian, found, rows)


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


def _joined(shared: Float[Array, " S"], own: Float[Array, "B P"]) -> Float[Array, " U"]:
    return jnp.concatenate([shared, own.reshape(-1)])


def _box(problem: Problem, x: Float[Array, " U"]) -> Box | None:
    """The changes of coordinates with which they are on their limits."""
    limits = problem.limits()
    if limits is None:
        return None
    lower, upper, reach = jax.tree.map(_joined, *limits)
    return Box(lower - x, upper - x, reach)


def _first_steps(search, x, found, box) -> _Steps:
    zeros = jnp.zeros((x.shape[0], x.shape[0]), x.dtype)
    nowhere = reduced(zeros, zeros[0], x.shape[0], box)
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
