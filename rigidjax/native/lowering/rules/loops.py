"""Loops that run as long as a condition holds.

A loop whose number of turns is known and small is written out. Any other one runs until the last of
the W lanes of a block has finished; what belongs to lanes that have finished stays as it is. The
main loop of a batch is left earlier, where others wait for the lanes (see `refill`).
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from ...passes.analysis import MAX_UNROLLED_COST, MAX_UNROLLED_ITERATIONS, cost
from ...passes.hoisting import extract_jaxpr, find_invariant_equations
from ...passes.uniformity import (
    all_lanes_if,
    broadcast_to_lanes,
    emits_uniform_code,
    find_divergent_carry,
    is_divergent,
)
from ..builder import I64, int64
from ..emitter import Emitter
from ..expansions import expansion
from ..lanes import is_constant
from ..memory import ArrayView
from ..registry import rule
from .indexing import prepare_carries


@rule("while")
def _while(em: Emitter, equation, *args):
    p = equation.params
    of_condition, of_body, start = split_arguments(args, p["cond_nconsts"], p["body_nconsts"])
    condition, body = p["cond_jaxpr"], p["body_jaxpr"]
    turns = find_constant_trip_count(em, condition, body, of_condition, of_body, start)
    if turns is not None and turns * cost(body.jaxpr) <= MAX_UNROLLED_COST:
        with em.keep_alive(of_body):
            for _ in range(turns):
                start = em.emit(body, of_body + start)
        return start
    return Loop(em, condition, body, of_condition, of_body, start).emit()


@expansion("while")
def _until_all_have_ended(*args, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **_):
    """A loop whose condition is a stack: members that have ended stay as they are."""
    of_condition, of_body, start = split_arguments(args, cond_nconsts, body_nconsts)
    test, body = jaxpr_as_fun(cond_jaxpr), jaxpr_as_fun(body_jaxpr)

    def going_on(carry):
        return test(*of_condition, *carry)[0]

    def turn(carry):
        going = going_on(carry)
        return [
            jnp.where(jax.lax.expand_dims(going, range(going.ndim, new.ndim)), new, old)
            for new, old in zip(body(*of_body, *carry), carry, strict=True)
        ]

    return jax.lax.while_loop(lambda carry: jnp.any(going_on(carry)), turn, list(start))


def split_arguments(args, first, second):
    """The first arguments, those after them, and the rest."""
    args, end = list(args), first + second
    return args[:first], args[first:end], args[end:]


def find_constant_trip_count(em, condition, body, of_condition, of_body, start):
    """Number of turns of a loop whose condition is known at emission, else `None`."""
    needed = _needs(condition.jaxpr, range(len(condition.jaxpr.outvars)))
    num_own = len(of_condition)
    if any(not _is_known_array(of_condition[k]) for k in needed if k < num_own):
        return None
    carried = {k - num_own for k in needed if k >= num_own}
    while True:
        reads = _needs(body.jaxpr, carried)
        if any(not _is_known_array(of_body[k]) for k in reads if k < len(of_body)):
            return None
        more = carried | {k - len(of_body) for k in reads if k >= len(of_body)}
        if more == carried:
            break
        carried = more
    if any(not _is_known_array(start[k]) for k in carried):
        return None
    test = ClosedJaxpr(_pruned(condition.jaxpr, (0,)), condition.consts)
    order = sorted(carried)
    step = ClosedJaxpr(_pruned(body.jaxpr, tuple(order)), body.consts)
    of_condition = [x if _is_known_array(x) else None for x in of_condition]
    of_body = [x if _is_known_array(x) else None for x in of_body]
    values = [x if k in carried else None for k, x in enumerate(start)]
    for turns in range(MAX_UNROLLED_ITERATIONS + 1):
        (going_on,) = em.emit(test, of_condition + values)
        if not is_constant(going_on[()]):
            return None
        if not going_on[()]:
            return turns
        following = em.emit(step, of_body + values)
        for k, value in zip(order, following, strict=True):
            if not _is_known_array(value):
                return None
            values[k] = value
    return None


def _is_known_array(x):
    return not isinstance(x, ArrayView) and all(is_constant(one) for one in x.ravel())


def _needs(jaxpr, outputs):
    """Numbers of the arguments on which these results depend."""
    return _reach(jaxpr, tuple(sorted(outputs)))[0]


def _pruned(jaxpr, outputs):
    """The program with these results and the equations that they need."""
    _, equations, results = _reach(jaxpr, tuple(outputs))
    return jaxpr.replace(eqns=equations, outvars=results, debug_info=_info(jaxpr, len(results)))


def _info(jaxpr, count):
    info = jaxpr.debug_info
    return info._replace(result_paths=tuple("" for _ in range(count)))


@functools.lru_cache(maxsize=512)
def _reach(jaxpr, outputs):
    results = [jaxpr.outvars[k] for k in outputs]
    wanted = {atom for atom in results if not isinstance(atom, Literal)}
    equations = []
    for equation in reversed(jaxpr.eqns):
        if any(var in wanted for var in equation.outvars):
            equations.append(equation)
            wanted |= {atom for atom in equation.invars if not isinstance(atom, Literal)}
    reads = frozenset(k for k, var in enumerate(jaxpr.invars) if var in wanted)
    return reads, list(reversed(equations)), results


class Loop:
    """A loop at run time: variables in registers are phi nodes, others lie in memory."""

    def __init__(self, em, condition, body, of_condition, of_body, start):
        self.em, self.condition, self.body = em, condition, body
        self.of_condition = of_condition
        inner = body.jaxpr
        own = inner.invars[len(of_body) :]
        # What no turn changes needs no variable.
        self.fixed = [a is b for a, b in zip(own, inner.outvars, strict=True)]
        self.dtypes = [np.dtype(var.aval.dtype) for var in own]
        self.sizes = [var.aval.size for var in own]
        self.start = start
        # Entries up to which constants and variables are held in registers.
        limits = em.find_register_limits(inner, [*of_body, *(None for _ in start)])
        self.limits = limits[len(of_body) :]
        kinds = [var.aval.dtype for var in inner.invars]
        self.of_body = [
            self._placed(x, kind) if x.size > limit else x
            for x, kind, limit in zip(of_body, kinds, limits, strict=False)
        ]
        # Which variables differ from lane to lane where the emitter has one (see `mixed`).
        self.different = (False,) * len(start)
        if emits_uniform_code(em):
            of_body, carried = (tuple(map(is_divergent, of)) for of in (self.of_body, start))
            self.different = find_divergent_carry(inner, of_body, carried)

    def _placed(self, x, dtype):
        with all_lanes_if(self.em, is_divergent(x)):
            return self.em.to_memory(x, dtype)

    def _here(self, k, x):
        """An array as variable number `k` is held, for use within `lanes_of`."""
        return broadcast_to_lanes(self.em, x) if self.different[k] else x

    def emit(self):
        em = self.em
        fixed = [x for x, is_fixed in zip(self.start, self.fixed, strict=True) if is_fixed]
        with em.keep_alive([*self.of_condition, *self.of_body, *fixed]):
            return self._emit()

    def _emit(self):
        variables = list(self.start)
        for different in {*self.different}:
            with all_lanes_if(self.em, different):
                changing = [
                    k for k, d in enumerate(self.different) if d == different and not self.fixed[k]
                ]
                starts = [self._here(k, self.start[k]) for k in changing]
                dtypes, limits = ([of[k] for k in changing] for of in (self.dtypes, self.limits))
                made = prepare_carries(self.em, starts, dtypes, limits)
            for k, variable in zip(changing, made, strict=True):
                variables[k] = variable
        return self.turns(variables)[0]

    def turns(self, variables, alive=None, limit=None):
        """What is carried at the end, and the lanes that go on then.

        **Arguments:** `variables`, what the loop starts from, in registers or in memory that it may
        change; `alive`, lanes that take part, all by default; `limit`, whether there is one and
        number of turns that lanes may be idle, all together, before the loop is left.
        """
        em, build = self.em, self.em.builder
        alive = em.mask if alive is None else alive
        changing = [v.buffer for v in variables if isinstance(v, ArrayView)]
        for buffer in changing:
            buffer.pin_count += 1
        early = self._early(variables)
        before, head = build.block, build.append_basic_block("while")
        build.branch(head)
        build.position_at_end(head)
        phis, carry = [], []
        for k, (variable, dtype) in enumerate(zip(variables, self.dtypes, strict=True)):
            if self.fixed[k] or isinstance(variable, ArrayView):
                phis.append(None)
                carry.append(variable)
                continue
            with all_lanes_if(em, self.different[k]):
                phis.append(em.emit_phis(variable, dtype, before))
            carry.append(phis[-1])
        idle = None
        if limit is not None:
            idle = build.phi(I64)
            idle.add_incoming(int64(0), before)
        (going_on,) = em.emit(self.condition, self.of_condition + carry)
        active = em.intersect_mask(alive, em.lanes.value(em.read_element(going_on, ()), np.bool_))
        turn, after = build.append_basic_block("turn"), build.append_basic_block("after")
        again = em.lanes.any(active)
        if limit is not None:
            few = build.icmp_signed("<", idle, int64(limit[1]))
            again = build.and_(again, build.or_(build.not_(limit[0]), few))
        build.cbranch(again, turn, after)
        build.position_at_end(turn)
        single = em.lanes.width == 1
        with em.restrict_lanes(None if single else active), em.keep_alive(list(early.values())):
            new = em.emit(self.body, self.of_body + carry, early)
            new = self._apart(carry, new, changing)
            for k, (nodes, value) in enumerate(zip(phis, new, strict=True)):
                with all_lanes_if(em, self.different[k]):
                    if isinstance(carry[k], ArrayView) and not self.fixed[k]:
                        self._store(carry[k], value, None if single else active)
                    elif nodes is not None:
                        new[k] = self._following(nodes, value, active, self.dtypes[k], single)
        for k, (nodes, value) in enumerate(zip(phis, new, strict=True)):
            if nodes is not None:
                with all_lanes_if(em, self.different[k]):
                    em.add_incoming(nodes, value, self.dtypes[k], build.block)
        if idle is not None:
            resting = em.lanes.count(build.not_(active))
            idle.add_incoming(build.add(idle, resting), build.block)
        build.branch(head)
        build.position_at_end(after)
        for buffer in changing:
            buffer.pin_count -= 1
        return carry, active

    def _early(self, variables):
        """What the body computes and no turn changes, computed before the first."""
        fixed = (True,) * len(self.of_body) + tuple(self.fixed)
        equations = find_invariant_equations(self.body.jaxpr, fixed)
        if not equations:
            return {}
        out = self.em.emit(extract_jaxpr(self.body, equations), self.of_body + variables)
        return dict(zip((v for e in equations for v in e.outvars), out, strict=True))

    def _apart(self, carry, new, changing):
        """Results that lie in the memory of another variable, copied before that changes."""
        out = []
        for k, (old, value) in enumerate(zip(carry, new, strict=True)):
            shares = isinstance(value, ArrayView) and any(value.buffer is b for b in changing)
            same = shares and isinstance(old, ArrayView) and value.buffer is old.buffer
            if shares and not (same and value.is_contiguous):
                with all_lanes_if(self.em, is_divergent(value)):
                    value = (
                        self.em.copy_to_memory(value, self.dtypes[k])
                        if value.size > self.limits[k]
                        else self.em.to_registers(value)
                    )
            with all_lanes_if(self.em, self.different[k]):
                out.append(self._here(k, value))
        return out

    def _store(self, variable, value, mask):
        if isinstance(value, ArrayView) and value.buffer is variable.buffer:
            return
        self.em.copy_to_memory(value, variable.buffer.dtype, into=variable, mask=mask)

    def _following(self, nodes, value, active, dtype, single):
        value = self.em.to_registers(value)
        if single:
            return value
        out = np.empty(nodes.shape, object)
        for index in np.ndindex(nodes.shape):
            out[index] = self.em.lanes.select(dtype, active, value[index], nodes[index])
        return out
