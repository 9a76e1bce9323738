"""Gather, stack, map and sum the rows of arrays, by row indices that are concrete while tracing."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer, eval_context
from jax.typing import ArrayLike
from jaxtyping import Array

Rows = TypeVar("Rows")
# Largest number of slices that are concatenated; rows in more pieces are gathered.
_MAX_SLICES = 3
# Largest number of slices and blocks of zeros that are concatenated for a sum of rows.
_MAX_PIECES = 6
# Largest number of terms of a row that are added one after another; more terms are scattered.
_MAX_TERMS = 4


def take(values: Rows, rows: Sequence[int] | np.ndarray) -> Rows:
    """Return `values[rows]` for an array, or for every array of a pytree.

    Consecutive rows are sliced, which is much faster than gathering. Other rows are one gather
    equation; JAX's own indexing makes five and takes longer to trace.

    **Arguments:** `rows`, integer indices of any shape; negative ones count from the end.
    """
    return jax.tree.map(lambda leaf: _take(leaf, rows), values)


def _take(values: Array, rows: Sequence[int] | np.ndarray) -> Array:
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


def _gather_rows(values: Array, rows: np.ndarray) -> Array:
    """Return `values[rows]` for indices within bounds, none of them negative."""
    numbers = jax.lax.GatherDimensionNumbers(
        offset_dims=tuple(range(rows.ndim, rows.ndim + values.ndim - 1)),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
    )
    indices, sizes = rows[..., None].astype(np.int32), (1, *values.shape[1:])
    return jax.lax.gather(values, indices, numbers, sizes, mode="promise_in_bounds")


def stack_rows(values: Sequence[ArrayLike]) -> Array:
    """Stack arrays or scalars of equal shape and dtype as the rows of one array.

    Values that are not traced are copied on the host, so that they add no equations.
    """
    traced = [k for k, value in enumerate(values) if isinstance(value, Tracer)]
    if len(traced) == len(values):
        return jnp.stack([jnp.asarray(value) for value in values])
    dtype = jnp.result_type(values[0])
    rows = np.zeros((len(values), *np.shape(values[0])), dtype)
    for k in {*range(len(values))}.difference(traced):
        rows[k] = values[k]
    # The constant rows must not become part of an enclosing trace. `jnp.asarray` would compile
    # once for each shape.
    with eval_context():
        constant = jax.device_put(rows)
    if not traced:
        return constant
    rest = jnp.stack([values[k] for k in traced])
    return constant.at[np.array(traced)].set(rest, unique_indices=True)


def vmap_rows(function: Callable[..., Any], *rows: Any) -> Any:
    """Map `function` over the rows of pytrees, without a batch axis for a single row.

    XLA does not fuse across a batch of one that is split and concatenated again, and makes two
    loops where one suffices.
    """
    if len(jax.tree.leaves(rows)[0]) != 1:
        return jax.vmap(function)(*rows)
    result = function(*jax.tree.map(lambda row: row[0], rows))
    return jax.tree.map(lambda value: value[None], result)


def segment_sum(values: Array, rows: Sequence[int], count: int) -> Array:
    """Return an array of `count` rows; row `i` is the sum of `values[k]` over all `rows[k] == i`.

    The first terms of all rows are laid out as one array, then the second terms, and so on. If one
    row has many terms, `jax.ops.segment_sum` scatters them instead.
    """
    terms_of: list[list[int]] = [[] for _ in range(count)]
    for k, row in enumerate(rows):
        terms_of[row].append(k)
    width = max(map(len, terms_of))
    if width > _MAX_TERMS:
        return jax.ops.segment_sum(values, np.asarray(rows), count)
    total = None
    for j in range(width):
        column = np.array([terms[j] if j < len(terms) else -1 for terms in terms_of])
        part = _take_or_zero(values, column)
        total = part if total is None else total + part
    return jnp.zeros((count, *values.shape[1:]), values.dtype) if total is None else total


def _take_or_zero(values: Array, rows: np.ndarray) -> Array:
    """Return `values[rows]`, with zeros where a row index is -1."""
    is_given = rows >= 0
    continues = np.where(is_given[1:], is_given[:-1] & (np.diff(rows) == 1), ~is_given[:-1])
    breaks = np.flatnonzero(~continues) + 1
    runs = np.split(rows, breaks)

    def zeros(n):
        return jnp.zeros((n, *values.shape[1:]), values.dtype)

    if len(runs) > _MAX_PIECES:
        padded = jnp.concatenate([values, zeros(1)])
        return _gather_rows(padded, np.where(is_given, rows, len(values)))
    parts = [zeros(len(r)) if r[0] < 0 else values[r[0] : r[-1] + 1] for r in runs]
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)
