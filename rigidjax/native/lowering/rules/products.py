"""Sums, extrema and products of arrays."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jaxtyping import Array

from ...passes.analysis import MAX_UNROLLED_PRODUCT, expand
from ...primitives.expansions import expansion
from ...primitives.registry import Equation, NoRule, rule
from ...values.memory import ArrayView, EmittedArray
from .. import nests
from ..emitter import Emitter
from .structure import transpose

# Smallest length for which the index of an extreme element is searched in a loop.
_LONG_LINE = 16


def _result_dtype(equation: Equation):
    return np.dtype(equation.outvars[0].aval.dtype)


def _register_reduction(names: list[str], method: str, start: Callable[[np.dtype], Any]):
    """Register a reduction by a method of `Lanes`, with its initial value.

    Equinox's reductions over a batch (`unvmap_any`) reduce batch axes of the jaxpr: batch elements
    of a kernel are independent.
    """

    @rule(*names)
    def emit(em: Emitter, equation, x):
        dtype = np.dtype(equation.invars[0].aval.dtype)
        axes = equation.params.get("axes", range(x.ndim))
        return reduce(em, x, axes, dtype, getattr(em.lanes, method), start)

    return emit


def reduce(
    em: Emitter,
    x: EmittedArray,
    axes: Sequence[int],
    dtype: np.dtype,
    function: Callable[..., Any],
    start: Callable[[np.dtype], Any],
):
    """Reduce along axes by a function of two elements."""
    order = [*axes, *(k for k in range(x.ndim) if k not in axes)]
    x = transpose(x, order)
    reduced_shape, kept_shape = x.shape[: len(axes)], x.shape[len(axes) :]
    if x.size <= 4 * em.register_limit:
        x = em.to_registers(x)
        stacked = x.reshape(math.prod(reduced_shape), *kept_shape)
        out = np.empty(kept_shape, object)
        for index in np.ndindex(kept_shape):
            total = None
            for k in range(len(stacked)):
                element = stacked[(k, *index)]
                total = element if total is None else function(dtype, total, element)
            out[index] = start(dtype) if total is None else total
        return out
    x, out = em.to_memory(x, dtype), em.memory.allocate(kept_shape, dtype)
    first_of_each = ArrayView(x.buffer, kept_shape, x.strides[len(reduced_shape) :], x.offset)
    if nests.can_vectorise_rows(em, out, [first_of_each]):
        read = functools.partial(em.vectors.read, broadcast=first_of_each.strides[-1] == 0)
        with (
            em.loop_nest(kept_shape[:-1]) as index,
            nests.loop_over_row_vectors(em, kept_shape[-1]) as first,
        ):
            total = nests.accumulate(
                em, reduced_shape, dtype, start(dtype),
                lambda total, k: function(dtype, total, read(x, (*k, *index, first))),
            )  # fmt: skip
            em.vectors.write(out, (*index, first), total)
        return em.load_if_small(out)
    with em.loop_nest(kept_shape) as index:

        def step(total, reduced_index):
            return function(dtype, total, em.read_element(x, (*reduced_index, *index)))

        total = nests.accumulate(em, reduced_shape, dtype, start(dtype), step)
        em.memory.write(out, index, total)
    return em.load_if_small(out)


def _lowest(dtype: np.dtype):
    if dtype == np.bool_:
        return np.False_
    return dtype.type(-np.inf) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).min)


def _highest(dtype: np.dtype):
    if dtype == np.bool_:
        return np.True_
    return dtype.type(np.inf) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).max)


_register_reduction(["reduce_sum"], "add", lambda dtype: dtype.type(0))
_register_reduction(["reduce_prod"], "mul", lambda dtype: dtype.type(1))
_register_reduction(["reduce_max", "unvmap_max"], "max", _lowest)
_register_reduction(["reduce_min"], "min", _highest)
_register_reduction(["reduce_or", "unvmap_any"], "or_", lambda dtype: dtype.type(0))
_register_reduction(["reduce_and", "unvmap_all"], "and_", lambda dtype: ~dtype.type(0))
_register_reduction(["reduce_xor"], "xor", lambda dtype: dtype.type(0))


@expansion("psum")
def _psum(*arrays: Array, axes: Any, **_: Any):
    """Sum over batch axes of the jaxpr, which are integers."""
    if not all(isinstance(axis, int) for axis in axes):
        raise NoRule("`psum` over a named axis")
    return [jnp.sum(x, axis=tuple(axes), dtype=x.dtype) for x in arrays]


@expansion("reduce")
def _reduce(*arrays: Array, jaxpr: Any, dimensions: Any, **_: Any):
    """Reduce along axes by a jaxpr, sequentially."""
    count = len(arrays) // 2
    stacked = [jnp.moveaxis(x, dimensions, range(len(dimensions))) for x in arrays[:count]]
    kept_shape = stacked[0].shape[len(dimensions) :]
    stacked = [x.reshape(-1, math.prod(kept_shape)) for x in stacked]
    combine = jax.vmap(jaxpr_as_fun(jaxpr))

    def step(total, entry):
        return tuple(combine(*total, *entry)), None

    start = tuple(jnp.full(math.prod(kept_shape), x) for x in arrays[count:])
    total, _outputs = jax.lax.scan(step, start, tuple(stacked))
    return [x.reshape(kept_shape) for x in total]


@rule("argmax", "argmin")
def _argmax_or_argmin(em: Emitter, equation: Equation, x: EmittedArray):
    """Return the index of the first extreme element, or of the first NaN."""
    (axis,) = equation.params["axes"]
    dtype, index_dtype = np.dtype(equation.invars[0].aval.dtype), _result_dtype(equation)
    is_max = equation.primitive.name == "argmax"
    operator = ">" if is_max else "<"
    if x.ndim == 1 and x.size > _LONG_LINE and not em.are_constant(x):
        extreme, initial = (em.lanes.max, _lowest) if is_max else (em.lanes.min, _highest)
        return _index_of_extreme(em, x, dtype, index_dtype, extreme, initial(dtype))
    if x.size > 4 * em.register_limit and not em.are_constant(x):
        return em.emit(expand(equation), [x])
    x = np.moveaxis(em.to_registers(x), axis, 0)
    out = np.empty(x.shape[1:], object)
    lanes = em.lanes
    for index in np.ndindex(out.shape):
        best, best_index = x[(0, *index)], index_dtype.type(0)
        for k in range(1, len(x)):
            candidate = x[(k, *index)]
            is_better = lanes.compare(dtype, operator, candidate, best)
            if dtype.kind == "f":
                candidate_is_nan = lanes.compare(dtype, "!=", candidate, candidate)
                is_better = lanes.or_(np.bool_, is_better, candidate_is_nan)
                best_is_nan = lanes.compare(dtype, "!=", best, best)
                is_better = lanes.and_(np.bool_, is_better, lanes.not_(np.bool_, best_is_nan))
            best = lanes.select(dtype, is_better, candidate, best)
            best_index = lanes.select(index_dtype, is_better, index_dtype.type(k), best_index)
        out[index] = best_index
    return out


def _expand_argmax(extreme: Callable[..., Array]):
    def expand_argmax(x, *, axes, index_dtype):
        (axis,) = axes
        is_extreme = (x == extreme(x, axis=axis, keepdims=True)) | (x != x)
        indices = jax.lax.broadcasted_iota(index_dtype, x.shape, axis)
        return jnp.min(jnp.where(is_extreme, indices, x.shape[axis]), axis=axis)

    return expand_argmax


expansion("argmax")(_expand_argmax(jnp.max))
expansion("argmin")(_expand_argmax(jnp.min))


def _index_of_extreme(
    em: Emitter,
    x: EmittedArray,
    dtype: np.dtype,
    index_dtype: np.dtype,
    extreme: Callable[..., Any],
    start: Any,
):
    """Return that index for a long array: find the extreme, then the first element equal to it."""
    x, indices = em.to_memory(x, dtype), em.emit_table(np.arange(x.size, dtype=index_dtype))
    lanes, read = em.lanes, em.memory.read
    extreme_value = nests.accumulate(
        em, x.shape, dtype, start, lambda out, k: extreme(dtype, out, read(x, k))
    )
    not_found = index_dtype.type(x.size)

    def step(found_index, k):
        element = read(x, k)
        is_extreme = lanes.compare(dtype, "==", element, extreme_value)
        if dtype.kind == "f":
            is_extreme = lanes.or_(
                np.bool_, is_extreme, lanes.compare(dtype, "!=", element, element)
            )
        is_first = lanes.and_(
            np.bool_, is_extreme, lanes.compare(index_dtype, "==", found_index, not_found)
        )
        return lanes.select(index_dtype, is_first, read(indices, k), found_index)

    out = np.empty((), object)
    out[()] = nests.accumulate(em, x.shape, index_dtype, not_found, step)
    return out


def _register_cumulative(name: str, method: str, combine: Callable[[Array, Array], Array]):
    @rule(name)
    def emit(em, equation, x):
        axis, dtype = equation.params["axis"], _result_dtype(equation)
        if x.size > 4 * em.register_limit and not em.are_constant(x):
            return em.emit(expand(equation), [x])
        function = getattr(em.lanes, method)
        stacked = np.moveaxis(em.to_registers(x), axis, 0)
        out = np.empty(stacked.shape, object)
        indices_in_order = range(len(stacked))
        indices_in_order = list(
            reversed(indices_in_order) if equation.params["reverse"] else indices_in_order
        )
        for index in np.ndindex(stacked.shape[1:]):
            total = None
            for k in indices_in_order:
                element = stacked[(k, *index)]
                total = element if total is None else function(dtype, total, element)
                out[(k, *index)] = total
        return np.moveaxis(out, 0, axis)

    _register_scan(name, combine)


def _register_scan(name: str, combine: Callable[[Array, Array], Array]):
    @expansion(name)
    def scan_lines(x, *, axis, reverse):
        stacked = jnp.moveaxis(x, axis, 0)
        if not x.size:
            return x

        def step(total, entry):
            total = combine(total, entry)
            return total, total

        first = stacked[-1] if reverse else stacked[0]
        rest = stacked[:-1] if reverse else stacked[1:]
        _, out = jax.lax.scan(step, first, rest, reverse=reverse)
        parts = [out, first[None]] if reverse else [first[None], out]
        return jnp.moveaxis(jnp.concatenate(parts), 0, axis)


for _name, _method, _combined in (
    ("cumsum", "add", jax.lax.add),
    ("cumprod", "mul", jax.lax.mul),
    ("cummax", "max", jax.lax.max),
    ("cummin", "min", jax.lax.min),
):
    _register_cumulative(_name, _method, _combined)
_register_scan("cumlogsumexp", jnp.logaddexp)


@rule("dot_general")
def _dot_general(em: Emitter, equation: Equation, a: EmittedArray, b: EmittedArray):
    (ca, cb), (ba, bb) = equation.params["dimension_numbers"]
    dtype = _result_dtype(equation)
    sides = []
    for x, contracted, batch, var in ((a, ca, ba, 0), (b, cb, bb, 1)):
        free = [k for k in range(x.ndim) if k not in contracted and k not in batch]
        shapes = [tuple(x.shape[k] for k in axes) for axes in (batch, free, contracted)]
        order = [*batch, *free, *contracted]
        old = np.dtype(equation.invars[var].aval.dtype)
        if old != dtype:
            x = em.map(lambda v, old=old: em.lanes.convert(v, old, dtype), dtype, x)
        sides.append((transpose(x, order), shapes))
    (a, (batch, rows, contracted_shape)), (b, (_, columns, _)) = sides
    shape = (*batch, *rows, *columns)
    lanes = em.lanes
    # In kernels with one lane, a loop computes vectors along a row.
    max_products = MAX_UNROLLED_PRODUCT if lanes.width > 1 else MAX_UNROLLED_PRODUCT // 3
    if (
        math.prod(shape) * math.prod(contracted_shape) <= max_products
        and math.prod(shape) <= em.register_limit
    ):
        a, b = em.to_registers(a), em.to_registers(b)
        out = np.empty(shape, object)
        for i in np.ndindex(batch):
            for j in np.ndindex(rows):
                for k in np.ndindex(columns):
                    out[(*i, *j, *k)] = lanes.sum(
                        dtype,
                        [
                            lanes.mul(dtype, a[(*i, *j, *m)], b[(*i, *k, *m)])
                            for m in np.ndindex(contracted_shape)
                        ],
                    )
        return out
    full = (*shape, *contracted_shape)
    a, b = em.to_memory(a, dtype), em.to_memory(b, dtype)
    i, j, k = len(batch), len(rows), len(columns)
    strides_a = (*a.strides[: i + j], *(0,) * k, *a.strides[i + j :])
    strides_b = (*b.strides[:i], *(0,) * j, *b.strides[i:])
    factors = [
        ArrayView(x.buffer, full, strides, x.offset)
        for x, strides in ((a, strides_a), (b, strides_b))
    ]
    return em.load_if_small(nests.sum_of_products(em, factors, dtype, len(contracted_shape)))


@rule("cross_product")
def _cross_product(em: Emitter, equation: Equation, u: EmittedArray, v: EmittedArray):
    dtype, shape = _result_dtype(equation), equation.outvars[0].aval.shape
    if not em.fits_registers(math.prod(shape), u, v):
        return em.emit(expand(equation), [u, v])
    u, v = (np.broadcast_to(em.to_registers(x), shape).reshape(-1, 3) for x in (u, v))
    mul, sub = (functools.partial(f, dtype) for f in (em.lanes.mul, em.lanes.sub))
    out = np.empty(u.shape, object)
    for k, ((a, b, c), (x, y, z)) in enumerate(zip(u.tolist(), v.tolist(), strict=True)):
        out[k] = (
            sub(mul(b, z), mul(c, y)), sub(mul(c, x), mul(a, z)), sub(mul(a, y), mul(b, x)),
        )  # fmt: skip
    return out.reshape(shape)


@rule("short_sum")
def _short_sum(em: Emitter, equation: Equation, *factors: EmittedArray):
    """Sum products of arrays whose shapes broadcast over one axis."""
    dtype, axis = _result_dtype(equation), equation.params["axis"]
    shape = np.broadcast_shapes(*(x.shape for x in factors))
    axis %= len(shape)
    order = [*(k for k in range(len(shape)) if k != axis), axis]
    if not em.fits_registers(math.prod(shape), *factors):
        dtypes = (var.aval.dtype for var in equation.invars)
        views = [
            nests.permute_axes(nests.broadcast_view(em, x, shape, dtype_of_factor), order)
            for x, dtype_of_factor in zip(factors, dtypes, strict=True)
        ]
        return em.load_if_small(nests.sum_of_products(em, views, dtype, 1))
    operands = [np.broadcast_to(em.to_registers(x), shape).transpose(order) for x in factors]
    mul = functools.partial(em.lanes.mul, dtype)
    elements = (x.ravel().tolist() for x in operands)
    products = [functools.reduce(mul, factors) for factors in zip(*elements, strict=True)]
    count = shape[axis]
    out = np.empty(math.prod(operands[0].shape[:-1]), object)
    out[:] = [em.lanes.sum(dtype, products[k * count : (k + 1) * count]) for k in range(out.size)]
    return out.reshape(operands[0].shape[:-1])
