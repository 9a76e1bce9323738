"""Calls of programs that are emitted once, as functions of the kernel (see `repeated`).

Arrays are handed over in memory. Whole numbers that are known at emission are not: the function is
made for them.
"""

import dataclasses
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from ..block_io import load_argument
from ..builder import Builder
from ..emitter import Emitter
from ..lanes import POINTER
from ..memory import ArrayView, Buffer, EmittedArray, row_major_strides
from ..registry import rule

_NOTHING = ir.Constant(POINTER, None)


@dataclasses.dataclass(frozen=True)
class SharedFunction:
    """A program as a function `(workspace, *arguments that are not known, *results)`.

    **Attributes:** `function`; `bytes`, of its workspace; `known`, results that are known at
    emission, by their numbers; `source`, kept so that its address stays its own.
    """

    function: ir.Function
    bytes: int
    known: dict[int, EmittedArray]
    source: ClosedJaxpr


@rule("shared_call")
def _shared_call(em: Emitter, equation, *args):
    closed = equation.params["jaxpr"]
    if em.lanes.width > 1 or em.mask is not None:
        return em.emit(closed, list(args))
    known = [
        x if aval.dtype.kind in "iub" and em.are_constant(x) else None
        for x, aval in zip(args, closed.in_avals, strict=True)
    ]
    key = (
        id(closed),
        tuple(
            None if x is None else np.asarray(em.to_registers(x).tolist(), aval.dtype).tobytes()
            for x, aval in zip(known, closed.in_avals, strict=True)
        ),
    )
    if key not in em.shared_functions:
        em.shared_functions[key] = _made(em, closed, known)
    made = em.shared_functions[key]
    results: list[Any] = [
        made.known[k] if k in made.known else em.memory.allocate(aval.shape, aval.dtype)
        for k, aval in enumerate(closed.out_avals)
    ]
    workspace = em.memory.allocate((made.bytes,), np.int8)
    given = [
        _handed_over(em, x, aval.dtype)
        for x, aval, own in zip(args, closed.in_avals, known, strict=True)
        if own is None
    ]
    targets = [_NOTHING if k in made.known else x.buffer.pointer for k, x in enumerate(results)]
    em.builder.call(made.function, [workspace.buffer.pointer, *given, *targets])
    return [
        em.to_registers(x) if k not in made.known and x.size <= em.register_limit else x
        for k, x in enumerate(results)
    ]


def _handed_over(em, x, dtype):
    """A pointer to the numbers of an array, in order."""
    if not x.size:
        return _NOTHING
    x = em.find_source(x)
    if not isinstance(x, ArrayView) or x.strides != row_major_strides(x.shape):
        x = em.copy_to_memory(x, dtype)
    return em.memory.element_address(x, (0,) * x.ndim)


def _made(em, closed, known) -> SharedFunction:
    """The function of a program, for arguments of which some are known."""
    module = em.builder.module
    num_given, num_results = sum(x is None for x in known), len(closed.out_avals)
    kind = ir.FunctionType(ir.VoidType(), [POINTER] * (1 + num_given + num_results))
    function = ir.Function(module, kind, module.get_unique_name("shared"))
    function.linkage = "internal"
    function.attributes.add("noinline")
    workspace, *pointers = function.args
    workspace.add_attribute("noalias")
    builder = Builder(function.append_basic_block("entry"))
    start = function.append_basic_block("start")
    builder.branch(start)
    builder.position_at_end(start)
    own = Emitter(builder, 1, workspace, em.vectors.width, em.shared_functions)
    given, targets = iter(pointers[:num_given]), pointers[num_given:]
    limits = own.find_register_limits(closed.jaxpr, known)
    args = [
        load_argument(own, next(given), aval, None, limit) if x is None else x
        for x, aval, limit in zip(known, closed.in_avals, limits, strict=True)
    ]
    found = {}
    for k, (result, aval) in enumerate(zip(own.emit(closed, args), closed.out_avals, strict=True)):
        if own.are_constant(result):
            found[k] = result
            continue
        if not aval.size:
            continue
        target = Buffer(targets[k], np.dtype(aval.dtype), aval.size)
        own.copy_to_memory(
            result, aval.dtype, ArrayView(target, aval.shape, row_major_strides(aval.shape))
        )
    builder.ret_void()
    return SharedFunction(function, own.memory.bytes, found, closed)
