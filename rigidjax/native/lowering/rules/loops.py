"""`while` loops.

A loop whose trip count is constant and small is unrolled. Any other loop runs until all W lanes of
a block have finished; the values of finished lanes stay as they are. The main loop of a batch is
left earlier if other batch elements wait for the lanes (see `lane_compaction`).
"""

import functools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun
from jaxtyping import Array

from ...passes.analysis import MAX_UNROLLED_COST, MAX_UNROLLED_ITERATIONS, cost
from ...passes.hoisting import extract_jaxpr, find_invariant_equations
from ...primitives.expansions import expansion
from ...primitives.registry import Equation, rule
from ...values.builder import I64, Value, int64
from ...values.complex import LaneValue
from ...values.lanes import is_constant
from ...values.memory import ArrayView, Buffer, EmittedArray
from ..emitter import Emitter
from ..uniformity import (
    all_lanes_if,
    broadcast_to_lanes,
    emits_uniform_code,
    find_divergent_carry,
    is_divergent,
)
from .indexing import prepare_carries


@rule("while")
def _while(em: Emitter, equation: Equation, *args: EmittedArray):
    params = equation.params
    cond_consts, body_consts, start = split_arguments(
        args, params["cond_nconsts"], params["body_nconsts"]
    )
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    trip_count = find_constant_trip_count(em, cond, body, cond_consts, body_consts, start)
    if trip_count is not None and trip_count * cost(body.jaxpr) <= MAX_UNROLLED_COST:
        with em.keep_alive(body_consts):
            for _ in range(trip_count):
                start = em.emit(body, body_consts + start)
        return start
    return Loop(em, cond, body, cond_consts, body_consts, start).emit()


@expansion("while")
def _expand_stacked_while(
    *args: Array,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
    **_: Any,
):
    """Lower a loop whose condition has batch axes: finished batch elements stay as they are."""
    cond_consts, body_consts, start = split_arguments(args, cond_nconsts, body_nconsts)
    evaluate_condition, evaluate_body = jaxpr_as_fun(cond_jaxpr), jaxpr_as_fun(body_jaxpr)

    def is_active(carry):
        return evaluate_condition(*cond_consts, *carry)[0]

    def iterate(carry):
        is_active_now = is_active(carry)
        return [
            jnp.where(
                jax.lax.expand_dims(is_active_now, range(is_active_now.ndim, new.ndim)), new, old
            )
            for new, old in zip(evaluate_body(*body_consts, *carry), carry, strict=True)
        ]

    return jax.lax.while_loop(lambda carry: jnp.any(is_active(carry)), iterate, list(start))


def split_arguments(
    args: Iterable[Any], first: int, second: int
) -> tuple[list[Any], list[Any], list[Any]]:
    """Split a list into its `first` arguments, the next `second` ones, and the rest."""
    args, end = list(args), first + second
    return args[:first], args[first:end], args[end:]


