"""Arguments and results of a kernel in XLA's memory, with one batch element in each lane."""

from typing import Any, NamedTuple

import numpy as np
from jax.core import ShapedArray
from llvmlite import ir

from ..values.builder import Value, Values, int64
from ..values.complex import Pair, is_complex, part_dtype
from ..values.lanes import I8, element_type
from ..values.memory import ArrayView, Buffer, EmittedArray, row_major_strides
from .emitter import Emitter


class DiscardBuffer(NamedTuple):
    """Memory for the results of inactive lanes, which are discarded.

    **Attributes:** `mask`, the active lanes; `pointer` to the memory for the others.
    """

    mask: Value
    pointer: Value


def byte_size(aval: ShapedArray) -> int:
    """Return the size in bytes of an argument or result of one batch element."""
    return aval.size * np.dtype(aval.dtype).itemsize


def _stored_type(dtype: np.dtype) -> ir.Type:
    return I8 if dtype == np.bool_ else element_type(dtype)


class _BatchElements:
    """Elements of an argument or result in XLA's memory, one batch element in each lane."""

    def __init__(
        self,
        em: Emitter,
        pointer: Value,
        dtype: np.dtype,
        size: int,
        indices: Values,
        discard: DiscardBuffer | None = None,
    ):
        self.em, self.dtype, self.type_ = em, dtype, _stored_type(dtype)
        self.parts = 2 if is_complex(dtype) else 1
        stride = int64(size * self.parts)
        build = em.builder
        self.starts = [
            build.gep(pointer, [build.mul(m, stride)], source_etype=self.type_) for m in indices
        ]
        if discard is not None:
            self.starts = [
                build.select(em.lanes.extract_lane(discard.mask, k), start, discard.pointer)
                for k, start in enumerate(self.starts)
            ]

    def _part_indices(self, k: Value) -> list[Value]:
        build = self.em.builder
        first = build.mul(k, int64(self.parts))
        return [build.add(first, int64(k)) for k in range(self.parts)]

    def load(self, k: Value) -> Any:
        """Load element `k` of each batch element."""
        parts_of_element = [self._load(part_index) for part_index in self._part_indices(k)]
        return Pair(*parts_of_element) if self.parts == 2 else parts_of_element[0]

    def _load(self, part_index: Value) -> Any:
        em, build = self.em, self.em.builder
        values = []
        for start in self.starts:
            address = build.gep(start, [part_index], source_etype=self.type_)
            alignment = part_dtype(self.dtype).itemsize
            values.append(build.load(address, typ=self.type_, align=alignment))
        value = em.lanes.pack_lanes(values)
        return build.trunc(value, em.lanes.type(np.bool_)) if self.dtype == np.bool_ else value

    def store(self, k: Value, value: Any) -> None:
        """Store element `k` of each batch element."""
        value = self.em.lanes.value(value, self.dtype)
        values = [value.real, value.imag] if isinstance(value, Pair) else [value]
        for part_index, part in zip(self._part_indices(k), values, strict=True):
            self._store(part_index, part)

    def _store(self, part_index: Value, value: Any) -> None:
        em, build = self.em, self.em.builder
        if self.dtype == np.bool_:
            value = build.zext(value, em.lanes.vector(I8))
        for k, start in enumerate(self.starts):
            address = build.gep(start, [part_index], source_etype=self.type_)
            alignment = part_dtype(self.dtype).itemsize
            build.store(em.lanes.extract_lane(value, k), address, align=alignment)


def load_argument(
    em: Emitter, pointer: Value, aval: ShapedArray, indices: Values | None, register_limit: int
) -> EmittedArray:
    """Load an argument of a kernel.

    **Arguments:** `pointer` to the argument; `aval`, for one batch element; `indices`, the batch
    element in each lane, `None` for an argument without a batch axis; `register_limit`, size up to
    which it is held in registers.
    """
    dtype, shape, size = np.dtype(aval.dtype), tuple(aval.shape), aval.size
    shared = ArrayView(
        Buffer(pointer, dtype, size, shared=True, is_owned=False), shape, row_major_strides(shape)
    )
    if indices is None:
        return em.load_uniform(shared) if size <= register_limit else shared
    load = _BatchElements(em, pointer, dtype, size, indices).load
    if size <= register_limit:
        out = np.empty(shape, object)
        for k, index in enumerate(np.ndindex(shape)):
            out[index] = load(int64(k))
        return out
    flat = em.memory.allocate((size,), dtype)
    with em.loop(size) as k:
        em.memory.write(flat, (k,), load(k))
    return flat.reshape_view(shape)  # pyright: ignore[reportReturnType]


def store_result(
    em: Emitter, pointer: Value, aval: ShapedArray, result: EmittedArray, indices: Values,
    discard: DiscardBuffer | None = None,
) -> None:  # fmt: skip
    """Store a result of the batch elements `indices`, in the lanes of `discard.mask` if given."""
    dtype, shape, size = np.dtype(aval.dtype), tuple(aval.shape), aval.size
    if not size:
        return
    build = em.builder
    store = _BatchElements(em, pointer, dtype, size, indices, discard).store
    if isinstance(result, ArrayView):
        with em.loop_nest(shape) as index:
            k = int64(0)
            for axis_index, stride in zip(index, row_major_strides(shape), strict=True):
                axis_index = int64(axis_index) if isinstance(axis_index, int) else axis_index
                k = build.add(k, build.mul(axis_index, int64(stride)))
            store(k, em.memory.read(result, index))
        return
    for k, index in enumerate(np.ndindex(shape)):
        store(int64(k), result[index])
