"""Calls of jaxprs that are emitted once as functions of the kernel (see `passes.outlining`).

Arrays are passed in memory. Integer arguments that are compile-time constants are not passed: the
function is specialised for their values.
"""

import dataclasses
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from ...primitives.registry import Equation, rule
from ...values.builder import Builder
from ...values.lanes import POINTER
from ...values.memory import ArrayView, Buffer, EmittedArray, row_major_strides
from ..block_io import load_argument
from ..emitter import Emitter

_NULL = ir.Constant(POINTER, None)


@dataclasses.dataclass(frozen=True)
class SharedFunction:
    """A jaxpr as a function `(workspace, *arguments that are not constant, *results)`.

    **Attributes:** `function`; `bytes`, size of its workspace; `constant_results`, results that are
    compile-time constants, by position; `source`, kept alive because the cache key has its id.
    """

    function: ir.Function
    bytes: int
    constant_results: dict[int, EmittedArray]
    source: ClosedJaxpr


@rule("shared_call")
def _shared_call(em: Emitter, equation: Equation, *args: EmittedArray):
    closed = equation.params["jaxpr"]
    if em.lanes.width > 1 or em.mask is not None:
        return em.emit(closed, list(args))
    constants = [
        x if aval.dtype.kind in "iub" and em.are_constant(x) else None
        for x, aval in zip(args, closed.in_avals, strict=True)
    ]
    key = (
        id(closed),
        tuple(
            None if x is None else np.asarray(em.to_registers(x).tolist(), aval.dtype).tobytes()
            for x, aval in zip(constants, closed.in_avals, strict=True)
        ),
    )
    if key not in em.shared_functions:
        em.shared_functions[key] = _emit_function(em, closed, constants)
    shared_function = em.shared_functions[key]
    results: list[Any] = [
        shared_function.constant_results[k]
        if k in shared_function.constant_results
        else em.memory.allocate(aval.shape, aval.dtype)
        for k, aval in enumerate(closed.out_avals)
    ]
    workspace = em.memory.allocate((shared_function.bytes,), np.int8)
    pointers = [
        _pointer_to(em, x, aval.dtype)
        for x, aval, constant in zip(args, closed.in_avals, constants, strict=True)
        if constant is None
    ]
    result_pointers = [
        _NULL if k in shared_function.constant_results else x.buffer.pointer
        for k, x in enumerate(results)
    ]
    em.builder.call(
        shared_function.function, [workspace.buffer.pointer, *pointers, *result_pointers]
    )
    return [
        em.to_registers(x)
        if k not in shared_function.constant_results and x.size <= em.register_limit
        else x
        for k, x in enumerate(results)
    ]


def _pointer_to(em: Emitter, x: EmittedArray, dtype: np.dtype):
    """Return a pointer to the contiguous elements of an array."""
    if not x.size:
        return _NULL
    x = em.find_source(x)
    if not isinstance(x, ArrayView) or x.strides != row_major_strides(x.shape):
        x = em.copy_to_memory(x, dtype)
    return em.memory.element_address(x, (0,) * x.ndim)


def _emit_function(em: Emitter, closed: ClosedJaxpr, constants: list[Any]) -> SharedFunction:
    """Emit a jaxpr as a function; `constants` has its constant arguments, else `None`."""
    module = em.builder.module
    num_arguments, num_results = sum(x is None for x in constants), len(closed.out_avals)
    function_type = ir.FunctionType(ir.VoidType(), [POINTER] * (1 + num_arguments + num_results))
    function = ir.Function(module, function_type, module.get_unique_name("shared"))
    function.linkage = "internal"
    function.attributes.add("noinline")
    workspace, *pointers = function.args
    workspace.add_attribute("noalias")
    builder = Builder(function.append_basic_block("entry"))
    start = function.append_basic_block("start")
    builder.branch(start)
    builder.position_at_end(start)
    emitter = Emitter(builder, 1, workspace, em.vectors.width, em.shared_functions)
    argument_pointers, result_pointers = iter(pointers[:num_arguments]), pointers[num_arguments:]
    limits = emitter.find_register_limits(closed.jaxpr, constants)
    args = [
        load_argument(emitter, next(argument_pointers), aval, None, limit) if x is None else x
        for x, aval, limit in zip(constants, closed.in_avals, limits, strict=True)
    ]
    constant_results = {}
    for k, (result, aval) in enumerate(
        zip(emitter.emit(closed, args), closed.out_avals, strict=True)
    ):
        if emitter.are_constant(result):
            constant_results[k] = result
            continue
        if not aval.size:
            continue
        target = Buffer(result_pointers[k], np.dtype(aval.dtype), aval.size)
        emitter.copy_to_memory(
            result, aval.dtype, ArrayView(target, aval.shape, row_major_strides(aval.shape))
        )
    builder.ret_void()
    return SharedFunction(function, emitter.memory.bytes, constant_results, closed)
