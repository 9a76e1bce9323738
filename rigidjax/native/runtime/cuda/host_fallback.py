"""Kernels of the processor in programs for a GPU: of runs alone, and of a few members.

A thread of a GPU is a hundred times slower than the processor, which pays off if there are
thousands. What has fewer members is copied to the processor, computed there, and copied back.
"""

import numpy as np
from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from ...lowering.builder import I32, I64, Value, int32, int64
from ...lowering.lanes import I8, POINTER
from ..ffi_frame import CallFrame, global_variable
from ..kernel import Signature

# Functions of CUDA's driver, and the types of their arguments.
FUNCTIONS = {
    "cuStreamGetCtx": (POINTER, POINTER),
    "cuCtxPushCurrent_v2": (I64,),
    "cuCtxPopCurrent_v2": (POINTER,),
    "cuMemcpyDtoHAsync_v2": (POINTER, POINTER, I64, POINTER),
    "cuMemcpyHtoDAsync_v2": (POINTER, POINTER, I64, POINTER),
    "cuStreamSynchronize": (POINTER,),
}
# Where each array begins on the processor.
_ALIGNMENT = 64


def handler_text(closed: ClosedJaxpr, signature: Signature) -> str:
    """The module of the function that XLA calls.

    Its variables are to be set before: `computed`, the address of the handler of the kernel of the
    processor, and those of `FUNCTIONS`.
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
    places = []
    for side in sizes:
        places.append([])
        for size in side:
            places[-1].append(total)
            rounded = build.add(size, int64(_ALIGNMENT - 1))
            total = build.add(total, build.and_(rounded, int64(-_ALIGNMENT)))
    malloc = ir.Function(module, ir.FunctionType(POINTER, [I64]), "malloc")
    free = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "free")
    memory = build.call(malloc, [total])
    here = [[build.gep(memory, [at], source_etype=I8) for at in side] for side in places]
    stream = frame.stream()
    driver.enter(stream)
    for k, (size, target) in enumerate(zip(sizes[0], here[0], strict=True)):
        source = frame.data(frame.arguments, k)
        driver.call("cuMemcpyDtoHAsync_v2", target, source, size, stream)
    driver.call("cuStreamSynchronize", stream)
    kind = ir.FunctionType(POINTER, [POINTER]).as_pointer()
    computed = build.inttoptr(build.load(global_variable(module, "computed"), typ=I64), kind)
    error = build.alloca(I64)
    build.store(int64(0), error)
    with build.if_then(build.icmp_signed("==", driver.failed(), int32(0))):
        build.store(build.ptrtoint(build.call(computed, [frame.with_data(*here)]), I64), error)
    for k, (size, source) in enumerate(zip(sizes[1], here[1], strict=True)):
        target = frame.data(frame.results, k)
        driver.call("cuMemcpyHtoDAsync_v2", target, source, size, stream)
    driver.call("cuStreamSynchronize", stream)
    driver.leave()
    build.call(free, [memory])
    with build.if_then(build.icmp_signed("!=", driver.failed(), int32(0))):
        message = "CUDA could not copy for a native kernel of rigidjax: its error %d"
        frame.refuse(message, driver.failed())
    build.ret(build.inttoptr(build.load(error, typ=I64), POINTER))
    return str(module)


def _num_bytes(build, aval, count):
    return build.mul(count, int64(aval.size * np.dtype(aval.dtype).itemsize))


class _DriverCalls:
    """Calls of CUDA's driver; keeps the first error."""

    def __init__(self, module, frame):
        self.module, self.build = module, frame.builder
        self._context = self._place(I64)
        self._failed = self._place(I32)
        self.build.store(int32(0), self._failed)

    def _place(self, kind):
        place = self.build.alloca(kind)
        return self.build.inttoptr(self.build.ptrtoint(place, I64), POINTER)

    def call(self, name, *args):
        build = self.build
        kind = ir.FunctionType(I32, FUNCTIONS[name]).as_pointer()
        function = build.inttoptr(build.load(global_variable(self.module, name), typ=I64), kind)
        code, before = build.call(function, args), self.failed()
        first = build.icmp_signed("==", before, int32(0))
        build.store(build.select(first, code, before), self._failed)

    def failed(self):
        return self.build.load(self._failed, typ=I32)

    def enter(self, stream):
        """The stream's context is that of the thread until `leave`."""
        self.call("cuStreamGetCtx", stream, self._context)
        self.call("cuCtxPushCurrent_v2", self.build.load(self._context, typ=I64))
        self._entered = self.build.icmp_signed("==", self.failed(), int32(0))

    def leave(self):
        # Else the context that is left would be XLA's.
        with self.build.if_then(self._entered):
            self.call("cuCtxPopCurrent_v2", self._context)
