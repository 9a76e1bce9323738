"""Rows of arrays, one for each body: by indices that are known on the host, and all of them."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

# Up to so many runs of consecutive rows are cut out and joined; more are gathered.
_RUNS = 3


def take(values: Array, rows: Sequence[int] | np.ndarray) -> Array:
    """`values[rows]`; consecutive rows are sliced, which costs a tenth of gathering them."""
    rows = np.asarray(rows, int)
    if rows.size == 0:
        return values[:0]
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    runs = np.split(rows, breaks)
    if len(runs) > _RUNS:
        return values[rows]
    parts = [values[run[0] : run[-1] + 1] for run in runs]
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


def each(function: Callable[..., Any], *rows: Any) -> Any:
    """`function` of every row; without a batch for a single one.

    XLA makes two kernels of a batch of one that is taken apart and joined again: the vector field
    of a heavy top has four of them for two.
    """
    if len(jax.tree.leaves(rows)[0]) != 1:
        return jax.vmap(function)(*rows)
    found = function(*jax.tree.map(lambda row: row[0], rows))
    return jax.tree.map(lambda value: value[None], found)
