"""Kernels as PTX, one member of a batch in each thread.

The program is walked as for the processor, with a single lane; each thread has its own part of the
workspace. Text only: nothing here needs a GPU, and nothing launches one yet.
"""

from typing import Any

from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from . import machine
from .builder import Builder
from .kernel import Signature, emit_block
from .lanes import I32, I64, POINTER
from .stacks import with_loops

_TRIPLE = "nvptx64-nvidia-cuda"
_LAYOUT = "e-p3:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"


def ptx(closed: ClosedJaxpr, signature: Signature, architecture: str = "sm_80") -> str:
    """PTX of a program: an entry `kernel(inputs, outputs, workspace, count)`.

    **Arguments:** `closed`; `signature`, as of a kernel on the processor; `architecture`, such as
    `"sm_90"`.

    `inputs` and `outputs` point to arrays of pointers; `workspace` has as many bytes for each of
    `count` members as the comment in the first line says.
    """
    closed = with_loops(closed)
    module: Any = ir.Module("rigidjax")
    module.triple, module.data_layout = _TRIPLE, _LAYOUT
    size = -(-emit_block(module, closed, signature, 1) // 64) * 64
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, POINTER, I64])
    function: Any = ir.Function(module, kind, "kernel")
    function.calling_convention = "ptx_kernel"
    inputs, outputs, workspace, count = function.args
    entry, run, end = (function.append_basic_block(name) for name in ("entry", "run", "end"))
    build: Any = Builder(entry)
    block, threads, thread = (
        build.zext(_register(build, name), I64) for name in ("ctaid.x", "ntid.x", "tid.x")
    )
    member = build.add(build.mul(block, threads), thread)
    build.cbranch(build.icmp_signed("<", member, count), run, end)
    build.position_at_end(run)
    offset = build.mul(member, ir.Constant(I64, size))
    own = build.gep(workspace, [offset], source_etype=ir.IntType(8))
    build.call(module.globals["block"], [inputs, outputs, own, member, count])
    build.branch(end)
    build.position_at_end(end)
    build.ret_void()
    return f"// {size} bytes of workspace for each member\n" + machine.ptx(
        str(module), architecture
    )


def _register(build, name):
    """A special register of the GPU."""
    full = f"llvm.nvvm.read.ptx.sreg.{name}"
    module = build.module
    function = module.globals.get(full) or ir.Function(module, ir.FunctionType(I32, []), full)
    return build.call(function, [])