def find_constant_trip_count(
    em: Emitter,
    cond: ClosedJaxpr,
    body: ClosedJaxpr,
    cond_consts: list[Any],
    body_consts: list[Any],
    start: list[Any],
) -> int | None:
    """Return the trip count of a loop if it is a compile-time constant, else `None`.

    **Arguments:** `em`; `cond` and `body`, closed jaxprs; `cond_consts` and `body_consts`, their
    constants; `start`, the initial carries.
    """
    cond_inputs = _find_dependencies(cond.jaxpr, range(len(cond.jaxpr.outvars)))
    num_consts = len(cond_consts)
    if any(not _is_constant_array(cond_consts[k]) for k in cond_inputs if k < num_consts):
        return None
    needed_carries = {k - num_consts for k in cond_inputs if k >= num_consts}
    while True:
        body_inputs = _find_dependencies(body.jaxpr, needed_carries)
        if any(not _is_constant_array(body_consts[k]) for k in body_inputs if k < len(body_consts)):
            return None
        extended = needed_carries | {
            k - len(body_consts) for k in body_inputs if k >= len(body_consts)
        }
        if extended == needed_carries:
            break
        needed_carries = extended
    if any(not _is_constant_array(start[k]) for k in needed_carries):
        return None
    pruned_cond = ClosedJaxpr(_prune(cond.jaxpr, (0,)), cond.consts)
    carry_indices = sorted(needed_carries)
    pruned_body = ClosedJaxpr(_prune(body.jaxpr, tuple(carry_indices)), body.consts)
    cond_consts = [x if _is_constant_array(x) else None for x in cond_consts]
    body_consts = [x if _is_constant_array(x) else None for x in body_consts]
    values = [x if k in needed_carries else None for k, x in enumerate(start)]
    for trip_count in range(MAX_UNROLLED_ITERATIONS + 1):
        (is_active,) = em.emit(pruned_cond, cond_consts + values)
        if not is_constant(is_active[()]):  # pyright: ignore[reportIndexIssue]
            return None
        if not is_active[()]:  # pyright: ignore[reportIndexIssue]
            return trip_count
        next_values = em.emit(pruned_body, body_consts + values)
        for k, value in zip(carry_indices, next_values, strict=True):
            if not _is_constant_array(value):
                return None
            values[k] = value
    return None


def _is_constant_array(x: EmittedArray) -> bool:
    return not isinstance(x, ArrayView) and all(is_constant(element) for element in x.ravel())


def _find_dependencies(jaxpr: Jaxpr, outputs: Iterable[int]) -> frozenset[int]:
    """Return the indices of the inputs on which these outputs depend."""
    return _slice_backwards(jaxpr, tuple(sorted(outputs)))[0]


def _prune(jaxpr: Jaxpr, outputs: tuple[int, ...]) -> Jaxpr:
    """Return the jaxpr of these outputs, with only the equations that they depend on."""
    _, equations, results = _slice_backwards(jaxpr, tuple(outputs))
    return jaxpr.replace(
        eqns=equations, outvars=results, debug_info=_debug_info(jaxpr, len(results))
    )


def _debug_info(jaxpr: Jaxpr, count: int) -> Any:
    info = jaxpr.debug_info
    return info._replace(result_paths=tuple("" for _ in range(count)))


@functools.lru_cache(maxsize=512)
def _slice_backwards(
    jaxpr: Jaxpr, outputs: tuple[int, ...]
) -> tuple[frozenset[int], list[JaxprEqn], list[Var | Literal]]:
    """Return the indices of needed inputs, the needed equations and the outputs."""
    results = [jaxpr.outvars[k] for k in outputs]
    needed = {atom for atom in results if not isinstance(atom, Literal)}
    equations = []
    for equation in reversed(jaxpr.eqns):
        if any(var in needed for var in equation.outvars):
            equations.append(equation)
            needed |= {atom for atom in equation.invars if not isinstance(atom, Literal)}
    reads = frozenset(k for k, var in enumerate(jaxpr.invars) if var in needed)
    return reads, list(reversed(equations)), results


