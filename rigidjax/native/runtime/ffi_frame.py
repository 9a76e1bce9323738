"""XLA's call frame: where a function that XLA calls finds its arguments.

Offsets of the structures in `xla/ffi/api/c_api.h` (a stable C interface, shipped with jaxlib), all
of them for 64-bit machines.
"""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ..lowering.builder import I32, I64, Builder, Value, int32, int64
from ..lowering.lanes import I8, POINTER

# XLA_FFI_CallFrame: size, extension, api, context, stage (int32, padded), then two structures of
# size, extension, count, types, buffers.
_EXTENSION, _API, _CONTEXT, _ARGUMENTS, _RESULTS = 8, 16, 24, 40 + 32, 80 + 32
# XLA_FFI_Api: size, extension, version (size, extension, major, minor), internal, functions.
_FUNCTIONS = 48
_ERROR_CREATE, _ERROR_DESTROY, _STREAM, _ALLOCATE, _FREE, _SCHEDULE, _NUM_THREADS = (
    _FUNCTIONS + 8 * k for k in (0, 2, 4, 9, 10, 11, 12)
)
# XLA_FFI_Error_Code_INTERNAL. Alignment of scratch memory (XLA refuses more, and gives more), and
# the most bytes of a message.
_INTERNAL, _ALIGNMENT, _MESSAGE = 13, 16, 256
# XLA_FFI_Metadata_Extension: extension (size, type, next), metadata.
_METADATA = 24
# XLA_FFI_Metadata: size, api version (size, extension, major, minor), traits.
_MAJOR, _MINOR = 8 + 16, 8 + 20
# XLA_FFI_Buffer: size, extension, dtype (int32, padded), data, rank, dims.
_DATA, _DIMS = 24, 40
# Bytes of a buffer, and of a call frame up to its attributes, all of them 64-bit words.
_BUFFER_BYTES, _FRAME_BYTES = 48, 120
# Version of the interface that the offsets belong to.
VERSION = (0, 1)


