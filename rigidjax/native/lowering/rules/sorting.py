"""Sorting along an axis."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...passes.analysis import MAX_UNROLLED_COST, expand
from ...primitives.expansions import expansion
from ...primitives.registry import Equation, rule
from ...values.lanes import Lanes
from ..emitter import Emitter

# Length up to which a line is sorted in registers.
_REGISTER_LIMIT = 32


@rule("sort")
def _sort(em: Emitter, equation: Equation, *arrays: Any):
    """Sort short lines by odd-even transposition, stable; long ones by `_expand_sort`."""
    params, lanes = equation.params, em.lanes
    n, entries = arrays[0].shape[params["dimension"]], arrays[0].size
    if n > _REGISTER_LIMIT or entries * n // 2 > MAX_UNROLLED_COST:
        # The stages are a loop over the line, so that it is dynamically indexed in memory.
        outer_limit, em.register_limit = em.register_limit, min(em.register_limit, _REGISTER_LIMIT)
        out = em.emit(expand(equation), list(arrays))
        em.register_limit = outer_limit
        return out
    arrays = [np.moveaxis(em.to_registers(x), params["dimension"], 0).copy() for x in arrays]  # pyright: ignore[reportAssignmentType]
    dtypes = [np.dtype(var.aval.dtype) for var in equation.outvars]
    for pass_index in range(n):
        for k in range(pass_index % 2, n - 1, 2):
            for index in np.ndindex(arrays[0].shape[1:]):
                low, high = (k, *index), (k + 1, *index)
                swap, equal = np.False_, np.True_
                for x, dtype in list(zip(arrays, dtypes, strict=True))[: params["num_keys"]]:
                    is_greater = _is_greater(lanes, dtype, x[low], x[high])
                    swap = lanes.or_(np.bool_, swap, lanes.and_(np.bool_, equal, is_greater))
                    is_less = _is_greater(lanes, dtype, x[high], x[low])
                    is_tied = lanes.not_(np.bool_, lanes.or_(np.bool_, is_greater, is_less))
                    equal = lanes.and_(np.bool_, equal, is_tied)
                for x, dtype in zip(arrays, dtypes, strict=True):
                    a, b = x[low], x[high]
                    x[low] = lanes.select(dtype, swap, b, a)
                    x[high] = lanes.select(dtype, swap, a, b)
    return [np.moveaxis(x, 0, params["dimension"]) for x in arrays]


def _is_greater(lanes: Lanes, dtype: np.dtype, a: Any, b: Any):
    """Return whether `a` is sorted after `b`; NaN comes last."""
    out = lanes.compare(dtype, ">", a, b)
    if dtype.kind != "f":
        return out
    a_is_nan = lanes.compare(dtype, "!=", a, a)
    b_is_number = lanes.compare(dtype, "==", b, b)
    return lanes.or_(np.bool_, out, lanes.and_(np.bool_, a_is_nan, b_is_number))


@expansion("sort")
def _expand_sort(*arrays: Array, dimension: Any, num_keys: Any, **_: Any):
    """Sort indices bitonically (Batcher 1968); the index is the last key, so that it is stable."""
    arrays_sorted_axis_last = [jnp.moveaxis(x, dimension, -1) for x in arrays]
    lines = [x.reshape(-1, x.shape[-1]) for x in arrays_sorted_axis_last]
    out = jax.vmap(lambda *line: _sort_line(line, num_keys))(*lines)
    return [
        jnp.moveaxis(y.reshape(x.shape), -1, dimension)
        for x, y in zip(arrays_sorted_axis_last, out, strict=True)
    ]


def _sort_line(line: Sequence[Array], num_keys: int):
    n = len(line[0])
    levels = (n - 1).bit_length()
    stages = [(level, step) for level in range(1, levels + 1) for step in range(level)[::-1]]
    table, positions = jnp.asarray(stages), jnp.arange(1 << levels)

    def stage(k, order):
        level, step = table[k]
        partner_order = order[positions ^ (1 << step)]
        # Sequences of length 2^level are ascending and descending alternately.
        wants_larger = ((positions >> step) & 1) != ((positions >> level) & 1)
        return jnp.where(
            _comes_after(line[:num_keys], partner_order, order) == wants_larger,
            partner_order,
            order,
        )

    order = jax.lax.fori_loop(0, len(stages), stage, positions)[:n] if n > 1 else positions[:n]
    return [x[order] for x in line]


def _comes_after(keys: Sequence[Array], a: Any, b: Any):
    """Return whether the element with index `a` comes after that with index `b`.

    Indices beyond the end of the line come last.
    """
    n = len(keys[0])
    is_after = a > b
    for x in reversed(keys):
        x_a, x_b = x[jnp.minimum(a, n - 1)], x[jnp.minimum(b, n - 1)]
        is_greater, is_less = x_a > x_b, x_a < x_b
        if jnp.issubdtype(x.dtype, jnp.floating):
            is_greater |= (x_a != x_a) & (x_b == x_b)
            is_less |= (x_b != x_b) & (x_a == x_a)
        is_after = is_greater | (is_after & ~is_less)
    return jnp.where((a < n) & (b < n), is_after, a > b)


@expansion("top_k")
def _top_k(x: Array, *, k: Any, axis: Any, **_: Any):
    """Return the k largest elements, the first ones of equal elements, and their indices."""
    order = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    # Sorted from the last element to the first, equal elements keep their order.
    values, indices = jax.lax.sort(
        [jnp.flip(x, axis), jnp.flip(order, axis)], dimension=axis, num_keys=1
    )
    return [jax.lax.slice_in_dim(jnp.flip(y, axis), 0, k, axis=axis) for y in (values, indices)]
