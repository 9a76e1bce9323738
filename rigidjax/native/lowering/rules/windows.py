"""Gather and scatter: slices of an array that are read or updated at computed indices."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.extend.core import Jaxpr
from jax.lax import GatherScatterMode

from ...primitives.registry import Equation, rule
from ...values.complex import LaneValue
from ...values.lanes import is_constant
from ...values.memory import ArrayView, EmittedArray, row_major_strides
from ..emitter import Emitter
from .indexing import (
    add_offset,
    as_writable,
    clamp_index,
    flat_index_per_lane,
    read_per_lane,
    result_dtype,
    result_shape,
    to_int64,
)
from .structure import index_axis

# Smallest number of slices for which a scatter to constant indices is a loop: LLVM's compile time
# grows faster than linearly with the number of unrolled loads and stores.
_MAX_UNROLLED = 32


@rule("gather")
def _gather(em: Emitter, equation: Equation, x: EmittedArray, indices: EmittedArray):
    params, shape, dtype = equation.params, result_shape(equation), result_dtype(equation)
    dimensions, sizes = params["dimension_numbers"], params["slice_sizes"]
    fill = params["mode"] == GatherScatterMode.FILL_OR_DROP
    batch_axes = [k for k in range(len(shape)) if k not in dimensions.offset_dims]
    slice_axes = [
        k
        for k in range(x.ndim)
        if k not in dimensions.collapsed_slice_dims and k not in dimensions.operand_batching_dims
    ]
    batching = (dimensions.operand_batching_dims, dimensions.start_indices_batching_dims)
    slice_starts = _SliceStarts(
        em, equation, indices, x.shape, sizes, dimensions.start_index_map, batching
    )
    fits_registers = em.fits_registers(math.prod(shape), x, indices)
    if slice_starts.is_constant:
        x = x if fits_registers else em.to_memory(x, dtype)
        batch = [shape[k] for k in batch_axes]
        offset, strides = (
            (x.offset, x.strides) if isinstance(x, ArrayView) else (0, row_major_strides(x.shape))
        )
        if is_constant(offset):
            flat_indices, is_inside = slice_starts.positions(batch, offset, strides)
            if is_inside.all() or not fill:
                slice_shape = tuple(shape[k] for k in dimensions.offset_dims)
                slice_strides = tuple(strides[k] for k in slice_axes)
                if fits_registers:
                    offsets_in_slice = np.array(slice_strides, int) @ np.indices(
                        slice_shape
                    ).reshape(len(slice_shape), math.prod(slice_shape))
                    flat_indices = (flat_indices[..., None] + offsets_in_slice).reshape(
                        (*batch, *slice_shape)
                    )
                    return _load_elements(
                        em, x, np.moveaxis(flat_indices, range(len(batch)), batch_axes)
                    )
                return _copy_slices(
                    em, x, flat_indices, slice_shape, slice_strides, shape, batch_axes, dtype
                )
    source = x if slice_starts.is_constant else em.to_memory(x, dtype)

    def entry(index):
        offset = [0] * x.ndim
        for axis, k in zip(slice_axes, dimensions.offset_dims, strict=True):
            offset[axis] = index[k]
        start, is_inside = slice_starts.find_start(tuple(index[k] for k in batch_axes), fill)
        value = read_per_lane(em, source, add_offset(em, start, offset))
        return em.lanes.select(dtype, is_inside, value, _fill_value(dtype, params["fill_value"]))

    if fits_registers:
        out = np.empty(shape, object)
        for index in np.ndindex(shape):
            out[index] = entry(index)
        return out
    source = em.to_memory(x, dtype)
    out = em.memory.allocate(shape, dtype)
    slice_starts.move_indices_to_memory()
    with em.loop_nest(shape) as index:
        em.memory.write(out, index, entry(index))
    return out


def _load_elements(em: Emitter, x: EmittedArray, flat_indices: np.ndarray):
    """Load elements of an array by their indices in it or in its buffer."""
    out = np.empty(flat_indices.shape, object)
    if not isinstance(x, ArrayView):
        out[...] = x.ravel()[flat_indices]
        return out
    if x.is_constant:
        return em.constant(x.buffer.values[flat_indices])  # pyright: ignore[reportOptionalSubscript]
    flat_view = ArrayView(x.buffer, (x.buffer.size,), (1,))
    for index, flat_index in np.ndenumerate(flat_indices):
        out[index] = em.memory.read(flat_view, (int(flat_index),))
    return out


def _copy_slices(
    em: Emitter,
    x: Any,
    flat_indices: np.ndarray,
    slice_shape: tuple[int, ...],
    slice_strides: tuple[int, ...],
    shape: tuple[int, ...],
    batch_axes: list[int],
    dtype: np.dtype,
):
    """Copy slices of an array in memory that start at constant indices of its buffer."""
    out, table = em.memory.allocate(shape, dtype), em.emit_table(flat_indices)
    others = [k for k in range(len(shape)) if k not in batch_axes]
    batch_strides, out_strides = (
        tuple(out.strides[k] for k in axes) for axes in (batch_axes, others)
    )
    with em.loop_nest(flat_indices.shape) as index:
        source = ArrayView(
            x.buffer, slice_shape, slice_strides, em.memory.read_scalar(table, index)
        )
        flat_index = em.memory.flat_index(
            ArrayView(out.buffer, flat_indices.shape, batch_strides), index
        )
        em.copy_to_memory(
            source, dtype, into=ArrayView(out.buffer, slice_shape, out_strides, flat_index)
        )
    return out


class _SliceStarts:
    """Starts of the slices that a gather reads or a scatter updates.

    **Arguments:** `em`; `equation`; `indices`, its operand; `shape` of the array; `sizes` of a
    slice along each axis; `axes` that the indices belong to; `batching`, axes of the array and of
    the indices that correspond.
    """

    def __init__(
        self,
        em: Emitter,
        equation: Equation,
        indices: EmittedArray,
        shape: tuple[int, ...],
        sizes: Sequence[int],
        axes: Sequence[int],
        batching: tuple[Sequence[int], Sequence[int]],
    ):
        self.em = em
        self.indices = em.to_registers(indices) if em.are_constant(indices) else indices
        self.dtype = np.dtype(equation.invars[1].aval.dtype)
        self.highest = [n - size for n, size in zip(shape, sizes, strict=True)]
        self.axes, self.batching = axes, batching
        self.is_constant = em.are_constant(indices)

    def move_indices_to_memory(self):
        """Store the indices in memory, so that they can be dynamically indexed."""
        self.indices = self.em.to_memory(self.indices, self.dtype)

    def positions(self, shape: Sequence[int], offset: Any, strides: Sequence[int]):
        """Return constant starts as indices of an array with given strides, and which are in
        bounds without clamping."""
        requested = np.array(np.asarray(self.indices).tolist(), np.int64)
        requested = requested.reshape(*shape, len(self.axes))
        start = np.zeros((*shape, len(self.highest)), np.int64)
        start[..., self.axes] = np.clip(requested, 0, np.array(self.highest)[list(self.axes)])
        is_inside = np.all(start[..., self.axes] == requested, axis=-1)
        for axis, batch_axis in zip(*self.batching, strict=True):
            start[..., axis] = np.indices(shape)[batch_axis]
        return offset + start @ np.array(strides, np.int64), is_inside

    def find_start(self, index: Sequence[Any], checks_bounds: bool):
        """Return the clamped start of a slice, and whether it is in bounds (if checked)."""
        em, lanes = self.em, self.em.lanes
        start, is_inside = [np.int64(0)] * len(self.highest), np.True_
        for k, axis in enumerate(self.axes):
            requested = to_int64(em, em.read_element(self.indices, (*index, k)), self.dtype)
            start[axis] = clamp_index(em, requested, self.highest[axis])
            if checks_bounds:
                is_unchanged = lanes.compare(np.int64, "==", requested, start[axis])
                is_inside = lanes.and_(np.bool_, is_inside, is_unchanged)
        for axis, batch_axis in zip(*self.batching, strict=True):
            start[axis] = add_offset(em, [np.int64(0)], [index[batch_axis]])[0]
        return start, is_inside


def _fill_value(dtype: np.dtype, requested: Any):
    if requested is not None:
        return dtype.type(requested)
    if dtype.kind in "fc":
        return dtype.type(np.nan)
    if dtype == np.bool_:
        return np.True_
    return dtype.type(np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max)


@rule(
    "scatter", "scatter-update", "scatter-add", "scatter_add", "scatter-mul", "scatter_mul",
    "scatter-max", "scatter_max", "scatter-min", "scatter_min", "scatter-sub", "scatter_sub",
)  # fmt: skip
def _scatter(
    em: Emitter, equation: Equation, x: EmittedArray, indices: EmittedArray, updates: EmittedArray
):
    params, dtype, lanes = equation.params, result_dtype(equation), em.lanes
    name = equation.primitive.name
    dimensions = params["dimension_numbers"]
    combinations = dict(add=lanes.add, sub=lanes.sub, mul=lanes.mul, max=lanes.max, min=lanes.min)
    combine: Any = combinations.get(name[-3:])
    if combine is None and params["update_jaxpr"] is not None:
        combine = functools.partial(
            _apply_update, em, params["update_jaxpr"], params["update_consts"]
        )
    window_axes = [
        k
        for k in range(x.ndim)
        if k not in dimensions.inserted_window_dims and k not in dimensions.operand_batching_dims
    ]
    scatter_axes = [k for k in range(updates.ndim) if k not in dimensions.update_window_dims]
    slice_sizes = [1] * x.ndim
    for axis, k in zip(window_axes, dimensions.update_window_dims, strict=True):
        slice_sizes[axis] = updates.shape[k]
    clip = params["mode"] == GatherScatterMode.CLIP
    batching = (dimensions.operand_batching_dims, dimensions.scatter_indices_batching_dims)
    axes = dimensions.scatter_dims_to_operand_dims
    slice_starts = _SliceStarts(em, equation, indices, x.shape, slice_sizes, axes, batching)
    num_slices = math.prod(updates.shape[k] for k in scatter_axes)
    has_many_slices = isinstance(updates, ArrayView) and num_slices > _MAX_UNROLLED
    in_memory = isinstance(x, ArrayView) or not slice_starts.is_constant or has_many_slices
    out: Any = x
    out = as_writable(em, x, dtype, indices, updates) if in_memory else out.copy()
    mask = em.mask if out is x else None
    if in_memory:
        scatter = _scatter_constant if slice_starts.is_constant else _scatter_dynamic
        scatter(em, equation, slice_starts, out, updates, window_axes, combine, mask)
        return (
            out
            if isinstance(x, ArrayView) or out.size > em.register_limit
            else em.load_if_small(out)
        )
    updates = em.to_registers(updates)
    for index in np.ndindex(updates.shape):
        start, is_inside = slice_starts.find_start(tuple(index[k] for k in scatter_axes), not clip)
        if not is_inside:
            continue
        offset = [0] * x.ndim
        for axis, k in zip(window_axes, dimensions.update_window_dims, strict=True):
            offset[axis] = index[k]
        index_out, value = tuple(int(i) for i in add_offset(em, start, offset)), updates[index]
        out[index_out] = value if combine is None else combine(dtype, out[index_out], value)
    return out


def _apply_update(
    em: Emitter, update_jaxpr: Jaxpr, constants: list[Any], dtype: Any, old: Any, new: Any
):
    """Combine two elements by the jaxpr of a scatter."""
    old, new = (np.full((), em.lanes.value(x, dtype), object) for x in (old, new))
    (out,) = em.emit_jaxpr(update_jaxpr, list(map(em.constant, constants)), [old, new])
    return out[()]  # pyright: ignore[reportIndexIssue]


def _scatter_dynamic(
    em: Emitter,
    equation: Equation,
    slice_starts: _SliceStarts,
    out: ArrayView,
    updates: EmittedArray,
    axes: Sequence[int],
    combine: Callable[..., Any] | None,
    mask: LaneValue | None,
):
    """Update slices of an array in memory whose starts are computed at run time."""
    params, dtype = equation.params, result_dtype(equation)
    window_axes = params["dimension_numbers"].update_window_dims
    batch_axes = [k for k in range(updates.ndim) if k not in window_axes]
    clip = params["mode"] == GatherScatterMode.CLIP
    batch_shape, slice_shape = (
        tuple(updates.shape[k] for k in axes_of_index)
        for axes_of_index in (batch_axes, window_axes)
    )

    def combine_element(start_and_bounds, batch_index, slice_index):
        start, is_inside = start_and_bounds
        is_written = em.intersect_mask(mask, is_inside)
        if is_constant(is_written) and not is_written:
            return  # JAX drops updates out of bounds.
        index, offset = [0] * updates.ndim, [0] * out.ndim
        for axes_of_index, values in ((batch_axes, batch_index), (window_axes, slice_index)):
            for k, value_of_axis in zip(axes_of_index, values, strict=True):
                index[k] = value_of_axis
        for axis, value_of_axis in zip(axes, slice_index, strict=True):
            offset[axis] = value_of_axis
        flat_index = em.lanes.value(
            flat_index_per_lane(em, out, add_offset(em, start, offset)), np.int64
        )
        value = em.read_element(updates, tuple(index))
        if combine is not None:
            value = combine(dtype, em.memory.gather(out, flat_index), value)
        em.memory.scatter(out, flat_index, value, None if is_constant(is_written) else is_written)

    if updates.size <= _MAX_UNROLLED:
        for batch_index in np.ndindex(batch_shape):
            start_and_bounds = slice_starts.find_start(batch_index, not clip)
            for slice_index in np.ndindex(slice_shape):
                combine_element(start_and_bounds, batch_index, slice_index)
        return
    updates = em.to_memory(updates, dtype)
    if math.prod(batch_shape) > 1:
        slice_starts.move_indices_to_memory()
    with em.loop_nest(batch_shape) as batch_index:
        start_and_bounds = slice_starts.find_start(batch_index, not clip)
        with em.loop_nest(slice_shape) as slice_index:
            combine_element(start_and_bounds, batch_index, slice_index)


def _scatter_constant(
    em: Emitter,
    equation: Equation,
    slice_starts: _SliceStarts,
    out: Any,
    updates: Any,
    axes: Sequence[int],
    combine: Callable[..., Any] | None,
    mask: LaneValue | None,
):
    """Update slices of an array in memory whose starts are compile-time constants."""
    params, dtype = equation.params, result_dtype(equation)
    window_axes = params["dimension_numbers"].update_window_dims
    batch_axes = [k for k in range(updates.ndim) if k not in window_axes]
    clip = params["mode"] == GatherScatterMode.CLIP
    shape, strides = (
        tuple(updates.shape[k] for k in window_axes),
        tuple(out.strides[k] for k in axes),
    )

    def combine_slice(target_view, update):
        if combine is not None:
            update = em.map(lambda a, b: combine(dtype, a, b), dtype, target_view, update)  # pyright: ignore[reportOptionalCall]
        em.copy_to_memory(update, dtype, into=target_view, mask=mask)

    batch = [updates.shape[k] for k in batch_axes]
    target_indices, is_inside = slice_starts.positions(batch, out.offset, out.strides)
    written_slices = np.argwhere(is_inside | clip)
    if (
        isinstance(updates, ArrayView)
        and is_constant(updates.offset)
        and len(written_slices) > _MAX_UNROLLED
    ):
        batch_strides = np.array([updates.strides[k] for k in batch_axes], int)
        source_indices = updates.offset + written_slices @ batch_strides
        table = em.emit_table(
            np.stack([target_indices[tuple(written_slices.T)], source_indices], axis=1)
        )
        with em.loop(len(written_slices)) as k:
            target_index, source_index = (em.memory.read_scalar(table, (k, j)) for j in range(2))
            update = ArrayView(
                updates.buffer, shape, tuple(updates.strides[k] for k in window_axes), source_index
            )
            combine_slice(ArrayView(out.buffer, shape, strides, target_index), update)
    else:
        for batch_index in map(tuple, written_slices.tolist()):
            update = updates
            for axis, index_on_axis in sorted(
                zip(batch_axes, batch_index, strict=True), reverse=True
            ):
                update = index_axis(em, update, axis, index_on_axis)
            combine_slice(
                ArrayView(out.buffer, shape, strides, int(target_indices[batch_index])), update
            )
