"""Many starts at once, against local minima."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .least_squares import Search, minimise_from
from .problem import Problem

# A minimum is found to this tolerance and in this many iterations at most; the last fit refines it.
_TOLERANCE, _ITERATIONS = 1e-3, 15
# Costs that agree to this part of them are those of one minimum.
_SAME = 1e-2


def best_start(
    problem: Problem, search: Search, count: int, spread: float, seed: int
) -> tuple[Problem, str]:
    """Minimise from many starts under `vmap`, and go on from the lowest minimum.

    **Arguments:** `problem`, whose start is the first one; `search`; `count` of starts; `spread`:
    coordinates with a natural scale (logarithms, angles) are drawn uniformly within this part of
    it, others within this part of their value; `seed` of the draws.
    **Returns:** the problem with its start there, and what was found, in words.
    """
    search = dataclasses.replace(
        search,
        tolerance=jnp.full_like(search.tolerance, _TOLERANCE),
        max_iterations=min(search.max_iterations, _ITERATIONS),
    )
    shared, own = problem.start()
    natural = problem.spread()
    key_shared, key_own = jax.random.split(jax.random.key(seed))
    many = jax.vmap(lambda key: _drawn(key, shared, natural[0], spread))
    many_own = jax.vmap(lambda key: _drawn(key, own, natural[1], spread))
    drawn = many(jax.random.split(key_shared, count)), many_own(jax.random.split(key_own, count))
    starts = jax.vmap(problem.clip)(drawn[0].at[0].set(shared), drawn[1].at[0].set(own))
    minima, costs = _from_all(problem, starts, search)
    costs = np.where(np.isfinite(costs), costs, np.inf)
    best = int(np.argmin(costs))
    if not np.isfinite(costs[best]):
        return problem, f"None of {count} starts could be simulated."
    same = int(np.count_nonzero(costs <= costs[best] * (1 + _SAME)))
    failed = int(np.count_nonzero(~np.isfinite(costs)))
    note = (
        f"{same} of {count} starts came to the lowest minimum"
        + (f", {count - same - failed} to others" if count > same + failed else "")
        + (f", {failed} could not be simulated" if failed else "")
        + "."
    )
    chosen = jax.tree.map(lambda leaf: leaf[best], minima)
    return problem.starting(chosen.leaves), note


def _drawn(key, x, natural, spread):
    scale = jnp.where(jnp.isfinite(natural), natural, jnp.abs(x))
    return x + spread * scale * jax.random.uniform(key, x.shape, x.dtype, -1.0, 1.0)


@eqx.filter_jit
def _from_all(problem, starts, search):
    def one(start):
        shared, own = start
        minimum = minimise_from(problem, shared, own, search)
        cost = jnp.sum(search.loss.root(minimum.last.residuals) ** 2)
        cost = cost + jnp.sum(minimum.last.prior.residuals**2)
        return minimum, jnp.where(jnp.all(minimum.last.okay), cost, jnp.inf)

    return jax.vmap(one)(starts)
