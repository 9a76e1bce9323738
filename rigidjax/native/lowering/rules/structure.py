"""Primitives that move numbers about and compute nothing."""

import math

import numpy as np

from ...passes.analysis import REGISTERS
from ..emitter import FOLDING_LIMIT, Emitter
from ..memory import ArrayView
from ..nests import permute_axes
from ..registry import rule


def _shape(equation):
    return tuple(equation.outvars[0].aval.shape)


def _dtype(equation):
    return np.dtype(equation.outvars[0].aval.dtype)


@rule(
    "copy", "copy_p", "stop_gradient", "optimization_barrier", "nonbatchable", "noinline",
    "nondifferentiable", "nondifferentiable_backward", "name", "device_put",
)  # fmt: skip
def _same(em, equation, *arrays):
    return list(arrays)


@rule("select_if_vmap")
def _select_if_vmap(em, equation, condition, yes, no):
    """What a loop keeps of finished members of a batch: here lanes are masked by the loop."""
    return yes


@rule("reshape")
def _reshape(em: Emitter, equation, x):
    if equation.params["dimensions"] is not None:
        x = transpose(x, equation.params["dimensions"])
    return reshape(em, x, _shape(equation), _dtype(equation))


def reshape(em, x, shape, dtype):
    """An array in another shape; copied if that is no view of the same memory."""
    if not isinstance(x, ArrayView):
        return x.reshape(shape)
    out = x.reshape_view(shape)
    return em.copy_to_memory(x, dtype).reshape_view(shape) if out is None else out


@rule("squeeze")
def _squeeze(em, equation, x):
    axes = equation.params["dimensions"]
    if not isinstance(x, ArrayView):
        return np.asarray(np.squeeze(x, axis=tuple(axes)), object)
    keep = [k for k in range(x.ndim) if k not in axes]
    return em.load_if_small(
        ArrayView(x.buffer, _shape(equation), tuple(x.strides[k] for k in keep), x.offset)
    )


@rule("expand_dims")
def _expand_dims(em, equation, x):
    return reshape(em, x, _shape(equation), _dtype(equation))


@rule("transpose")
def _transpose(em, equation, x):
    return transpose(x, equation.params["permutation"])


def transpose(x, order):
    """An array with its axes in another order."""
    if not isinstance(x, ArrayView):
        return np.transpose(x, order)
    return permute_axes(x, order)


@rule("broadcast_in_dim")
def _broadcast_in_dim(em, equation, x):
    shape, axes = _shape(equation), equation.params["broadcast_dimensions"]
    return broadcast(em, x, shape, axes, _dtype(equation))


def broadcast(em, x, shape, axes, dtype):
    """An array along the axes `axes` of a larger one."""
    if not isinstance(x, ArrayView) and int(np.prod(shape)) <= REGISTERS:
        own = [1] * len(shape)
        for axis, n in zip(axes, x.shape, strict=True):
            own[axis] = n
        return np.broadcast_to(x.reshape(own), shape)
    x = em.to_memory(x, dtype)
    strides = [0] * len(shape)
    for axis, n, stride in zip(axes, x.shape, x.strides, strict=True):
        strides[axis] = stride if n != 1 else 0
    return ArrayView(x.buffer, tuple(shape), tuple(strides), x.offset)


@rule("tile")
def _tile(em, equation, x):
    reps, dtype = equation.params["reps"], _dtype(equation)
    between = [n for pair in zip(reps, x.shape, strict=True) for n in pair]
    repeated = broadcast(em, x, tuple(between), range(1, len(between), 2), dtype)
    return reshape(em, repeated, _shape(equation), dtype)


@rule("slice")
def _slice(em, equation, x):
    p = equation.params
    strides = p["strides"] or (1,) * len(p["start_indices"])
    cuts = tuple(
        slice(a, b, c)
        for a, b, c in zip(p["start_indices"], p["limit_indices"], strides, strict=True)
    )
    if not isinstance(x, ArrayView):
        return x[(*cuts, ...)]
    offset = em.memory.flat_index(x, tuple(p["start_indices"]))
    own = tuple(s * c for s, c in zip(x.strides, strides, strict=True))
    return em.load_if_small(ArrayView(x.buffer, _shape(equation), own, offset))


@rule("rev")
def _rev(em, equation, x):
    axes = equation.params["dimensions"]
    if not isinstance(x, ArrayView):
        return np.flip(x, axes) if axes else x
    start = tuple(n - 1 if k in axes else 0 for k, n in enumerate(x.shape))
    strides = tuple(-s if k in axes else s for k, s in enumerate(x.strides))
    return ArrayView(x.buffer, x.shape, strides, em.memory.flat_index(x, start))


@rule("concatenate")
def _concatenate(em, equation, *arrays):
    return concatenate(em, arrays, equation.params["dimension"], _shape(equation), _dtype(equation))


