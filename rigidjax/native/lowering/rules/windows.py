"""Gather and scatter: parts of an array that are read or changed, at places known or not."""

import functools
import math
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode

from ..lanes import is_constant
from ..memory import ArrayView, row_major_strides
from ..registry import rule
from .indexing import (
    _clamped,
    _dtype,
    _integer,
    _moved,
    _read,
    _shape,
    as_writable,
    flat_index_per_lane,
)
from .structure import index_axis

# Parts of an array from which on a scatter to known places is a loop: LLVM takes longer than in
# proportion for long programs of reads and writes (23 s for the forces of 196 springs).
_MANY = 32


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
    window = _SliceStarts(em, equation, indices, x.shape, sizes, d.start_index_map, batching)
    fits = em.fits_registers(math.prod(shape), x, indices)
    if window.is_constant:
        x = x if fits else em.to_memory(x, dtype)
        batch = [shape[k] for k in batch_axes]
        offset, strides = (
            (x.offset, x.strides) if isinstance(x, ArrayView) else (0, row_major_strides(x.shape))
        )
        if is_constant(offset):
            places, inside = window.positions(batch, offset, strides)
            if inside.all() or not fill:
                parts = tuple(shape[k] for k in d.offset_dims)
                along = tuple(strides[k] for k in kept)
                if fits:
                    within = np.array(along, int) @ np.indices(parts).reshape(
                        len(parts), math.prod(parts)
                    )
                    places = (places[..., None] + within).reshape((*batch, *parts))
                    return _entries(em, x, np.moveaxis(places, range(len(batch)), batch_axes))
                return _copied_parts(em, x, places, parts, along, shape, batch_axes, dtype)
    source = x if window.is_constant else em.to_memory(x, dtype)

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
    source = em.to_memory(x, dtype)
    out = em.memory.allocate(shape, dtype)
    window.move_indices_to_memory()
    with em.loop_nest(shape) as index:
        em.memory.write(out, index, entry(index))
    return out


def _entries(em, x, places):
    """Numbers of an array in registers, by their places in it or in its buffer."""
    out = np.empty(places.shape, object)
    if not isinstance(x, ArrayView):
        out[...] = x.ravel()[places]
        return out
    if x.is_constant:
        return em.constant(x.buffer.values[places])  # pyright: ignore[reportOptionalSubscript]
    line = ArrayView(x.buffer, (x.buffer.size,), (1,))
    for index, place in np.ndenumerate(places):
        out[index] = em.memory.read(line, (int(place),))
    return out


def _copied_parts(em, x, places, parts, along, shape, batch_axes, dtype):
    """Parts of an array in memory, of one shape and with strides `along`, that begin at `places`
    of its buffer."""
    out, table = em.memory.allocate(shape, dtype), em.emit_table(places)
    others = [k for k in range(len(shape)) if k not in batch_axes]
    to_part, within = (tuple(out.strides[k] for k in axes) for axes in (batch_axes, others))
    with em.loop_nest(places.shape) as index:
        part = ArrayView(x.buffer, parts, along, em.memory.read_scalar(table, index))
        at = em.memory.flat_index(ArrayView(out.buffer, places.shape, to_part), index)
        em.copy_to_memory(part, dtype, into=ArrayView(out.buffer, parts, within, at))
    return out


