"""Arrays in memory: too large for registers, or indexed by what is known at run time only.

An array in memory is a strided view of a buffer, as in NumPy: slices, transposes, broadcasts and
most reshapes move no number. A buffer of a kernel's own holds W lanes for each number, one beside
the other; a buffer that all lanes share (an input without a batch, a constant) holds one. On a GPU
it is the threads of a warp, each of one lane, whose numbers are side by side, so that the warp
reads and writes them at once.
"""

import bisect
import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir

from .builder import Value, int64
from .complex import DType, LaneValue, Pair, is_complex, paired, part_dtype
from .lanes import I8, Lanes, element_type, is_constant

# Of an entry: an int where it is known when the kernel is emitted.
Index = tuple[int | Value, ...]


@dataclasses.dataclass(eq=False)
class Buffer:
    """A piece of memory.

    **Arguments:** `pointer`; `dtype`; `size`, numbers; `shared`, one number for all lanes; `own`,
    whether the kernel may write it; `users`, variables bound to it; `pinned`, kept although nobody
    is bound to it (a loop's variable, say); `values` (size,) if they are known at emission;
    `piece`, begin and end in the kernel's own memory, bytes; `pitch`, from one number to the next,
    in numbers of all lanes; `lanes` of which each has its own.
    """

    pointer: Value
    dtype: np.dtype
    size: int
    shared: bool = False
    is_owned: bool = True
    use_count: int = 0
    pin_count: int = 0
    values: np.ndarray | None = None
    byte_range: tuple[int, int] = (0, 0)
    pitch: int = 1
    lanes: int = 1


