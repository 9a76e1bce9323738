"""Kernels with mostly uniform values, such as one trajectory with many tangents.

The emitter has one lane. An equation is emitted for all lanes only if its results are divergent,
that is, may differ between lanes. Uniform values are computed once as scalars, and loops and
branches with uniform conditions need no masks.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn, Var
from llvmlite import ir

from ..passes.analysis import ArrayAtom, is_unrolled
from ..passes.dynamic_indices import find_dynamic_indices, loop_fixed_point
from ..passes.inlining import CALLS
from ..values.builder import int32
from ..values.complex import Pair
from ..values.lanes import Lanes, is_constant
from ..values.memory import ArrayView, EmittedArray

if TYPE_CHECKING:
    from .emitter import Emitter

# Primitives with sub-jaxprs, whose results may be partly divergent and partly uniform.
_WITH_JAXPRS = frozenset((*CALLS, "cond", "scan", "while"))


def is_divergent(x: EmittedArray | None) -> bool:
    """Return whether an array has elements of all lanes, where the emitter has one lane."""
    if isinstance(x, ArrayView):
        return x.buffer.lanes > 1
    return x is not None and any(map(_is_vector, x.ravel().tolist()))


def _is_vector(value: Any) -> bool:
    if isinstance(value, Pair):
        return _is_vector(value.real) or _is_vector(value.imag)
    return not is_constant(value) and isinstance(value.type, ir.VectorType)


def find_divergent_variables(
    em: "Emitter", jaxpr: Jaxpr, args: list[EmittedArray]
) -> frozenset[Var]:
    """Return the variables of a jaxpr that are divergent for these arguments."""
    if not emits_uniform_code(em):
        return frozenset()
    marks = tuple(map(is_divergent, args))
    return find_dynamic_indices(jaxpr, marks, False).variables if any(marks) else frozenset()


def emit_equation(
    em: "Emitter", equation: JaxprEqn, args: list[EmittedArray], divergent: frozenset[Var]
) -> list[EmittedArray]:
    """Emit an equation, for all lanes if a result is one of the `divergent` variables."""
    marks = [var in divergent for var in equation.outvars]
    if equation.primitive.name in _WITH_JAXPRS and not _has_divergent_control(em, equation, args):
        out = em.emit_equation(equation, args)
    else:
        with em.vectors.as_lanes():
            out = em.emit_equation(equation, [broadcast_to_lanes(em, x) for x in args])
            out = [
                _copy_shared_view(em, x, var) for x, var in zip(out, equation.outvars, strict=True)
            ]
    return [x if mark else take_first_lane(em, x) for x, mark in zip(out, marks, strict=True)]


def _has_divergent_control(em: "Emitter", equation: JaxprEqn, args: list[EmittedArray]) -> bool:
    """Return whether a branch or the end of a loop is divergent, or a scan is not unrolled."""
    name, p = equation.primitive.name, equation.params
    if name == "cond":
        return is_divergent(args[0])
    if name == "while":
        marks = tuple(map(is_divergent, args))
        first, second = p["cond_nconsts"], p["body_nconsts"]
        body_consts, carried = marks[first : first + second], marks[first + second :]
        carried = find_divergent_carry(p["body_jaxpr"].jaxpr, body_consts, carried)
        condition = p["cond_jaxpr"].jaxpr
        return find_dynamic_indices(condition, marks[:first] + carried, False).unknown[0]
    if name == "scan":
        return not is_unrolled(p)
    return False


def find_divergent_carry(
    body: Jaxpr, consts: tuple[bool, ...], carried: tuple[bool, ...]
) -> tuple[bool, ...]:
    """Return which carried variables of a loop become divergent.

    **Arguments:** `consts` and `carried`, which constants and initial values are divergent.
    """
    return loop_fixed_point(
        lambda marks: find_dynamic_indices(body, consts + marks, False).unknown, carried
    )


@contextlib.contextmanager
def all_lanes_if(em: "Emitter", divergent: bool) -> Iterator[None]:
    """Emit for all lanes inside the context if `divergent` is true."""
    with em.vectors.as_lanes() if divergent and em.lanes.width == 1 else contextlib.nullcontext():
        yield


def emits_uniform_code(em: "Emitter") -> bool:
    """Return whether the emitter has one lane now, and several for divergent values."""
    return em.has_divergence and em.lanes.width == 1


def broadcast_to_lanes(em: "Emitter", x: EmittedArray) -> EmittedArray:
    """Return a uniform array in the form that all lanes read."""
    if isinstance(x, ArrayView):
        return share_buffer(x) if x.buffer.lanes == 1 and not x.buffer.shared else x
    out = np.empty(x.size, object)
    out[:] = [_splat(em.lanes, value) for value in x.ravel().tolist()]
    return out.reshape(x.shape)


def share_buffer(x: ArrayView) -> ArrayView:
    """Return a view of a single lane's array that marks its buffer as shared by all lanes."""
    buffer = dataclasses.replace(x.buffer, shared=True, is_owned=False, use_count=0, pin_count=1)
    return ArrayView(buffer, x.shape, x.strides, x.offset)


def _splat(lanes: Lanes, value: Any) -> Any:
    if isinstance(value, Pair):
        return Pair(_splat(lanes, value.real), _splat(lanes, value.imag))
    return value if is_constant(value) or _is_vector(value) else lanes.splat(value)


def _copy_shared_view(em: "Emitter", x: EmittedArray, var: ArrayAtom) -> EmittedArray:
    """Copy a result that is a view of a buffer shared by all lanes."""
    if isinstance(x, ArrayView) and x.buffer.shared and x.buffer.values is None:
        return em.copy_to_memory(x, np.dtype(var.aval.dtype))
    return x


def take_first_lane(em: "Emitter", x: EmittedArray) -> EmittedArray:
    """Return the first lane of an array that is equal in all lanes."""
    if not is_divergent(x):
        return x
    if not isinstance(x, ArrayView):
        out = np.empty(x.size, object)
        out[:] = [_extract_first(em, value) for value in x.ravel().tolist()]
        return out.reshape(x.shape)
    out = em.memory.allocate(x.shape, x.buffer.dtype)
    with em.loop_nest(x.shape) as index:
        with em.vectors.as_lanes():
            value = em.memory.read(x, index)
        em.memory.write(out, index, _extract_first(em, value))
    return out


def _extract_first(em: "Emitter", value: Any) -> Any:
    if isinstance(value, Pair):
        return Pair(_extract_first(em, value.real), _extract_first(em, value.imag))
    return em.builder.extract_element(value, int32(0)) if _is_vector(value) else value
