"""Scans: loops whose trip count is the same in all lanes."""

from typing import Any

import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Jaxpr
from llvmlite import ir

from ...passes.analysis import is_unrolled, scan_counts, sub_jaxprs
from ...primitives.registry import Equation, rule
from ...values.complex import LaneValue
from ...values.memory import ArrayView, EmittedArray
from ..emitter import Emitter
from ..nests import permute_axes
from ..uniformity import all_lanes_if, broadcast_to_lanes, is_divergent
from .indexing import prepare_carries
from .loops import split_arguments
from .structure import index_axis, index_axis_view
from .turns import map_over_lanes


@rule("scan")
def _scan(em: Emitter, equation: Equation, *args: EmittedArray):
    params = equation.params
    consts, carry, xs = split_arguments(args, *scan_counts(params))
    body, length = params["jaxpr"], params["length"]
    num_carry = len(carry)
    out_avals = [var.aval for var in equation.outvars[num_carry:]]
    if is_unrolled(params):
        order = range(length)
        slices_out: list = [None] * length
        with em.keep_alive([*consts, *xs]):
            for k in reversed(order) if params["reverse"] else order:
                slices_in = [_index_first_axis(em, x, k) for x in xs]
                out = em.emit(body, consts + carry + slices_in)
                carry, slices_out[k] = out[:num_carry], out[num_carry:]
                slices_out[k] = [
                    _copy_pinned(em, part, aval)
                    for part, aval in zip(slices_out[k], out_avals, strict=True)
                ]
        stacked = [
            _stack(em, [slices_of_step[k] for slices_of_step in slices_out], aval)
            for k, aval in enumerate(out_avals)
        ]
        return carry + stacked
    if not carry and length > 1 and em.vectors.width > 1 and not _has_call(body.jaxpr):
        return map_over_lanes(em, body, length, consts, _all_to_memory(em, equation, xs))
    return _ScanLoop(em, equation, consts, carry, xs).emit()


def _has_call(jaxpr: Jaxpr):
    """Return whether a jaxpr calls functions of the kernel, which exist for one lane only."""
    return any(
        equation.primitive.name == "shared_call" or any(map(_has_call, sub_jaxprs(equation)))
        for equation in jaxpr.eqns
    )


def _all_to_memory(em: Emitter, equation: Equation, xs: list[EmittedArray]):
    dtypes = [np.dtype(v.aval.dtype) for v in equation.invars[-len(xs) :]] if xs else []
    return [em.to_memory(x, dtype) for x, dtype in zip(xs, dtypes, strict=True)]


def _index_first_axis(em: Emitter, x: EmittedArray, k: int):
    with all_lanes_if(em, is_divergent(x)):
        return index_axis(em, x, 0, k)


def _copy_pinned(em: Emitter, part: EmittedArray, aval: ShapedArray):
    with all_lanes_if(em, is_divergent(part)):
        return em.copy_pinned(part, aval)


def _stack(em: Emitter, parts: list[EmittedArray], aval: ShapedArray):
    is_any_divergent = any(map(is_divergent, parts))
    with all_lanes_if(em, is_any_divergent):
        parts = [broadcast_to_lanes(em, part) for part in parts] if is_any_divergent else parts
        return _stack_slices(em, parts, aval)


def _stack_slices(em: Emitter, parts: Any, aval: ShapedArray):
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
def _for_each(em: Emitter, equation: Equation, *args: Any):
    """Emit a fused loop over batched axes; see `passes.loop_fusion`."""
    params, avals = equation.params, [var.aval for var in equation.outvars]
    dtypes = [np.dtype(var.aval.dtype) for var in equation.invars]
    args = [  # pyright: ignore[reportAssignmentType]
        x if axis is None else em.to_memory(x, dtype)
        for x, axis, dtype in zip(args, params["sources"], dtypes, strict=True)
    ]
    outs = []
    for aval, axis in zip(avals, params["targets"], strict=True):
        shape = (*aval.shape[:axis], *aval.shape[axis + 1 :])
        outs.append(em.memory.allocate((params["length"], *shape), aval.dtype))
    for out in outs:
        out.buffer.pin_count += 1
    with em.keep_alive(args), em.loop(params["length"]) as k:  # pyright: ignore[reportArgumentType]
        rows = [
            x if axis is None else index_axis(em, x, axis, k)
            for x, axis in zip(args, params["sources"], strict=True)
        ]
        for out, part in zip(outs, em.emit(params["jaxpr"], rows), strict=True):
            em.copy_to_memory(part, out.buffer.dtype, into=index_axis_view(em, out, 0, k))
    for out in outs:
        out.buffer.pin_count -= 1
    permutations = (
        [*range(1, axis + 1), 0, *range(axis + 1, a.ndim)]
        for a, axis in zip(avals, params["targets"], strict=True)
    )
    return [
        permute_axes(out, permutation) for out, permutation in zip(outs, permutations, strict=True)
    ]


