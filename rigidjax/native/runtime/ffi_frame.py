"""XLA's FFI call frame, in which a function that XLA calls finds its arguments.

The constants are byte offsets in the structures of `xla/ffi/api/c_api.h`, a stable C interface that
is shipped with jaxlib, on 64-bit machines.
"""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ..values.builder import I32, I64, Builder, Value, int32, int64
from ..values.lanes import I8, POINTER

# XLA_FFI_CallFrame: size, extension, api, context, stage (int32, padded), then two structures of
# size, extension, count, types, buffers.
_EXTENSION, _API, _CONTEXT, _ARGUMENTS, _RESULTS = 8, 16, 24, 40 + 32, 80 + 32
# XLA_FFI_Api: size, extension, version (size, extension, major, minor), internal, functions.
_FUNCTIONS = 48
_ERROR_CREATE, _ERROR_DESTROY, _STREAM, _ALLOCATE, _FREE, _SCHEDULE, _NUM_THREADS = (
    _FUNCTIONS + 8 * k for k in (0, 2, 4, 9, 10, 11, 12)
)
# XLA_FFI_Error_Code_INTERNAL; the largest alignment of scratch memory that XLA accepts; the largest
# number of bytes of a message.
_INTERNAL, _ALIGNMENT, _MESSAGE = 13, 16, 256
# XLA_FFI_Metadata_Extension: extension (size, type, next), metadata.
_METADATA = 24
# XLA_FFI_Metadata: size, api version (size, extension, major, minor), traits.
_MAJOR, _MINOR = 8 + 16, 8 + 20
# XLA_FFI_Buffer: size, extension, dtype (int32, padded), data, rank, dims.
_DATA, _DIMS = 24, 40
# Number of bytes of a buffer, and of a call frame up to its attributes, both in 64-bit words.
_BUFFER_BYTES, _FRAME_BYTES = 48, 120
# Version of the interface to which the offsets belong.
VERSION = (0, 1)


