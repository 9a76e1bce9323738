"""Primitives that only move data."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...passes.analysis import REGISTERS
from ...primitives.registry import Equation, rule
from ...values.builder import Value
from ...values.memory import ArrayView, EmittedArray
from ..emitter import FOLDING_LIMIT, Emitter
from ..nests import permute_axes


def _result_shape(equation: Equation):
    return tuple(equation.outvars[0].aval.shape)


def _result_dtype(equation: Equation):
    return np.dtype(equation.outvars[0].aval.dtype)


@rule(
    "copy", "copy_p", "stop_gradient", "optimization_barrier", "nonbatchable", "noinline",
    "nondifferentiable", "nondifferentiable_backward", "name", "device_put",
)  # fmt: skip
def _pass_through(em: Emitter, equation: Equation, *arrays: EmittedArray):
    return list(arrays)


@rule("select_if_vmap")
def _select_if_vmap(
    em: Emitter, equation: Equation, condition: EmittedArray, yes: EmittedArray, no: EmittedArray
):
    """Return the new value: the loop itself masks the lanes of finished batch elements."""
    return yes


@rule("reshape")
def _reshape(em: Emitter, equation: Equation, x: EmittedArray):
    if equation.params["dimensions"] is not None:
        x = transpose(x, equation.params["dimensions"])
    return reshape(em, x, _result_shape(equation), _result_dtype(equation))


def reshape(em: Emitter, x: EmittedArray, shape: tuple[int, ...], dtype: np.dtype):
    """Return an array with another shape; a copy if the strides do not allow a view."""
    if not isinstance(x, ArrayView):
        return x.reshape(shape)
    out = x.reshape_view(shape)
    return em.copy_to_memory(x, dtype).reshape_view(shape) if out is None else out


@rule("squeeze")
def _squeeze(em: Emitter, equation: Equation, x: EmittedArray):
    axes = equation.params["dimensions"]
    if not isinstance(x, ArrayView):
        return np.asarray(np.squeeze(x, axis=tuple(axes)), object)
    keep = [k for k in range(x.ndim) if k not in axes]
    return em.load_if_small(
        ArrayView(x.buffer, _result_shape(equation), tuple(x.strides[k] for k in keep), x.offset)
    )


@rule("expand_dims")
def _expand_dims(em: Emitter, equation: Equation, x: EmittedArray):
    return reshape(em, x, _result_shape(equation), _result_dtype(equation))


@rule("transpose")
def _transpose(em: Emitter, equation: Equation, x: EmittedArray):
    return transpose(x, equation.params["permutation"])


def transpose(x: Any, order: list[int]):
    """Return an array with permuted axes."""
    if not isinstance(x, ArrayView):
        return np.transpose(x, order)
    return permute_axes(x, order)


@rule("broadcast_in_dim")
def _broadcast_in_dim(em: Emitter, equation: Equation, x: EmittedArray):
    shape, axes = _result_shape(equation), equation.params["broadcast_dimensions"]
    return broadcast(em, x, shape, axes, _result_dtype(equation))


def broadcast(
    em: Emitter, x: EmittedArray, shape: tuple[int, ...], axes: Sequence[int], dtype: np.dtype
):
    """Return an array as axes `axes` of a larger shape, broadcast along the others."""
    if not isinstance(x, ArrayView) and int(np.prod(shape)) <= REGISTERS:
        expanded_shape = [1] * len(shape)
        for axis, n in zip(axes, x.shape, strict=True):
            expanded_shape[axis] = n
        return np.broadcast_to(x.reshape(expanded_shape), shape)
    x = em.to_memory(x, dtype)
    strides = [0] * len(shape)
    for axis, n, stride in zip(axes, x.shape, x.strides, strict=True):
        strides[axis] = stride if n != 1 else 0
    return ArrayView(x.buffer, tuple(shape), tuple(strides), x.offset)


@rule("tile")
def _tile(em: Emitter, equation: Equation, x: EmittedArray):
    reps, dtype = equation.params["reps"], _result_dtype(equation)
    interleaved_shape = [n for pair in zip(reps, x.shape, strict=True) for n in pair]
    repeated = broadcast(
        em, x, tuple(interleaved_shape), range(1, len(interleaved_shape), 2), dtype
    )
    return reshape(em, repeated, _result_shape(equation), dtype)


@rule("slice")
def _slice(em: Emitter, equation: Equation, x: EmittedArray):
    params = equation.params
    strides = params["strides"] or (1,) * len(params["start_indices"])
    slices = tuple(
        slice(a, b, c)
        for a, b, c in zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    )
    if not isinstance(x, ArrayView):
        return x[(*slices, ...)]
    offset = em.memory.flat_index(x, tuple(params["start_indices"]))
    scaled_strides = tuple(s * c for s, c in zip(x.strides, strides, strict=True))
    return em.load_if_small(ArrayView(x.buffer, _result_shape(equation), scaled_strides, offset))


@rule("rev")
def _rev(em: Emitter, equation: Equation, x: EmittedArray):
    axes = equation.params["dimensions"]
    if not isinstance(x, ArrayView):
        return np.flip(x, axes) if axes else x
    start = tuple(n - 1 if k in axes else 0 for k, n in enumerate(x.shape))
    strides = tuple(-s if k in axes else s for k, s in enumerate(x.strides))
    return ArrayView(x.buffer, x.shape, strides, em.memory.flat_index(x, start))


@rule("concatenate")
def _concatenate(em: Emitter, equation: Equation, *arrays: EmittedArray):
    return concatenate(
        em, arrays, equation.params["dimension"], _result_shape(equation), _result_dtype(equation)
    )


def concatenate(em: Emitter, arrays: Any, axis: int, shape: tuple[int, ...], dtype: np.dtype):
    """Concatenate arrays along an axis."""
    are_constant = em.are_constant(*arrays)
    if are_constant or em.fits_registers(math.prod(shape)):
        parts = np.concatenate([em.to_registers(x) for x in arrays], axis=axis)
        return em.to_memory(parts, dtype) if parts.size > REGISTERS else parts
    out = em.memory.allocate(shape, dtype)
    start = 0
    for x in arrays:
        if x.size:
            start_index = tuple(start if k == axis else 0 for k in range(len(shape)))
            target = ArrayView(
                out.buffer, x.shape, out.strides, em.memory.flat_index(out, start_index)
            )
            em.copy_to_memory(x, dtype, into=target)
        start += x.shape[axis]
    return out


@rule("stack")
def _stack(em: Emitter, equation: Equation, *arrays: EmittedArray):
    axis = equation.params["axis"]
    shape = list(arrays[0].shape)
    shape.insert(axis, 1)
    dtype = _result_dtype(equation)
    parts = [reshape(em, x, tuple(shape), dtype) for x in arrays]
    return concatenate(em, parts, axis, _result_shape(equation), dtype)


@rule("unstack")
def _unstack(em: Emitter, equation: Equation, x: EmittedArray):
    axis = equation.params["axis"]
    return [index_axis(em, x, axis, k) for k in range(x.shape[axis])]


def index_axis(em: Emitter, x: Any, axis: int, k: Any):
    """Return the slice with index `k` along an axis; `k` is the same in all lanes."""
    if not isinstance(x, ArrayView):
        return np.asarray(np.moveaxis(x, axis, 0)[k], object)
    return em.load_if_small(index_axis_view(em, x, axis, k))


def index_axis_view(em: Emitter, x: ArrayView, axis: int, k: int | Value):
    """Return that slice as a view of an array in memory."""
    index = tuple(k if n == axis else 0 for n in range(x.ndim))
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    strides = x.strides[:axis] + x.strides[axis + 1 :]
    return ArrayView(x.buffer, shape, strides, em.memory.flat_index(x, index))


@rule("split")
def _split(em: Emitter, equation: Equation, x: EmittedArray):
    axis, start, out = equation.params["axis"], 0, []
    for var in equation.outvars:
        shape = tuple(var.aval.shape)
        if isinstance(x, ArrayView):
            start_index = tuple(start if k == axis else 0 for k in range(x.ndim))
            view = ArrayView(x.buffer, shape, x.strides, em.memory.flat_index(x, start_index))
            out.append(em.load_if_small(view))
        else:
            slices = [slice(None)] * x.ndim
            slices[axis] = slice(start, start + shape[axis])
            out.append(x[tuple(slices)])
        start += shape[axis]
    return out


@rule("pad")
def _pad(em: Emitter, equation: Equation, x: Any, value: Any):
    shape, dtype = _result_shape(equation), _result_dtype(equation)
    config = equation.params["padding_config"]
    value = em.read_element(value, ())
    fits_registers = em.fits_registers(int(np.prod(shape)), x)
    x = em.to_registers(x) if fits_registers else x
    # Positions of the entries along each axis; negative padding removes some of them.
    positions = [
        low + np.arange(n) * (inner + 1) for (low, _, inner), n in zip(config, x.shape, strict=True)
    ]
    if fits_registers:
        out = np.full(shape, None, object)
        out.fill(value)
        for index in np.ndindex(x.shape):
            target = tuple(
                int(axis_positions[i]) for axis_positions, i in zip(positions, index, strict=True)
            )
            if all(0 <= i < n for i, n in zip(target, shape, strict=True)):
                out[target] = x[index]
        return out
    inside_ranges = []
    for axis_positions, n in zip(positions, shape, strict=True):
        inside = np.flatnonzero((axis_positions >= 0) & (axis_positions < n))
        inside_ranges.append((int(inside[0]), len(inside)) if len(inside) else (0, 0))
    out = em.memory.allocate(shape, dtype)
    with em.loop_nest(shape) as index:
        em.memory.write(out, index, value)
    if all(n for _, n in inside_ranges):
        source = em.to_memory(x, dtype)
        first = tuple(start for start, _ in inside_ranges)
        inner_shape = tuple(n for _, n in inside_ranges)
        source_view = ArrayView(
            source.buffer, inner_shape, source.strides, em.memory.flat_index(source, first)
        )
        target_index = tuple(
            int(axis_positions[start])
            for axis_positions, start in zip(positions, first, strict=True)
        )
        steps = tuple(s * (c[2] + 1) for s, c in zip(out.strides, config, strict=True))
        em.copy_to_memory(
            source_view,
            dtype,
            into=ArrayView(out.buffer, inner_shape, steps, em.memory.flat_index(out, target_index)),
        )
    return out


@rule("iota")
def _iota(em: Emitter, equation: Equation):
    axis, shape, dtype = (
        equation.params["dimension"],
        _result_shape(equation),
        _result_dtype(equation),
    )
    n = shape[axis]
    if math.prod(shape) <= REGISTERS:
        return broadcast(em, em.constant(np.arange(n).astype(dtype)), shape, (axis,), dtype)
    if n <= FOLDING_LIMIT:
        row = em.emit_table(np.arange(n).astype(dtype))
    else:
        row = em.memory.allocate((n,), dtype)
        with em.loop_nest((n,)) as (k,):
            number = em.lanes.convert(em.lanes.splat(k), np.dtype(np.int64), dtype)  # pyright: ignore[reportArgumentType]
            em.memory.write(row, (k,), number)
    return broadcast(em, row, shape, (axis,), dtype)


@rule("empty", "empty2", "create_token")
def _empty(em: Emitter, equation: Equation, *_: EmittedArray):
    shape, dtype = _result_shape(equation), _result_dtype(equation)
    if math.prod(shape) <= em.register_limit:
        return em.constant(np.zeros(shape, dtype))
    bytes_before = em.memory.bytes
    table = em.memory.allocate(shape, dtype)
    em.memory.count_as_table(bytes_before)
    return table
