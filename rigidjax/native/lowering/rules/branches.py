"""Branches: all are computed if they are small, else only those that some lane takes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from ...passes.analysis import FEW_REGISTERS, cost
from ...passes.dynamic_indices import find_dynamic_indices
from ...primitives.registry import Equation, rule
from ...values.complex import LaneValue
from ...values.lanes import POINTER, is_constant
from ...values.memory import ArrayView, Buffer, EmittedArray
from ..emitter import Emitter
from ..uniformity import all_lanes_if, broadcast_to_lanes, emits_uniform_code, is_divergent

# Cost of a branch up to which all branches are computed and a select instruction chooses.
_SMALL_BRANCH_COST = 24


@rule("cond")
def _cond(em: Emitter, equation: Equation, index: EmittedArray, *args: EmittedArray):
    branches = equation.params["branches"]
    index_dtype = np.dtype(equation.invars[0].aval.dtype)
    index = em.read_element(index, ())
    lanes = em.lanes
    if is_constant(index):
        branch = branches[min(max(int(index), 0), len(branches) - 1)]
        return em.emit(branch, list(args))
    if index_dtype == np.bool_:
        index, index_dtype = lanes.convert(index, np.bool_, np.int32), np.dtype(np.int32)
    conditions = []
    for k in range(len(branches)):
        operator = "<=" if k == 0 else ">=" if k == len(branches) - 1 else "=="
        conditions.append(lanes.compare(index_dtype, operator, index, index_dtype.type(k)))
    avals = [var.aval for var in equation.outvars]
    buffers = [x.buffer for x in args if isinstance(x, ArrayView)]
    for buffer in buffers:
        buffer.pin_count += 1
    if all(_is_simple(branch.jaxpr) for branch in branches):
        out = _emit_all_branches(em, branches, conditions, args, avals)
    else:
        out = _emit_guarded_branches(
            em, branches, conditions, args, avals, _find_divergent_results(em, branches, args)
        )
    for buffer in buffers:
        buffer.pin_count -= 1
    return out


def _is_simple(jaxpr: Any) -> bool:
    is_small = all(var.aval.size <= FEW_REGISTERS for var in (*jaxpr.invars, *jaxpr.outvars))
    has_loops = any(e.primitive.name in ("while", "scan", "cond") for e in jaxpr.eqns)
    return is_small and not has_loops and cost(jaxpr) <= _SMALL_BRANCH_COST


def _emit_all_branches(
    em: Emitter,
    branches: Sequence[ClosedJaxpr],
    conditions: list[LaneValue],
    args: Sequence[EmittedArray],
    avals: list[ShapedArray],
):
    selected = None
    for branch, condition in zip(branches, conditions, strict=True):
        with em.restrict_lanes(em.intersect_mask(em.mask, condition)):
            results = [_to_registers(em, x) for x in em.emit(branch, list(args))]
        if selected is None:
            selected = results
            continue
        selected = [
            _select(em, aval.dtype, condition, new, old)
            for aval, new, old in zip(avals, results, selected, strict=True)
        ]
    return selected


def _to_registers(em: Emitter, x: EmittedArray):
    with all_lanes_if(em, is_divergent(x)):
        return em.to_registers(x)


def _select(
    em: Emitter, dtype: np.dtype, condition: LaneValue, new: EmittedArray, old: EmittedArray
):
    if not emits_uniform_code(em) or not (is_divergent(new) or is_divergent(old)):
        return em.select_array(dtype, condition, new, old)
    with em.vectors.as_lanes():
        new, old = (broadcast_to_lanes(em, x) for x in (new, old))
        return em.select_array(dtype, em.lanes.splat(condition), new, old)


def _find_divergent_results(
    em: Emitter, branches: Sequence[ClosedJaxpr], args: Sequence[EmittedArray]
):
    """Return which results are divergent, in a kernel that emits uniform values as scalars."""
    if not emits_uniform_code(em):
        return [False] * len(branches[0].out_avals)
    marks = tuple(map(is_divergent, args))
    are_divergent = [
        find_dynamic_indices(branch.jaxpr, marks, False).unknown for branch in branches
    ]
    return list(map(any, zip(*are_divergent, strict=True)))


def _emit_guarded_branches(
    em: Emitter,
    branches: Sequence[ClosedJaxpr],
    conditions: list[LaneValue],
    args: Sequence[EmittedArray],
    avals: list[ShapedArray],
    is_divergent: list[bool],
):
    """Emit branches that are executed only if some lane takes them.

    **Arguments:** `conditions`, lanes that take each branch; `is_divergent`, for each result.
    """
    build, outer_mask, has_one_lane_only = em.builder, em.mask, em.lanes.width == 1
    merged_results: list = [None] * len(avals)
    for branch, condition in zip(branches, conditions, strict=True):
        mask = em.intersect_mask(outer_mask, condition)
        block_before, branch_block = build.block, build.append_basic_block("branch")
        after_block = build.append_basic_block("after")
        # Results that are too large for registers are in memory.
        for k, aval in enumerate(avals):
            if merged_results[k] is None and _needs_memory(em, aval, args):
                merged_results[k] = _NotYetComputed(aval)
        build.cbranch(em.lanes.any(mask), branch_block, after_block)
        build.position_at_end(branch_block)
        with em.restrict_lanes(None if has_one_lane_only else mask):
            results = em.emit(branch, list(args))
            new_results = []
            for aval, old, new, is_divergent_result in zip(
                avals, merged_results, results, is_divergent, strict=True
            ):
                with all_lanes_if(em, is_divergent_result):
                    new = broadcast_to_lanes(em, new) if is_divergent_result else new
                    mask = None if has_one_lane_only else condition
                    new_results.append(_merge(em, aval, old, new, mask, args))
        end_block = build.block
        build.branch(after_block)
        build.position_at_end(after_block)
        per_result, merged_results = (
            zip(avals, merged_results, new_results, is_divergent, strict=True),
            [],
        )
        for aval, old, new, is_divergent_result in per_result:
            with all_lanes_if(em, is_divergent_result):
                merged_results.append(_emit_phis(em, aval, old, new, block_before, end_block))
    return merged_results


def _needs_memory(em: Emitter, aval: ShapedArray, args: Sequence[EmittedArray]):
    """Return whether a result is large, or may be an argument in memory that is passed through."""
    return aval.size > em.register_limit or any(
        isinstance(x, ArrayView) and x.shape == aval.shape and x.buffer.dtype == aval.dtype
        for x in args
    )


class _NotYetComputed:
    """A result in memory that no branch has computed so far."""

    def __init__(self, aval: ShapedArray):
        self.aval = aval


def _merge(
    em: Emitter,
    aval: ShapedArray,
    old: Any,
    new: Any,
    condition: LaneValue | None,
    args: Sequence[EmittedArray],
):
    """Merge the results of a branch with those before it, inside the branch.

    **Arguments:** `condition`, lanes that take the branch; `None` for all of them.
    """
    dtype = np.dtype(aval.dtype)
    if isinstance(old, _NotYetComputed):
        is_usable = isinstance(new, ArrayView) and new.covers_buffer and not new.buffer.shared
        # The result may be an argument, perhaps changed in place. Buffers that inner branches
        # allocate are copied, because their blocks do not dominate the code after this branch.
        if is_usable and any(isinstance(x, ArrayView) and new.buffer is x.buffer for x in args):
            return new
        out = em.memory.allocate(aval.shape, dtype)
        return em.copy_to_memory(new, dtype, into=out)
    if isinstance(old, ArrayView):
        is_same_buffer = isinstance(new, ArrayView) and new.buffer is old.buffer
        if is_same_buffer and new.covers_buffer:
            return old
        # A permuted view of the same buffer would be read while it is overwritten.
        if is_same_buffer or old.buffer.pin_count:
            # Not all branches return the argument itself: see `_emit_phis`.
            return em.copy_to_memory(new, dtype, into=em.copy_to_memory(old, dtype), mask=condition)
        return em.copy_to_memory(new, dtype, into=old, mask=condition)
    new = em.to_registers(new)
    if old is None or condition is None:
        return new
    return em.select_array(dtype, condition, new, old)


def _emit_phis(
    em: Emitter, aval: ShapedArray, old: Any, new: Any, block_before: ir.Block, branch_end: ir.Block
):
    """Emit phi nodes of a value after a branch: new if it was taken, otherwise the old value."""
    if isinstance(new, ArrayView):
        if not isinstance(old, ArrayView) or new.buffer is old.buffer:
            return new
        # The copy exists only if the branch was taken. Neither buffer may be overwritten from here:
        # they count as used. A loop that has one as a carry copies the result before it stores it.
        pointer = em.builder.phi(POINTER)
        for view, block in ((old, block_before), (new, branch_end)):
            pointer.add_incoming(view.buffer.pointer, block)
            view.buffer.use_count += 1
        buffer = Buffer(
            pointer, new.buffer.dtype, new.buffer.size, is_owned=False, pin_count=1,
            pitch=new.buffer.pitch, lanes=new.buffer.lanes,
            aliases=(old.buffer, *old.buffer.aliases, new.buffer, *new.buffer.aliases),
        )  # fmt: skip
        return ArrayView(buffer, new.shape, new.strides)
    dtype = np.dtype(aval.dtype)
    out = em.emit_phis(new, dtype, branch_end)
    initial = np.full(new.shape, dtype.type(0)) if old is None else old
    em.add_incoming(out, initial, dtype, block_before)
    return out
