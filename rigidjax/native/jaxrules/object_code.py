"""Object files of JAX functions for any processor, to be linked into executables and libraries."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr
from jaxtyping import Array
from llvmlite import ir

from ..passes.loop_fusion import fuse_loops
from ..passes.outlining import find_jaxprs_to_outline
from ..primitives.registry import NoRule
from ..runtime.codegen import choose_optimisation_level, emit_object
from ..runtime.garbage import gc_paused
from ..runtime.kernel import Signature, emit_block
from ..runtime.support import why_not
from .meshes import trace_without_mesh


class Processor(NamedTuple):
    """A processor and an operating system for which object files are made.

    **Attributes:** `triple`, LLVM's target triple; `cpu`, LLVM's name of the oldest processor that
    runs the code; `width`, the number of doubles of a vector register.
    """

    triple: str
    cpu: str
    width: int


class ObjectCode(NamedTuple):
    """Machine code of a function, callable from C.

    The symbol is a function `void name(const void *const *arguments, void *const *results, void
    *workspace, int64_t first, int64_t count)`, to be called with `first = 0` and `count = 1`.
    Arrays are contiguous in row-major order. The workspace starts at a multiple of 64 bytes; its
    content before the call does not matter.

    **Attributes:** `name` of the symbol; `content` of the object file; `workspace_bytes`.
    """

    name: str
    content: bytes
    workspace_bytes: int


class TracedFunction(NamedTuple):
    """A function of arrays as a jaxpr.

    **Attributes:** `name`; `closed`, the jaxpr; `results`, shapes and dtypes of its results.
    """

    name: str
    closed: ClosedJaxpr
    results: Sequence[ShapedArray]


@gc_paused()
def trace_function(
    name: str, function: Callable[..., Sequence[Array]], *args: jax.ShapeDtypeStruct
) -> TracedFunction:
    """Trace a function of arrays that returns a sequence of arrays.

    **Errors:** `NoRule` for a primitive that cannot be part of a kernel.
    """
    closed = trace_without_mesh(function, *args)
    missing = why_not(closed)
    if missing:
        raise NoRule(
            f"The function `{name}` of the model cannot be machine code: {', '.join(missing)}."
        )
    return TracedFunction(name, closed, closed.out_avals)


@gc_paused()
@np.errstate(all="ignore")
def compile_object(traced: TracedFunction, name: str, processor: Processor) -> ObjectCode:
    """Compile a traced function to an object file for a processor.

    **Arguments:** `name` of the symbol, which a shared library does not export.
    """
    shared = find_jaxprs_to_outline(traced.closed)
    closed = fuse_loops(traced.closed, shared=shared)
    signature = Signature((False,) * len(closed.in_avals), False)
    module = ir.Module(name)
    memory = emit_block(module, closed, signature, 1, row=processor.width)
    text = _publish(str(module), name)
    level = choose_optimisation_level(text, False, bool(shared))
    return ObjectCode(name, emit_object(text, level, processor.triple, processor.cpu), memory.bytes)


def _publish(text: str, name: str) -> str:
    """Return the module with the function `block` as a hidden symbol of another name."""
    head = "define internal void @"
    old = next(f"{head}{block}(" for block in ("block", '"block"') if f"{head}{block}(" in text)
    return text.replace(old, f"define hidden void @{name}(")
