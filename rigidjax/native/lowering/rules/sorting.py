"""Arrays in order along an axis."""

import jax
import jax.numpy as jnp
import numpy as np

from ...passes.analysis import MAX_UNROLLED_COST, expand
from ..emitter import Emitter
from ..expansions import expansion
from ..registry import rule

# Entries of a line up to which it is sorted in registers.
_FEW = 32


@rule("sort")
def _sort(em: Emitter, equation, *arrays):
    """Odd-even transposition of few entries: stable, by the first keys."""
    p, lanes = equation.params, em.lanes
    n, entries = arrays[0].shape[p["dimension"]], arrays[0].size
    if n > _FEW or entries * n // 2 > MAX_UNROLLED_COST:
        # Stages of sorting are loops over the line, also where it would fit into registers.
        largest, em.register_limit = em.register_limit, min(em.register_limit, _FEW)
        out = em.emit(expand(equation), list(arrays))
        em.register_limit = largest
        return out
    arrays = [np.moveaxis(em.to_registers(x), p["dimension"], 0).copy() for x in arrays]
    dtypes = [np.dtype(var.aval.dtype) for var in equation.outvars]
    for turn in range(n):
        for k in range(turn % 2, n - 1, 2):
            for index in np.ndindex(arrays[0].shape[1:]):
                low, high = (k, *index), (k + 1, *index)
                swap, equal = np.False_, np.True_
                for x, dtype in list(zip(arrays, dtypes, strict=True))[: p["num_keys"]]:
                    larger = _after(lanes, dtype, x[low], x[high])
                    swap = lanes.or_(np.bool_, swap, lanes.and_(np.bool_, equal, larger))
                    smaller = _after(lanes, dtype, x[high], x[low])
                    same = lanes.not_(np.bool_, lanes.or_(np.bool_, larger, smaller))
                    equal = lanes.and_(np.bool_, equal, same)
                for x, dtype in zip(arrays, dtypes, strict=True):
                    a, b = x[low], x[high]
                    x[low] = lanes.select(dtype, swap, b, a)
                    x[high] = lanes.select(dtype, swap, a, b)
    return [np.moveaxis(x, 0, p["dimension"]) for x in arrays]


def _after(lanes, dtype, a, b):
    """Whether `a` comes behind `b`; NaN comes last."""
    out = lanes.compare(dtype, ">", a, b)
    if dtype.kind != "f":
        return out
    a_is_nan = lanes.compare(dtype, "!=", a, a)
    b_is_number = lanes.compare(dtype, "==", b, b)
    return lanes.or_(np.bool_, out, lanes.and_(np.bool_, a_is_nan, b_is_number))


@expansion("sort")
def _sorted(*arrays, dimension, num_keys, **_):
    """Bitonic sorting (Batcher 1968) of places: stable, as the place is the last key."""
    moved = [jnp.moveaxis(x, dimension, -1) for x in arrays]
    lines = [x.reshape(-1, x.shape[-1]) for x in moved]
    out = jax.vmap(lambda *line: _sorted_line(line, num_keys))(*lines)
    return [
        jnp.moveaxis(y.reshape(x.shape), -1, dimension) for x, y in zip(moved, out, strict=True)
    ]


def _sorted_line(line, num_keys):
    n = len(line[0])
    levels = (n - 1).bit_length()
    stages = [(level, step) for level in range(1, levels + 1) for step in range(level)[::-1]]
    table, here = jnp.asarray(stages), jnp.arange(1 << levels)

    def stage(k, places):
        level, step = table[k]
        others = places[here ^ (1 << step)]
        # In a line of two to the `level`, every second one downwards.
        wants_larger = ((here >> step) & 1) != ((here >> level) & 1)
        return jnp.where(_behind(line[:num_keys], others, places) == wants_larger, others, places)

    places = jax.lax.fori_loop(0, len(stages), stage, here)[:n] if n > 1 else here[:n]
    return [x[places] for x in line]


def _behind(keys, a, b):
    """Whether the entry at place `a` comes behind that at `b`; places beyond the line come last."""
    n = len(keys[0])
    behind = a > b
    for x in reversed(keys):
        one, other = x[jnp.minimum(a, n - 1)], x[jnp.minimum(b, n - 1)]
        larger, smaller = one > other, one < other
        if jnp.issubdtype(x.dtype, jnp.floating):
            larger |= (one != one) & (other == other)
            smaller |= (other != other) & (one == one)
        behind = larger | (behind & ~smaller)
    return jnp.where((a < n) & (b < n), behind, a > b)


@expansion("top_k")
def _top_k(x, *, k, axis, **_):
    """The largest ones, of equal ones the first, and where they are."""
    places = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    # From the last one to the first, so that those that are equal come out in order.
    numbers, found = jax.lax.sort(
        [jnp.flip(x, axis), jnp.flip(places, axis)], dimension=axis, num_keys=1
    )
    return [jax.lax.slice_in_dim(jnp.flip(y, axis), 0, k, axis=axis) for y in (numbers, found)]