@dataclasses.dataclass(frozen=True, eq=False)
class ArrayView:
    """An array whose entry `index` is number `offset + index . strides` of a buffer."""

    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int | Value = 0  # an int, or an LLVM integer that is the same in all lanes

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """Whether the array is the buffer, in order."""
        return (
            is_constant(self.offset)
            and self.offset == 0
            and self.size == self.buffer.size
            and self.strides == row_major_strides(self.shape)
        )

    @property
    def is_constant(self) -> bool:
        """Whether the numbers of the array are known at emission."""
        return self.buffer.values is not None and is_constant(self.offset)

    def constant_values(self) -> np.ndarray:
        """These numbers, of their type."""
        places = np.indices(self.shape).reshape(self.ndim, self.size)
        places = np.array(self.strides, int) @ places + self.offset  # pyright: ignore[reportOperatorIssue]
        return self.buffer.values[places].reshape(self.shape)  # pyright: ignore[reportOptionalSubscript]

    def constant_objects(self) -> np.ndarray:
        """These numbers, objects."""
        return to_objects(self.constant_values())

    def reshape_view(self, shape: tuple[int, ...]) -> "ArrayView | None":
        """The same numbers in another shape, if that needs no copy."""
        if self.size == 0:
            return ArrayView(self.buffer, shape, row_major_strides(shape), self.offset)
        # Neighbouring axes that are one in memory are one.
        old: list[tuple[int, int]] = []
        for n, stride in zip(self.shape, self.strides, strict=True):
            if n == 1:
                continue
            if old and old[-1][1] == n * stride:
                n *= old.pop()[0]
            old.append((n, stride))
        strides = []
        for n in reversed(shape):
            if n == 1:
                strides.append(0)
                continue
            if not old or old[-1][0] % n:
                return None
            size, stride = old.pop()
            strides.append(stride)
            if size != n:
                old.append((size // n, stride * n))
        return ArrayView(self.buffer, tuple(shape), tuple(reversed(strides)), self.offset)


def to_objects(numbers: np.ndarray) -> np.ndarray:
    """Known numbers, each an object of its type."""
    out = np.empty(numbers.size, object)
    out[:] = list(numbers.ravel())
    return out.reshape(numbers.shape)


# An array of a program: of numbers in registers, or in memory.
EmittedArray = np.ndarray | ArrayView


def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of an array whose last index runs fastest; 0 along axes of one entry."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(0 if n == 1 else step)
        step *= n
    return tuple(reversed(strides))


class KernelMemory:
    """Allocates, reads and writes buffers of a kernel.

    What is free again is given to the next buffer that fits best, so that few pieces of memory are
    used again and again: those that are in the processor's first cache.

    **Arguments:** `lanes`; `workspace`, a pointer to all of it; `warp`, where several threads of
    one lane have it together, their number and which of them this one is; `mixed`, whether some of
    it has one number for all lanes (see `mixed`).
    """

    def __init__(
        self, lanes: Lanes, workspace: Value, warp: tuple[int, Value] | None = None,
        has_divergence: bool = False,
    ):  # fmt: skip
        self.lanes, self.workspace = lanes, workspace
        self.pitch, self._thread = (1, None) if warp is None else warp
        # Of all, and of what does not count in the choice of a width: tables of which a turn does
        # not use every row, and what all lanes have in common.
        self.bytes, self.table_bytes, self.has_divergence = 0, 0, has_divergence
        # Pieces that are free, start and end, in their order; no two of them are neighbours.
        self._free: list[tuple[int, int]] = []
        self._allocated: list[Buffer] = []

    @property
    def builder(self):
        return self.lanes.builder

    def allocate(self, shape: tuple[int, ...], dtype: DType, unused: bool = False) -> ArrayView:
        """A new array of the kernel's own, in memory that nobody has used before if `unused`."""
        dtype, size = np.dtype(dtype), math.prod(shape)
        length = -(-size * self.lanes.width * self.pitch * dtype.itemsize // 64) * 64
        start, before = self.bytes if unused else self._reserve(length), self.bytes
        self.bytes = max(self.bytes, start + length)
        self.table_bytes += self.bytes - before if self._holds_uniform_values else 0
        # In the first block, so that the address is known in all that follow.
        with self.builder.goto_entry_block():
            place: Value = int64(start)
            if self._thread is not None:
                own = self.builder.mul(self._thread, int64(part_dtype(dtype).itemsize))
                place = self.builder.add(own, place)
            pointer = self.builder.gep(self.workspace, [place], source_etype=I8)
        buffer = Buffer(
            pointer, dtype, size, byte_range=(start, start + length), pitch=self.pitch,
            lanes=self.lanes.width,
        )  # fmt: skip
        self._allocated.append(buffer)
        return ArrayView(buffer, tuple(shape), row_major_strides(shape))

    @property
    def _holds_uniform_values(self):
        return self.has_divergence and self.lanes.width == 1

    def count_as_table(self, before: int) -> None:
        """What has been allocated since there were so many bytes is a table."""
        self.table_bytes += 0 if self._holds_uniform_values else self.bytes - before

    @contextlib.contextmanager
    def release_temporaries(self, results: list) -> Iterator[None]:
        """Release what is allocated within and is neither bound nor part of `results`."""
        outer, self._allocated = self._allocated, []
        yield
        kept = {id(x.buffer) for x in results if isinstance(x, ArrayView)}
        for buffer in self._allocated:
            if id(buffer) not in kept:
                self.release(buffer)
            if buffer.is_owned:
                outer.append(buffer)
        self._allocated = outer

    def _reserve(self, length):
        """Where a buffer begins: in the shortest free piece that is long enough, or at the end."""
        fits = [(end - start, k) for k, (start, end) in enumerate(self._free)]
        fits = [one for one in fits if one[0] >= length]
        if fits:
            k = min(fits)[1]
            start, end = self._free[k]
            self._free[k : k + 1] = [(start + length, end)] if start + length < end else []
            return start
        if self._free and self._free[-1][1] == self.bytes:
            return self._free.pop()[0]
        return self.bytes

    def release(self, buffer: Buffer) -> None:
        """Give memory back that nobody uses any more."""
        if buffer.is_owned and not buffer.use_count and not buffer.pin_count and not buffer.shared:
            buffer.is_owned = False
            start, end = buffer.byte_range
            if start == end:
                return
            k = bisect.bisect(self._free, buffer.byte_range)
            before, after = self._free[:k], self._free[k:]
            if before and before[-1][1] == start:
                start = before.pop()[0]
            if after and after[0][0] == end:
                end = after.pop(0)[1]
            self._free = [*before, (start, end), *after]

    # Positions known at emission, or the same in all lanes.

    def flat_index(self, view: ArrayView, index: Index):
        """Number of an entry in the buffer: an int, or an LLVM integer."""
        known, terms = (view.offset, []) if is_constant(view.offset) else (0, [view.offset])
        for i, stride in zip(index, view.strides, strict=True):
            if is_constant(i):
                known += int(i) * stride
            elif stride:
                terms.append(i if stride == 1 else self.builder.mul(i, int64(stride)))
        if not terms:
            return int(known)
        at = functools.reduce(self.builder.add, terms)
        return self._add_indices(at, known) if known else at

    def _add_indices(self, a, b):
        if is_constant(a) and is_constant(b):
            return int(a) + int(b)
        a, b = (int64(int(x)) if is_constant(x) else x for x in (a, b))
        return self.builder.add(a, b)

    def read(self, view: ArrayView, index: Index):
        """An entry, the same one in every lane."""
        return self._load(view.buffer, self.flat_index(view, index))

    def write(
        self, view: ArrayView, index: Index, value: Any, mask: LaneValue | None = None
    ) -> None:
        """Set an entry, in the lanes of `mask`."""
        buffer, at = view.buffer, self.flat_index(view, index)
        value = self.lanes.value(value, buffer.dtype)
        if mask is not None:
            value = self.lanes.select(buffer.dtype, mask, value, self._load(buffer, at))
        for x, place in _part_offsets(value, at, self._add_indices):
            stored: Any = self.to_stored(buffer, x)
            # A vector in memory of one lane would be written over what lies behind.
            assert self.lanes.width > 1 or not isinstance(stored.type, ir.VectorType)
            address = self.typed_address(buffer, place, stored.type)
            self.builder.store(stored, address, align=self._align(buffer))

    def read_scalar(self, view: ArrayView, index: Index):
        """An entry of an array that all lanes share, as one number."""
        buffer = view.buffer
        kind = _stored_type(buffer.dtype)
        address = self.typed_address(buffer, self.flat_index(view, index), kind)
        return self.builder.load(address, typ=kind, align=self._align(buffer))

    def element_address(self, view: ArrayView, index: Index):
        """A pointer to an entry."""
        at, buffer = self.flat_index(view, index), view.buffer
        stored = _stored_type(buffer.dtype)
        kind = stored if buffer.shared else self.lanes.vector(stored)
        return self.typed_address(
            buffer, self._add_indices(at, at) if is_complex(buffer.dtype) else at, kind
        )

    def _load(self, buffer, at):
        if is_complex(buffer.dtype):
            places = (place for _, place in _part_offsets(Pair(None, None), at, self._add_indices))
            return paired(buffer.dtype, *(self._load_real(buffer, place) for place in places))
        return self._load_real(buffer, at)

    def _load_real(self, buffer, at):
        stored = _stored_type(buffer.dtype)
        kind = stored if buffer.shared else self.lanes.vector(stored)
        address = self.typed_address(buffer, at, kind)
        value = self.builder.load(address, typ=kind, align=self._align(buffer))
        value = self.lanes.splat(value) if buffer.shared and self.lanes.width > 1 else value
        return self.from_stored(buffer, value)

    def _align(self, buffer):
        return part_dtype(buffer.dtype).itemsize

    def typed_address(self, buffer: Buffer, at: int | Value, kind: ir.Type) -> Value:
        """A pointer to a number of this LLVM type, so many of them from the buffer's begin."""
        place = at if isinstance(at, ir.Value) else int64(int(at) * buffer.pitch)
        if isinstance(at, ir.Value) and buffer.pitch > 1:
            place = self.builder.mul(at, int64(buffer.pitch))
        return self.builder.gep(buffer.pointer, [place], source_etype=kind)

    def to_stored(self, buffer: Buffer, value: Value) -> Value:
        """A number as it stands in memory."""
        if buffer.dtype != np.bool_:
            return value
        return self.builder.zext(value, self.lanes.vector(I8))

    def from_stored(self, buffer: Buffer, value: Value) -> Value:
        """The number that stands in memory so."""
        if buffer.dtype != np.bool_:
            return value
        return self.builder.trunc(value, self.lanes.vector(element_type(np.bool_)))

    # Positions that differ from lane to lane.

    def gather(self, view: ArrayView, positions: LaneValue):
        """The numbers at `positions` of the buffer (a number of lanes, int64)."""
        buffer = view.buffer
        if is_complex(buffer.dtype):
            both = _part_offsets(Pair(None, None), positions, self._add_lane_indices)
            places = [place for _, place in both]
            return paired(buffer.dtype, *(self.access_lanes(buffer, p, None, None) for p in places))
        return self.access_lanes(buffer, positions, None, None)

    def scatter(
        self, view: ArrayView, positions: LaneValue, value: Any, mask: LaneValue | None
    ) -> None:
        """Set the numbers at `positions` of the buffer, in the lanes of `mask`."""
        value = self.lanes.value(value, view.buffer.dtype)
        for x, place in _part_offsets(value, positions, self._add_lane_indices):
            self.access_lanes(view.buffer, place, x, mask)

    def _add_lane_indices(self, a, b):
        return self.lanes.add(np.int64, a, np.int64(b) if is_constant(b) else b)

    def access_lanes(self, buffer, positions, value, mask):
        """Read, or write if there is a value, lane by lane; real numbers, or parts of pairs."""
        build, width = self.builder, self.lanes.width
        one = self.lanes.uniform_scalar(positions)
        if one is not None and not is_constant(one) and not (buffer.shared and value is not None):
            return self._access_uniform_index(buffer, one, value, mask)
        stored = _stored_type(buffer.dtype)
        out = []
        new = None if value is None else self.to_stored(buffer, value)
        for k in range(width):
            at = self.lanes.extract_lane(positions, k)
            if not buffer.shared and width > 1:
                at = build.add(build.mul(at, int64(width)), int64(k))
            address = self.typed_address(buffer, at, stored)
            old = build.load(address, typ=stored, align=self._align(buffer))
            if new is None:
                out.append(old)
                continue
            one = self.lanes.extract_lane(new, k)
            if mask is not None:
                one = build.select(self.lanes.extract_lane(mask, k), one, old)
            build.store(one, address, align=self._align(buffer))
        if new is None:
            return self.from_stored(buffer, self.lanes.pack_lanes(out))
        return None

    def _access_uniform_index(self, buffer: Buffer, at: Any, value: Any, mask: Any) -> Any:
        """The same at one place in all lanes."""
        if value is None:
            return self._load_real(buffer, at)
        if mask is not None:
            dtype = part_dtype(buffer.dtype)
            value = self.lanes.select(dtype, mask, value, self._load_real(buffer, at))
        stored: Any = self.to_stored(buffer, value)
        address = self.typed_address(buffer, at, stored.type)
        self.builder.store(stored, address, align=self._align(buffer))
        return None


class RowVectors:
    """Reads and writes `width` numbers that lie one behind the other, where there is one lane.

    **Arguments:** `memory`; `arithmetic`, of which those numbers take the place of lanes.
    """

    def __init__(self, memory: KernelMemory, arithmetic: tuple[Lanes, ...], width: int):
        self.memory, self.arithmetic, self.width = memory, arithmetic, width

    @contextlib.contextmanager
    def along_row(self) -> Iterator[None]:
        """Arithmetic, `read` and `write` are of rows, and `Memory`'s own must not be used."""
        for lanes in self.arithmetic:
            lanes.width = self.width
        yield
        for lanes in self.arithmetic:
            lanes.width = 1

    @contextlib.contextmanager
    def as_lanes(self) -> Iterator[int]:
        """Everything is of several lanes, `Memory` too, and nothing of rows; gives their number."""
        width, self.width = self.width, 1
        for lanes in self.arithmetic:
            lanes.width = width
        yield width
        for lanes in self.arithmetic:
            lanes.width = 1
        self.width = width

    def read(self, view: ArrayView, index: Index, repeated: bool = False) -> Value:
        """The numbers from an entry on; that of the entry again and again if `repeated`."""
        address, lanes = self._address(view, index), self.memory.lanes
        stored = _stored_type(view.buffer.dtype)
        kind = stored if repeated else lanes.vector(stored)
        align = view.buffer.dtype.itemsize
        value = self.memory.builder.load(address, typ=kind, align=align)
        return self.memory.from_stored(view.buffer, lanes.splat(value) if repeated else value)

    def write(self, view: ArrayView, index: Index, value: Any) -> None:
        """Set the numbers from an entry on."""
        buffer = view.buffer
        stored = self.memory.to_stored(buffer, self.memory.lanes.value(value, buffer.dtype))
        address, align = self._address(view, index), buffer.dtype.itemsize
        self.memory.builder.store(stored, address, align=align)

    def _address(self, view, index):
        kind = _stored_type(view.buffer.dtype)
        return self.memory.typed_address(view.buffer, self.memory.flat_index(view, index), kind)


def _part_offsets(value, at, plus):
    """A number and its place; of a pair each part, which lie one behind the other."""
    if not isinstance(value, Pair):
        return [(value, at)]
    first = plus(at, at)
    return [(value.real, first), (value.imag, plus(first, 1))]


def _stored_type(dtype):
    return I8 if dtype == np.bool_ else element_type(dtype)
