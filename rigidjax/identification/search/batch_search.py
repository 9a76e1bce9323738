"""The search for the minima of many data sets at once."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...native import count_cores, map_with_lane_compaction
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
    """Return the data of all sets, with a leading axis."""
    data = map(set_data, problems)
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *data)


def choose_batch_size() -> int:
    """Return how many fits advance together by default.

    They fill the vectors of all cores. With more of them, slow fits would hold up others.
    """
    return 128 if jax.default_backend() == "gpu" else 8 * max(count_cores(), 2)


# Function that summarises the minimum of a data set.
Summarise = Callable[[Minimum], dict[str, Any]]


def fit_sets(
    problem: FitProblem, stacked: Any, search: Search, size: int, summarise: Summarise
) -> dict[str, Any]:
    """Fit all data sets, `size` of them at a time; return NumPy arrays with a leading axis.

    **Arguments:** `stacked`, see `stack_sets`; `summarise`, of each minimum.
    """
    return jax.tree.map(np.asarray, _fit_all(problem, stacked, search, size, summarise))


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


def fit_set(problem: FitProblem, search: Search, data: Any) -> dict[str, Any]:
    """Fit one data set; return its estimates, and whether its fit converged."""
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
