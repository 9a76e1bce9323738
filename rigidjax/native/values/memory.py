"""Arrays in memory: too large for registers, or dynamically indexed.

An array in memory is a strided view of a buffer, as in NumPy: slices, transposes, broadcasts and
most reshapes copy nothing. A buffer that the kernel allocates holds the W lanes of each element
side by side; a shared buffer (a constant, or an argument without a batch axis) holds one value per
element for all lanes. On a GPU every thread has one lane, and a buffer holds the lanes of a warp
side by side, so that accesses of the warp are coalesced.
"""

import bisect
import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from llvmlite import ir

from .builder import Value, int64
from .complex import DType, LaneValue, Pair, is_complex, make_pair, part_dtype
from .lanes import I8, Lanes, element_type, is_constant

# Index of an element: ints (compile-time constants) or LLVM integers that are uniform.
Index = tuple[int | Value, ...]


@dataclasses.dataclass(eq=False)
class Buffer:
    """A contiguous range of memory.

    **Arguments:** `pointer`; `dtype`; `size`, number of elements; `shared`, whether all lanes have
    one common value per element; `is_owned`, whether the kernel may write it; `use_count`, number
    of variables bound to it; `pin_count`, number of reasons to keep it without a bound variable,
    such as a loop carry; `values`, (size,), if it is a compile-time constant; `byte_range`, start
    and end in the kernel's workspace; `pitch`, distance of elements in units of all lanes; `lanes`,
    number of lanes with separate values; `aliases`, buffers one of which this one is, by the branch
    that was taken.
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
    aliases: tuple["Buffer", ...] = ()

    def may_alias(self, other: "Buffer") -> bool:
        """Return whether writing one of two buffers may change the other."""
        return any(a is b for a in (self, *self.aliases) for b in (other, *other.aliases))


@dataclasses.dataclass(frozen=True, eq=False)
class ArrayView:
    """An array whose element `index` is element `offset + index . strides` of a buffer.

    **Arguments:** `buffer`; `shape`; `strides`, in elements; `offset`, uniform.
    """

    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int | Value = 0

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def covers_buffer(self) -> bool:
        """Whether the array contains all elements of the buffer in order."""
        return (
            is_constant(self.offset)
            and self.offset == 0
            and self.size == self.buffer.size
            and self.strides == row_major_strides(self.shape)
        )

    @property
    def is_constant(self) -> bool:
        """Whether the array is a compile-time constant."""
        return self.buffer.values is not None and is_constant(self.offset)

    def constant_values(self) -> np.ndarray:
        """Return a constant array as a NumPy array of its dtype."""
        indices = np.indices(self.shape).reshape(self.ndim, self.size)
        indices = np.array(self.strides, int) @ indices + self.offset  # pyright: ignore[reportOperatorIssue]
        return self.buffer.values[indices].reshape(self.shape)  # pyright: ignore[reportOptionalSubscript]

    def constant_objects(self) -> np.ndarray:
        """Return a constant array as an object array of NumPy scalars."""
        return to_objects(self.constant_values())

    def reshape_view(self, shape: tuple[int, ...]) -> "ArrayView | None":
        """Return a view with another shape; `None` if that requires a copy."""
        if self.size == 0:
            return ArrayView(self.buffer, shape, row_major_strides(shape), self.offset)
        # Merge neighbouring axes that are contiguous in memory.
        axes_in_memory: list[tuple[int, int]] = []
        for n, stride in zip(self.shape, self.strides, strict=True):
            if n == 1:
                continue
            if axes_in_memory and axes_in_memory[-1][1] == n * stride:
                n *= axes_in_memory.pop()[0]
            axes_in_memory.append((n, stride))
        strides = []
        for n in reversed(shape):
            if n == 1:
                strides.append(0)
                continue
            if not axes_in_memory or axes_in_memory[-1][0] % n:
                return None
            size, stride = axes_in_memory.pop()
            strides.append(stride)
            if size != n:
                axes_in_memory.append((size // n, stride * n))
        return ArrayView(self.buffer, tuple(shape), tuple(reversed(strides)), self.offset)


def to_objects(constants: np.ndarray) -> np.ndarray:
    """Convert an array into an object array of NumPy scalars of its dtype."""
    out = np.empty(constants.size, object)
    out[:] = list(constants.ravel())
    return out.reshape(constants.shape)


# An array of a jaxpr: an object array of elements in registers, or a view of memory.
EmittedArray = np.ndarray | ArrayView


def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a contiguous array, with 0 along axes of length 1."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(0 if n == 1 else step)
        step *= n
    return tuple(reversed(strides))


class KernelMemory:
    """Allocates, reads and writes buffers of a kernel.

    An allocation reuses the released range that fits best. The workspace then stays small, and in
    the processor's first-level cache.

    **Arguments:** `lanes`; `workspace`, a pointer to the memory; `warp`, number of threads that
    share the workspace and index of the thread, on a GPU; `has_divergence`, as for `Emitter`.

    **Attributes:** `bytes`, size of the workspace; `table_bytes`, the part of it that is ignored
    in the choice of the number of lanes.
    """

    def __init__(
        self, lanes: Lanes, workspace: Value, warp: tuple[int, Value] | None = None,
        has_divergence: bool = False,
    ):  # fmt: skip
        self.lanes, self.workspace = lanes, workspace
        self.pitch, self._thread = (1, None) if warp is None else warp
        # Ignored are tables of which an iteration uses a few rows only, and uniform values.
        self.bytes, self.table_bytes, self.has_divergence = 0, 0, has_divergence
        # Free ranges in ascending order; adjacent ones are merged.
        self._free: list[tuple[int, int]] = []
        self._allocated: list[Buffer] = []

    @property
    def builder(self) -> Any:
        return self.lanes.builder

    def allocate(self, shape: tuple[int, ...], dtype: DType, fresh: bool = False) -> ArrayView:
        """Allocate an array; with `fresh`, in memory that was never allocated before."""
        dtype, size = np.dtype(dtype), math.prod(shape)
        length = -(-size * self.lanes.width * self.pitch * dtype.itemsize // 64) * 64
        start, before = self.bytes if fresh else self._reserve(length), self.bytes
        self.bytes = max(self.bytes, start + length)
        self.table_bytes += self.bytes - before if self._allocates_uniform_values else 0
        # The entry block dominates all other blocks, so that they can use the address.
        with self.builder.goto_entry_block():
            offset: Value = int64(start)
            if self._thread is not None:
                thread_offset = self.builder.mul(self._thread, int64(part_dtype(dtype).itemsize))
                offset = self.builder.add(thread_offset, offset)
            pointer = self.builder.gep(self.workspace, [offset], source_etype=I8)
        buffer = Buffer(
            pointer, dtype, size, byte_range=(start, start + length), pitch=self.pitch,
            lanes=self.lanes.width,
        )  # fmt: skip
        self._allocated.append(buffer)
        return ArrayView(buffer, tuple(shape), row_major_strides(shape))

    @property
    def _allocates_uniform_values(self) -> bool:
        return self.has_divergence and self.lanes.width == 1

    def count_as_table(self, before: int) -> None:
        """Count what was allocated since the workspace had `before` bytes as a table."""
        self.table_bytes += 0 if self._allocates_uniform_values else self.bytes - before

    @contextlib.contextmanager
    def release_temporaries(self, results: list) -> Iterator[None]:
        """Release memory allocated inside the context, unless it is bound or part of `results`."""
        outer, self._allocated = self._allocated, []
        yield
        result_buffers = {id(x.buffer) for x in results if isinstance(x, ArrayView)}
        for buffer in self._allocated:
            if id(buffer) not in result_buffers:
                self.release(buffer)
            if buffer.is_owned:
                outer.append(buffer)
        self._allocated = outer

    def _reserve(self, length: int) -> int:
        """Return the start of the shortest free range that is long enough, or of a new one."""
        candidates = [(end - start, k) for k, (start, end) in enumerate(self._free)]
        candidates = [candidate for candidate in candidates if candidate[0] >= length]
        if candidates:
            k = min(candidates)[1]
            start, end = self._free[k]
            self._free[k : k + 1] = [(start + length, end)] if start + length < end else []
            return start
        if self._free and self._free[-1][1] == self.bytes:
            return self._free.pop()[0]
        return self.bytes

    def release(self, buffer: Buffer) -> None:
        """Free the memory of a buffer that is neither used nor pinned."""
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

    # Uniform indices.

    def flat_index(self, view: ArrayView, index: Index) -> Any:
        """Return the index of an element in the buffer, an int or an LLVM integer."""
        constant, terms = (view.offset, []) if is_constant(view.offset) else (0, [view.offset])
        for i, stride in zip(index, view.strides, strict=True):
            if is_constant(i):
                constant += int(i) * stride
            elif stride:
                terms.append(i if stride == 1 else self.builder.mul(i, int64(stride)))
        if not terms:
            return int(constant)
        flat_index = functools.reduce(self.builder.add, terms)
        return self._add_indices(flat_index, constant) if constant else flat_index

    def _add_indices(self, a: Any, b: Any) -> Any:
        if is_constant(a) and is_constant(b):
            return int(a) + int(b)
        a, b = (int64(int(x)) if is_constant(x) else x for x in (a, b))
        return self.builder.add(a, b)

    def read(self, view: ArrayView, index: Index) -> Any:
        """Load an element with a uniform index."""
        return self._load(view.buffer, self.flat_index(view, index))

    def write(
        self, view: ArrayView, index: Index, value: Any, mask: LaneValue | None = None
    ) -> None:
        """Store an element with a uniform index, in the lanes of `mask`."""
        buffer, flat_index = view.buffer, self.flat_index(view, index)
        value = self.lanes.value(value, buffer.dtype)
        if mask is not None:
            value = self.lanes.select(buffer.dtype, mask, value, self._load(buffer, flat_index))
        for x, element_index in _part_elements(value, flat_index, self._add_indices):
            stored: Any = self.to_stored(buffer, x)
            # A vector would overwrite the elements behind it if the memory had one lane.
            assert self.lanes.width > 1 or not isinstance(stored.type, ir.VectorType)
            address = self.typed_address(buffer, element_index, stored.type)
            self.builder.store(stored, address, align=self._alignment(buffer))

    def read_scalar(self, view: ArrayView, index: Index) -> Value:
        """Load an element of a shared buffer as a scalar."""
        buffer = view.buffer
        type_ = _stored_type(buffer.dtype)
        address = self.typed_address(buffer, self.flat_index(view, index), type_)
        return self.builder.load(address, typ=type_, align=self._alignment(buffer))

    def element_address(self, view: ArrayView, index: Index) -> Value:
        """Return a pointer to an element."""
        flat_index, buffer = self.flat_index(view, index), view.buffer
        type_ = _stored_type(buffer.dtype)
        type_ = type_ if buffer.shared else self.lanes.vector(type_)
        return self.typed_address(
            buffer,
            self._add_indices(flat_index, flat_index) if is_complex(buffer.dtype) else flat_index,
            type_,
        )

    def _load(self, buffer: Buffer, flat_index: Any) -> Any:
        if is_complex(buffer.dtype):
            element_indices = (
                element_index
                for _, element_index in _part_elements(
                    Pair(None, None), flat_index, self._add_indices
                )
            )
            return make_pair(
                buffer.dtype,
                *(self._load_real(buffer, element_index) for element_index in element_indices),
            )
        return self._load_real(buffer, flat_index)

    def _load_real(self, buffer: Buffer, flat_index: Any) -> Any:
        type_ = _stored_type(buffer.dtype)
        type_ = type_ if buffer.shared else self.lanes.vector(type_)
        address = self.typed_address(buffer, flat_index, type_)
        value = self.builder.load(address, typ=type_, align=self._alignment(buffer))
        value = self.lanes.splat(value) if buffer.shared and self.lanes.width > 1 else value
        return self.from_stored(buffer, value)

    def _alignment(self, buffer: Buffer) -> int:
        return part_dtype(buffer.dtype).itemsize

    def typed_address(self, buffer: Buffer, flat_index: int | Value, type_: ir.Type) -> Value:
        """Return a pointer to the element of this index, for elements of an LLVM type."""
        element_index = (
            flat_index
            if isinstance(flat_index, ir.Value)
            else int64(int(flat_index) * buffer.pitch)
        )
        if isinstance(flat_index, ir.Value) and buffer.pitch > 1:
            element_index = self.builder.mul(flat_index, int64(buffer.pitch))
        return self.builder.gep(buffer.pointer, [element_index], source_etype=type_)

    def to_stored(self, buffer: Buffer, value: Value) -> Value:
        """Convert an element into its type in memory: booleans are bytes."""
        if buffer.dtype != np.bool_:
            return value
        return self.builder.zext(value, self.lanes.vector(I8))

    def from_stored(self, buffer: Buffer, value: Value) -> Value:
        """Convert an element from its type in memory."""
        if buffer.dtype != np.bool_:
            return value
        return self.builder.trunc(value, self.lanes.vector(element_type(np.bool_)))

    # Divergent indices.

    def gather(self, view: ArrayView, flat_indices: LaneValue) -> Any:
        """Load the elements with the indices `flat_indices` in the buffer, int64, one per lane."""
        buffer = view.buffer
        if is_complex(buffer.dtype):
            part_indices = _part_elements(Pair(None, None), flat_indices, self._add_lane_indices)
            element_indices = [part_index for _, part_index in part_indices]
            return make_pair(
                buffer.dtype, *(self.access_lanes(buffer, p, None, None) for p in element_indices)
            )
        return self.access_lanes(buffer, flat_indices, None, None)

    def scatter(
        self, view: ArrayView, flat_indices: LaneValue, value: Any, mask: LaneValue | None
    ) -> None:
        """Store the elements with the indices `flat_indices`, in the lanes of `mask`."""
        value = self.lanes.value(value, view.buffer.dtype)
        for x, part_index in _part_elements(value, flat_indices, self._add_lane_indices):
            self.access_lanes(view.buffer, part_index, x, mask)

    def _add_lane_indices(self, a: LaneValue, b: LaneValue) -> Any:
        return self.lanes.add(np.int64, a, np.int64(b) if is_constant(b) else b)

    def access_lanes(
        self, buffer: Buffer, flat_indices: LaneValue, value: Any, mask: LaneValue | None
    ) -> Any:
        """Load real elements lane by lane, or store `value` if it is not `None`."""
        build, width = self.builder, self.lanes.width
        uniform_index = self.lanes.uniform_scalar(flat_indices)
        if (
            uniform_index is not None
            and not is_constant(uniform_index)
            and not (buffer.shared and value is not None)
        ):
            return self._access_uniform_index(buffer, uniform_index, value, mask)
        stored = _stored_type(buffer.dtype)
        elements = []
        new_values = None if value is None else self.to_stored(buffer, value)
        for k in range(width):
            flat_index = self.lanes.extract_lane(flat_indices, k)
            if not buffer.shared and width > 1:
                flat_index = build.add(build.mul(flat_index, int64(width)), int64(k))
            address = self.typed_address(buffer, flat_index, stored)
            old_value = build.load(address, typ=stored, align=self._alignment(buffer))
            if new_values is None:
                elements.append(old_value)
                continue
            element = self.lanes.extract_lane(new_values, k)
            if mask is not None:
                element = build.select(self.lanes.extract_lane(mask, k), element, old_value)
            build.store(element, address, align=self._alignment(buffer))
        if new_values is None:
            return self.from_stored(buffer, self.lanes.pack_lanes(elements))
        return None

    def _access_uniform_index(self, buffer: Buffer, flat_index: Any, value: Any, mask: Any) -> Any:
        """Load or store the elements with the same index in all lanes."""
        if value is None:
            return self._load_real(buffer, flat_index)
        if mask is not None:
            dtype = part_dtype(buffer.dtype)
            value = self.lanes.select(dtype, mask, value, self._load_real(buffer, flat_index))
        stored: Any = self.to_stored(buffer, value)
        address = self.typed_address(buffer, flat_index, stored.type)
        self.builder.store(stored, address, align=self._alignment(buffer))
        return None


class RowVectors:
    """Vectors of `width` neighbouring elements of an array, in kernels with one lane.

    **Arguments:** `memory`; `arithmetic`, whose width `along_row` and `as_lanes` change.
    """

    def __init__(self, memory: KernelMemory, arithmetic: tuple[Lanes, ...], width: int):
        self.memory, self.arithmetic, self.width = memory, arithmetic, width

    @contextlib.contextmanager
    def along_row(self) -> Iterator[None]:
        """Emit vectors inside the context; only `read` and `write` of this class access memory."""
        for lanes in self.arithmetic:
            lanes.width = self.width
        yield
        for lanes in self.arithmetic:
            lanes.width = 1

    @contextlib.contextmanager
    def as_lanes(self) -> Iterator[int]:
        """Emit `width` lanes, also in memory, and no row vectors, in the context; yield `width`."""
        width, self.width = self.width, 1
        for lanes in self.arithmetic:
            lanes.width = width
        yield width
        for lanes in self.arithmetic:
            lanes.width = 1
        self.width = width

    def read(self, view: ArrayView, index: Index, broadcast: bool = False) -> Value:
        """Load the elements from an index on; with `broadcast`, splat the element of the index."""
        address, lanes = self._address(view, index), self.memory.lanes
        element = _stored_type(view.buffer.dtype)
        type_ = element if broadcast else lanes.vector(element)
        align = view.buffer.dtype.itemsize
        value = self.memory.builder.load(address, typ=type_, align=align)
        return self.memory.from_stored(view.buffer, lanes.splat(value) if broadcast else value)

    def write(self, view: ArrayView, index: Index, value: Any) -> None:
        """Store a vector of elements from an index on."""
        buffer = view.buffer
        element = self.memory.to_stored(buffer, self.memory.lanes.value(value, buffer.dtype))
        address, align = self._address(view, index), buffer.dtype.itemsize
        self.memory.builder.store(element, address, align=align)

    def _address(self, view: ArrayView, index: Index) -> Value:
        type_ = _stored_type(view.buffer.dtype)
        return self.memory.typed_address(view.buffer, self.memory.flat_index(view, index), type_)


def _part_elements(
    value: Any, flat_index: Any, add: Callable[[Any, Any], Any]
) -> list[tuple[Any, Any]]:
    """Return the parts of a pair with their indices, or a real value with its index."""
    if not isinstance(value, Pair):
        return [(value, flat_index)]
    first = add(flat_index, flat_index)
    return [(value.real, first), (value.imag, add(first, 1))]


def _stored_type(dtype: DType) -> ir.Type:
    return I8 if dtype == np.bool_ else element_type(dtype)