class CallFrame:
    """Emits what reads the call frame; answers XLA's question for the version."""

    def __init__(self, function: ir.Function):
        (self._frame,) = function.args
        self.builder = Builder(function.append_basic_block("entry"))
        build = self.builder
        extension = self._load(POINTER, self._frame, _EXTENSION)
        is_call = build.icmp_unsigned("==", build.ptrtoint(extension, I64), int64(0))
        question, call = (build.append_basic_block(name) for name in ("question", "call"))
        build.cbranch(is_call, call, question)
        build.position_at_end(question)
        metadata = self._load(POINTER, extension, _METADATA)
        for offset, number in zip((_MAJOR, _MINOR), VERSION, strict=True):
            build.store(int32(number), self._offset(metadata, offset))
        build.ret(ir.Constant(POINTER, None))
        build.position_at_end(call)
        self.arguments = self._load(POINTER, self._frame, _ARGUMENTS)
        self.results = self._load(POINTER, self._frame, _RESULTS)

    def _offset(self, pointer, offset):
        return self.builder.gep(pointer, [int64(offset)], source_etype=I8)

    def _load(self, kind, pointer, offset):
        return self.builder.load(self._offset(pointer, offset), typ=kind)

    def _called(self, function, *args):
        """An error, zero if there is none, of a function of XLA's, and its last argument then.

        `args` are those after size and extension.
        """
        build = self.builder
        size = 8 * (2 + len(args))
        with build.goto_entry_block():
            place = build.ptrtoint(build.alloca(ir.ArrayType(I64, 2 + len(args))), I64)
        frame = build.inttoptr(place, POINTER)
        for k, value in enumerate((int64(size), int64(0), *args)):
            build.store(value, self._offset(frame, 8 * k))
        api = self._load(POINTER, self._frame, _API)
        kind = ir.FunctionType(POINTER, [POINTER]).as_pointer()
        pointer = build.inttoptr(self._load(I64, api, function), kind)
        error = build.ptrtoint(build.call(pointer, [frame]), I64)
        return error, self._load(I64, frame, 8 * (1 + len(args)))

    def _failed(self, error):
        """Whether there was an error, which is thrown away."""
        build = self.builder
        failed = build.icmp_unsigned("!=", error, int64(0))
        with build.if_then(failed):
            self._called(_ERROR_DESTROY, error)
        return failed

    def _answer(self, function, *args):
        """What a function of XLA's puts into its last argument; its error is that of this call."""
        build = self.builder
        error, answer = self._called(function, *args)
        with build.if_then(build.icmp_unsigned("!=", error, int64(0))):
            build.ret(build.inttoptr(error, POINTER))
        return answer

    def _context(self):
        return self._load(I64, self._frame, _CONTEXT)

    def stream(self) -> Value:
        """The GPU's queue in which this call has its turn."""
        answer = self._answer(_STREAM, self._context(), int64(0))
        return self.builder.inttoptr(answer, POINTER)

    def allocate(self, size: Value) -> Value:
        """The address of memory of the GPU, as a number."""
        alignment = int64(_ALIGNMENT)
        return self._answer(_ALLOCATE, self._context(), size, alignment, int64(0))

    def free(self, address: Value, size: Value) -> None:
        """Give memory back; what is in the queue may still use it."""
        self._answer(_FREE, self._context(), size, address)

    def refuse(self, message: str, code: Value) -> None:
        """Return an error; the message has one `%d`, for the code."""
        build, module = self.builder, self.builder.module
        text = ir.Constant(ir.ArrayType(I8, len(message) + 1), bytearray(message.encode() + b"\0"))
        constant: Any = ir.GlobalVariable(module, text.type, "message")
        constant.initializer, constant.global_constant = text, True
        kind = ir.FunctionType(I32, [POINTER, I64, POINTER], var_arg=True)
        place = build.alloca(ir.ArrayType(I8, _MESSAGE))
        place, given = (build.inttoptr(build.ptrtoint(x, I64), POINTER) for x in (place, constant))
        full = int64(_MESSAGE)
        build.call(ir.Function(module, kind, "snprintf"), [place, full, given, code])
        error, _ = self._called(_ERROR_CREATE, build.ptrtoint(place, I64), int64(_INTERNAL))
        build.ret(build.inttoptr(error, POINTER))

    def num_threads(self) -> Value:
        """Threads that XLA has for this call, 1 if it does not say."""
        build = self.builder
        with build.goto_entry_block():
            place = build.alloca(I64)
        build.store(int64(1), place)
        error, _ = self._called(_NUM_THREADS, self._context(), build.ptrtoint(place, I64))
        self._failed(error)
        return build.load(place, typ=I64)

    def schedule(self, task: Value, data: Value) -> Value:
        """Ask for a thread that calls `task(data)`; gives whether that was refused."""
        build = self.builder
        task, data = (build.ptrtoint(x, I64) for x in (task, data))
        error, _ = self._called(_SCHEDULE, self._context(), task, data)
        return self._failed(error)

    def _buffer(self, buffers, k):
        return self._load(POINTER, buffers, 8 * k)

    def pointers(self, buffers: Value, count: int) -> Value:
        """An array of the data of the first buffers."""
        build = self.builder
        out = self._memory(8 * max(count, 1))
        for k in range(count):
            build.store(self.data(buffers, k), self._offset(out, 8 * k))
        return out

    def data(self, buffers: Value, k: int) -> Value:
        """Where a buffer's data are."""
        return self._load(POINTER, self._buffer(buffers, k), _DATA)

    def with_data(self, arguments: Sequence[Value], results: Sequence[Value]) -> Value:
        """A call frame like this one, without attributes, whose data are elsewhere."""
        out = self._copied(self._frame, _FRAME_BYTES)
        for offset, buffers, places in (
            (_ARGUMENTS, self.arguments, arguments), (_RESULTS, self.results, results),
        ):  # fmt: skip
            own = self._memory(8 * max(len(places), 1))
            for k, place in enumerate(places):
                buffer = self._copied(self._buffer(buffers, k), _BUFFER_BYTES)
                self.builder.store(place, self._offset(buffer, _DATA))
                self.builder.store(buffer, self._offset(own, 8 * k))
            self.builder.store(own, self._offset(out, offset))
        return out

    def _memory(self, size):
        place = self.builder.alloca(ir.ArrayType(I64, size // 8))
        # llvmlite keeps what a pointer points to; this forgets it.
        return self.builder.inttoptr(self.builder.ptrtoint(place, I64), POINTER)

    def _copied(self, pointer, size):
        out = self._memory(size)
        for at in range(0, size, 8):
            self.builder.store(self._load(I64, pointer, at), self._offset(out, at))
        return out

    def first_extent(self, buffers: Value, k: int) -> Value:
        """The extent of a buffer's first axis."""
        return self._load(I64, self._load(POINTER, self._buffer(buffers, k), _DIMS), 0)


def global_variable(module: ir.Module, name: str) -> Value:
    """A 64-bit variable of a module, to be set before its code runs."""
    if name not in module.globals:
        made: Any = ir.GlobalVariable(module, I64, name)
        made.initializer = int64(0)
    return module.globals[name]
