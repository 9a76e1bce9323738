"""Least squares over all runs, with exact Jacobians and a growing horizon."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .evaluation import Evaluation, evaluate
from .losses import AbstractLoss
from .problem import Problem
from .trust_region import FAILED, has_failed, least_squares_solver

# Tolerance of the stages before the last.
_COARSE = 1e-3

# The relative offset may be this many times the tolerance. Below about 1e-7 (in double precision)
# round-off in the sum of squares decides which steps are accepted.
_OFFSET = 100.0


class Minimum(eqx.Module):
    """Where the minimisation ended.

    **Attributes:**

    - `shared` (S,), `own` (B, P): the coordinates.
    - `leaves`: of all parameters in every run, with the runs in front.
    - `first`, `last`: the problem evaluated at the start and at the end.
    - `converged`: whether a criterion was met in the last stage.
    - `offset`: at the end, see `Linearisation.relative_offset`.
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
    offset: Float[Array, ""]
    iterations: Int[Array, " K"]
    failures: Int[Array, ""]
    cost: Float[Array, "K M"]


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
        x, evaluation, feasible, failures, _, _ = carry
        horizon, last, limit = inputs
        limit = jnp.where(feasible, limit, 0)
        coarse = jnp.where(last, search.tolerance, _COARSE)
        x, evaluation, failed, converged, offset, iterations, cost = _stage(
            problem, search, x, evaluation, horizon, last, coarse, limit
        )
        carry = (x, evaluation, jnp.all(evaluation.okay), failures + failed)
        return (*carry, converged, offset), (evaluation, iterations, cost)

    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), _shape(problem))
    start = (x, blank, jnp.array(True), jnp.array(0), jnp.array(False), jnp.zeros_like(x[0]))
    carry, (evaluations, iterations, cost) = jax.lax.scan(stage, start, (horizons, last, limits))
    x, last_evaluation, feasible, failures, converged, offset = carry
    shared, own = x[: shared.shape[0]], x[shared.shape[0] :].reshape(own.shape)
    return Minimum(
        shared=shared,
        own=own,
        leaves=jax.vmap(lambda own, run: problem.leaves(shared, own, run))(own, problem.runs),
        first=jax.tree.map(lambda leaf: leaf[0], evaluations),
        last=last_evaluation,
        converged=converged & feasible,
        offset=offset,
        iterations=iterations[1:],
        failures=failures,
        cost=cost[1:],
    )


def _shape(problem):
    return eqx.filter_eval_shape(lambda: evaluate(problem, *problem.start()))


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
        used = jnp.where(counts, found.residuals, 0.0)
        r = jnp.where(okay, search.loss.root(used), FAILED)
        use = okay & counts.reshape(-1, 1)
        slopes = search.loss.slope(used).reshape(-1, 1)
        J = jnp.where(use, slopes * found.by_coordinates(), 0.0)
        prior = found.prior.by_coordinates(found.shared_chain, found.own_chain)
        r = [r.reshape(-1), jnp.where(okay, found.prior.residuals, 0.0), kept * (x - start)]
        J = [J, jnp.where(okay, prior, 0.0), jnp.diag(kept)]
        return jnp.concatenate(r), jnp.concatenate(J), found

    @jax.custom_jvp
    def residual(x):
        r, _, found = linearise(x)
        return r, found

    # The Jacobian is built once, together with the residual, and then only multiplied with.
    @residual.defjvp
    def _(primals, tangents):
        r, J, found = linearise(*primals)
        return (r, found), (J @ tangents[0], jax.tree.map(_zero, found))

    return _iterate(lambda x, args: residual(x), search, start, before, tolerance, limit)


def _zero(leaf):
    """The tangent of something that is not differentiated."""
    differentiable = jnp.issubdtype(leaf.dtype, jnp.inexact)
    return jnp.zeros(leaf.shape, leaf.dtype if differentiable else jax.dtypes.float0)


def _iterate(function, search, x, before, tolerance, limit):
    """optimistix's solver, stepped here so that failures and costs are recorded."""
    solver = least_squares_solver(tolerance, search.damped)
    shape, aux_shape = jax.eval_shape(function, x, None)
    first = solver.init(function, x, None, {}, shape, aux_shape, frozenset())
    dynamic, static = eqx.partition(first, eqx.is_array)

    def unfinished(carry):
        _, _, iterations, done, _, _ = carry
        return ~done & (iterations < limit)

    def body(carry):
        x, dynamic, iterations, _, _, cost = carry
        state = eqx.combine(dynamic, static)
        x, state, _ = solver.step(function, x, None, {}, state, frozenset())
        cauchy, _ = solver.terminate(function, x, None, {}, state, frozenset())
        offset = state.descent_state.relative_offset(num_residuals)
        cost = cost.at[iterations].set(state.f_info.as_min())
        done = cauchy | (offset < _OFFSET * tolerance)
        return x, eqx.filter(state, eqx.is_array), iterations + 1, done, offset, cost

    num_residuals = before.residuals.size + before.prior.residuals.size
    cost = jnp.full(search.max_iterations, jnp.inf, x.dtype)
    start = (x, dynamic, jnp.array(0), jnp.array(False), jnp.zeros_like(x[0]), cost)
    x, dynamic, iterations, done, offset, cost = jax.lax.while_loop(unfinished, body, start)
    state = eqx.combine(dynamic, static)
    done = done & ~has_failed(state.f_info.as_min())
    aux = jax.tree.map(lambda new, old: jnp.where(iterations > 0, new, old), state.aux, before)
    return x, aux, state.search_state[1], done, offset, iterations, cost