class Loop:
    """A loop at run time: small carries are phi nodes, large ones are in memory."""

    def __init__(
        self,
        em: Emitter,
        cond: ClosedJaxpr,
        body: ClosedJaxpr,
        cond_consts: list[EmittedArray],
        body_consts: list[EmittedArray],
        start: list[EmittedArray],
    ):
        self.em, self.cond, self.body = em, cond, body
        self.cond_consts = cond_consts
        body_jaxpr = body.jaxpr
        carry_vars = body_jaxpr.invars[len(body_consts) :]
        # Loop-invariant carries need no phi node.
        self.is_invariant = [a is b for a, b in zip(carry_vars, body_jaxpr.outvars, strict=True)]
        self.dtypes = [np.dtype(var.aval.dtype) for var in carry_vars]
        self.sizes = [var.aval.size for var in carry_vars]
        self.start = start
        # Sizes up to which constants and carries are held in registers.
        register_limits = em.find_register_limits(
            body_jaxpr, [*body_consts, *(None for _ in start)]
        )
        self.register_limits = register_limits[len(body_consts) :]
        dtypes = [var.aval.dtype for var in body_jaxpr.invars]
        self.body_consts = [
            self._to_memory(x, dtype) if x.size > limit else x
            for x, dtype, limit in zip(body_consts, dtypes, register_limits, strict=False)
        ]
        # Which carries are divergent, in a kernel that emits uniform values as scalars.
        self.is_divergent = (False,) * len(start)
        if emits_uniform_code(em):
            is_const_divergent, is_carry_divergent = (
                tuple(map(is_divergent, arrays)) for arrays in (self.body_consts, start)
            )
            self.is_divergent = find_divergent_carry(
                body_jaxpr, is_const_divergent, is_carry_divergent
            )

    def _to_memory(self, x: EmittedArray, dtype: np.dtype):
        with all_lanes_if(self.em, is_divergent(x)):
            return self.em.to_memory(x, dtype)

    def _as_carry(self, k: int, x: EmittedArray):
        """Return an array as carry `k` is held, for use within `all_lanes_if`."""
        return broadcast_to_lanes(self.em, x) if self.is_divergent[k] else x

    def emit(self) -> list[EmittedArray]:
        em = self.em
        invariant_carries = [
            x for x, is_invariant in zip(self.start, self.is_invariant, strict=True) if is_invariant
        ]
        with em.keep_alive([*self.cond_consts, *self.body_consts, *invariant_carries]):
            return self._emit_with_operands_alive()

    def _emit_with_operands_alive(self):
        carries = list(self.start)
        for divergent in {*self.is_divergent}:
            with all_lanes_if(self.em, divergent):
                changing_indices = [
                    k
                    for k, d in enumerate(self.is_divergent)
                    if d == divergent and not self.is_invariant[k]
                ]
                initial_values = [self._as_carry(k, self.start[k]) for k in changing_indices]
                dtypes, limits = (
                    [per_carry[k] for k in changing_indices]
                    for per_carry in (self.dtypes, self.register_limits)
                )
                prepared = prepare_carries(self.em, initial_values, dtypes, limits)
            for k, variable in zip(changing_indices, prepared, strict=True):
                carries[k] = variable
        return self.emit_iterations(carries)[0]

    def emit_iterations(
        self,
        carries: list[EmittedArray],
        mask: LaneValue | None = None,
        idle_limit: tuple[Value, int] | None = None,
    ) -> tuple[list[Any], Any]:
        """Emit the iterations; return the final carries and the lanes that have not finished.

        **Arguments:** `carries`, the initial values, in registers or in memory that the loop may
        overwrite; `mask`, active lanes, by default those of the emitter; `idle_limit`, for lane
        compaction: whether batch elements wait, and the number of idle lanes, summed over the
        iterations, after which the loop is left for them.
        """
        em, build = self.em, self.em.builder
        mask = em.mask if mask is None else mask
        carry_buffers = [v.buffer for v in carries if isinstance(v, ArrayView)]
        for buffer in carry_buffers:
            buffer.pin_count += 1
        hoisted = self._hoist_invariants(carries)
        before, head = build.block, build.append_basic_block("while")
        build.branch(head)
        build.position_at_end(head)
        phis, carry = [], []
        for k, (variable, dtype) in enumerate(zip(carries, self.dtypes, strict=True)):
            if self.is_invariant[k] or isinstance(variable, ArrayView):
                phis.append(None)
                carry.append(variable)
                continue
            with all_lanes_if(em, self.is_divergent[k]):
                phis.append(em.emit_phis(variable, dtype, before))
            carry.append(phis[-1])
        idle: Any = None
        if idle_limit is not None:
            idle = build.phi(I64)
            idle.add_incoming(int64(0), before)
        (condition,) = em.emit(self.cond, self.cond_consts + carry)
        active = em.intersect_mask(mask, em.lanes.value(em.read_element(condition, ()), np.bool_))
        body_block, after_block = (
            build.append_basic_block("turn"),
            build.append_basic_block("after"),
        )
        continues = em.lanes.any(active)
        if idle_limit is not None:
            may_idle = build.icmp_signed("<", idle, int64(idle_limit[1]))
            continues = build.and_(continues, build.or_(build.not_(idle_limit[0]), may_idle))
        build.cbranch(continues, body_block, after_block)
        build.position_at_end(body_block)
        is_scalar = em.lanes.width == 1
        with (
            em.restrict_lanes(None if is_scalar else active),
            em.keep_alive(list(hoisted.values())),
        ):
            results = em.emit(self.body, self.body_consts + carry, hoisted)
            results = self._copy_aliased(carry, results, carry_buffers)
            for k, (phi_array, value) in enumerate(zip(phis, results, strict=True)):
                with all_lanes_if(em, self.is_divergent[k]):
                    if isinstance(carry[k], ArrayView) and not self.is_invariant[k]:
                        self._store(carry[k], value, None if is_scalar else active)
                    elif phi_array is not None:
                        results[k] = self._select_active(
                            phi_array, value, active, self.dtypes[k], is_scalar
                        )
        for k, (phi_array, value) in enumerate(zip(phis, results, strict=True)):
            if phi_array is not None:
                with all_lanes_if(em, self.is_divergent[k]):
                    em.add_incoming(phi_array, value, self.dtypes[k], build.block)
        if idle is not None:
            num_idle = em.lanes.count(build.not_(active))
            idle.add_incoming(build.add(idle, num_idle), build.block)
        build.branch(head)
        build.position_at_end(after_block)
        for buffer in carry_buffers:
            buffer.pin_count -= 1
        return carry, active

    def _hoist_invariants(self, carries: list[EmittedArray]) -> dict[Var, EmittedArray]:
        """Emit the expensive loop-invariant equations of the body before the loop."""
        is_invariant = (True,) * len(self.body_consts) + tuple(self.is_invariant)
        equations = find_invariant_equations(self.body.jaxpr, is_invariant)
        if not equations:
            return {}
        out = self.em.emit(extract_jaxpr(self.body, equations), self.body_consts + carries)
        return dict(zip((v for e in equations for v in e.outvars), out, strict=True))

    def _copy_aliased(self, carry: list[Any], results: list[Any], carry_buffers: list[Buffer]):
        """Copy results that alias the memory of a carry, before that carry is overwritten."""
        out = []
        for k, (old, value) in enumerate(zip(carry, results, strict=True)):
            is_aliased = isinstance(value, ArrayView) and any(
                map(value.buffer.may_alias, carry_buffers)
            )
            is_own_buffer = is_aliased and isinstance(old, ArrayView) and value.buffer is old.buffer
            if is_aliased and not (is_own_buffer and value.covers_buffer):
                with all_lanes_if(self.em, is_divergent(value)):
                    value = (
                        self.em.copy_to_memory(value, self.dtypes[k])
                        if value.size > self.register_limits[k]
                        else self.em.to_registers(value)
                    )
            with all_lanes_if(self.em, self.is_divergent[k]):
                out.append(self._as_carry(k, value))
        return out

    def _store(self, variable: ArrayView, value: EmittedArray, mask: LaneValue | None):
        if isinstance(value, ArrayView) and value.buffer is variable.buffer:
            return
        self.em.copy_to_memory(value, variable.buffer.dtype, into=variable, mask=mask)

    def _select_active(
        self,
        phis: np.ndarray,
        value: EmittedArray,
        active: LaneValue,
        dtype: np.dtype,
        is_scalar: bool,
    ):
        value = self.em.to_registers(value)
        if is_scalar:
            return value
        out = np.empty(phis.shape, object)
        for index in np.ndindex(phis.shape):
            out[index] = self.em.lanes.select(dtype, active, value[index], phis[index])
        return out
