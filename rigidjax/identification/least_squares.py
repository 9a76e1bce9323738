"""Least squares over all runs, with exact Jacobians and a growing horizon."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .evaluation import Evaluation, evaluate
from .losses import AbstractLoss
from .problem import Problem
from .trust_region import AbstractRegion, Damped, Linearisation, Shortened, linearised

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
    - `removable`, `scatter`: at the end, see `Linearisation.offset`.
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


@eqx.filter_jit
def minimise(problem: Problem, search: Search) -> Minimum:
    """Minimise the sum of the losses of the weighted residuals, from the start of the problem."""
    return minimise_from(problem, *problem.start(), search)


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
    horizons, max_iterations = search.horizons, search.max_iterations
    x = jnp.concatenate([shared, own.reshape(-1)])
    count = horizons.shape[0]
    # Before the first stage, one iteration: the problem evaluated at the start.
    horizons = jnp.concatenate([jnp.ones_like(horizons[:1]), horizons])
    last = jnp.arange(count + 1) == count
    limits = jnp.where(last, max_iterations, max_iterations // 4).at[0].set(1)

    def stage(carry, inputs):
        x, evaluation, feasible, failures, _, _, _ = carry
        horizon, last, limit = inputs
        limit = jnp.where(feasible, limit, 0)
        coarse = jnp.where(last, search.tolerance, _COARSE)
        place, failed, converged, iterations, cost = _stage(
            problem, search, x, evaluation, horizon, last, coarse, limit
        )
        feasible = jnp.all(place.found.okay)
        carry = (place.x, place.found, feasible, failures + failed, converged)
        return (*carry, place.removable, place.scatter), (place.found, iterations, cost)

    blank = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
        eqx.filter_eval_shape(evaluate, problem, shared, own),
    )
    zero = jnp.zeros_like(x[0])
    start = (x, blank, jnp.array(True), jnp.array(0), jnp.array(False), zero, zero)
    carry, (evaluations, iterations, cost) = jax.lax.scan(stage, start, (horizons, last, limits))
    x, last_evaluation, feasible, failures, converged, removable, scatter = carry
    shared, own = x[: shared.shape[0]], x[shared.shape[0] :].reshape(own.shape)
    return Minimum(
        shared=shared,
        own=own,
        leaves=jax.vmap(lambda own, run: problem.leaves(shared, own, run))(own, problem.runs),
        first=jax.tree.map(lambda leaf: leaf[0], evaluations),
        last=last_evaluation,
        converged=converged & feasible,
        removable=removable,
        scatter=scatter,
        iterations=iterations[1:],
        failures=failures,
        cost=cost[1:],
    )


def _stage(problem, search, start, before, horizon, last, tolerance, limit):
    """One horizon, from the coordinates `start`, at which the problem was evaluated `before`."""
    num_runs, size = problem.num_runs, before.shared_chain.shape[1]
    elapsed = problem.runs.ts - problem.runs.ts[:, :1]
    within = elapsed <= horizon * elapsed[:, -1:] * (1 + 1e-9)
    within = [jnp.repeat(within, w.shape[-1], axis=1) for w in problem.runs.weights]
    weighs = [w.reshape(num_runs, -1) > 0 for w in problem.runs.weights]
    counts = jnp.concatenate(within, axis=1) & jnp.concatenate(weighs, axis=1)
    # In the early stages a change by `spread` costs as much as one sample is off at their start.
    roots = jnp.where(counts, search.loss.root(before.residuals), 0.0)
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
        line = linearised(J, r)
        return Place(x, line, found, okay, *line.offset(r.size))

    explained = (_EXPLAINED * tolerance) ** 2 * _square(problem.runs)
    return _iterate(linearise, search, start, before, tolerance, explained, limit)


def _square(runs):
    """Sum of squares of all readings, in units of the noise."""
    total = 0.0
    for values, weights in zip(runs.values, runs.weights, strict=True):
        w = weights.max(axis=-1).reshape(*values.shape[:2], *[1] * (values.ndim - 2))
        total += jnp.sum(jnp.where(w > 0, w * jnp.where(w > 0, values, 0.0), 0.0) ** 2)
    return total


class Place(eqx.Module):
    """Where the search is: coordinates, the problem linearised there, and how far to the optimum.

    `removable` and `scatter`: see `Linearisation.offset`.
    """

    x: Float[Array, " U"]
    line: Linearisation
    found: Evaluation
    okay: Bool[Array, ""]
    removable: Float[Array, ""]
    scatter: Float[Array, ""]

    @property
    def offset(self) -> Float[Array, ""]:
        """Distance to the optimum of the linearisation, in standard errors."""
        return jnp.sqrt(self.removable / self.scatter)


def _iterate(evaluated, search, x, before, tolerance, explained, limit):
    """Steps from one place to the next until no step gains anything."""
    zeros = jnp.zeros((x.shape[0], x.shape[0]), x.dtype)
    nowhere = linearised(zeros, zeros[0])
    place = Place(x, nowhere, before, jnp.array(False), zeros[0, 0], zeros[0, 0])

    def unfinished(carry):
        _, _, iterations, done, _, _ = carry
        return ~done & (iterations < limit)

    def body(carry):
        place, region, iterations, _, failures, cost = carry
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
        settles = settles & (gained > -0.5 * x.shape[0] * place.scatter)
        accepted = first | (trial.okay & ((gained > _ENOUGH * promised) | settles))
        level = promised <= jnp.maximum(tolerance * place.line.cost, explained)
        done = (trial.offset < _OFFSET * tolerance) & accepted | (level & trial.okay & ~first)
        ratio = jnp.where(first | settles, 0.0, gained / promised)
        region = region.updated(jnp.where(settles, 1.0, ratio), accepted)
        place = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), trial, place)
        cost = cost.at[iterations].set(jnp.where(place.okay, place.line.cost, jnp.inf))
        return place, region, iterations + 1, done, failures + ~trial.okay, cost

    cost = jnp.full(search.max_iterations, jnp.inf, x.dtype)
    start = (place, search.region(x.dtype), jnp.array(0), jnp.array(False), jnp.array(0), cost)
    place, _, iterations, done, failures, cost = jax.lax.while_loop(unfinished, body, start)
    return place, failures, done & place.okay, iterations, cost