class CallFrame:
    """Emitter of code that reads the call frame of a function.

    The code returns the version of the interface if XLA asks for it instead of calling.

    **Attributes:** `builder`, positioned at the code for a call; `arguments` and `results`,
    pointers to arrays of buffers.
    """

    def __init__(self, function: ir.Function):
        (self._frame,) = function.args
        self.builder = Builder(function.append_basic_block("entry"))
        build = self.builder
        extension = self._load(POINTER, self._frame, _EXTENSION)
        is_call = build.icmp_unsigned("==", build.ptrtoint(extension, I64), int64(0))
        query, call = (build.append_basic_block(name) for name in ("question", "call"))
        build.cbranch(is_call, call, query)
        build.position_at_end(query)
        metadata = self._load(POINTER, extension, _METADATA)
        for offset, number in zip((_MAJOR, _MINOR), VERSION, strict=True):
            build.store(int32(number), self._offset(metadata, offset))
        build.ret(ir.Constant(POINTER, None))
        build.position_at_end(call)
        self.arguments = self._load(POINTER, self._frame, _ARGUMENTS)
        self.results = self._load(POINTER, self._frame, _RESULTS)

    def _offset(self, pointer: Value, offset: int) -> Value:
        return self.builder.gep(pointer, [int64(offset)], source_etype=I8)

    def _load(self, kind: ir.Type, pointer: Value, offset: int) -> Value:
        return self.builder.load(self._offset(pointer, offset), typ=kind)

    def _call_api(self, function: int, *args: Value) -> tuple[Value, Value]:
        """Call a function of XLA's API; return its error and its last argument after the call.

        The error is an integer, zero for success.

        **Arguments:** `function`, its offset; `args`, its arguments after size and extension.
        """
        build = self.builder
        size = 8 * (2 + len(args))
        with build.goto_entry_block():
            address = build.ptrtoint(build.alloca(ir.ArrayType(I64, 2 + len(args))), I64)
        frame = build.inttoptr(address, POINTER)
        for k, value in enumerate((int64(size), int64(0), *args)):
            build.store(value, self._offset(frame, 8 * k))
        api = self._load(POINTER, self._frame, _API)
        kind = ir.FunctionType(POINTER, [POINTER]).as_pointer()
        pointer = build.inttoptr(self._load(I64, api, function), kind)
        error = build.ptrtoint(build.call(pointer, [frame]), I64)
        return error, self._load(I64, frame, 8 * (1 + len(args)))

    def _discard_error(self, error: Value) -> Value:
        """Return whether there was an error, and destroy it."""
        build = self.builder
        failed = build.icmp_unsigned("!=", error, int64(0))
        with build.if_then(failed):
            self._call_api(_ERROR_DESTROY, error)
        return failed

    def _call_or_return(self, function: int, *args: Value) -> Value:
        """Call a function of XLA's API; return its last argument, or its error from the handler."""
        build = self.builder
        error, answer = self._call_api(function, *args)
        with build.if_then(build.icmp_unsigned("!=", error, int64(0))):
            build.ret(build.inttoptr(error, POINTER))
        return answer

    def _context(self) -> Value:
        return self._load(I64, self._frame, _CONTEXT)

    def stream(self) -> Value:
        """Return the CUDA stream of this call."""
        answer = self._call_or_return(_STREAM, self._context(), int64(0))
        return self.builder.inttoptr(answer, POINTER)

    def allocate(self, size: Value) -> Value:
        """Allocate GPU memory and return its address as an integer."""
        alignment = int64(_ALIGNMENT)
        return self._call_or_return(_ALLOCATE, self._context(), size, alignment, int64(0))

    def free(self, address: Value, size: Value) -> None:
        """Free GPU memory; operations that are already in the stream may still use it."""
        self._call_or_return(_FREE, self._context(), size, address)

    def refuse(self, message: str, code: Value) -> None:
        """Return an error from the handler; the message has one `%d`, for the code."""
        build, module = self.builder, self.builder.module
        text = ir.Constant(ir.ArrayType(I8, len(message) + 1), bytearray(message.encode() + b"\0"))
        constant: Any = ir.GlobalVariable(module, text.type, "message")
        constant.initializer, constant.global_constant = text, True
        kind = ir.FunctionType(I32, [POINTER, I64, POINTER], var_arg=True)
        buffer = build.alloca(ir.ArrayType(I8, _MESSAGE))
        buffer, form = (build.inttoptr(build.ptrtoint(x, I64), POINTER) for x in (buffer, constant))
        size = int64(_MESSAGE)
        build.call(ir.Function(module, kind, "snprintf"), [buffer, size, form, code])
        error, _ = self._call_api(_ERROR_CREATE, build.ptrtoint(buffer, I64), int64(_INTERNAL))
        build.ret(build.inttoptr(error, POINTER))

    def num_threads(self) -> Value:
        """Return the number of threads of XLA's pool, 1 if it is unknown."""
        build = self.builder
        with build.goto_entry_block():
            result = build.alloca(I64)
        build.store(int64(1), result)
        error, _ = self._call_api(_NUM_THREADS, self._context(), build.ptrtoint(result, I64))
        self._discard_error(error)
        return build.load(result, typ=I64)

    def schedule(self, task: Value, data: Value) -> Value:
        """Ask XLA to call `task(data)` in another thread; return whether it refused."""
        build = self.builder
        task, data = (build.ptrtoint(x, I64) for x in (task, data))
        error, _ = self._call_api(_SCHEDULE, self._context(), task, data)
        return self._discard_error(error)

    def _buffer(self, buffers: Value, k: int) -> Value:
        return self._load(POINTER, buffers, 8 * k)

    def pointers(self, buffers: Value, count: int) -> Value:
        """Return an array of pointers to the data of the first `count` buffers."""
        build = self.builder
        out = self._allocate_words(8 * max(count, 1))
        for k in range(count):
            build.store(self.data(buffers, k), self._offset(out, 8 * k))
        return out

    def data(self, buffers: Value, k: int) -> Value:
        """Return the pointer to the data of a buffer."""
        return self._load(POINTER, self._buffer(buffers, k), _DATA)

    def with_data(self, arguments: Sequence[Value], results: Sequence[Value]) -> Value:
        """Return a copy of this call frame, without attributes, with other data pointers."""
        out = self._copy_words(self._frame, _FRAME_BYTES)
        for offset, buffers, pointers in (
            (_ARGUMENTS, self.arguments, arguments), (_RESULTS, self.results, results),
        ):  # fmt: skip
            new_buffers = self._allocate_words(8 * max(len(pointers), 1))
            for k, pointer in enumerate(pointers):
                buffer = self._copy_words(self._buffer(buffers, k), _BUFFER_BYTES)
                self.builder.store(pointer, self._offset(buffer, _DATA))
                self.builder.store(buffer, self._offset(new_buffers, 8 * k))
            self.builder.store(new_buffers, self._offset(out, offset))
        return out

    def _allocate_words(self, size: int) -> Value:
        memory = self.builder.alloca(ir.ArrayType(I64, size // 8))
        # llvmlite keeps the element type of a pointer; the round trip through an integer drops it.
        return self.builder.inttoptr(self.builder.ptrtoint(memory, I64), POINTER)

    def _copy_words(self, pointer: Value, size: int) -> Value:
        out = self._allocate_words(size)
        for offset in range(0, size, 8):
            self.builder.store(self._load(I64, pointer, offset), self._offset(out, offset))
        return out

    def first_extent(self, buffers: Value, k: int) -> Value:
        """Return the extent of the first axis of a buffer."""
        return self._load(I64, self._load(POINTER, self._buffer(buffers, k), _DIMS), 0)


def global_variable(module: ir.Module, name: str) -> Value:
    """Return a 64-bit variable of a module, which is set before its code runs."""
    if name not in module.globals:
        variable: Any = ir.GlobalVariable(module, I64, name)
        variable.initializer = int64(0)
    return module.globals[name]
