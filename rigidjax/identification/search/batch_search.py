"""The search for the minima of many data sets at once."""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...native import call_as_kernel, count_cores, map_with_lane_compaction
from ...persistent_jit import persistent_jit
from .least_squares import (
    MAX_DISTANCE,
    Minimum,
    Search,
    advance_search,
    begin_search,
    is_searching,
    make_minimum,
    minimise_from,
)
from .problem import FitProblem
from .trust_region import inverse_gram


def set_data(problem: FitProblem) -> Any:
    """Return the values that differ between the problems of different data sets."""
    return problem.shared, problem.runs


def replace_data(problem: FitProblem, data: Any) -> FitProblem:
    """Return the problem of one data set, see `set_data`."""
    return eqx.tree_at(lambda p: (p.shared, p.runs), problem, data)


def stack_sets(problems: Sequence[FitProblem]) -> Any:
    """Return the data of all sets on the host, with a leading axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *map(set_data, problems))


def choose_batch_size(is_whole: bool) -> int:
    """Return how many fits are performed at once by default.

    **Arguments:** `is_whole`, whether they run until the slowest has ended. Otherwise they fill the
    vectors of all cores: with more of them, slow fits would hold up others.
    """
    if runs_on_gpu():
        return 16_384 if is_whole else 128
    return 128 if is_whole else 8 * max(count_cores(), 2)


def runs_on_gpu() -> bool:
    """Return whether fits run on a GPU by default."""
    return jax.default_backend() == "gpu"


# Largest part of a GPU's free memory for the data of fits, beside which are their results.
_PART_OF_MEMORY = 0.25

# Function that summarises the minimum of a data set.
Summarise = Callable[[Minimum], dict[str, Any]]


def fit_sets(
    problem: FitProblem, stacked: Any, search: Search, size: int, summarise: Summarise
) -> dict[str, Any]:
    """Fit all data sets, `size` of them at a time; return NumPy arrays with a leading axis.

    **Arguments:** `stacked`, see `stack_sets`; `summarise`, of each minimum.
    """
    return jax.tree.map(np.asarray, _fit_all(problem, stacked, search, size, summarise))


def limit_by_memory(size: int, stacked: Any) -> int:
    """Return how many data sets, at most `size`, have space on the GPU."""
    memory = free_memory()
    num_bytes = sum(x[0].nbytes for x in jax.tree.leaves(stacked))
    limit = max(int(_PART_OF_MEMORY * memory / num_bytes), 1)
    if limit >= size:
        return size
    warnings.warn(
        f"The data of {size:,} fits take {size * num_bytes / 1e9:.3g} GB, and the GPU has "
        f"{memory / 1e9:.3g} GB left: {limit:,} are fitted at a time.",
        stacklevel=2,
    )
    return limit


def free_memory() -> float:
    """Return the bytes of JAX's default device that are free."""
    stats = jax.local_devices()[0].memory_stats() or {}
    return stats.get("bytes_limit", 8 << 30) - stats.get("bytes_in_use", 0)


@persistent_jit
def _fit_all(
    problem: FitProblem, stacked: Any, search: Search, size: int, summarise: Summarise
) -> dict[str, Any]:
    def start(data):
        set_problem = replace_data(problem, data)
        shared, per_run = set_problem.start_coordinates()
        return begin_search(set_problem, shared, per_run, search)

    return map_with_lane_compaction(
        stacked,
        start,
        functools.partial(is_searching, search),
        lambda data, *progress: advance_search(replace_data(problem, data), search, *progress),
        lambda data, state: summarise(make_minimum(replace_data(problem, data), state)),
        size,
    )


def fit_set(summarise: Summarise, problem: FitProblem, search: Search, data: Any) -> dict[str, Any]:
    """Fit one data set, on a GPU in one thread; return the summary of its minimum."""
    fit = functools.partial(search_set, summarise)
    if not runs_on_gpu():
        return fit(problem, search, data)
    count = len(problem.directions())
    return call_as_kernel("auto", None, fit, problem, search, data, num_tangents=count)


def search_set(
    summarise: Summarise, problem: FitProblem, search: Search, data: Any
) -> dict[str, Any]:
    """Return the summary of the minimum for one data set."""
    set_problem = replace_data(problem, data)
    shared, per_run = set_problem.start_coordinates()
    return summarise(minimise_from(set_problem, shared, per_run, search))


def summarise(minimum: Minimum) -> dict[str, Any]:
    """Return the estimates at a minimum, and whether the fit converged.

    The covariance is that of all components for residuals of unit variance.
    """
    last, chain = minimum.last, minimum.last.chain
    rows = jnp.concatenate([last.coordinate_jacobian(), last.prior_jacobian()])
    return {
        "values": jnp.concatenate([last.shared, last.per_run.reshape(-1)]),
        "covariance": chain @ inverse_gram(rows) @ chain.T,
        "at_bound": jnp.any((chain != 0) & (minimum.sides != 0)[None], axis=1),
        "squares": jnp.sum(last.residuals**2),
        "converged": minimum.converged & (minimum.distance_to_optimum(1.0) <= MAX_DISTANCE),
        "iterations": jnp.sum(minimum.iterations),
    }


def summarise_with_point(minimum: Minimum) -> dict[str, Any]:
    """Return the result of `summarise`, with the coordinates and residuals of the minimum."""
    return summarise(minimum) | {
        "chain": minimum.last.chain,
        "shared": minimum.shared,
        "per_run": minimum.per_run,
        "sides": minimum.sides,
        "leaves": minimum.leaves,
        "residuals": minimum.last.residuals,
    }
