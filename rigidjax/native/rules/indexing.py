"""Entries at places that may be known at run time only, and differ from lane to lane.

At places that are known when the kernel is emitted, they are a matter of names.
"""

import itertools
import math
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode

from ..analysis import NoRule, rule
from ..emitter import Emitter
from ..lanes import is_known
from ..memory import View, row_major
from .structure import taken

# Parts of an array from which on a scatter to known places is a loop: LLVM takes longer than in
# proportion for long programs of reads and writes (23 s for the forces of 196 springs).
_MANY = 32


def _shape(equation):
    return tuple(equation.outvars[0].aval.shape)


def _dtype(equation):
    return np.dtype(equation.outvars[0].aval.dtype)


def _integer(em, x, dtype):
    """An index as a number of type int64."""
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
        out.append(_clamped(em, _integer(em, em.entry(index, ()), dtype), n - size))
    return out


def _position(em, view, index):
    """Number of an entry in its buffer, where the index may differ from lane to lane."""
    at, rest = np.int64(0), []
    for i, stride in zip(index, view.strides, strict=True):
        term = em.lanes.mul(np.int64, i, np.int64(stride))
        at = em.lanes.add(np.int64, at, term)
    if is_known(view.offset):
        return em.lanes.add(np.int64, at, np.int64(view.offset))
    rest = em.lanes.splat(view.offset) if em.lanes.width > 1 else view.offset
    return em.lanes.add(np.int64, at, rest)


def _read(em, x, index):
    """An entry whose index may differ from lane to lane (numbers of type int64)."""
    if all(is_known(i) for i in index):
        return em.entry(x, tuple(int(i) for i in index))
    return em.memory.read_at(x, em.lanes.value(_position(em, x, index), np.int64))


@rule("dynamic_slice")
def _dynamic_slice(em: Emitter, equation, x, *indices):
    shape, dtype = _shape(equation), _dtype(equation)
    starts = _starts(em, equation, indices, 1, x.shape, shape)
    if all(is_known(s) for s in starts):
        cut = tuple(slice(int(s), int(s) + n) for s, n in zip(starts, shape, strict=True))
        if not isinstance(x, View):
            return x[cut]
        at = em.memory.position(x, tuple(int(s) for s in starts))
        return em.settled(View(x.buffer, shape, x.strides, at))
    if not isinstance(x, View) and x.size <= 8:
        return _chosen(em, x, starts, shape, dtype)
    x = em.in_memory(x, dtype)
    if math.prod(shape) <= em.largest:
        out = np.empty(shape, object)
        for index in np.ndindex(shape):
            out[index] = _read(em, x, _moved(em, starts, index))
        return out
    out = em.memory.allocate(shape, dtype)
    with em.indices(shape) as index:
        em.memory.write(out, index, _read(em, x, _moved(em, starts, index)))
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
        if is_known(i):
            i = np.int64(i)
        elif em.lanes.width > 1:
            i = em.lanes.splat(i)
        out.append(em.lanes.add(np.int64, start, i))
    return out


def is_writable(x):
    """Whether an array is whole, in memory of the kernel, and read by nobody else."""
    return isinstance(x, View) and x.buffer.own and not x.buffer.users and x.is_whole


def writable(em, x, dtype):
    """The array itself if nobody else reads it, otherwise a copy of it."""
    return x if is_writable(x) else em.copied(x, dtype)


def variables_of(em, arrays, dtypes, largest):
    """What the variables of a loop start from, in registers or in memory that it may change."""
    out, taken = [], set()
    for x, dtype in zip(arrays, dtypes, strict=True):
        if x.size <= largest:
            out.append(em.registers(x))
            continue
        # Two variables may start from the same array.
        mine = is_writable(x) and id(x.buffer) not in taken
        out.append(x if mine else em.copied(x, dtype))
        taken.add(id(out[-1].buffer))
    return out


