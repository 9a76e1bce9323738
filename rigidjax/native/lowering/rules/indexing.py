"""Dynamic slices and updates, whose indices may differ from lane to lane.

Slices of registers at constant indices emit no instructions.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...primitives.registry import Equation, rule
from ...values.complex import LaneValue
from ...values.lanes import is_constant
from ...values.memory import ArrayView, EmittedArray
from ..emitter import Emitter

# Smallest slice for which the kernel tests whether all lanes have the same start.
_LONG_SLICE = 16


def result_shape(equation: Equation):
    """Return the shape of an equation's first result."""
    return tuple(equation.outvars[0].aval.shape)


def result_dtype(equation: Equation):
    """Return the dtype of an equation's first result."""
    return np.dtype(equation.outvars[0].aval.dtype)


def to_int64(em: Emitter, x: LaneValue, dtype: np.dtype):
    """Return an index as int64."""
    if np.dtype(dtype) == np.uint64:
        x = em.lanes.min(np.uint64, x, np.uint64(np.iinfo(np.int64).max))
    return em.lanes.convert(x, dtype, np.int64)


def clamp_index(em: Emitter, x: LaneValue, highest: int):
    """Clamp an int64 index to 0, ..., `highest`."""
    lanes = em.lanes
    x = lanes.max(np.int64, x, np.int64(0))
    return lanes.min(np.int64, x, np.int64(highest))


def _clamped_starts(
    em: Emitter,
    equation: Equation,
    indices: Sequence[EmittedArray],
    first_operand: int,
    shape: tuple[int, ...],
    sizes: Sequence[int],
):
    """Return the start along each axis, clamped so that the slice lies within the array."""
    out = []
    for axis, (index, n, size) in enumerate(zip(indices, shape, sizes, strict=True)):
        dtype = equation.invars[first_operand + axis].aval.dtype
        out.append(clamp_index(em, to_int64(em, em.read_element(index, ()), dtype), n - size))
    return out


def flat_index_per_lane(em: Emitter, view: Any, index: Sequence[Any]):
    """Return the index of an element in its buffer, for an index per lane."""
    flat_index, offset = np.int64(0), []
    for i, stride in zip(index, view.strides, strict=True):
        term = em.lanes.mul(np.int64, i, np.int64(stride))
        flat_index = em.lanes.add(np.int64, flat_index, term)
    if is_constant(view.offset):
        return em.lanes.add(np.int64, flat_index, np.int64(view.offset))
    offset = em.lanes.splat(view.offset) if em.lanes.width > 1 else view.offset
    return em.lanes.add(np.int64, flat_index, offset)


def read_per_lane(em: Emitter, x: Any, index: Sequence[Any]):
    """Load an element with an index per lane, int64."""
    if all(is_constant(i) for i in index):
        return em.read_element(x, tuple(int(i) for i in index))
    return em.memory.gather(x, em.lanes.value(flat_index_per_lane(em, x, index), np.int64))


@rule("dynamic_slice")
def _dynamic_slice(em: Emitter, equation: Equation, x: EmittedArray, *indices: EmittedArray):
    shape, dtype = result_shape(equation), result_dtype(equation)
    starts = _clamped_starts(em, equation, indices, 1, x.shape, shape)
    if all(is_constant(s) for s in starts):
        slices = tuple(slice(int(s), int(s) + n) for s, n in zip(starts, shape, strict=True))
        if not isinstance(x, ArrayView):
            return x[(*slices, ...)]
        start_index = em.memory.flat_index(x, tuple(int(s) for s in starts))
        return em.load_if_small(ArrayView(x.buffer, shape, x.strides, start_index))
    if not isinstance(x, ArrayView) and x.size <= 8:
        return _select_slice(em, x, starts, shape, dtype)
    x = em.to_memory(x, dtype)
    in_registers = math.prod(shape) <= em.register_limit
    target = None if in_registers else em.memory.allocate(shape, dtype)

    def copy_uniform(start_index):
        view = ArrayView(x.buffer, shape, x.strides, start_index)
        return em.to_registers(view) if target is None else em.copy_to_memory(view, dtype, target)

    def copy_per_lane():
        if target is not None:
            with em.loop_nest(shape) as index:
                em.memory.write(target, index, read_per_lane(em, x, add_offset(em, starts, index)))
            return target
        out = np.empty(shape, object)
        for index in np.ndindex(shape):
            out[index] = read_per_lane(em, x, add_offset(em, starts, index))
        return out

    return _branch_on_uniform_start(em, x, starts, shape, dtype, copy_uniform, copy_per_lane)


