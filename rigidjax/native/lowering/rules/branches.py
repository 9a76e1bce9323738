"""Branches: all of them computed if they are small, else those that some lane takes."""

from typing import Any

import numpy as np

from ...passes.analysis import FEW_REGISTERS, cost
from ...passes.dynamic_indices import find_dynamic_indices
from ...passes.uniformity import all_lanes_if, broadcast_to_lanes, emits_uniform_code, is_divergent
from ..emitter import Emitter
from ..lanes import POINTER, is_constant
from ..memory import ArrayView, Buffer
from ..registry import rule

# Numbers computed by a branch up to which all branches are computed, and one is chosen.
_SMALL_BRANCH = 24


@rule("cond")
def _cond(em: Emitter, equation, which, *args):
    branches = equation.params["branches"]
    index_dtype = np.dtype(equation.invars[0].aval.dtype)
    which = em.read_element(which, ())
    lanes = em.lanes
    if is_constant(which):
        taken_branch = branches[min(max(int(which), 0), len(branches) - 1)]
        return em.emit(taken_branch, list(args))
    if index_dtype == np.bool_:
        which, index_dtype = lanes.convert(which, np.bool_, np.int32), np.dtype(np.int32)
    conditions = []
    for k in range(len(branches)):
        operator = "<=" if k == 0 else ">=" if k == len(branches) - 1 else "=="
        conditions.append(lanes.compare(index_dtype, operator, which, index_dtype.type(k)))
    avals = [var.aval for var in equation.outvars]
    buffers = [x.buffer for x in args if isinstance(x, ArrayView)]
    for buffer in buffers:
        buffer.pin_count += 1
    if all(_is_simple(branch.jaxpr) for branch in branches):
        out = _all_branches(em, branches, conditions, args, avals)
    else:
        out = _guarded_branches(
            em, branches, conditions, args, avals, _different(em, branches, args)
        )
    for buffer in buffers:
        buffer.pin_count -= 1
    return out


def _is_simple(jaxpr: Any) -> bool:
    small = all(var.aval.size <= FEW_REGISTERS for var in (*jaxpr.invars, *jaxpr.outvars))
    loops = any(e.primitive.name in ("while", "scan", "cond") for e in jaxpr.eqns)
    return small and not loops and cost(jaxpr) <= _SMALL_BRANCH


def _all_branches(em, branches, conditions, args, avals):
    out = None
    for branch, condition in zip(branches, conditions, strict=True):
        with em.restrict_lanes(em.intersect_mask(em.mask, condition)):
            one = [_registers(em, x) for x in em.emit(branch, list(args))]
        if out is None:
            out = one
            continue
        out = [
            _chosen(em, aval.dtype, condition, new, old)
            for aval, new, old in zip(avals, one, out, strict=True)
        ]
    return out


def _registers(em, x):
    with all_lanes_if(em, is_divergent(x)):
        return em.to_registers(x)


def _chosen(em, dtype, condition, new, old):
    if not emits_uniform_code(em) or not (is_divergent(new) or is_divergent(old)):
        return em.select_array(dtype, condition, new, old)
    with em.vectors.as_lanes():
        new, old = (broadcast_to_lanes(em, x) for x in (new, old))
        return em.select_array(dtype, em.lanes.splat(condition), new, old)


def _different(em, branches, args):
    """Which results differ from lane to lane where the emitter has one (see `mixed`)."""
    if not emits_uniform_code(em):
        return [False] * len(branches[0].out_avals)
    marks = tuple(map(is_divergent, args))
    found = [find_dynamic_indices(branch.jaxpr, marks, False).unknown for branch in branches]
    return list(map(any, zip(*found, strict=True)))