@rule("dynamic_update_slice")
def _dynamic_update_slice(em, equation, x, update, *indices):
    dtype = _dtype(equation)
    starts = _starts(em, equation, indices, 2, x.shape, update.shape)
    known = all(is_known(s) for s in starts)
    if not isinstance(x, View):
        if known:
            out = x.copy()
            cut = tuple(
                slice(int(s), int(s) + n) for s, n in zip(starts, update.shape, strict=True)
            )
            out[cut] = em.registers(update)
            return out
        if x.size <= 64:
            return _updated(em, x, em.registers(update), starts, dtype)
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
    out = writable(em, x, dtype)
    # A copy may change in all lanes.
    mask = mask if out is x else None
    known = all(is_known(s) for s in starts)
    if known:
        at = em.memory.position(out, tuple(int(s) for s in starts))
        part = View(out.buffer, update.shape, out.strides, at)
        em.copied(update, dtype, into=part, mask=mask)
        return out

    def put(index, value):
        at = _position(em, out, _moved(em, starts, index))
        em.memory.write_at(out, em.lanes.value(at, np.int64), value, mask)

    if isinstance(update, View):
        with em.indices(update.shape) as index:
            put(index, em.memory.read(update, index))
    else:
        for index in np.ndindex(update.shape):
            put(index, update[index])
    return out


@rule("gather")
def _gather(em, equation, x, indices):
    p, shape, dtype = equation.params, _shape(equation), _dtype(equation)
    d, sizes = p["dimension_numbers"], p["slice_sizes"]
    fill = p["mode"] == GatherScatterMode.FILL_OR_DROP
    batch_axes = [k for k in range(len(shape)) if k not in d.offset_dims]
    kept = [
        k
        for k in range(x.ndim)
        if k not in d.collapsed_slice_dims and k not in d.operand_batching_dims
    ]
    batching = (d.operand_batching_dims, d.start_indices_batching_dims)
    window = _Window(em, equation, indices, x.shape, sizes, d.start_index_map, batching)
    fits = em.fits(math.prod(shape), x, indices)
    if window.is_known:
        x = x if fits else em.in_memory(x, dtype)
        batch = [shape[k] for k in batch_axes]
        offset, strides = (x.offset, x.strides) if isinstance(x, View) else (0, row_major(x.shape))
        if is_known(offset):
            places, inside = window.positions(batch, offset, strides)
            if inside.all() or not fill:
                parts = tuple(shape[k] for k in d.offset_dims)
                along = tuple(strides[k] for k in kept)
                if fits:
                    within = np.array(along, int) @ np.indices(parts).reshape(
                        len(parts), math.prod(parts)
                    )
                    places = (places[..., None] + within).reshape(*batch, *parts)
                    return _entries(em, x, np.moveaxis(places, range(len(batch)), batch_axes))
                return _copied_parts(em, x, places, parts, along, shape, batch_axes, dtype)
    source = x if window.is_known else em.in_memory(x, dtype)

    def entry(index):
        offset = [0] * x.ndim
        for axis, k in zip(kept, d.offset_dims, strict=True):
            offset[axis] = index[k]
        start, inside = window.at(tuple(index[k] for k in batch_axes), fill)
        value = _read(em, source, _moved(em, start, offset))
        return em.lanes.select(dtype, inside, value, _filler(dtype, p["fill_value"]))

    if fits:
        out = np.empty(shape, object)
        for index in np.ndindex(shape):
            out[index] = entry(index)
        return out
    source = em.in_memory(x, dtype)
    out = em.memory.allocate(shape, dtype)
    window.in_memory()
    with em.indices(shape) as index:
        em.memory.write(out, index, entry(index))
    return out


def _entries(em, x, places):
    """Numbers of an array in registers, by their places in it or in its buffer."""
    if not isinstance(x, View):
        return x.ravel()[places]
    if x.is_known:
        return em.constant(x.buffer.values[places])  # pyright: ignore[reportOptionalSubscript]
    line = View(x.buffer, (x.buffer.size,), (1,))
    out = np.empty(places.shape, object)
    for index, place in np.ndenumerate(places):
        out[index] = em.memory.read(line, (int(place),))
    return out


def _copied_parts(em, x, places, parts, along, shape, batch_axes, dtype):
    """Parts of an array in memory, of one shape and with strides `along`, that begin at `places`
    of its buffer."""
    out, table = em.memory.allocate(shape, dtype), em.table(places)
    others = [k for k in range(len(shape)) if k not in batch_axes]
    to_part, within = (tuple(out.strides[k] for k in axes) for axes in (batch_axes, others))
    with em.indices(places.shape) as index:
        part = View(x.buffer, parts, along, em.memory.number(table, index))
        at = em.memory.position(View(out.buffer, places.shape, to_part), index)
        em.copied(part, dtype, into=View(out.buffer, parts, within, at))
    return out


