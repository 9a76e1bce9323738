"""Matrices in memory for eliminations, with access to rows and columns that differ by lane.

Real and imaginary parts of complex matrices are separate arrays, so that kernels with one lane can
use vectors along a row for complex matrices as well.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..values.builder import Value, int64
from ..values.complex import is_complex, make_pair, part_dtype, parts
from ..values.lanes import element_type
from ..values.memory import ArrayView
from .emitter import Emitter


@contextlib.contextmanager
def along_row(em: Emitter, step: int) -> Iterator[None]:
    """Emit vectors along a row inside the context, if `step` is their length and not 1."""
    with em.vectors.along_row() if step > 1 else contextlib.nullcontext():
        yield


class Matrix:
    """A matrix in memory, with separate real and imaginary parts."""

    def __init__(self, em: Emitter, shape: tuple[int, int], dtype: np.dtype):
        self.em, self.dtype, self.shape = em, dtype, shape
        count = 2 if is_complex(dtype) else 1
        self.real_dtype, self.has_imag = part_dtype(dtype), count == 2
        self.parts = [em.memory.allocate(shape, self.real_dtype) for _ in range(count)]

    def fill(self, x: ArrayView | None = None) -> None:
        """Copy a smaller matrix into the upper left corner; set all other entries to zero."""
        em = self.em
        rows, columns = (0, 0) if x is None else x.shape
        if x is not None:
            with em.loop_nest(x.shape) as index:
                self.write(*index, em.memory.read(x, index))
        for shape, start in (
            ((rows, self.shape[1] - columns), (0, columns)),
            ((self.shape[0] - rows, self.shape[1]), (rows, 0)),
        ):
            if all(shape):
                offsets = (em.memory.flat_index(part, start) for part in self.parts)
                views = [
                    ArrayView(part.buffer, shape, part.strides, offset)
                    for part, offset in zip(self.parts, offsets, strict=True)
                ]
                with em.loop_nest(shape) as index:
                    for view in views:
                        em.memory.write(view, index, self.real_dtype.type(0))

    def read(self, *index: Any) -> Any:
        """Load the entry with an index, or in `along_row` a vector of entries from there on."""
        read = self.em.memory.read if self.is_scalar else self.em.vectors.read
        return self.combine_parts([read(part, index) for part in self.parts])

    def write(self, *index_and_value: Any) -> None:
        """Store an entry, or a vector of entries: the index, then the value."""
        *index, value = index_and_value
        write = self.em.memory.write if self.is_scalar else self.em.vectors.write
        value = self.em.lanes.value(value, self.dtype)
        for part, part_value in zip(self.parts, self.split_parts(value), strict=True):
            write(part, tuple(index), part_value)

    @property
    def is_scalar(self) -> bool:
        """Whether `read` and `write` access one entry and not a vector."""
        return self.em.vectors.width == 1 or self.em.lanes.width == 1

    def combine_parts(self, values: list[Any]) -> Any:
        """Return the element with these parts, real and imaginary if it is complex."""
        return make_pair(self.dtype, *values) if len(values) > 1 else values[0]

    def split_parts(self, value: Any) -> tuple[Any, ...]:
        """Return the parts of an element, real and imaginary if it is complex."""
        return parts(value) if len(self.parts) > 1 else (value,)

    def splat(self, value: Any) -> Any:
        """Splat an element in `along_row`; otherwise return it."""
        if self.is_scalar:
            return value
        return self.combine_parts(
            [self.em.lanes.splat(part_value) for part_value in self.split_parts(value)]
        )

    def release(self) -> None:
        """Release the memory of the matrix."""
        for part in self.parts:
            self.em.memory.release(part.buffer)


class RowPerLane:
    """One row of a matrix per lane, with different row indices."""

    def __init__(self, matrix: Matrix, row: Value):
        self.matrix, em = matrix, matrix.em
        build, self.width = em.builder, em.lanes.width
        self.alignment = matrix.real_dtype.itemsize
        self.pitch = self.width * em.memory.pitch
        stride, self.row_starts = int64(matrix.shape[1] * self.pitch), []
        kind = element_type(matrix.dtype)
        for part in matrix.parts:
            offsets = (build.mul(em.lanes.extract_lane(row, t), stride) for t in range(self.width))
            self.row_starts.append([
                build.gep(part.buffer.pointer, [build.add(offset, int64(t))], source_etype=kind)
                for t, offset in enumerate(offsets)
            ])  # fmt: skip

    def _addresses(self, starts: list[Value], j: Value) -> Iterator[Value]:
        em, kind = self.matrix.em, element_type(self.matrix.dtype)
        j = em.builder.mul(j, int64(self.pitch)) if self.pitch > 1 else j
        return (em.builder.gep(start, [j], source_etype=kind) for start in starts)

    def read(self, j: Value) -> Any:
        """Load an entry, or in `along_row` a vector of entries from column `j` on."""
        em, kind, values = self.matrix.em, element_type(self.matrix.dtype), []
        kind = kind if self.width > 1 else em.lanes.vector(kind)
        for starts in self.row_starts:
            addresses = self._addresses(starts, j)
            loads: list[Value] = [
                em.builder.load(address, typ=kind, align=self.alignment) for address in addresses
            ]
            values.append(em.lanes.pack_lanes(loads) if self.width > 1 else loads[0])
        return self.matrix.combine_parts(values)

    def write(self, j: Value, value: Any) -> None:
        em = self.matrix.em
        for starts, part_value in zip(self.row_starts, self.matrix.split_parts(value), strict=True):
            for t, address in enumerate(self._addresses(starts, j)):
                lane = em.lanes.extract_lane(part_value, t) if self.width > 1 else part_value
                em.builder.store(lane, address, align=self.alignment)


class ColumnPerLane:
    """One column of a matrix per lane, with different column indices."""

    def __init__(self, matrix: Matrix, column_indices: Value):
        self.matrix, self.column_indices = matrix, column_indices

    def _flat_index(self, row: int) -> Value:
        em, length = self.matrix.em, self.matrix.shape[1]
        return em.lanes.add(np.int64, self.column_indices, np.int64(row * length))

    def read(self, row: int) -> Any:
        memory, flat_index = self.matrix.em.memory, self._flat_index(row)
        return self.matrix.combine_parts(
            [memory.gather(part, flat_index) for part in self.matrix.parts]
        )

    def write(self, row: int, value: Any) -> None:
        memory, flat_index = self.matrix.em.memory, self._flat_index(row)
        value = self.matrix.em.lanes.value(value, self.matrix.dtype)
        for part, part_value in zip(self.matrix.parts, self.matrix.split_parts(value), strict=True):
            memory.scatter(part, flat_index, part_value, None)
