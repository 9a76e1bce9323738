"""Matrices in memory for eliminations, and rows and entries of them that differ by lane.

Real and imaginary parts of complex matrices lie apart, so that single runs compute several numbers
of a row at once as they do of real ones.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .builder import Value, int64
from .complex import is_complex, paired, part_dtype, parts
from .emitter import Emitter
from .lanes import element_type
from .memory import ArrayView


@contextlib.contextmanager
def along_row(em: Emitter, step: int) -> Iterator[None]:
    """Rows take the place of lanes, if there are `step` numbers of them at once."""
    with em.vectors.along_row() if step > 1 else contextlib.nullcontext():
        yield


class Matrix:
    """A matrix in memory, real and imaginary parts apart."""

    def __init__(self, em: Emitter, shape: tuple[int, int], dtype: np.dtype):
        self.em, self.dtype, self.shape = em, dtype, shape
        count = 2 if is_complex(dtype) else 1
        self.real, self.imag = part_dtype(dtype), count == 2
        self.parts = [em.memory.allocate(shape, self.real) for _ in range(count)]

    def fill(self, x: ArrayView | None = None) -> None:
        """Take the entries of a smaller matrix; zero beside and below it, all if there is none."""
        em = self.em
        rows, columns = (0, 0) if x is None else x.shape
        if x is not None:
            with em.loop_nest(x.shape) as index:
                self.write(*index, em.memory.read(x, index))
        for shape, shift in (
            ((rows, self.shape[1] - columns), (0, columns)),
            ((self.shape[0] - rows, self.shape[1]), (rows, 0)),
        ):
            if all(shape):
                corner = (em.memory.flat_index(part, shift) for part in self.parts)
                views = [
                    ArrayView(part.buffer, shape, part.strides, at)
                    for part, at in zip(self.parts, corner, strict=True)
                ]
                with em.loop_nest(shape) as index:
                    for view in views:
                        em.memory.write(view, index, self.real.type(0))

    def read(self, *index: Any) -> Any:
        """An entry, or where rows take the place of lanes those from there on."""
        read = self.em.memory.read if self.is_scalar else self.em.vectors.read
        return self.combine_parts([read(part, index) for part in self.parts])

    def write(self, *index_and_value: Any) -> None:
        """Set an entry, or those from there on: its index, then its value."""
        *index, value = index_and_value
        write = self.em.memory.write if self.is_scalar else self.em.vectors.write
        value = self.em.lanes.value(value, self.dtype)
        for part, one in zip(self.parts, self.split_parts(value), strict=True):
            write(part, tuple(index), one)

    @property
    def is_scalar(self) -> bool:
        """Whether one entry is read or written at once."""
        return self.em.vectors.width == 1 or self.em.lanes.width == 1

    def combine_parts(self, values: list[Any]) -> Any:
        """A number of its parts."""
        return paired(self.dtype, *values) if len(values) > 1 else values[0]

    def split_parts(self, value: Any) -> tuple[Any, ...]:
        """The parts of a number."""
        return parts(value) if len(self.parts) > 1 else (value,)

    def splat(self, value: Any) -> Any:
        """A number again and again, where rows take the place of lanes."""
        if self.is_scalar:
            return value
        return self.combine_parts([self.em.lanes.splat(one) for one in self.split_parts(value)])

    def release(self) -> None:
        """Give its memory back."""
        for part in self.parts:
            self.em.memory.release(part.buffer)


class RowPerLane:
    """A row of a matrix that differs from lane to lane."""

    def __init__(self, matrix: Matrix, row: Value):
        self.matrix, em = matrix, matrix.em
        build, self.width = em.builder, em.lanes.width
        self.align = matrix.real.itemsize
        self.pitch = self.width * em.memory.pitch
        stride, self.starts = int64(matrix.shape[1] * self.pitch), []
        kind = element_type(matrix.dtype)
        for part in matrix.parts:
            places = (build.mul(em.lanes.extract_lane(row, t), stride) for t in range(self.width))
            self.starts.append([
                build.gep(part.buffer.pointer, [build.add(at, int64(t))], source_etype=kind)
                for t, at in enumerate(places)
            ])  # fmt: skip

    def _addresses(self, starts, j):
        em, kind = self.matrix.em, element_type(self.matrix.dtype)
        j = em.builder.mul(j, int64(self.pitch)) if self.pitch > 1 else j
        return (em.builder.gep(start, [j], source_etype=kind) for start in starts)

    def read(self, j: Value) -> Any:
        """An entry, or where rows take the place of lanes those from there on."""
        em, kind, values = self.matrix.em, element_type(self.matrix.dtype), []
        kind = kind if self.width > 1 else em.lanes.vector(kind)
        for starts in self.starts:
            places = self._addresses(starts, j)
            loads: list[Value] = [em.builder.load(at, typ=kind, align=self.align) for at in places]
            values.append(em.lanes.pack_lanes(loads) if self.width > 1 else loads[0])
        return self.matrix.combine_parts(values)

    def write(self, j: Value, value: Any) -> None:
        em = self.matrix.em
        for starts, one in zip(self.starts, self.matrix.split_parts(value), strict=True):
            for t, at in enumerate(self._addresses(starts, j)):
                lane = em.lanes.extract_lane(one, t) if self.width > 1 else one
                em.builder.store(lane, at, align=self.align)


class ColumnPerLane:
    """An entry of each row of a matrix, whose place differs from lane to lane."""

    def __init__(self, matrix: Matrix, place: Value):
        self.matrix, self.place = matrix, place

    def _at(self, row):
        em, length = self.matrix.em, self.matrix.shape[1]
        return em.lanes.add(np.int64, self.place, np.int64(row * length))

    def read(self, row: int) -> Any:
        memory, at = self.matrix.em.memory, self._at(row)
        return self.matrix.combine_parts([memory.gather(part, at) for part in self.matrix.parts])

    def write(self, row: int, value: Any) -> None:
        memory, at = self.matrix.em.memory, self._at(row)
        value = self.matrix.em.lanes.value(value, self.matrix.dtype)
        for part, one in zip(self.matrix.parts, self.matrix.split_parts(value), strict=True):
            memory.scatter(part, at, one, None)