class _Window:
    """Where the parts begin that a gather reads or a scatter changes.

    **Arguments:** `indices`; `shape` of the array and `sizes` of a part along each of its axes;
    `axes` that the indices belong to; `batching`, axes of the array and of the indices that go
    together.
    """

    def __init__(self, em, equation, indices, shape, sizes, axes, batching):
        self.em = em
        self.indices = em.registers(indices) if em.are_known(indices) else indices
        self.dtype = np.dtype(equation.invars[1].aval.dtype)
        self.highest = [n - size for n, size in zip(shape, sizes, strict=True)]
        self.axes, self.batching = axes, batching
        self.is_known = em.are_known(indices)

    def in_memory(self):
        """Make the indices readable at places that are known at run time only."""
        self.indices = self.em.in_memory(self.indices, self.dtype)

    def positions(self, shape, offset, strides):
        """Where known parts begin in an array with these strides, and which of them were inside of
        it without being moved."""
        asked = np.array(np.asarray(self.indices).tolist(), np.int64)
        asked = asked.reshape(*shape, len(self.axes))
        start = np.zeros((*shape, len(self.highest)), np.int64)
        start[..., self.axes] = np.clip(asked, 0, np.array(self.highest)[list(self.axes)])
        inside = np.all(start[..., self.axes] == asked, axis=-1)
        for axis, own in zip(*self.batching, strict=True):
            start[..., axis] = np.indices(shape)[own]
        return offset + start @ np.array(strides, np.int64), inside

    def at(self, place, checked):
        """The part's start, moved inside, and whether it was there (if `checked`)."""
        em, lanes = self.em, self.em.lanes
        start, inside = [np.int64(0)] * len(self.highest), np.True_
        for k, axis in enumerate(self.axes):
            asked = _integer(em, em.entry(self.indices, (*place, k)), self.dtype)
            start[axis] = _clamped(em, asked, self.highest[axis])
            if checked:
                same = lanes.compare(np.int64, "==", asked, start[axis])
                inside = lanes.and_(np.bool_, inside, same)
        for axis, own in zip(*self.batching, strict=True):
            start[axis] = _moved(em, [np.int64(0)], [place[own]])[0]
        return start, inside


def _filler(dtype, asked):
    if asked is not None:
        return dtype.type(asked)
    if dtype.kind in "fc":
        return dtype.type(np.nan)
    if dtype == np.bool_:
        return np.True_
    return dtype.type(np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max)


@rule(
    "scatter", "scatter-update", "scatter-add", "scatter_add", "scatter-mul", "scatter_mul",
    "scatter-max", "scatter_max", "scatter-min", "scatter_min", "scatter-sub", "scatter_sub",
)  # fmt: skip
def _scatter(em, equation, x, indices, updates):
    p, dtype, lanes = equation.params, _dtype(equation), em.lanes
    name = equation.primitive.name
    d = p["dimension_numbers"]
    combinations = dict(add=lanes.add, sub=lanes.sub, mul=lanes.mul, max=lanes.max, min=lanes.min)
    combine = combinations.get(name[-3:])
    window_axes = [
        k
        for k in range(x.ndim)
        if k not in d.inserted_window_dims and k not in d.operand_batching_dims
    ]
    scatter_axes = [k for k in range(updates.ndim) if k not in d.update_window_dims]
    extent = [1] * x.ndim
    for axis, k in zip(window_axes, d.update_window_dims, strict=True):
        extent[axis] = updates.shape[k]
    clip = p["mode"] == GatherScatterMode.CLIP
    batching = (d.operand_batching_dims, d.scatter_indices_batching_dims)
    axes = d.scatter_dims_to_operand_dims
    window = _Window(em, equation, indices, x.shape, extent, axes, batching)
    places = math.prod(updates.shape[k] for k in scatter_axes)
    many = isinstance(updates, View) and places > _MANY
    in_memory = isinstance(x, View) or not window.is_known or many
    out: Any = x
    out = writable(em, x, dtype) if in_memory else out.copy()
    mask = em.mask if out is x else None
    if in_memory:
        changed = _at_known_places if window.is_known else _at_any_places
        changed(em, equation, window, out, updates, window_axes, combine, mask)
        return out if out.size > em.largest else em.settled(out)
    updates = em.registers(updates)
    for index in np.ndindex(updates.shape):
        start, inside = window.at(tuple(index[k] for k in scatter_axes), not clip)
        if not inside:
            continue
        offset = [0] * x.ndim
        for axis, k in zip(window_axes, d.update_window_dims, strict=True):
            offset[axis] = index[k]
        at, value = tuple(int(i) for i in _moved(em, start, offset)), updates[index]
        out[at] = value if combine is None else combine(dtype, out[at], value)
    return out


