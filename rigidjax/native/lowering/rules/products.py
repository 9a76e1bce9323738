"""Sums, extremes and products of arrays."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from ...passes.analysis import MAX_UNROLLED_PRODUCT, expand
from .. import nests
from ..emitter import Emitter
from ..expansions import expansion
from ..memory import ArrayView
from ..registry import NoRule, rule
from .structure import transpose

# Entries of a line from which on its extreme is looked for in a loop.
_LONG_LINE = 16


def _dtype(equation):
    return np.dtype(equation.outvars[0].aval.dtype)


def _reduction(names, method, start):
    """Those of Equinox over a batch (`unvmap_any`) are over batches inside of the program: members
    of a kernel know nothing of each other."""

    @rule(*names)
    def emit(em: Emitter, equation, x):
        dtype = np.dtype(equation.invars[0].aval.dtype)
        axes = equation.params.get("axes", range(x.ndim))
        return reduced(em, x, axes, dtype, getattr(em.lanes, method), start)

    return emit


def reduced(em, x, axes, dtype, function, start):
    """Entries along axes taken together by a function of two numbers."""
    order = [*axes, *(k for k in range(x.ndim) if k not in axes)]
    x = transpose(x, order)
    along, rest = x.shape[: len(axes)], x.shape[len(axes) :]
    if x.size <= 4 * em.register_limit:
        x = em.to_registers(x)
        lines = x.reshape(math.prod(along), *rest)
        out = np.empty(rest, object)
        for index in np.ndindex(rest):
            total = None
            for k in range(len(lines)):
                one = lines[(k, *index)]
                total = one if total is None else function(dtype, total, one)
            out[index] = start(dtype) if total is None else total
        return out
    x, out = em.to_memory(x, dtype), em.memory.allocate(rest, dtype)
    line = ArrayView(x.buffer, rest, x.strides[len(along) :], x.offset)
    if nests.can_vectorise_rows(em, out, [line]):
        read = functools.partial(em.vectors.read, broadcast=line.strides[-1] == 0)
        with em.loop_nest(rest[:-1]) as index, nests.loop_over_row_vectors(em, rest[-1]) as first:
            total = nests.accumulate(
                em, along, dtype, start(dtype),
                lambda total, turn: function(dtype, total, read(x, (*turn, *index, first))),
            )  # fmt: skip
            em.vectors.write(out, (*index, first), total)
        return em.load_if_small(out)
    with em.loop_nest(rest) as index:

        def step(total, turn):
            return function(dtype, total, em.read_element(x, (*turn, *index)))

        total = nests.accumulate(em, along, dtype, start(dtype), step)
        em.memory.write(out, index, total)
    return em.load_if_small(out)


def _lowest(dtype):
    if dtype == np.bool_:
        return np.False_
    return dtype.type(-np.inf) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).min)


def _highest(dtype):
    if dtype == np.bool_:
        return np.True_
    return dtype.type(np.inf) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).max)


_reduction(["reduce_sum"], "add", lambda dtype: dtype.type(0))
_reduction(["reduce_prod"], "mul", lambda dtype: dtype.type(1))
_reduction(["reduce_max", "unvmap_max"], "max", _lowest)
_reduction(["reduce_min"], "min", _highest)
_reduction(["reduce_or", "unvmap_any"], "or_", lambda dtype: dtype.type(0))
_reduction(["reduce_and", "unvmap_all"], "and_", lambda dtype: ~dtype.type(0))
_reduction(["reduce_xor"], "xor", lambda dtype: dtype.type(0))


@expansion("psum")
def _psum(*arrays, axes, **_):
    """Over batches inside of the program, whose axes are numbers."""
    if not all(isinstance(axis, int) for axis in axes):
        raise NoRule("`psum` over a named axis")
    return [jnp.sum(x, axis=tuple(axes), dtype=x.dtype) for x in arrays]


@expansion("reduce")
def _reduce(*arrays, jaxpr, dimensions, **_):
    """Entries along axes taken together by a function, one after the other."""
    count = len(arrays) // 2
    lines = [jnp.moveaxis(x, dimensions, range(len(dimensions))) for x in arrays[:count]]
    rest = lines[0].shape[len(dimensions) :]
    lines = [x.reshape(-1, math.prod(rest)) for x in lines]
    combined = jax.vmap(jaxpr_as_fun(jaxpr))

    def step(total, entry):
        return tuple(combined(*total, *entry)), None

    start = tuple(jnp.full(math.prod(rest), x) for x in arrays[count:])
    total, _ = jax.lax.scan(step, start, tuple(lines))
    return [x.reshape(rest) for x in total]


@rule("argmax", "argmin")
def _argument(em, equation, x):
    """Index of the first extreme entry; of the first NaN if there is one."""
    (axis,) = equation.params["axes"]
    dtype, index_dtype = np.dtype(equation.invars[0].aval.dtype), _dtype(equation)
    is_max = equation.primitive.name == "argmax"
    operator = ">" if is_max else "<"
    if x.ndim == 1 and x.size > _LONG_LINE and not em.are_constant(x):
        extreme, lowest = (em.lanes.max, _lowest) if is_max else (em.lanes.min, _highest)
        return _place_of_extreme(em, x, dtype, index_dtype, extreme, lowest(dtype))
    if x.size > 4 * em.register_limit and not em.are_constant(x):
        return em.emit(expand(equation), [x])
    x = np.moveaxis(em.to_registers(x), axis, 0)
    out = np.empty(x.shape[1:], object)
    lanes = em.lanes
    for index in np.ndindex(out.shape):
        best, where = x[(0, *index)], index_dtype.type(0)
        for k in range(1, len(x)):
            one = x[(k, *index)]
            better = lanes.compare(dtype, operator, one, best)
            if dtype.kind == "f":
                is_new = lanes.compare(dtype, "!=", one, one)
                better = lanes.or_(np.bool_, better, is_new)
                is_nan = lanes.compare(dtype, "!=", best, best)
                better = lanes.and_(np.bool_, better, lanes.not_(np.bool_, is_nan))
            best = lanes.select(dtype, better, one, best)
            where = lanes.select(index_dtype, better, index_dtype.type(k), where)
        out[index] = where
    return out


def _argument_of_many(extreme):
    def of(x, *, axes, index_dtype):
        (axis,) = axes
        is_it = (x == extreme(x, axis=axis, keepdims=True)) | (x != x)
        places = jax.lax.broadcasted_iota(index_dtype, x.shape, axis)
        return jnp.min(jnp.where(is_it, places, x.shape[axis]), axis=axis)

    return of


expansion("argmax")(_argument_of_many(jnp.max))
expansion("argmin")(_argument_of_many(jnp.min))


def _place_of_extreme(em, x, dtype, index_dtype, extreme, start):
    """The same for a long line: the extreme, then the first entry that is it or NaN."""
    x, places = em.to_memory(x, dtype), em.emit_table(np.arange(x.size, dtype=index_dtype))
    lanes, read = em.lanes, em.memory.read
    best = nests.accumulate(
        em, x.shape, dtype, start, lambda out, k: extreme(dtype, out, read(x, k))
    )
    none = index_dtype.type(x.size)

    def step(found, k):
        one = read(x, k)
        is_it = lanes.compare(dtype, "==", one, best)
        if dtype.kind == "f":
            is_it = lanes.or_(np.bool_, is_it, lanes.compare(dtype, "!=", one, one))
        is_first = lanes.and_(np.bool_, is_it, lanes.compare(index_dtype, "==", found, none))
        return lanes.select(index_dtype, is_first, read(places, k), found)

    out = np.empty((), object)
    out[()] = nests.accumulate(em, x.shape, index_dtype, none, step)
    return out


def _cumulative(name, method, combined):
    @rule(name)
    def emit(em, equation, x):
        axis, dtype = equation.params["axis"], _dtype(equation)
        if x.size > 4 * em.register_limit and not em.are_constant(x):
            return em.emit(expand(equation), [x])
        function = getattr(em.lanes, method)
        lines = np.moveaxis(em.to_registers(x), axis, 0)
        out = np.empty(lines.shape, object)
        order = range(len(lines))
        order = list(reversed(order) if equation.params["reverse"] else order)
        for index in np.ndindex(lines.shape[1:]):
            total = None
            for k in order:
                one = lines[(k, *index)]
                total = one if total is None else function(dtype, total, one)
                out[(k, *index)] = total
        return np.moveaxis(out, 0, axis)

    _scanned(name, combined)


def _scanned(name, combined):
    @expansion(name)
    def scanned(x, *, axis, reverse):
        lines = jnp.moveaxis(x, axis, 0)
        if not x.size:
            return x

        def step(total, entry):
            total = combined(total, entry)
            return total, total

        first = lines[-1] if reverse else lines[0]
        others = lines[:-1] if reverse else lines[1:]
        _, out = jax.lax.scan(step, first, others, reverse=reverse)
        parts = [out, first[None]] if reverse else [first[None], out]
        return jnp.moveaxis(jnp.concatenate(parts), 0, axis)


for _name, _method, _combined in (
    ("cumsum", "add", jax.lax.add),
    ("cumprod", "mul", jax.lax.mul),
    ("cummax", "max", jax.lax.max),
    ("cummin", "min", jax.lax.min),
):
    _cumulative(_name, _method, _combined)
_scanned("cumlogsumexp", jnp.logaddexp)


@rule("dot_general")
def _dot_general(em, equation, a, b):
    (ca, cb), (ba, bb) = equation.params["dimension_numbers"]
    dtype = _dtype(equation)
    sides = []
    for x, contracted, batch, var in ((a, ca, ba, 0), (b, cb, bb, 1)):
        free = [k for k in range(x.ndim) if k not in contracted and k not in batch]
        shapes = [tuple(x.shape[k] for k in axes) for axes in (batch, free, contracted)]
        order = [*batch, *free, *contracted]
        old = np.dtype(equation.invars[var].aval.dtype)
        if old != dtype:
            x = em.map(lambda v, old=old: em.lanes.convert(v, old, dtype), dtype, x)
        sides.append((transpose(x, order), shapes))
    (a, (batch, rows, along)), (b, (_, columns, _)) = sides
    shape = (*batch, *rows, *columns)
    lanes = em.lanes
    # Of one lane, several numbers of a row are computed at once where there is a loop.
    most = MAX_UNROLLED_PRODUCT if lanes.width > 1 else MAX_UNROLLED_PRODUCT // 3
    if math.prod(shape) * math.prod(along) <= most and math.prod(shape) <= em.register_limit:
        a, b = em.to_registers(a), em.to_registers(b)
        out = np.empty(shape, object)
        for i in np.ndindex(batch):
            for j in np.ndindex(rows):
                for k in np.ndindex(columns):
                    out[(*i, *j, *k)] = lanes.sum(
                        dtype,
                        [
                            lanes.mul(dtype, a[(*i, *j, *m)], b[(*i, *k, *m)])
                            for m in np.ndindex(along)
                        ],
                    )
        return out
    full = (*shape, *along)
    a, b = em.to_memory(a, dtype), em.to_memory(b, dtype)
    i, j, k = len(batch), len(rows), len(columns)
    of_a = (*a.strides[: i + j], *(0,) * k, *a.strides[i + j :])
    of_b = (*b.strides[:i], *(0,) * j, *b.strides[i:])
    factors = [ArrayView(x.buffer, full, own, x.offset) for x, own in ((a, of_a), (b, of_b))]
    return em.load_if_small(nests.sum_of_products(em, factors, dtype, len(along)))


@rule("cross_product")
def _cross_product(em, equation, u, v):
    dtype, shape = _dtype(equation), equation.outvars[0].aval.shape
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
def _short_sum(em, equation, *factors):
    """Products of arrays whose shapes broadcast, summed over one axis."""
    dtype, axis = _dtype(equation), equation.params["axis"]
    shape = np.broadcast_shapes(*(x.shape for x in factors))
    axis %= len(shape)
    order = [*(k for k in range(len(shape)) if k != axis), axis]
    if not em.fits_registers(math.prod(shape), *factors):
        kinds = (var.aval.dtype for var in equation.invars)
        views = [
            nests.permute_axes(nests.broadcast_view(em, x, shape, kind), order)
            for x, kind in zip(factors, kinds, strict=True)
        ]
        return em.load_if_small(nests.sum_of_products(em, views, dtype, 1))
    spread = [np.broadcast_to(em.to_registers(x), shape).transpose(order) for x in factors]
    mul = functools.partial(em.lanes.mul, dtype)
    numbers = (x.ravel().tolist() for x in spread)
    products = [functools.reduce(mul, factors) for factors in zip(*numbers, strict=True)]
    count = shape[axis]
    out = np.empty(math.prod(spread[0].shape[:-1]), object)
    out[:] = [em.lanes.sum(dtype, products[k * count : (k + 1) * count]) for k in range(out.size)]
    return out.reshape(spread[0].shape[:-1])
