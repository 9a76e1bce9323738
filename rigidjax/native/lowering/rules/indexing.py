"""Entries at places that may be known at run time only, and differ from lane to lane.

At places that are known when the kernel is emitted, they are a matter of names.
"""

import itertools
import math

import numpy as np

from ..emitter import Emitter
from ..lanes import is_constant
from ..memory import ArrayView
from ..registry import rule

# Numbers of a slice from which on it is tested whether it starts at one place in all lanes.
_LONG_SLICE = 16


def _shape(equation):
    return tuple(equation.outvars[0].aval.shape)


def _dtype(equation):
    return np.dtype(equation.outvars[0].aval.dtype)


def _integer(em, x, dtype):
    """An index as a number of type int64."""
    if np.dtype(dtype) == np.uint64:
        x = em.lanes.min(np.uint64, x, np.uint64(np.iinfo(np.int64).max))
    return em.lanes.convert(x, dtype, np.int64)


def _clamped(em, x, highest):
    lanes = em.lanes
    x = lanes.max(np.int64, x, np.int64(0))
    return lanes.min(np.int64, x, np.int64(highest))


def _starts(em, equation, indices, first, shape, sizes):
    """Start of a slice along each axis, moved so that the slice lies inside."""
    out = []
    for k, (index, n, size) in enumerate(zip(indices, shape, sizes, strict=True)):
        dtype = equation.invars[first + k].aval.dtype
        out.append(_clamped(em, _integer(em, em.read_element(index, ()), dtype), n - size))
    return out


def flat_index_per_lane(em, view, index):
    """Number of an entry in its buffer, where the index may differ from lane to lane."""
    at, rest = np.int64(0), []
    for i, stride in zip(index, view.strides, strict=True):
        term = em.lanes.mul(np.int64, i, np.int64(stride))
        at = em.lanes.add(np.int64, at, term)
    if is_constant(view.offset):
        return em.lanes.add(np.int64, at, np.int64(view.offset))
    rest = em.lanes.splat(view.offset) if em.lanes.width > 1 else view.offset
    return em.lanes.add(np.int64, at, rest)


def _read(em, x, index):
    """An entry whose index may differ from lane to lane (numbers of type int64)."""
    if all(is_constant(i) for i in index):
        return em.read_element(x, tuple(int(i) for i in index))
    return em.memory.gather(x, em.lanes.value(flat_index_per_lane(em, x, index), np.int64))


@rule("dynamic_slice")
def _dynamic_slice(em: Emitter, equation, x, *indices):
    shape, dtype = _shape(equation), _dtype(equation)
    starts = _starts(em, equation, indices, 1, x.shape, shape)
    if all(is_constant(s) for s in starts):
        cut = tuple(slice(int(s), int(s) + n) for s, n in zip(starts, shape, strict=True))
        if not isinstance(x, ArrayView):
            return x[(*cut, ...)]
        at = em.memory.flat_index(x, tuple(int(s) for s in starts))
        return em.load_if_small(ArrayView(x.buffer, shape, x.strides, at))
    if not isinstance(x, ArrayView) and x.size <= 8:
        return _chosen(em, x, starts, shape, dtype)
    x = em.to_memory(x, dtype)
    in_registers = math.prod(shape) <= em.register_limit
    into = None if in_registers else em.memory.allocate(shape, dtype)

    def together(at):
        part = ArrayView(x.buffer, shape, x.strides, at)
        return em.to_registers(part) if into is None else em.copy_to_memory(part, dtype, into)

    def apart():
        if into is not None:
            with em.loop_nest(shape) as index:
                em.memory.write(into, index, _read(em, x, _moved(em, starts, index)))
            return into
        out = np.empty(shape, object)
        for index in np.ndindex(shape):
            out[index] = _read(em, x, _moved(em, starts, index))
        return out

    return _at_one_place(em, x, starts, shape, dtype, together, apart)


def _at_one_place(em, x, starts, shape, dtype, together, apart):
    """`together(position)` where a slice starts at one place in all lanes, else `apart()`.

    Lanes that make their steps at the same time read and write their records so: vectors, in the
    place of one number of each lane after another.
    """
    build, lanes = em.builder, em.lanes
    if lanes.width == 1 or math.prod(shape) < _LONG_SLICE:
        return apart()
    firsts, same = list(starts), np.True_
    for axis, start in enumerate(starts):
        if not is_constant(start):
            active = start
            if em.mask is not None:
                active = lanes.select(np.int64, em.mask, start, np.int64(0))
            firsts[axis] = lanes.max_over_lanes(np.int64, active)
            is_same = lanes.compare(np.int64, "==", start, lanes.splat(firsts[axis]))
            same = lanes.and_(np.bool_, same, is_same)
    if em.mask is not None:
        same = lanes.or_(np.bool_, same, lanes.not_(np.bool_, em.mask))
    blocks = [build.append_basic_block(name) for name in ("together", "apart", "after")]
    build.cbranch(lanes.all(same), *blocks[:2])
    ends = []
    for block, form in zip(
        blocks, (lambda: together(em.memory.flat_index(x, tuple(firsts))), apart), strict=False
    ):
        build.position_at_end(block)
        found = form()
        ends.append((found, build.block))
        build.branch(blocks[2])
    build.position_at_end(blocks[2])
    (found, end), (other, other_end) = ends
    if not isinstance(found, np.ndarray):
        return found
    out = em.emit_phis(found, dtype, end)
    em.add_incoming(out, other, dtype, other_end)
    return out


