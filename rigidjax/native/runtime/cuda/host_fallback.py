"""CPU kernels in computations for a GPU, for single runs and small batches.

One GPU thread is about a hundred times slower than a CPU core, so that a GPU pays off for thousands
of batch elements. The arguments of smaller batches are copied to the host, the kernel runs there,
and the results are copied back.
"""

from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from ...values.builder import I32, I64, Builder, Value, int32, int64
from ...values.lanes import I8, POINTER
from ..ffi_frame import CallFrame, global_variable
from ..kernel import Signature

# Functions of the CUDA driver with the types of their arguments.
FUNCTIONS = {
    "cuStreamGetCtx": (POINTER, POINTER),
    "cuCtxPushCurrent_v2": (I64,),
    "cuCtxPopCurrent_v2": (POINTER,),
    "cuMemcpyDtoHAsync_v2": (POINTER, POINTER, I64, POINTER),
    "cuMemcpyHtoDAsync_v2": (POINTER, POINTER, I64, POINTER),
    "cuStreamSynchronize": (POINTER,),
}
# Alignment of arrays on the host, in bytes.
_ALIGNMENT = 64


def handler_text(closed: ClosedJaxpr, signature: Signature) -> str:
    """Return the LLVM module of the handler that XLA calls.

    Its global variables must be set before the first call: `computed`, the address of the handler
    of the CPU kernel, and the addresses of `FUNCTIONS`.
    """
    module = ir.Module("rigidjax")
    frame = CallFrame(ir.Function(module, ir.FunctionType(POINTER, [POINTER]), "handler"))
    build = frame.builder
    driver = _DriverCalls(module, frame)
    count = frame.first_extent(frame.results, 0) if signature.is_batch else int64(1)
    with build.if_then(build.icmp_signed("<", count, int64(1))):
        build.ret(ir.Constant(POINTER, None))
    sides = (
        (closed.in_avals, [not b for b in signature.batched]),
        (closed.out_avals, [False] * len(closed.out_avals)),
    )
    sizes = [
        [
            _num_bytes(build, aval, int64(1) if shared else count)
            for aval, shared in zip(avals, marks, strict=True)
        ]
        for avals, marks in sides
    ]
    total: Value = int64(_ALIGNMENT)
    offsets = []
    for side in sizes:
        offsets.append([])
        for size in side:
            offsets[-1].append(total)
            rounded = build.add(size, int64(_ALIGNMENT - 1))
            total = build.add(total, build.and_(rounded, int64(-_ALIGNMENT)))
    malloc = ir.Function(module, ir.FunctionType(POINTER, [I64]), "malloc")
    free = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "free")
    memory = build.call(malloc, [total])
    host = [[build.gep(memory, [at], source_etype=I8) for at in side] for side in offsets]
    stream = frame.stream()
    driver.enter(stream)
    for k, (size, target) in enumerate(zip(sizes[0], host[0], strict=True)):
        source = frame.data(frame.arguments, k)
        driver.call("cuMemcpyDtoHAsync_v2", target, source, size, stream)
    driver.call("cuStreamSynchronize", stream)
    kind = ir.FunctionType(POINTER, [POINTER]).as_pointer()
    computed = build.inttoptr(build.load(global_variable(module, "computed"), typ=I64), kind)
    error = build.alloca(I64)
    build.store(int64(0), error)
    with build.if_then(build.icmp_signed("==", driver.error(), int32(0))):
        build.store(build.ptrtoint(build.call(computed, [frame.with_data(*host)]), I64), error)
    for k, (size, source) in enumerate(zip(sizes[1], host[1], strict=True)):
        target = frame.data(frame.results, k)
        driver.call("cuMemcpyHtoDAsync_v2", target, source, size, stream)
    driver.call("cuStreamSynchronize", stream)
    driver.leave()
    build.call(free, [memory])
    with build.if_then(build.icmp_signed("!=", driver.error(), int32(0))):
        message = "CUDA could not copy for a native kernel of rigidjax: its error %d"
        frame.refuse(message, driver.error())
    build.ret(build.inttoptr(build.load(error, typ=I64), POINTER))
    return str(module)


def _num_bytes(build: Builder, aval: Any, count: Value) -> Value:
    return build.mul(count, int64(aval.size * np.dtype(aval.dtype).itemsize))


class _DriverCalls:
    """Emitter of calls of the CUDA driver, which records the first error."""

    def __init__(self, module: ir.Module, frame: CallFrame):
        self.module, self.build = module, frame.builder
        self._context = self._allocate(I64)
        self._first_error = self._allocate(I32)
        self.build.store(int32(0), self._first_error)

    def _allocate(self, kind: ir.Type) -> Value:
        memory = self.build.alloca(kind)
        return self.build.inttoptr(self.build.ptrtoint(memory, I64), POINTER)

    def call(self, name: str, *args: Value) -> None:
        build = self.build
        kind = ir.FunctionType(I32, FUNCTIONS[name]).as_pointer()
        function = build.inttoptr(build.load(global_variable(self.module, name), typ=I64), kind)
        code, before = build.call(function, args), self.error()
        is_first = build.icmp_signed("==", before, int32(0))
        build.store(build.select(is_first, code, before), self._first_error)

    def error(self) -> Value:
        """Return the first error, zero if there is none."""
        return self.build.load(self._first_error, typ=I32)

    def enter(self, stream: Value) -> None:
        """Make the stream's CUDA context current in this thread until `leave`."""
        self.call("cuStreamGetCtx", stream, self._context)
        self.call("cuCtxPushCurrent_v2", self.build.load(self._context, typ=I64))
        self._entered = self.build.icmp_signed("==", self.error(), int32(0))

    def leave(self) -> None:
        # If `enter` failed, popping would remove XLA's context.
        with self.build.if_then(self._entered):
            self.call("cuCtxPopCurrent_v2", self._context)