def concatenate(em, arrays, axis, shape, dtype):
    """Arrays behind one another along an axis."""
    known = em.are_constant(*arrays)
    if known or em.fits_registers(math.prod(shape)):
        parts = np.concatenate([em.to_registers(x) for x in arrays], axis=axis)
        return em.to_memory(parts, dtype) if parts.size > REGISTERS else parts
    out = em.memory.allocate(shape, dtype)
    start = 0
    for x in arrays:
        if x.size:
            at = tuple(start if k == axis else 0 for k in range(len(shape)))
            part = ArrayView(out.buffer, x.shape, out.strides, em.memory.flat_index(out, at))
            em.copy_to_memory(x, dtype, into=part)
        start += x.shape[axis]
    return out


@rule("stack")
def _stack(em, equation, *arrays):
    axis = equation.params["axis"]
    shape = list(arrays[0].shape)
    shape.insert(axis, 1)
    dtype = _dtype(equation)
    parts = [reshape(em, x, tuple(shape), dtype) for x in arrays]
    return concatenate(em, parts, axis, _shape(equation), dtype)


@rule("unstack")
def _unstack(em, equation, x):
    axis = equation.params["axis"]
    return [index_axis(em, x, axis, k) for k in range(x.shape[axis])]


def index_axis(em, x, axis, k):
    """The entries whose index along an axis is `k` (the same in all lanes)."""
    if not isinstance(x, ArrayView):
        return np.asarray(np.moveaxis(x, axis, 0)[k], object)
    return em.load_if_small(index_axis_view(em, x, axis, k))


def index_axis_view(em, x, axis, k):
    """The same, where an array in memory has them."""
    at = tuple(k if n == axis else 0 for n in range(x.ndim))
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    strides = x.strides[:axis] + x.strides[axis + 1 :]
    return ArrayView(x.buffer, shape, strides, em.memory.flat_index(x, at))


@rule("split")
def _split(em, equation, x):
    axis, start, out = equation.params["axis"], 0, []
    for var in equation.outvars:
        shape = tuple(var.aval.shape)
        if isinstance(x, ArrayView):
            at = tuple(start if k == axis else 0 for k in range(x.ndim))
            part = ArrayView(x.buffer, shape, x.strides, em.memory.flat_index(x, at))
            out.append(em.load_if_small(part))
        else:
            cut = [slice(None)] * x.ndim
            cut[axis] = slice(start, start + shape[axis])
            out.append(x[tuple(cut)])
        start += shape[axis]
    return out


@rule("pad")
def _pad(em, equation, x, value):
    shape, dtype = _shape(equation), _dtype(equation)
    config = equation.params["padding_config"]
    value = em.read_element(value, ())
    fits = em.fits_registers(int(np.prod(shape)), x)
    x = em.to_registers(x) if fits else x
    # Where each entry goes; negative padding cuts entries off.
    places = [
        low + np.arange(n) * (inner + 1) for (low, _, inner), n in zip(config, x.shape, strict=True)
    ]
    if fits:
        out = np.full(shape, None, object)
        out.fill(value)
        for index in np.ndindex(x.shape):
            at = tuple(int(p[i]) for p, i in zip(places, index, strict=True))
            if all(0 <= i < n for i, n in zip(at, shape, strict=True)):
                out[at] = x[index]
        return out
    kept = []
    for place, n in zip(places, shape, strict=True):
        inside = np.flatnonzero((place >= 0) & (place < n))
        kept.append((int(inside[0]), len(inside)) if len(inside) else (0, 0))
    out = em.memory.allocate(shape, dtype)
    with em.loop_nest(shape) as index:
        em.memory.write(out, index, value)
    if all(n for _, n in kept):
        source = em.to_memory(x, dtype)
        first = tuple(start for start, _ in kept)
        inner = tuple(n for _, n in kept)
        part = ArrayView(source.buffer, inner, source.strides, em.memory.flat_index(source, first))
        at = tuple(int(place[start]) for place, start in zip(places, first, strict=True))
        steps = tuple(s * (c[2] + 1) for s, c in zip(out.strides, config, strict=True))
        em.copy_to_memory(
            part, dtype, into=ArrayView(out.buffer, inner, steps, em.memory.flat_index(out, at))
        )
    return out


@rule("iota")
def _iota(em, equation):
    axis, shape, dtype = equation.params["dimension"], _shape(equation), _dtype(equation)
    n = shape[axis]
    if math.prod(shape) <= REGISTERS:
        return broadcast(em, em.constant(np.arange(n).astype(dtype)), shape, (axis,), dtype)
    if n <= FOLDING_LIMIT:
        line = em.emit_table(np.arange(n).astype(dtype))
    else:
        line = em.memory.allocate((n,), dtype)
        with em.loop_nest((n,)) as (k,):
            number = em.lanes.convert(em.lanes.splat(k), np.dtype(np.int64), dtype)
            em.memory.write(line, (k,), number)
    return broadcast(em, line, shape, (axis,), dtype)


@rule("empty", "empty2", "create_token")
def _empty(em, equation, *_):
    shape, dtype = _shape(equation), _dtype(equation)
    if math.prod(shape) <= em.register_limit:
        return em.constant(np.zeros(shape, dtype))
    before = em.memory.bytes
    table = em.memory.allocate(shape, dtype)
    em.memory.count_as_table(before)
    return table