def _branch_on_uniform_start(
    em: Emitter,
    x: Any,
    starts: list[LaneValue],
    shape: Sequence[int],
    dtype: np.dtype,
    uniform: Callable[[Any], EmittedArray],
    per_lane: Callable[[], EmittedArray],
):
    """Emit `uniform(start_index)` if all lanes have the same start, else `per_lane()`.

    Lanes that take their steps together read and write the same rows of their tables. Vectors are
    then loaded and stored, instead of one element per lane.
    """
    build, lanes = em.builder, em.lanes
    if lanes.width == 1 or math.prod(shape) < _LONG_SLICE:
        return per_lane()
    first_lane_starts, is_uniform = list(starts), np.True_
    for axis, start in enumerate(starts):
        if not is_constant(start):
            active_start = start
            if em.mask is not None:
                active_start = lanes.select(np.int64, em.mask, start, np.int64(0))
            first_lane_starts[axis] = lanes.max_over_lanes(np.int64, active_start)
            is_equal = lanes.compare(np.int64, "==", start, lanes.splat(first_lane_starts[axis]))
            is_uniform = lanes.and_(np.bool_, is_uniform, is_equal)
    if em.mask is not None:
        is_uniform = lanes.or_(np.bool_, is_uniform, lanes.not_(np.bool_, em.mask))
    blocks = [build.append_basic_block(name) for name in ("together", "apart", "after")]
    build.cbranch(lanes.all(is_uniform), *blocks[:2])
    exits = []
    for block, emit_branch in zip(
        blocks,
        (lambda: uniform(em.memory.flat_index(x, tuple(first_lane_starts))), per_lane),
        strict=False,
    ):
        build.position_at_end(block)
        results = emit_branch()
        exits.append((results, build.block))
        build.branch(blocks[2])
    build.position_at_end(blocks[2])
    (results, exit_block), (other_results, other_exit_block) = exits
    if not isinstance(results, np.ndarray):
        return results
    out = em.emit_phis(results, dtype, exit_block)
    em.add_incoming(out, other_results, dtype, other_exit_block)
    return out


@rule("lockstep_max")
def _lockstep_max(em: Emitter, equation: Equation, count: EmittedArray):
    """Return the maximum over all active lanes."""
    lanes, dtype, value = em.lanes, result_dtype(equation), em.read_element(count, ())
    if lanes.width == 1 or is_constant(value):
        return count
    if em.mask is not None:
        value = lanes.select(dtype, em.mask, value, dtype.type(0))
    out = np.empty((), object)
    out[()] = lanes.splat(lanes.max_over_lanes(dtype, value))
    return out


def _select_slice(
    em: Emitter, x: np.ndarray, starts: list[LaneValue], shape: tuple[int, ...], dtype: np.dtype
):
    """Select a slice of few registers by comparing its start with every possible one."""
    max_start = [n - size for n, size in zip(x.shape, shape, strict=True)]
    out = None
    for start in itertools.product(*(range(n + 1) for n in max_start)):
        slice_ = x[tuple(slice(s, s + n) for s, n in zip(start, shape, strict=True))]
        if out is None:
            out = slice_.copy()
            continue
        is_match = np.True_
        for start_of_lane, s in zip(starts, start, strict=True):
            is_match = em.lanes.and_(
                np.bool_, is_match, em.lanes.compare(np.int64, "==", start_of_lane, np.int64(s))
            )
        for index in np.ndindex(shape):
            out[index] = em.lanes.select(dtype, is_match, slice_[index], out[index])
    return out


def add_offset(em: Emitter, starts: list[LaneValue], index: Sequence[Any]):
    """Add an offset that is the same in all lanes to the start."""
    out = []
    for start, i in zip(starts, index, strict=True):
        if is_constant(i):
            i = np.int64(i)
        elif em.lanes.width > 1:
            i = em.lanes.splat(i)
        out.append(em.lanes.add(np.int64, start, i))
    return out


def is_writable(x: EmittedArray):
    """Return whether an array is all of a buffer that the kernel may overwrite."""
    return (
        isinstance(x, ArrayView)
        and x.buffer.is_owned
        and not x.buffer.use_count
        and x.covers_buffer
    )


