"""Fits from many start values at once, against local minima."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...persistent_jit import persistent_jit
from .least_squares import Minimum, Search, minimise_from
from .problem import FitProblem

# Tolerance and maximum number of iterations from each start; the final fit refines the best.
_TOLERANCE, _ITERATIONS = 1e-3, 15
# Relative difference of costs below which two minima count as the same.
_SAME = 1e-2


def find_best_start(
    problem: FitProblem, search: Search, count: int, spread: float, seed: int
) -> tuple[FitProblem, str]:
    """Minimise from many starts under `vmap`; return the problem started at the lowest minimum.

    **Arguments:** `problem`, whose start is the first one; `search`; `count` of starts; `spread`:
    coordinates with a natural scale (logarithms, angles) are drawn uniformly within this fraction
    of it, others within this fraction of their value; `seed` of the draws.
    **Returns:** the problem with that start, and a note on the minima that were found.
    """
    search = dataclasses.replace(
        search,
        tolerance=jnp.full_like(search.tolerance, _TOLERANCE),
        max_iterations=min(search.max_iterations, _ITERATIONS),
    )
    shared, per_run = problem.start_coordinates()
    natural = problem.natural_scales()
    key_shared, key_per_run = jax.random.split(jax.random.key(seed))
    draw_shared = jax.vmap(lambda key: _draw(key, shared, natural[0], spread))
    draw_per_run = jax.vmap(lambda key: _draw(key, per_run, natural[1], spread))
    drawn = (
        draw_shared(jax.random.split(key_shared, count)),
        draw_per_run(jax.random.split(key_per_run, count)),
    )
    starts = jax.vmap(problem.clip)(drawn[0].at[0].set(shared), drawn[1].at[0].set(per_run))
    minima, costs = _minimise_all(problem, starts, search)
    costs = np.where(np.isfinite(costs), costs, np.inf)
    best = int(np.argmin(costs))
    if not np.isfinite(costs[best]):
        return problem, f"None of {count} starts could be simulated."
    num_same = int(np.count_nonzero(costs <= costs[best] * (1 + _SAME)))
    num_failed = int(np.count_nonzero(~np.isfinite(costs)))
    note = (
        f"{num_same} of {count} starts came to the lowest minimum"
        + (f", {count - num_same - num_failed} to others" if count > num_same + num_failed else "")
        + (f", {num_failed} could not be simulated" if num_failed else "")
        + "."
    )
    lowest = jax.tree.map(lambda leaf: leaf[best], minima)
    return problem.with_starts(lowest.leaves), note


def _draw(
    key: PRNGKeyArray, x: Float[Array, "*s"], natural: Float[Array, "*s"], spread: float
) -> Float[Array, "*s"]:
    scale = jnp.where(jnp.isfinite(natural), natural, jnp.abs(x))
    return x + spread * scale * jax.random.uniform(key, x.shape, x.dtype, -1.0, 1.0)


@persistent_jit
def _minimise_all(
    problem: FitProblem,
    starts: tuple[Float[Array, "K S"], Float[Array, "K B P"]],
    search: Search,
) -> tuple[Minimum, Float[Array, " K"]]:
    def minimise_one(start):
        shared, per_run = start
        minimum = minimise_from(problem, shared, per_run, search)
        cost = jnp.sum(search.loss.root(minimum.last.residuals) ** 2)
        cost = cost + jnp.sum(minimum.last.prior.residuals**2)
        return minimum, jnp.where(jnp.all(minimum.last.okay), cost, jnp.inf)

    return jax.vmap(minimise_one)(starts)
