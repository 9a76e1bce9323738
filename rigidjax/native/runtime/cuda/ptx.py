"""Kernels for GPUs: the program as PTX, one member of a batch in each thread.

The program is walked as for the processor, with a single lane. Arrays that are not in registers
are in the memory of their thread, or, if there are many, in scratch memory of XLA's, the numbers of
a warp's threads side by side; threads then take one member after another. Text only: `launch` loads
and launches it.
"""

from collections.abc import Callable
from typing import NamedTuple

from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from ...lowering.builder import I32, I64, Builder, Value, Values, int64
from ...lowering.lanes import I8, POINTER
from ...passes.analysis import count_outside_registers
from ...passes.loop_fusion import fuse_loops
from .. import codegen as machine
from ..kernel import Signature, emit_block

_TRIPLE = "nvptx64-nvidia-cuda"
_LAYOUT = "e-p3:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
# Bytes that a thread has of its own at most: CUDA sets them aside for all threads that can run.
LOCAL_BYTES = 4_096
# Threads that go together.
WARP = 32
# Arguments of a kernel, 4 kB on all GPUs.
MAX_POINTERS = 500
NAME = "kernel"


class PTXKernel(NamedTuple):
    """A kernel for a GPU: `kernel(count, scratch, *pointers)`, as PTX.

    **Attributes:** `ptx`; `scratch`, bytes of scratch memory for each thread.
    """

    ptx: str
    scratch: int


def ptx(closed: ClosedJaxpr, signature: Signature, architecture: str = "sm_80") -> PTXKernel:
    """PTX of a program: an entry `kernel(count, scratch, *inputs, *outputs)`.

    **Arguments:** `closed`; `signature`, as of a kernel on the processor; `architecture`, such as
    `"sm_90"`.

    `count` is the number of members of the batch.
    **Raises:** `ValueError` for an architecture that is not known.
    """
    module = ir.Module("rigidjax")
    module.triple, module.data_layout = _TRIPLE, _LAYOUT
    scratch = emit_entry(module, closed, signature, _thread_index)
    module.globals[NAME].calling_convention = "ptx_kernel"
    return PTXKernel(machine.compile_to_ptx(str(module), architecture), scratch)


def emit_entry(
    module: ir.Module, closed: ClosedJaxpr, signature: Signature,
    place: Callable[[ir.Function, Builder], tuple[Value, Value]],
) -> int:  # fmt: skip
    """Emit the function of a thread; gives the bytes of scratch memory that it needs.

    `place(function, builder)` gives the thread's number and the number of all threads.
    """
    closed = fuse_loops(closed, num_tangents=signature.num_tangents)
    memory = count_outside_registers(closed.jaxpr) * 8
    warp = WARP if signature.is_batch and memory > LOCAL_BYTES else 1
    size = -(-emit_block(module, closed, signature, 1, warp=warp).bytes // 64) * 64
    buffers = len(closed.in_avals), len(closed.out_avals)
    kind = ir.FunctionType(ir.VoidType(), [I64, POINTER, *[POINTER] * sum(buffers)])
    function = ir.Function(module, kind, NAME)
    count, scratch, *pointers = function.args
    entry, test, turn, end = (
        function.append_basic_block(name) for name in ("entry", "test", "turn", "end")
    )
    build = Builder(entry)
    thread, threads = place(function, build)
    inputs = pointer_array(build, pointers[: buffers[0]])
    outputs = pointer_array(build, pointers[buffers[0] :])
    is_own = warp == 1 and size <= LOCAL_BYTES
    if is_own:
        own = _untyped_pointer(build, build.alloca(ir.ArrayType(I64, max(size // 8, 1))))
    else:
        start = build.mul(build.udiv(thread, int64(warp)), int64(size))
        own = build.gep(scratch, [start], source_etype=I8)
    number = [build.urem(thread, int64(warp))] if warp > 1 else []
    build.branch(test)
    build.position_at_end(test)
    member = build.phi(I64)
    member.add_incoming(thread, entry)
    build.cbranch(build.icmp_signed("<", member, count), turn, end)
    build.position_at_end(turn)
    build.call(module.globals["block"], [inputs, outputs, own, member, count, *number])
    member.add_incoming(build.add(member, threads), turn)
    build.branch(test)
    build.position_at_end(end)
    build.ret_void()
    return 0 if is_own else -(-size // warp)


def pointer_array(build: Builder, pointers: Values) -> Value:
    """An array of these pointers, in memory of the function."""
    place = _untyped_pointer(build, build.alloca(ir.ArrayType(POINTER, max(len(pointers), 1))))
    for k, pointer in enumerate(pointers):
        build.store(pointer, build.gep(place, [int64(k)], source_etype=POINTER))
    return place


def _untyped_pointer(build, place):
    """A pointer without what llvmlite knows of it."""
    return build.inttoptr(build.ptrtoint(place, I64), POINTER)


def _thread_index(function, build):
    """The number of a thread of the GPU, and of all of them, by special registers."""
    block, blocks, size, thread = (
        build.zext(_read_register(build, name), I64)
        for name in ("ctaid.x", "nctaid.x", "ntid.x", "tid.x")
    )
    return build.add(build.mul(block, size), thread), build.mul(blocks, size)


def _read_register(build, name):
    """A special register of the GPU."""
    full = f"llvm.nvvm.read.ptx.sreg.{name}"
    module = build.module
    function = module.globals.get(full) or ir.Function(module, ir.FunctionType(I32, []), full)
    return build.call(function, [])
