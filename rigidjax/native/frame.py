"""XLA's call frame: where a function that XLA calls finds its arguments.

Offsets of the structures in `xla/ffi/api/c_api.h` (a stable C interface, shipped with jaxlib), all
of them for 64-bit machines.
"""

from typing import Any

from llvmlite import ir

from .lanes import I8, I32, I64, POINTER

# XLA_FFI_CallFrame: size, extension, api, context, stage (int32, padded), then two structures of
# size, extension, count, types, buffers.
_EXTENSION, _ARGUMENTS, _RESULTS = 8, 40 + 32, 80 + 32
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
        self.builder: Any = ir.IRBuilder(function.append_basic_block("entry"))
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
