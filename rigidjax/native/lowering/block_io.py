"""Arguments and results of a kernel, as XLA has them in memory: one member in each lane."""

from typing import NamedTuple

import numpy as np
from jax.core import ShapedArray

from .builder import Value, Values, int64
from .complex import Pair, is_complex, part_dtype
from .emitter import Emitter
from .lanes import I8, element_type
from .memory import ArrayView, Buffer, EmittedArray, row_major_strides


class DiscardBuffer(NamedTuple):
    """Memory for results of lanes that have none.

    **Attributes:** `mask`, lanes that have results; `pointer`, of the memory for the others.
    """

    mask: Value
    pointer: Value


def byte_size(aval: ShapedArray) -> int:
    """Bytes of one member's argument or result."""
    return aval.size * np.dtype(aval.dtype).itemsize


def _stored(dtype):
    return I8 if dtype == np.bool_ else element_type(dtype)


class _BatchElements:
    """The numbers of an argument or a result of XLA's, one member of the batch in each lane."""

    def __init__(self, em, pointer, dtype, size, members, spare=None):
        self.em, self.dtype, self.stored = em, dtype, _stored(dtype)
        self.parts = 2 if is_complex(dtype) else 1
        extent = int64(size * self.parts)
        build = em.builder
        self.starts = [
            build.gep(pointer, [build.mul(m, extent)], source_etype=self.stored) for m in members
        ]
        if spare is not None:
            self.starts = [
                build.select(em.lanes.extract_lane(spare.mask, k), start, spare.pointer)
                for k, start in enumerate(self.starts)
            ]

    def _places(self, number):
        build = self.em.builder
        first = build.mul(number, int64(self.parts))
        return [build.add(first, int64(k)) for k in range(self.parts)]

    def load(self, number):
        """Number `number` of each member."""
        out = [self._load(place) for place in self._places(number)]
        return Pair(*out) if self.parts == 2 else out[0]

    def _load(self, place):
        em, build = self.em, self.em.builder
        values = []
        for base in self.starts:
            address = build.gep(base, [place], source_etype=self.stored)
            align = part_dtype(self.dtype).itemsize
            values.append(build.load(address, typ=self.stored, align=align))
        value = em.lanes.pack_lanes(values)
        return build.trunc(value, em.lanes.type(np.bool_)) if self.dtype == np.bool_ else value

    def store(self, number, value):
        """Set number `number` of each member."""
        value = self.em.lanes.value(value, self.dtype)
        values = [value.real, value.imag] if isinstance(value, Pair) else [value]
        for place, part in zip(self._places(number), values, strict=True):
            self._store(place, part)

    def _store(self, place, value):
        em, build = self.em, self.em.builder
        if self.dtype == np.bool_:
            value = build.zext(value, em.lanes.vector(I8))
        for k, base in enumerate(self.starts):
            address = build.gep(base, [place], source_etype=self.stored)
            align = part_dtype(self.dtype).itemsize
            build.store(em.lanes.extract_lane(value, k), address, align=align)


def load_argument(
    em: Emitter, pointer: Value, aval: ShapedArray, members: Values | None, largest: int
) -> EmittedArray:
    """An argument as an array of the program.

    **Arguments:** `members`, `None` if it is the same for all; `largest`, entries up to which it is
    held in registers.
    """
    dtype, shape, size = np.dtype(aval.dtype), tuple(aval.shape), aval.size
    shared = ArrayView(
        Buffer(pointer, dtype, size, shared=True, is_owned=False), shape, row_major_strides(shape)
    )
    if members is None:
        return em.load_uniform(shared) if size <= largest else shared
    load = _BatchElements(em, pointer, dtype, size, members).load
    if size <= largest:
        out = np.empty(shape, object)
        for number, index in enumerate(np.ndindex(shape)):
            out[index] = load(int64(number))
        return out
    flat = em.memory.allocate((size,), dtype)
    with em.loop(size) as number:
        em.memory.write(flat, (number,), load(number))
    return flat.reshape_view(shape)  # pyright: ignore[reportReturnType]


def store_result(
    em: Emitter, pointer: Value, aval: ShapedArray, result: EmittedArray, members: Values,
    spare: DiscardBuffer | None = None,
) -> None:  # fmt: skip
    """Store a result of these members, of those in the lanes of `spare.mask` if that is given."""
    dtype, shape, size = np.dtype(aval.dtype), tuple(aval.shape), aval.size
    if not size:
        return
    build = em.builder
    one = _BatchElements(em, pointer, dtype, size, members, spare).store
    if isinstance(result, ArrayView):
        with em.loop_nest(shape) as index:
            number = int64(0)
            for i, stride in zip(index, row_major_strides(shape), strict=True):
                i = int64(i) if isinstance(i, int) else i
                number = build.add(number, build.mul(i, int64(stride)))
            one(number, em.memory.read(result, index))
        return
    for number, index in enumerate(np.ndindex(shape)):
        one(int64(number), result[index])