class _ScanLoop:
    """A scan at run time."""

    def __init__(
        self,
        em: Emitter,
        equation: Equation,
        consts: list[EmittedArray],
        carry: list[EmittedArray],
        xs: list[EmittedArray],
    ):
        self.em, self.equation, self.p = em, equation, equation.params
        self.consts, self.carry, self.xs = consts, carry, xs
        self.out_avals = [var.aval for var in equation.outvars[len(carry) :]]
        self.dtypes = [np.dtype(v.aval.dtype) for v in equation.outvars[: len(carry)]]

    def emit(self):
        em = self.em
        xs = _all_to_memory(em, self.equation, self.xs)
        with em.keep_alive([*self.consts, *xs]):
            return self._emit(xs)

    def _emit(self, xs: list[ArrayView]):
        em, build = self.em, self.em.builder
        outs = [em.memory.allocate(aval.shape, aval.dtype) for aval in self.out_avals]
        operands = [*self.consts, *(None for _ in self.carry), *xs]
        register_limits = em.find_register_limits(self.p["jaxpr"].jaxpr, operands)
        first = len(self.consts)
        carries = prepare_carries(
            em, self.carry, self.dtypes, register_limits[first : first + len(self.carry)]
        )
        pinned_buffers = [v.buffer for v in carries if isinstance(v, ArrayView)] + [
            o.buffer for o in outs
        ]
        for buffer in pinned_buffers:
            buffer.pin_count += 1
        block_before = build.block
        with em.loop(self.p["length"]) as iteration:
            phi_arrays, carry = self._phis(carries, block_before)
            length = ir.Constant(iteration.type, self.p["length"] - 1)
            k = build.sub(length, iteration) if self.p["reverse"] else iteration
            slices_in = [index_axis(em, x, 0, k) for x in xs]
            results = em.emit(self.p["jaxpr"], self.consts + carry + slices_in)
            new_carry, slices_out = results[: len(carry)], results[len(carry) :]
            for out, part, aval in zip(outs, slices_out, self.out_avals, strict=True):
                flat_index = em.memory.flat_index(out, (k, *(0 for _ in aval.shape[1:])))
                row = ArrayView(out.buffer, tuple(aval.shape[1:]), out.strides[1:], flat_index)
                em.copy_to_memory(part, out.buffer.dtype, into=row)
            self._advance(carries, carry, phi_arrays, new_carry)
        for buffer in pinned_buffers:
            buffer.pin_count -= 1
        final = [
            v if phi_array is None else self._last_values[k]
            for k, (v, phi_array) in enumerate(zip(carries, phi_arrays, strict=True))
        ]
        return final + [em.load_if_small(out) for out in outs]

    def _phis(self, carries: list[EmittedArray], block_before: ir.Block):
        em = self.em
        phi_arrays, carry = [], []
        for variable, dtype in zip(carries, self.dtypes, strict=True):
            if isinstance(variable, ArrayView):
                phi_arrays.append(None)
                carry.append(variable)
                continue
            phi_arrays.append(em.emit_phis(variable, dtype, block_before))
            carry.append(phi_arrays[-1])
        return phi_arrays, carry

    def _advance(
        self, carries: Any, carry: Any, phi_arrays: list[np.ndarray | None], new_carry: Any
    ):
        em = self.em
        buffers = [v.buffer for v in carries if isinstance(v, ArrayView)]
        values = []
        for old, value, dtype in zip(carry, new_carry, self.dtypes, strict=True):
            if isinstance(value, ArrayView):
                is_own_buffer = (
                    isinstance(old, ArrayView)
                    and value.buffer is old.buffer
                    and value.covers_buffer
                )
                if not is_own_buffer and any(map(value.buffer.may_alias, buffers)):
                    value = em.copy_to_memory(value, dtype)
            values.append(value)
        for old, value, phi_array, dtype in zip(
            carry, values, phi_arrays, self.dtypes, strict=True
        ):
            if phi_array is None and not (
                isinstance(value, ArrayView) and value.buffer is old.buffer
            ):
                em.copy_to_memory(value, dtype, into=old, mask=em.mask)
        # The loops of the copies above have ended the previous block.
        self._last_values: list[LaneValue | None] = [None] * len(carry)
        for k, (value, phi_array, dtype) in enumerate(
            zip(values, phi_arrays, self.dtypes, strict=True)
        ):
            if phi_array is None:
                continue
            self._last_values[k] = em.to_registers(value)
            em.add_incoming(phi_array, self._last_values[k], dtype, em.builder.block)