def _at_any_places(em, equation, window, out, updates, axes, combine, mask):
    """Change parts of an array whose places are known at run time only."""
    p, dtype = equation.params, _dtype(equation)
    own = p["dimension_numbers"].update_window_dims
    others = [k for k in range(updates.ndim) if k not in own]
    clip = p["mode"] == GatherScatterMode.CLIP
    batch, part = (tuple(updates.shape[k] for k in ks) for ks in (others, own))

    def put(begin, place, within):
        (start, inside), index, offset = begin, [0] * updates.ndim, [0] * out.ndim
        for ks, numbers in ((others, place), (own, within)):
            for k, number in zip(ks, numbers, strict=True):
                index[k] = number
        for axis, number in zip(axes, within, strict=True):
            offset[axis] = number
        at = em.lanes.value(_position(em, out, _moved(em, start, offset)), np.int64)
        value = em.entry(updates, tuple(index))
        if combine is not None:
            value = combine(dtype, em.memory.read_at(out, at), value)
        allowed = em.both(mask, inside)
        allowed = None if allowed is None or is_known(allowed) else allowed
        em.memory.write_at(out, at, value, allowed)

    if updates.size <= _MANY:
        for place in np.ndindex(batch):
            begin = window.at(place, not clip)
            for within in np.ndindex(part):
                put(begin, place, within)
        return
    updates = em.in_memory(updates, dtype)
    if math.prod(batch) > 1:
        window.in_memory()
    with em.indices(batch) as place:
        begin = window.at(place, not clip)
        with em.indices(part) as within:
            put(begin, place, within)


def _at_known_places(em, equation, window, out, updates, axes, combine, mask):
    """Change parts of an array whose places are known."""
    p, dtype = equation.params, _dtype(equation)
    own = p["dimension_numbers"].update_window_dims
    others = [k for k in range(updates.ndim) if k not in own]
    clip = p["mode"] == GatherScatterMode.CLIP
    shape, strides = tuple(updates.shape[k] for k in own), tuple(out.strides[k] for k in axes)

    def put(target, part):
        if combine is not None:
            part = em.map(lambda a, b: combine(dtype, a, b), dtype, target, part)
        em.copied(part, dtype, into=target, mask=mask)

    batch = [updates.shape[k] for k in others]
    targets, inside = window.positions(batch, out.offset, out.strides)
    changed = np.argwhere(inside | clip)
    if isinstance(updates, View) and is_known(updates.offset) and len(changed) > _MANY:
        along = np.array([updates.strides[k] for k in others], int)
        sources = updates.offset + changed @ along
        table = em.table(np.stack([targets[tuple(changed.T)], sources], axis=1))
        with em.loop(len(changed)) as k:
            to, at = (em.memory.number(table, (k, j)) for j in range(2))
            part = View(updates.buffer, shape, tuple(updates.strides[k] for k in own), at)
            put(View(out.buffer, shape, strides, to), part)
    else:
        for place in map(tuple, changed.tolist()):
            part = updates
            for axis, index in sorted(zip(others, place, strict=True), reverse=True):
                part = taken(em, part, axis, index)
            put(View(out.buffer, shape, strides, int(targets[place])), part)


@rule("sort")
def _sort(em, equation, *arrays):
    """Odd-even transposition of few entries: stable, by the first keys."""
    p, lanes = equation.params, em.lanes
    arrays = [np.moveaxis(em.registers(x), p["dimension"], 0).copy() for x in arrays]
    dtypes = [np.dtype(var.aval.dtype) for var in equation.outvars]
    n = len(arrays[0])
    if n > 64:
        raise NoRule(f"`sort` of {n} entries")
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
