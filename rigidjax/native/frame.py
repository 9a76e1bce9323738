"""XLA's call frame: where a function that XLA calls finds its arguments.

Offsets of the structures in `xla/ffi/api/c_api.h` (a stable C interface, shipped with jaxlib), all
of them for 64-bit machines.
"""

from typing import Any

from llvmlite import ir

from .builder import Builder
from .lanes import I8, I32, I64, POINTER

# XLA_FFI_CallFrame: size, extension, api, context, stage (int32, padded), then two structures of
# size, extension, count, types, buffers.
_EXTENSION, _API, _CONTEXT, _ARGUMENTS, _RESULTS = 8, 16, 24, 40 + 32, 80 + 32
# XLA_FFI_Api: size, extension, version (size, extension, major, minor), internal, functions.
_ERROR_DESTROY, _SCHEDULE, _NUM_THREADS = 48 + 8 * 2, 48 + 8 * 11, 48 + 8 * 12
# XLA_FFI_Metadata_Extension: extension (size, type, next), metadata.
_METADATA = 24
# XLA_FFI_Metadata: size, api version (size, extension, major, minor), traits.
_MAJOR, _MINOR = 8 + 16, 8 + 20
# XLA_FFI_Buffer: size, extension, dtype (int32, padded), data, rank, dims.
_DATA, _DIMS = 24, 40
# Version of the interface that the offsets belong to.
VERSION = (0, 1)


class Frame:
    """Emits what reads the call frame; answers XLA's question for the version."""

    def __init__(self, function: Any):
        (self._frame,) = function.args
        self.builder: Any = Builder(function.append_basic_block("entry"))
        build = self.builder
        extension = self._load(POINTER, self._frame, _EXTENSION)
        is_call = build.icmp_unsigned("==", build.ptrtoint(extension, I64), ir.Constant(I64, 0))
        question, call = (build.append_basic_block(name) for name in ("question", "call"))
        build.cbranch(is_call, call, question)
        build.position_at_end(question)
        metadata = self._load(POINTER, extension, _METADATA)
        for offset, number in zip((_MAJOR, _MINOR), VERSION, strict=True):
            build.store(ir.Constant(I32, number), self._offset(metadata, offset))
        build.ret(ir.Constant(POINTER, None))
        build.position_at_end(call)
        self.arguments = self._load(POINTER, self._frame, _ARGUMENTS)
        self.results = self._load(POINTER, self._frame, _RESULTS)

    def _offset(self, pointer, offset):
        return self.builder.gep(pointer, [ir.Constant(I64, offset)], source_etype=I8)

    def _load(self, kind, pointer, offset):
        return self.builder.load(self._offset(pointer, offset), typ=kind)

    def _called(self, function, *args):
        """An error, zero if there is none, of a function of XLA's; `args` after size and
        extension."""
        build = self.builder
        size = 8 * (2 + len(args))
        with build.goto_entry_block():
            place = build.ptrtoint(build.alloca(ir.ArrayType(I64, 2 + len(args))), I64)
        frame = build.inttoptr(place, POINTER)
        for k, value in enumerate((ir.Constant(I64, size), ir.Constant(I64, 0), *args)):
            build.store(value, self._offset(frame, 8 * k))
        api = self._load(POINTER, self._frame, _API)
        kind = ir.FunctionType(POINTER, [POINTER]).as_pointer()
        pointer = build.inttoptr(self._load(I64, api, function), kind)
        return build.ptrtoint(build.call(pointer, [frame]), I64)

    def _failed(self, error):
        """Whether there was an error, which is thrown away."""
        build = self.builder
        failed = build.icmp_unsigned("!=", error, ir.Constant(I64, 0))
        with build.if_then(failed):
            self._called(_ERROR_DESTROY, error)
        return failed

    def num_threads(self) -> Any:
        """Threads that XLA has for this call, 1 if it does not say."""
        build = self.builder
        with build.goto_entry_block():
            place = build.alloca(I64)
        build.store(ir.Constant(I64, 1), place)
        context = self._load(I64, self._frame, _CONTEXT)
        self._failed(self._called(_NUM_THREADS, context, build.ptrtoint(place, I64)))
        return build.load(place, typ=I64)

    def schedule(self, task: Any, data: Any) -> Any:
        """Ask for a thread that calls `task(data)`; gives whether that was refused."""
        build = self.builder
        context = self._load(I64, self._frame, _CONTEXT)
        task, data = (build.ptrtoint(x, I64) for x in (task, data))
        return self._failed(self._called(_SCHEDULE, context, task, data))

    def _buffer(self, buffers, k):
        return self._load(POINTER, buffers, 8 * k)

    def pointers(self, buffers: Any, count: int) -> Any:
        """An array of the data of the first buffers."""
        build = self.builder
        place = build.alloca(ir.ArrayType(POINTER, max(count, 1)))
        # llvmlite keeps what a pointer points to; this forgets it.
        out = build.inttoptr(build.ptrtoint(place, I64), POINTER)
        for k in range(count):
            data = self._load(POINTER, self._buffer(buffers, k), _DATA)
            build.store(data, self._offset(out, 8 * k))
        return out

    def first_extent(self, buffers: Any, k: int) -> Any:
        """The extent of a buffer's first axis."""
        return self._load(I64, self._load(POINTER, self._buffer(buffers, k), _DIMS), 0)