@rule("lockstep_max")
def _most_of_all(em, equation, count):
    """The largest count of all lanes that are at work."""
    lanes, dtype, own = em.lanes, _dtype(equation), em.read_element(count, ())
    if lanes.width == 1 or is_constant(own):
        return count
    if em.mask is not None:
        own = lanes.select(dtype, em.mask, own, dtype.type(0))
    out = np.empty((), object)
    out[()] = lanes.splat(lanes.max_over_lanes(dtype, own))
    return out


def _chosen(em, x, starts, shape, dtype):
    """A slice of a few registers, by comparing its start with every possible one."""
    highest = [n - size for n, size in zip(x.shape, shape, strict=True)]
    out = None
    for start in itertools.product(*(range(n + 1) for n in highest)):
        part = x[tuple(slice(s, s + n) for s, n in zip(start, shape, strict=True))]
        if out is None:
            out = part.copy()
            continue
        here = np.True_
        for asked, s in zip(starts, start, strict=True):
            here = em.lanes.and_(
                np.bool_, here, em.lanes.compare(np.int64, "==", asked, np.int64(s))
            )
        for index in np.ndindex(shape):
            out[index] = em.lanes.select(dtype, here, part[index], out[index])
    return out


def _moved(em, starts, index):
    """A start plus an index that is the same in all lanes."""
    out = []
    for start, i in zip(starts, index, strict=True):
        if is_constant(i):
            i = np.int64(i)
        elif em.lanes.width > 1:
            i = em.lanes.splat(i)
        out.append(em.lanes.add(np.int64, start, i))
    return out


def is_writable(x):
    """Whether an array is whole, in memory of the kernel, and read by nobody else."""
    return (
        isinstance(x, ArrayView)
        and x.buffer.is_owned
        and not x.buffer.use_count
        and x.covers_buffer
    )


def as_writable(em, x, dtype, *read):
    """The array itself if nobody else reads it, nor one of those that are `read` meanwhile."""
    shared = any(
        isinstance(y, ArrayView) and isinstance(x, ArrayView) and y.buffer is x.buffer for y in read
    )
    return x if is_writable(x) and not shared else em.copy_to_memory(x, dtype)


def prepare_carries(em, arrays, dtypes, limits):
    """What the variables of a loop start from, in registers or in memory that it may change.

    **Arguments:** `limits`, entries up to which each is held in registers.
    """
    out, taken = [], set()
    for x, dtype, largest in zip(arrays, dtypes, limits, strict=True):
        if x.size <= largest:
            out.append(em.to_registers(x))
            continue
        # Two variables may start from the same array.
        mine = is_writable(x) and id(x.buffer) not in taken
        before = em.memory.bytes
        out.append(x if mine else em.copy_to_memory(x, dtype))
        taken.add(id(out[-1].buffer))
        if isinstance(x, ArrayView) and not any(x.strides):
            # One number again and again: a table that turns fill row by row.
            em.memory.count_as_table(before)
    return out


@rule("dynamic_update_slice")
def _dynamic_update_slice(em, equation, x, update, *indices):
    dtype = _dtype(equation)
    starts = _starts(em, equation, indices, 2, x.shape, update.shape)
    known = all(is_constant(s) for s in starts)
    if not isinstance(x, ArrayView):
        if known:
            out = x.copy()
            cut = tuple(
                slice(int(s), int(s) + n) for s, n in zip(starts, update.shape, strict=True)
            )
            out[(*cut, ...)] = em.to_registers(update)
            return out
        if x.size <= 64:
            return _updated(em, x, em.to_registers(update), starts, dtype)
    return _written(em, x, update, starts, dtype, em.mask)


def _updated(em, x, update, starts, dtype):
    """Registers with a slice replaced, by comparing its start with every possible one."""
    out = x.copy()
    highest = [n - size for n, size in zip(x.shape, update.shape, strict=True)]
    for start in itertools.product(*(range(n + 1) for n in highest)):
        here = np.True_
        for asked, s in zip(starts, start, strict=True):
            here = em.lanes.and_(
                np.bool_, here, em.lanes.compare(np.int64, "==", asked, np.int64(s))
            )
        for index in np.ndindex(update.shape):
            at = tuple(s + i for s, i in zip(start, index, strict=True))
            out[at] = em.lanes.select(dtype, here, update[index], out[at])
    return out


def _written(em, x, update, starts, dtype, mask):
    """Memory with a slice replaced, in the lanes of `mask`; in place where nobody else reads."""
    out = as_writable(em, x, dtype, update)
    # A copy may change in all lanes.
    mask = mask if out is x else None
    known = all(is_constant(s) for s in starts)
    if known:
        at = em.memory.flat_index(out, tuple(int(s) for s in starts))
        part = ArrayView(out.buffer, update.shape, out.strides, at)
        em.copy_to_memory(update, dtype, into=part, mask=mask)
        return out

    def put(index, value):
        at = flat_index_per_lane(em, out, _moved(em, starts, index))
        em.memory.scatter(out, em.lanes.value(at, np.int64), value, mask)

    def together(at):
        part = ArrayView(out.buffer, update.shape, out.strides, at)
        em.copy_to_memory(update, dtype, into=part, mask=mask)
        return out

    def apart():
        if isinstance(update, ArrayView):
            with em.loop_nest(update.shape) as index:
                put(index, em.memory.read(update, index))
        else:
            for index in np.ndindex(update.shape):
                put(index, update[index])
        return out

    return _at_one_place(em, out, starts, update.shape, dtype, together, apart)