def _guarded_branches(em, branches, conditions, args, avals, different):
    """Branches that are computed only if some lane takes them; see `_different`."""
    build, outer, single = em.builder, em.mask, em.lanes.width == 1
    out: list = [None] * len(avals)
    for branch, condition in zip(branches, conditions, strict=True):
        mask = em.intersect_mask(outer, condition)
        before, inside = build.block, build.append_basic_block("branch")
        after = build.append_basic_block("after")
        # Memory for results that are too large for registers, before the first branch.
        for k, aval in enumerate(avals):
            if out[k] is None and _is_in_memory(em, aval, args):
                out[k] = _Pending(aval)
        build.cbranch(em.lanes.any(mask), inside, after)
        build.position_at_end(inside)
        with em.restrict_lanes(None if single else mask):
            results = em.emit(branch, list(args))
            merged = []
            for aval, old, new, differ in zip(avals, out, results, different, strict=True):
                with all_lanes_if(em, differ):
                    new = broadcast_to_lanes(em, new) if differ else new
                    mask = None if single else condition
                    merged.append(_merged(em, aval, old, new, mask, args))
        end = build.block
        build.branch(after)
        build.position_at_end(after)
        parts, out = zip(avals, out, merged, different, strict=True), []
        for aval, old, new, differ in parts:
            with all_lanes_if(em, differ):
                out.append(_joined(em, aval, old, new, before, end))
    return out


def _is_in_memory(em, aval, args):
    """Whether a result is large, or may be an argument in memory that is handed on."""
    return aval.size > em.register_limit or any(
        isinstance(x, ArrayView) and x.shape == aval.shape and x.buffer.dtype == aval.dtype
        for x in args
    )


class _Pending:
    """A result in memory that no branch has given yet."""

    def __init__(self, aval):
        self.aval = aval


def _merged(em, aval, old, new, condition, args):
    """A branch's result in its lanes, what there was before in the others (inside the branch).

    **Arguments:** `condition`, in which lanes the branch is taken; `None` for all of them.
    """
    dtype = np.dtype(aval.dtype)
    if isinstance(old, _Pending):
        whole = isinstance(new, ArrayView) and new.covers_buffer and not new.buffer.shared
        # An argument, perhaps changed in place. (What an inner branch hands on may be kept too,
        # but its address is known in this branch only.)
        if whole and any(isinstance(x, ArrayView) and new.buffer is x.buffer for x in args):
            return new
        out = em.memory.allocate(aval.shape, dtype)
        return em.copy_to_memory(new, dtype, into=out)
    if isinstance(old, ArrayView):
        same = isinstance(new, ArrayView) and new.buffer is old.buffer
        if same and new.covers_buffer:
            return old
        # In another order it is read while it would be changed.
        if same or old.buffer.pin_count:
            # Some branches hand an argument on, others do not: a copy (see `_joined`).
            return em.copy_to_memory(new, dtype, into=em.copy_to_memory(old, dtype), mask=condition)
        return em.copy_to_memory(new, dtype, into=old, mask=condition)
    new = em.to_registers(new)
    if old is None or condition is None:
        return new
    return em.select_array(dtype, condition, new, old)


def _joined(em, aval, old, new, before, end):
    """Numbers after a branch: its own if it was taken."""
    if isinstance(new, ArrayView):
        if not isinstance(old, ArrayView) or new.buffer is old.buffer:
            return new
        # The copy is there only if the branch was taken. Nobody may write either in this place.
        pointer = em.builder.phi(POINTER)
        for one, block in ((old, before), (new, end)):
            pointer.add_incoming(one.buffer.pointer, block)
            one.buffer.pin_count += 1
        buffer = Buffer(
            pointer, new.buffer.dtype, new.buffer.size, is_owned=False, pin_count=1,
            pitch=new.buffer.pitch, lanes=new.buffer.lanes,
        )  # fmt: skip
        return ArrayView(buffer, new.shape, new.strides)
    dtype = np.dtype(aval.dtype)
    out = em.emit_phis(new, dtype, end)
    first = np.full(new.shape, dtype.type(0)) if old is None else old
    em.add_incoming(out, first, dtype, before)
    return out
