"""Rows of arrays, one for each body: by indices that are known on the host, and all of them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer, eval_context
from jax.typing import ArrayLike
from jaxtyping import Array

Rows = TypeVar("Rows")
# Up to so many runs of consecutive rows are cut out and joined; more are gathered.
_MAX_SLICES = 3
# Up to so many runs, and zeros between them, are joined to rows of sums.
_MAX_PIECES = 6
# Up to so many values of a row are added up one after the other.
_MAX_TERMS = 4


def take(values: Rows, rows: Sequence[int] | np.ndarray) -> Rows:
    """`values[rows]` of an array, or of all arrays of a module; `rows`, indices of any rank.

    Consecutive rows are sliced, which costs a tenth of gathering them. JAX's own indexing is
    five operations in the place of one, and takes eight times as long to trace.
    """
    return jax.tree.map(lambda leaf: _take(leaf, rows), values)


def _take(values, rows):
    rows = np.asarray(rows, int)
    rows = np.where(rows < 0, rows + len(values), rows)
    if rows.ndim != 1:
        return _gather_rows(values, rows)
    if rows.size == 0:
        return values[:0]
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    runs = np.split(rows, breaks)
    if len(runs) > _MAX_SLICES:
        return _gather_rows(values, rows)
    parts = [values[run[0] : run[-1] + 1] for run in runs]
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


def _gather_rows(values, rows):
    """`values[rows]` of rows that exist, none of them counted from the end."""
    numbers = jax.lax.GatherDimensionNumbers(
        offset_dims=tuple(range(rows.ndim, rows.ndim + values.ndim - 1)),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
    )
    places, sizes = rows[..., None].astype(np.int32), (1, *values.shape[1:])
    return jax.lax.gather(values, places, numbers, sizes, mode="promise_in_bounds")


def stack_rows(values: Sequence[ArrayLike]) -> Array:
    """Arrays or numbers of one shape and dtype as rows of one array; those that are known are
    copied on the host, which costs no operation."""
    traced = [k for k, value in enumerate(values) if isinstance(value, Tracer)]
    if len(traced) == len(values):
        return jnp.stack([jnp.asarray(value) for value in values])
    dtype = jnp.result_type(values[0])
    rows = np.zeros((len(values), *np.shape(values[0])), dtype)
    for k in {*range(len(values))}.difference(traced):
        rows[k] = values[k]
    with eval_context():  # never a part of a trace
        known = jax.device_put(rows)  # `jnp.asarray` compiles a program for each shape
    if not traced:
        return known
    rest = jnp.stack([values[k] for k in traced])
    return known.at[np.array(traced)].set(rest, unique_indices=True)


def vmap_rows(function: Callable[..., Any], *rows: Any) -> Any:
    """`function` of every row; without a batch for a single one.

    XLA makes two kernels of a batch of one that is taken apart and joined again: the vector field
    of a heavy top has four of them for two.
    """
    if len(jax.tree.leaves(rows)[0]) != 1:
        return jax.vmap(function)(*rows)
    found = function(*jax.tree.map(lambda row: row[0], rows))
    return jax.tree.map(lambda value: value[None], found)


def segment_sum(values: Array, rows: Sequence[int], count: int) -> Array:
    """The sums of those of `values` that belong to each of `count` rows, by the row of each.

    Each of a row's first values, second values and so on is laid out over all rows; where a row has
    many more than others, they are scattered.
    """
    of: list[list[int]] = [[] for _ in range(count)]
    for k, row in enumerate(rows):
        of[row].append(k)
    width = max(map(len, of))
    if width > _MAX_TERMS:
        return jax.ops.segment_sum(values, np.asarray(rows), count)
    total = None
    for j in range(width):
        column = np.array([members[j] if j < len(members) else -1 for members in of])
        part = _take_or_zero(values, column)
        total = part if total is None else total + part
    return jnp.zeros((count, *values.shape[1:]), values.dtype) if total is None else total


def _take_or_zero(values: Array, rows: np.ndarray) -> Array:
    """`values[rows]`, zero where a row is -1."""
    given = rows >= 0
    joined = np.where(given[1:], given[:-1] & (np.diff(rows) == 1), ~given[:-1])
    breaks = np.flatnonzero(~joined) + 1
    runs = np.split(rows, breaks)

    def zeros(n):
        return jnp.zeros((n, *values.shape[1:]), values.dtype)

    if len(runs) > _MAX_PIECES:
        return _gather_rows(jnp.concatenate([values, zeros(1)]), np.where(given, rows, len(values)))
    parts = [zeros(len(r)) if r[0] < 0 else values[r[0] : r[-1] + 1] for r in runs]
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)