class _SliceStarts:
    """Where the parts begin that a gather reads or a scatter changes.

    **Arguments:** `indices`; `shape` of the array and `sizes` of a part along each of its axes;
    `axes` that the indices belong to; `batching`, axes of the array and of the indices that go
    together.
    """

    def __init__(self, em, equation, indices, shape, sizes, axes, batching):
        self.em = em
        self.indices = em.to_registers(indices) if em.are_constant(indices) else indices
        self.dtype = np.dtype(equation.invars[1].aval.dtype)
        self.highest = [n - size for n, size in zip(shape, sizes, strict=True)]
        self.axes, self.batching = axes, batching
        self.is_constant = em.are_constant(indices)

    def move_indices_to_memory(self):
        """Make the indices readable at places that are known at run time only."""
        self.indices = self.em.to_memory(self.indices, self.dtype)

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
            asked = _integer(em, em.read_element(self.indices, (*place, k)), self.dtype)
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
    combine: Any = combinations.get(name[-3:])
    if combine is None and p["update_jaxpr"] is not None:
        combine = functools.partial(_applied, em, p["update_jaxpr"], p["update_consts"])
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
    window = _SliceStarts(em, equation, indices, x.shape, extent, axes, batching)
    places = math.prod(updates.shape[k] for k in scatter_axes)
    many = isinstance(updates, ArrayView) and places > _MANY
    in_memory = isinstance(x, ArrayView) or not window.is_constant or many
    out: Any = x
    out = as_writable(em, x, dtype, indices, updates) if in_memory else out.copy()
    mask = em.mask if out is x else None
    if in_memory:
        changed = _at_known_places if window.is_constant else _at_any_places
        changed(em, equation, window, out, updates, window_axes, combine, mask)
        return (
            out
            if isinstance(x, ArrayView) or out.size > em.register_limit
            else em.load_if_small(out)
        )
    updates = em.to_registers(updates)
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


def _applied(em, program, constants, dtype, old, new):
    """What a function of two numbers makes of them."""
    old, new = (np.full((), em.lanes.value(x, dtype), object) for x in (old, new))
    (out,) = em.emit_jaxpr(program, list(map(em.constant, constants)), [old, new])
    return out[()]


def _at_any_places(em, equation, window, out, updates, axes, combine, mask):
    """Change parts of an array whose places are known at run time only."""
    p, dtype = equation.params, _dtype(equation)
    own = p["dimension_numbers"].update_window_dims
    others = [k for k in range(updates.ndim) if k not in own]
    clip = p["mode"] == GatherScatterMode.CLIP
    batch, part = (tuple(updates.shape[k] for k in ks) for ks in (others, own))

    def put(begin, place, within):
        start, inside = begin
        allowed = em.intersect_mask(mask, inside)
        if is_constant(allowed) and not allowed:
            return  # JAX drops updates out of bounds.
        index, offset = [0] * updates.ndim, [0] * out.ndim
        for ks, numbers in ((others, place), (own, within)):
            for k, number in zip(ks, numbers, strict=True):
                index[k] = number
        for axis, number in zip(axes, within, strict=True):
            offset[axis] = number
        at = em.lanes.value(flat_index_per_lane(em, out, _moved(em, start, offset)), np.int64)
        value = em.read_element(updates, tuple(index))
        if combine is not None:
            value = combine(dtype, em.memory.gather(out, at), value)
        em.memory.scatter(out, at, value, None if is_constant(allowed) else allowed)

    if updates.size <= _MANY:
        for place in np.ndindex(batch):
            begin = window.at(place, not clip)
            for within in np.ndindex(part):
                put(begin, place, within)
        return
    updates = em.to_memory(updates, dtype)
    if math.prod(batch) > 1:
        window.move_indices_to_memory()
    with em.loop_nest(batch) as place:
        begin = window.at(place, not clip)
        with em.loop_nest(part) as within:
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
        em.copy_to_memory(part, dtype, into=target, mask=mask)

    batch = [updates.shape[k] for k in others]
    targets, inside = window.positions(batch, out.offset, out.strides)
    changed = np.argwhere(inside | clip)
    if isinstance(updates, ArrayView) and is_constant(updates.offset) and len(changed) > _MANY:
        along = np.array([updates.strides[k] for k in others], int)
        sources = updates.offset + changed @ along
        table = em.emit_table(np.stack([targets[tuple(changed.T)], sources], axis=1))
        with em.loop(len(changed)) as k:
            to, at = (em.memory.read_scalar(table, (k, j)) for j in range(2))
            part = ArrayView(updates.buffer, shape, tuple(updates.strides[k] for k in own), at)
            put(ArrayView(out.buffer, shape, strides, to), part)
    else:
        for place in map(tuple, changed.tolist()):
            part = updates
            for axis, index in sorted(zip(others, place, strict=True), reverse=True):
                part = index_axis(em, part, axis, index)
            put(ArrayView(out.buffer, shape, strides, int(targets[place])), part)
