"""Kernels for GPUs as PTX, with one batch element in each thread.

The jaxpr is emitted as for the CPU, with a single lane. Arrays outside registers are in the local
memory of the thread. If they are too large, they are in scratch memory of XLA, where elements of
the threads of a warp are interleaved, and each thread computes several batch elements. This module
generates the text; `launch` loads and launches it.
"""

from collections.abc import Callable
from typing import NamedTuple

from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from ...passes.analysis import count_outside_registers
from ...passes.loop_fusion import fuse_loops
from ...values.builder import I32, I64, Builder, Value, Values, int64
from ...values.lanes import I8, POINTER
from .. import codegen as machine
from ..kernel import Signature, emit_block

_TRIPLE = "nvptx64-nvidia-cuda"
_LAYOUT = "e-p3:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
# Largest local memory of a thread, in bytes. CUDA reserves it for all threads that can be resident.
LOCAL_BYTES = 4_096
# Number of threads of a warp.
WARP = 32
# Largest number of array arguments of a kernel: all GPUs allow 4 kB of arguments.
MAX_POINTERS = 500
NAME = "kernel"


class PTXKernel(NamedTuple):
    """A kernel for a GPU: `kernel(count, scratch, *pointers)`, as PTX.

    **Attributes:** `ptx`; `scratch`, bytes of scratch memory of each thread.
    """

    ptx: str
    scratch: int


def ptx(closed: ClosedJaxpr, signature: Signature, architecture: str = "sm_80") -> PTXKernel:
    """Return a jaxpr as PTX, with the entry `kernel(count, scratch, *inputs, *outputs)`.

    `count` is the number of batch elements.

    **Arguments:** `closed`, the jaxpr; `signature`, as for a CPU kernel; `architecture`, such as
    `"sm_90"`.
    **Raises:** `ValueError` for an unknown architecture.
    """
    module = ir.Module("rigidjax")
    module.triple, module.data_layout = _TRIPLE, _LAYOUT
    scratch = emit_entry(module, closed, signature, _thread_index)
    module.globals[NAME].calling_convention = "ptx_kernel"
    return PTXKernel(machine.compile_to_ptx(str(module), architecture), scratch)


def emit_entry(
    module: ir.Module, closed: ClosedJaxpr, signature: Signature,
    thread_index: Callable[[ir.Function, Builder], tuple[Value, Value]],
) -> int:  # fmt: skip
    """Emit the function of a thread; return the bytes of scratch memory that a thread needs.

    **Arguments:** `thread_index(function, builder)`, the index of the thread and the number of
    threads.
    """
    closed = fuse_loops(closed, num_tangents=signature.num_tangents)
    memory = count_outside_registers(closed.jaxpr) * 8
    warp = WARP if signature.is_batch and memory > LOCAL_BYTES else 1
    size = -(-emit_block(module, closed, signature, 1, warp=warp).bytes // 64) * 64
    buffers = len(closed.in_avals), len(closed.out_avals)
    kind = ir.FunctionType(ir.VoidType(), [I64, POINTER, *[POINTER] * sum(buffers)])
    function = ir.Function(module, kind, NAME)
    count, scratch, *pointers = function.args
    entry, test, body, end = (
        function.append_basic_block(name) for name in ("entry", "test", "turn", "end")
    )
    build = Builder(entry)
    thread, threads = thread_index(function, build)
    inputs = pointer_array(build, pointers[: buffers[0]])
    outputs = pointer_array(build, pointers[buffers[0] :])
    is_local = warp == 1 and size <= LOCAL_BYTES
    if is_local:
        workspace = _untyped_pointer(build, build.alloca(ir.ArrayType(I64, max(size // 8, 1))))
    else:
        start = build.mul(build.udiv(thread, int64(warp)), int64(size))
        workspace = build.gep(scratch, [start], source_etype=I8)
    warp_index = [build.urem(thread, int64(warp))] if warp > 1 else []
    build.branch(test)
    build.position_at_end(test)
    element = build.phi(I64)
    element.add_incoming(thread, entry)
    build.cbranch(build.icmp_signed("<", element, count), body, end)
    build.position_at_end(body)
    block_args = [inputs, outputs, workspace, element, count, *warp_index]
    build.call(module.globals["block"], block_args)
    element.add_incoming(build.add(element, threads), body)
    build.branch(test)
    build.position_at_end(end)
    build.ret_void()
    return 0 if is_local else -(-size // warp)


def pointer_array(build: Builder, pointers: Values) -> Value:
    """Return an array of these pointers in local memory of the function."""
    memory = _untyped_pointer(build, build.alloca(ir.ArrayType(POINTER, max(len(pointers), 1))))
    for k, pointer in enumerate(pointers):
        build.store(pointer, build.gep(memory, [int64(k)], source_etype=POINTER))
    return memory


def _untyped_pointer(build: Builder, pointer: Value) -> Value:
    """Return a pointer without the element type that llvmlite keeps."""
    return build.inttoptr(build.ptrtoint(pointer, I64), POINTER)


def _thread_index(function: ir.Function, build: Builder) -> tuple[Value, Value]:
    """Return the index of a GPU thread and the number of threads, from special registers."""
    block, blocks, size, thread = (
        build.zext(_read_register(build, name), I64)
        for name in ("ctaid.x", "nctaid.x", "ntid.x", "tid.x")
    )
    return build.add(build.mul(block, size), thread), build.mul(blocks, size)


def _read_register(build: Builder, name: str) -> Value:
    """Read a special register of the GPU."""
    full = f"llvm.nvvm.read.ptx.sreg.{name}"
    module = build.module
    function = module.globals.get(full) or ir.Function(module, ir.FunctionType(I32, []), full)
    return build.call(function, [])
