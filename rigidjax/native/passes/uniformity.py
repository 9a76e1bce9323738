"""Programs of which most is the same for all lanes: one run, and many of its tangents.

They are walked with one lane. An equation is emitted for several lanes only if its results differ
from one to the other; loops and branches that do not differ need no masks, and the run is computed
once, by scalars.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn, Var
from llvmlite import ir

from ..lowering.builder import int32
from ..lowering.complex import Pair
from ..lowering.lanes import is_constant
from ..lowering.memory import ArrayView, EmittedArray
from .analysis import is_unrolled
from .dynamic_indices import find_dynamic_indices, loop_fixed_point
from .inlining import CALLS

if TYPE_CHECKING:
    from ..lowering.emitter import Emitter

# Equations with programs inside, in which some results may differ and others not.
_WITH_JAXPRS = frozenset((*CALLS, "cond", "scan", "while"))


def is_divergent(x: EmittedArray | None) -> bool:
    """Whether an array may differ from lane to lane, where the emitter has one lane."""
    if isinstance(x, ArrayView):
        return x.buffer.lanes > 1
    return x is not None and any(map(_is_vector, x.ravel().tolist()))


def _is_vector(number):
    if isinstance(number, Pair):
        return _is_vector(number.real) or _is_vector(number.imag)
    return not is_constant(number) and isinstance(number.type, ir.VectorType)


def find_divergent_variables(
    em: "Emitter", jaxpr: Jaxpr, args: list[EmittedArray]
) -> frozenset[Var]:
    """Variables of a program that may differ from lane to lane."""
    if not emits_uniform_code(em):
        return frozenset()
    marks = tuple(map(is_divergent, args))
    return find_dynamic_indices(jaxpr, marks, False).variables if any(marks) else frozenset()


def emit_equation(
    em: "Emitter", equation: JaxprEqn, args: list[EmittedArray], different: frozenset[Var]
) -> list[EmittedArray]:
    """Results of one equation, in lanes where they may differ."""
    marks = [var in different for var in equation.outvars]
    if equation.primitive.name in _WITH_JAXPRS and not _has_divergent_control(em, equation, args):
        out = em.emit_equation(equation, args)
    else:
        with em.vectors.as_lanes():
            out = em.emit_equation(equation, [broadcast_to_lanes(em, x) for x in args])
            out = [
                _copy_shared_view(em, x, var) for x, var in zip(out, equation.outvars, strict=True)
            ]
    return [x if mark else take_first_lane(em, x) for x, mark in zip(out, marks, strict=True)]


def _has_divergent_control(em, equation, args):
    """Whether a branch or the end of a loop differs from lane to lane."""
    name, p = equation.primitive.name, equation.params
    if name == "cond":
        return is_divergent(args[0])
    if name == "while":
        marks = tuple(map(is_divergent, args))
        first, second = p["cond_nconsts"], p["body_nconsts"]
        of_body, carried = marks[first : first + second], marks[first + second :]
        carried = find_divergent_carry(p["body_jaxpr"].jaxpr, of_body, carried)
        return find_dynamic_indices(p["cond_jaxpr"].jaxpr, marks[:first] + carried, False).unknown[
            0
        ]
    if name == "scan":
        return not is_unrolled(p)
    return False


def find_divergent_carry(
    body: Jaxpr, consts: tuple[bool, ...], carried: tuple[bool, ...]
) -> tuple[bool, ...]:
    """Which variables of a loop may differ, of those that do at first."""
    return loop_fixed_point(
        lambda marks: find_dynamic_indices(body, consts + marks, False).unknown, carried
    )


@contextlib.contextmanager
def all_lanes_if(em: "Emitter", different: bool) -> Iterator[None]:
    """Arrays that differ from lane to lane are read and written within, if these do."""
    with em.vectors.as_lanes() if different and em.lanes.width == 1 else contextlib.nullcontext():
        yield


def emits_uniform_code(em: "Emitter") -> bool:
    """Whether the emitter has one lane, and will have several for what differs."""
    return em.has_divergence and em.lanes.width == 1


def broadcast_to_lanes(em: "Emitter", x: EmittedArray) -> EmittedArray:
    """An array as all lanes have it, where there are several."""
    if isinstance(x, ArrayView):
        return share_buffer(x) if x.buffer.lanes == 1 and not x.buffer.shared else x
    out = np.empty(x.size, object)
    out[:] = [_splat(em.lanes, number) for number in x.ravel().tolist()]
    return out.reshape(x.shape)


def share_buffer(x: ArrayView) -> ArrayView:
    """An array of one lane's memory, as one that all lanes have in common."""
    buffer = dataclasses.replace(x.buffer, shared=True, is_owned=False, use_count=0, pin_count=1)
    return ArrayView(buffer, x.shape, x.strides, x.offset)


def _splat(lanes, number):
    if isinstance(number, Pair):
        return Pair(_splat(lanes, number.real), _splat(lanes, number.imag))
    return number if is_constant(number) or _is_vector(number) else lanes.splat(number)


def _copy_shared_view(em, x, var):
    """What is only another view of an array that lanes have in common, copied."""
    if isinstance(x, ArrayView) and x.buffer.shared and x.buffer.values is None:
        return em.copy_to_memory(x, np.dtype(var.aval.dtype))
    return x


def take_first_lane(em: "Emitter", x: EmittedArray) -> EmittedArray:
    """An array that is the same in all lanes, for one lane."""
    if not is_divergent(x):
        return x
    if not isinstance(x, ArrayView):
        out = np.empty(x.size, object)
        out[:] = [_extract_first(em, number) for number in x.ravel().tolist()]
        return out.reshape(x.shape)
    out = em.memory.allocate(x.shape, x.buffer.dtype)
    with em.loop_nest(x.shape) as index:
        with em.vectors.as_lanes():
            number = em.memory.read(x, index)
        em.memory.write(out, index, _extract_first(em, number))
    return out


def _extract_first(em, number):
    if isinstance(number, Pair):
        return Pair(_extract_first(em, number.real), _extract_first(em, number.imag))
    return em.builder.extract_element(number, int32(0)) if _is_vector(number) else number