def as_writable(em: Emitter, x: EmittedArray, dtype: np.dtype, *read_operands: EmittedArray):
    """Return the array if it may be overwritten and none of `read_operands` aliases it, else a
    copy."""
    is_aliased = any(
        isinstance(y, ArrayView) and isinstance(x, ArrayView) and y.buffer is x.buffer
        for y in read_operands
    )
    return x if is_writable(x) and not is_aliased else em.copy_to_memory(x, dtype)


def prepare_carries(em: Emitter, arrays: Any, dtypes: Any, register_limits: Any):
    """Prepare the initial carries of a loop, in registers or in memory that it may overwrite.

    **Arguments:** `register_limits`, size up to which each carry is held in registers.
    """
    out, used_buffers = [], set()
    for x, dtype, register_limit in zip(arrays, dtypes, register_limits, strict=True):
        if x.size <= register_limit:
            out.append(em.to_registers(x))
            continue
        # Two carries may have the same initial array.
        may_overwrite = is_writable(x) and id(x.buffer) not in used_buffers
        bytes_before = em.memory.bytes
        out.append(x if may_overwrite else em.copy_to_memory(x, dtype))
        used_buffers.add(id(out[-1].buffer))
        if isinstance(x, ArrayView) and not any(x.strides):
            # A broadcast scalar is the start of a table that the iterations fill row by row.
            em.memory.count_as_table(bytes_before)
    return out


@rule("dynamic_update_slice")
def _dynamic_update_slice(
    em: Emitter, equation: Equation, x: EmittedArray, update: EmittedArray, *indices: EmittedArray
):
    dtype = result_dtype(equation)
    starts = _clamped_starts(em, equation, indices, 2, x.shape, update.shape)
    is_constant_start = all(is_constant(s) for s in starts)
    if not isinstance(x, ArrayView):
        if is_constant_start:
            out = x.copy()
            slices = tuple(
                slice(int(s), int(s) + n) for s, n in zip(starts, update.shape, strict=True)
            )
            out[(*slices, ...)] = em.to_registers(update)
            return out
        if x.size <= 64:
            return _update_registers(em, x, em.to_registers(update), starts, dtype)
    return _update_memory(em, x, update, starts, dtype, em.mask)


def _update_registers(
    em: Emitter, x: np.ndarray, update: np.ndarray, starts: list[LaneValue], dtype: np.dtype
):
    """Update a slice of registers by comparing its start with every possible one."""
    out = x.copy()
    max_start = [n - size for n, size in zip(x.shape, update.shape, strict=True)]
    for start in itertools.product(*(range(n + 1) for n in max_start)):
        is_match = np.True_
        for start_of_lane, s in zip(starts, start, strict=True):
            is_match = em.lanes.and_(
                np.bool_, is_match, em.lanes.compare(np.int64, "==", start_of_lane, np.int64(s))
            )
        for offset in np.ndindex(update.shape):
            index = tuple(s + i for s, i in zip(start, offset, strict=True))
            out[index] = em.lanes.select(dtype, is_match, update[offset], out[index])
    return out


def _update_memory(
    em: Emitter, x: Any, update: Any, starts: list[LaneValue], dtype: Any, mask: LaneValue | None
):
    """Update a slice of an array in memory in the lanes of `mask`, in place if possible."""
    out: Any = as_writable(em, x, dtype, update)
    # A copy is private: all lanes of it may change.
    mask = mask if out is x else None
    is_constant_start = all(is_constant(s) for s in starts)
    if is_constant_start:
        start_index = em.memory.flat_index(out, tuple(int(s) for s in starts))
        target = ArrayView(out.buffer, update.shape, out.strides, start_index)
        em.copy_to_memory(update, dtype, into=target, mask=mask)
        return out

    def write_element(index, value):
        flat_index = flat_index_per_lane(em, out, add_offset(em, starts, index))
        em.memory.scatter(out, em.lanes.value(flat_index, np.int64), value, mask)

    def write_uniform(start_index):
        target = ArrayView(out.buffer, update.shape, out.strides, start_index)
        em.copy_to_memory(update, dtype, into=target, mask=mask)
        return out

    def write_per_lane():
        if isinstance(update, ArrayView):
            with em.loop_nest(update.shape) as index:
                write_element(index, em.memory.read(update, index))
        else:
            for index in np.ndindex(update.shape):
                write_element(index, update[index])
        return out

    return _branch_on_uniform_start(
        em, out, starts, update.shape, dtype, write_uniform, write_per_lane
    )
