"""Scans: loops whose number of turns is the same in all lanes."""

import numpy as np
from llvmlite import ir

from ...passes.analysis import is_unrolled, scan_counts, sub_jaxprs
from ...passes.uniformity import all_lanes_if, broadcast_to_lanes, is_divergent
from ..complex import LaneValue
from ..emitter import Emitter
from ..memory import ArrayView
from ..nests import permute_axes
from ..registry import rule
from .indexing import prepare_carries
from .loops import split_arguments
from .structure import index_axis, index_axis_view
from .turns import in_lanes


@rule("scan")
def _scan(em: Emitter, equation, *args):
    p = equation.params
    consts, carry, xs = split_arguments(args, *scan_counts(p))
    body, length = p["jaxpr"], p["length"]
    carried = len(carry)
    out_avals = [var.aval for var in equation.outvars[carried:]]
    if is_unrolled(p):
        order = range(length)
        slices: list = [None] * length
        with em.keep_alive([*consts, *xs]):
            for k in reversed(order) if p["reverse"] else order:
                now = [_taken(em, x, k) for x in xs]
                out = em.emit(body, consts + carry + now)
                carry, slices[k] = out[:carried], out[carried:]
                slices[k] = [
                    _owned(em, part, aval) for part, aval in zip(slices[k], out_avals, strict=True)
                ]
        stacked = [
            _stacked(em, [one[k] for one in slices], aval) for k, aval in enumerate(out_avals)
        ]
        return carry + stacked
    if not carry and length > 1 and em.vectors.width > 1 and not _has_call(body.jaxpr):
        return in_lanes(em, body, length, consts, _in_memory(em, equation, xs))
    return _ScanLoop(em, equation, consts, carry, xs).emit()


def _has_call(jaxpr):
    """Whether a program calls functions of the kernel, which are for one lane."""
    return any(
        equation.primitive.name == "shared_call" or any(map(_has_call, sub_jaxprs(equation)))
        for equation in jaxpr.eqns
    )


def _in_memory(em, equation, xs):
    dtypes = [np.dtype(v.aval.dtype) for v in equation.invars[-len(xs) :]] if xs else []
    return [em.to_memory(x, dtype) for x, dtype in zip(xs, dtypes, strict=True)]


def _taken(em, x, k):
    with all_lanes_if(em, is_divergent(x)):
        return index_axis(em, x, 0, k)


def _owned(em, part, aval):
    with all_lanes_if(em, is_divergent(part)):
        return em.copy_pinned(part, aval)


def _stacked(em, parts, aval):
    different = any(map(is_divergent, parts))
    with all_lanes_if(em, different):
        parts = [broadcast_to_lanes(em, part) for part in parts] if different else parts
        return _one_stack(em, parts, aval)


def _one_stack(em, parts, aval):
    dtype = np.dtype(aval.dtype)
    if em.fits_registers(aval.size, *parts):
        parts = [em.to_registers(part) for part in parts]
        out = np.empty(aval.shape, object)
        for k, part in enumerate(parts):
            out[k] = part[()] if part.ndim == 0 else part
        return out
    out = em.memory.allocate(aval.shape, dtype)
    for k, part in enumerate(parts):
        row = ArrayView(out.buffer, out.shape[1:], out.strides[1:], k * out.strides[0])
        em.copy_to_memory(part, dtype, into=row)
    return out


@rule("for_each")
def _for_each(em: Emitter, equation, *args):
    """Stacks entry by entry; see `stacks`."""
    p, avals = equation.params, [var.aval for var in equation.outvars]
    dtypes = [np.dtype(var.aval.dtype) for var in equation.invars]
    args = [
        x if axis is None else em.to_memory(x, dtype)
        for x, axis, dtype in zip(args, p["sources"], dtypes, strict=True)
    ]
    outs = []
    for aval, axis in zip(avals, p["targets"], strict=True):
        rest = (*aval.shape[:axis], *aval.shape[axis + 1 :])
        outs.append(em.memory.allocate((p["length"], *rest), aval.dtype))
    for out in outs:
        out.buffer.pin_count += 1
    with em.keep_alive(args), em.loop(p["length"]) as k:
        rows = [
            x if axis is None else index_axis(em, x, axis, k)
            for x, axis in zip(args, p["sources"], strict=True)
        ]
        for out, part in zip(outs, em.emit(p["jaxpr"], rows), strict=True):
            em.copy_to_memory(part, out.buffer.dtype, into=index_axis_view(em, out, 0, k))
    for out in outs:
        out.buffer.pin_count -= 1
    order = (
        [*range(1, axis + 1), 0, *range(axis + 1, a.ndim)]
        for a, axis in zip(avals, p["targets"], strict=True)
    )
    return [permute_axes(out, one) for out, one in zip(outs, order, strict=True)]


class _ScanLoop:
    """A scan at run time; its turns are the same in all lanes."""

    def __init__(self, em, equation, consts, carry, xs):
        self.em, self.equation, self.p = em, equation, equation.params
        self.consts, self.carry, self.xs = consts, carry, xs
        self.out_avals = [var.aval for var in equation.outvars[len(carry) :]]
        self.dtypes = [np.dtype(v.aval.dtype) for v in equation.outvars[: len(carry)]]

    def emit(self):
        em = self.em
        xs = _in_memory(em, self.equation, self.xs)
        with em.keep_alive([*self.consts, *xs]):
            return self._emit(xs)

    def _emit(self, xs):
        em, build = self.em, self.em.builder
        outs = [em.memory.allocate(aval.shape, aval.dtype) for aval in self.out_avals]
        given = [*self.consts, *(None for _ in self.carry), *xs]
        limits = em.find_register_limits(self.p["jaxpr"].jaxpr, given)
        first = len(self.consts)
        variables = prepare_carries(
            em, self.carry, self.dtypes, limits[first : first + len(self.carry)]
        )
        changing = [v.buffer for v in variables if isinstance(v, ArrayView)] + [
            o.buffer for o in outs
        ]
        for buffer in changing:
            buffer.pin_count += 1
        before = build.block
        with em.loop(self.p["length"]) as turn:
            phis, carry = self._phis(variables, before)
            length = ir.Constant(turn.type, self.p["length"] - 1)
            k = build.sub(length, turn) if self.p["reverse"] else turn
            now = [index_axis(em, x, 0, k) for x in xs]
            results = em.emit(self.p["jaxpr"], self.consts + carry + now)
            new, slices = results[: len(carry)], results[len(carry) :]
            for out, part, aval in zip(outs, slices, self.out_avals, strict=True):
                at = em.memory.flat_index(out, (k, *(0 for _ in aval.shape[1:])))
                row = ArrayView(out.buffer, tuple(aval.shape[1:]), out.strides[1:], at)
                em.copy_to_memory(part, out.buffer.dtype, into=row)
            self._advance(variables, carry, phis, new)
        for buffer in changing:
            buffer.pin_count -= 1
        final = [
            v if nodes is None else self._last[k]
            for k, (v, nodes) in enumerate(zip(variables, phis, strict=True))
        ]
        return final + [em.load_if_small(out) for out in outs]

    def _phis(self, variables, before):
        em = self.em
        phis, carry = [], []
        for variable, dtype in zip(variables, self.dtypes, strict=True):
            if isinstance(variable, ArrayView):
                phis.append(None)
                carry.append(variable)
                continue
            phis.append(em.emit_phis(variable, dtype, before))
            carry.append(phis[-1])
        return phis, carry

    def _advance(self, variables, carry, phis, new):
        em = self.em
        buffers = [v.buffer for v in variables if isinstance(v, ArrayView)]
        apart = []
        for old, value, dtype in zip(carry, new, self.dtypes, strict=True):
            if isinstance(value, ArrayView):
                same = (
                    isinstance(old, ArrayView)
                    and value.buffer is old.buffer
                    and value.covers_buffer
                )
                if not same and any(value.buffer is b for b in buffers):
                    value = em.copy_to_memory(value, dtype)
            apart.append(value)
        for old, value, nodes, dtype in zip(carry, apart, phis, self.dtypes, strict=True):
            if nodes is None and not (isinstance(value, ArrayView) and value.buffer is old.buffer):
                em.copy_to_memory(value, dtype, into=old, mask=em.mask)
        # After the copies, whose loops end in blocks of their own.
        self._last: list[LaneValue | None] = [None] * len(carry)
        for k, (value, nodes, dtype) in enumerate(zip(apart, phis, self.dtypes, strict=True)):
            if nodes is None:
                continue
            self._last[k] = em.to_registers(value)
            em.add_incoming(nodes, self._last[k], dtype, em.builder.block)
