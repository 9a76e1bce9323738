"""Branches and loops.

A loop whose number of turns is known and small is written out. Any other one runs until the last of
the W lanes of a block has finished; what belongs to lanes that have finished stays as it is. Blocks
do not wait for each other.
"""

import functools
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal
from llvmlite import ir

from ..emitter import REGISTERS, WRITTEN_OUT, Emitter, cost, rule
from ..lanes import is_known
from ..memory import View
from .structure import taken

# Turns up to which a loop may be written out.
_MOST_TURNS = 64
# Numbers computed by a branch up to which all branches are computed, and one is chosen.
_SMALL_BRANCH = 24


# Branches.


@rule("cond")
def _cond(em: Emitter, equation, which, *args):
    branches = equation.params["branches"]
    index_dtype = np.dtype(equation.invars[0].aval.dtype)
    which = em.entry(which, ())
    lanes = em.lanes
    if is_known(which):
        taken_branch = branches[min(max(int(which), 0), len(branches) - 1)]
        return em.run(taken_branch, list(args))
    if index_dtype == np.bool_:
        which, index_dtype = lanes.convert(which, np.bool_, np.int32), np.dtype(np.int32)
    conditions = []
    for k in range(len(branches)):
        operator = "<=" if k == 0 else ">=" if k == len(branches) - 1 else "=="
        conditions.append(lanes.compare(index_dtype, operator, which, index_dtype.type(k)))
    avals = [var.aval for var in equation.outvars]
    buffers = [x.buffer for x in args if isinstance(x, View)]
    for buffer in buffers:
        buffer.pinned += 1
    if all(_is_simple(branch.jaxpr) for branch in branches):
        out = _all_branches(em, branches, conditions, args, avals)
    else:
        out = _guarded_branches(em, branches, conditions, args, avals)
    for buffer in buffers:
        buffer.pinned -= 1
    return out


def _is_simple(jaxpr: Any) -> bool:
    small = all(var.aval.size <= REGISTERS for var in (*jaxpr.invars, *jaxpr.outvars))
    loops = any(e.primitive.name in ("while", "scan", "cond") for e in jaxpr.eqns)
    return small and not loops and cost(jaxpr) <= _SMALL_BRANCH


def _all_branches(em, branches, conditions, args, avals):
    out = None
    for branch, condition in zip(branches, conditions, strict=True):
        with em.masked(em.both(em.mask, condition)):
            one = [em.registers(x) for x in em.run(branch, list(args))]
        if out is None:
            out = one
            continue
        out = [
            _chosen(em, aval.dtype, condition, new, old)
            for aval, new, old in zip(avals, one, out, strict=True)
        ]
    return out


def _chosen(em, dtype, condition, new, old):
    dtype = np.dtype(dtype)
    return em.map(lambda a, b: em.lanes.select(dtype, condition, a, b), dtype, new, old)


def _guarded_branches(em, branches, conditions, args, avals):
    """Branches that are computed only if some lane takes them."""
    build, outer = em.builder, em.mask
    out: list = [None] * len(avals)
    for branch, condition in zip(branches, conditions, strict=True):
        mask = em.both(outer, condition)
        before, inside = build.block, build.append_basic_block("branch")
        after = build.append_basic_block("after")
        # Memory for results that are too large for registers, before the first branch.
        for k, aval in enumerate(avals):
            if out[k] is None and aval.size > REGISTERS:
                out[k] = _Pending(aval)
        build.cbranch(em.lanes.any(mask), inside, after)
        build.position_at_end(inside)
        with em.masked(mask if em.lanes.width > 1 else None):
            results = em.run(branch, list(args))
            merged = [
                _merged(em, aval, old, new, condition)
                for aval, old, new in zip(avals, out, results, strict=True)
            ]
        end = build.block
        build.branch(after)
        build.position_at_end(after)
        out = [
            _joined(em, aval, old, new, before, end)
            for aval, old, new in zip(avals, out, merged, strict=True)
        ]
    return out


class _Pending:
    """A result in memory that no branch has given yet."""

    def __init__(self, aval):
        self.aval = aval


def _merged(em, aval, old, new, condition):
    """A branch's result in its lanes, what there was before in the others (inside the branch)."""
    dtype = np.dtype(aval.dtype)
    if isinstance(old, _Pending):
        if isinstance(new, View) and new.is_whole and new.buffer.pinned:
            return new  # an argument, perhaps changed in place
        out = em.memory.allocate(aval.shape, dtype)
        return em.copied(new, dtype, into=out)
    if isinstance(old, View):
        if isinstance(new, View) and new.buffer is old.buffer:
            return old
        if old.buffer.pinned:
            # Some branches hand an argument on, others do not: a copy, which stays whole.
            raise_copy = em.copied(old, dtype)
            return em.copied(new, dtype, into=raise_copy, mask=condition)
        return em.copied(new, dtype, into=old, mask=condition)
    new = em.registers(new)
    if old is None or em.lanes.width == 1:
        return new
    return _chosen(em, dtype, condition, new, old)


def _joined(em, aval, old, new, before, end):
    """Numbers after a branch: its own if it was taken."""
    if isinstance(new, View):
        return new
    dtype = np.dtype(aval.dtype)
    kind = em.lanes.type(dtype)
    out = np.empty(new.shape, object)
    for index in np.ndindex(new.shape):
        value = em.lanes.value(new[index], dtype)
        phi = em.builder.phi(kind)
        phi.add_incoming(value, end)
        first = dtype.type(0) if old is None else old[index]
        phi.add_incoming(em.lanes.value(first, dtype), before)
        out[index] = phi
    return out


# Loops.


@rule("while")
def _while(em: Emitter, equation, *args):
    p = equation.params
    a, b = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    of_condition, of_body, start = list(args[:a]), list(args[a:b]), list(args[b:])
    condition, body = p["cond_jaxpr"], p["body_jaxpr"]
    turns = _known_turns(em, condition, body, of_condition, of_body, start)
    if turns is not None and turns * cost(body.jaxpr) <= WRITTEN_OUT:
        with em.kept(of_body):
            for _ in range(turns):
                start = em.run(body, of_body + start)
        return start
    return _Loop(em, condition, body, of_condition, of_body, start).emit()


def _known_turns(em, condition, body, of_condition, of_body, start):
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
    for turns in range(_MOST_TURNS + 1):
        (going_on,) = em.run(test, of_condition + values)
        if not is_known(going_on[()]):
            return None
        if not going_on[()]:
            return turns
        following = em.run(step, of_body + values)
        for k, value in zip(order, following, strict=True):
            if not _is_known_array(value):
                return None
            values[k] = value
    return None


def _is_known_array(x):
    return not isinstance(x, View) and all(is_known(one) for one in x.ravel())


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


class _Loop:
    """A loop at run time: variables in registers are phi nodes, others lie in memory."""

    def __init__(self, em, condition, body, of_condition, of_body, start):
        self.em, self.condition, self.body = em, condition, body
        self.of_condition, self.of_body = of_condition, of_body
        inner = body.jaxpr
        own = inner.invars[len(of_body) :]
        # What no turn changes needs no variable.
        self.fixed = [a is b for a, b in zip(own, inner.outvars, strict=True)]
        self.dtypes = [np.dtype(var.aval.dtype) for var in own]
        self.sizes = [var.aval.size for var in own]
        self.start = start

    def emit(self):
        em = self.em
        fixed = [x for x, is_fixed in zip(self.start, self.fixed, strict=True) if is_fixed]
        with em.kept([*self.of_condition, *self.of_body, *fixed]):
            return self._emit()

    def _emit(self):
        em, build = self.em, self.em.builder
        variables = [self._variable(k) for k in range(len(self.start))]
        changing = [v.buffer for v in variables if isinstance(v, View)]
        for buffer in changing:
            buffer.pinned += 1
        before, head = build.block, build.append_basic_block("while")
        build.branch(head)
        build.position_at_end(head)
        phis, carry = [], []
        for variable, dtype, fixed in zip(variables, self.dtypes, self.fixed, strict=True):
            if fixed or isinstance(variable, View):
                phis.append(None)
                carry.append(variable)
                continue
            kind = em.lanes.type(dtype)
            nodes: Any = np.empty(variable.shape, object)
            for index in np.ndindex(variable.shape):
                nodes[index] = build.phi(kind)
                nodes[index].add_incoming(em.lanes.value(variable[index], dtype), before)
            phis.append(nodes)
            carry.append(nodes)
        (going_on,) = em.run(self.condition, self.of_condition + carry)
        active = em.both(em.mask, em.lanes.value(em.entry(going_on, ()), np.bool_))
        turn, after = build.append_basic_block("turn"), build.append_basic_block("after")
        build.cbranch(em.lanes.any(active), turn, after)
        build.position_at_end(turn)
        single = em.lanes.width == 1
        with em.masked(None if single else active):
            new = em.run(self.body, self.of_body + carry)
            new = self._apart(carry, new, changing)
            for k, (nodes, value) in enumerate(zip(phis, new, strict=True)):
                if isinstance(carry[k], View) and not self.fixed[k]:
                    self._store(carry[k], value, None if single else active)
                elif nodes is not None:
                    new[k] = self._following(nodes, value, active, self.dtypes[k])
        for nodes, value, dtype in zip(phis, new, self.dtypes, strict=True):
            if nodes is None:
                continue
            for index in np.ndindex(nodes.shape):
                nodes[index].add_incoming(em.lanes.value(value[index], dtype), build.block)
        build.branch(head)
        build.position_at_end(after)
        for buffer in changing:
            buffer.pinned -= 1
        return carry

    def _variable(self, k):
        """What a variable of the loop starts from."""
        em, x, dtype = self.em, self.start[k], self.dtypes[k]
        if self.fixed[k]:
            return x
        if self.sizes[k] <= REGISTERS:
            return em.registers(x)
        mine = isinstance(x, View) and x.buffer.own and x.is_whole
        if mine and not x.buffer.users and not x.buffer.pinned:
            return x
        return em.copied(x, dtype)

    def _apart(self, carry, new, changing):
        """Results that lie in the memory of another variable, copied before that changes."""
        out = []
        for old, value, dtype in zip(carry, new, self.dtypes, strict=True):
            shares = isinstance(value, View) and any(value.buffer is b for b in changing)
            same = shares and isinstance(old, View) and value.buffer is old.buffer
            if shares and not (same and value.is_whole):
                value = (
                    self.em.copied(value, dtype)
                    if value.size > REGISTERS
                    else self.em.registers(value)
                )
            out.append(value)
        return out

    def _store(self, variable, value, mask):
        if isinstance(value, View) and value.buffer is variable.buffer:
            return
        self.em.copied(value, variable.buffer.dtype, into=variable, mask=mask)

    def _following(self, nodes, value, active, dtype):
        value = self.em.registers(value)
        if self.em.lanes.width == 1:
            return value
        return _chosen(self.em, dtype, active, value, nodes)


@rule("scan")
def _scan(em: Emitter, equation, *args):
    p = equation.params
    a, b = p["num_consts"], p["num_consts"] + p["num_carry"]
    consts, carry, xs = list(args[:a]), list(args[a:b]), list(args[b:])
    body, length = p["jaxpr"], p["length"]
    carried = len(carry)
    out_avals = [var.aval for var in equation.outvars[carried:]]
    if length <= _MOST_TURNS and length * cost(body.jaxpr) <= WRITTEN_OUT:
        order = range(length)
        slices: list = [None] * length
        with em.kept([*consts, *xs]):
            for k in reversed(order) if p["reverse"] else order:
                now = [taken(em, x, 0, k) for x in xs]
                out = em.run(body, consts + carry + now)
                carry, slices[k] = out[:carried], out[carried:]
                slices[k] = [
                    em.owned(part, aval) for part, aval in zip(slices[k], out_avals, strict=True)
                ]
        stacked = [
            _stacked(em, [one[k] for one in slices], aval) for k, aval in enumerate(out_avals)
        ]
        return carry + stacked
    return _ScanLoop(em, equation, consts, carry, xs).emit()


def _stacked(em, parts, aval):
    dtype = np.dtype(aval.dtype)
    if aval.size <= REGISTERS:
        parts = [em.registers(part) for part in parts]
        out = np.empty(aval.shape, object)
        for k, part in enumerate(parts):
            out[k] = part[()] if part.ndim == 0 else part
        return out
    out = em.memory.allocate(aval.shape, dtype)
    for k, part in enumerate(parts):
        row = View(out.buffer, out.shape[1:], out.strides[1:], k * out.strides[0])
        em.copied(part, dtype, into=row)
    return out


class _ScanLoop:
    """A scan at run time; its turns are the same in all lanes."""

    def __init__(self, em, equation, consts, carry, xs):
        self.em, self.p = em, equation.params
        self.consts, self.carry, self.xs = consts, carry, xs
        self.out_avals = [var.aval for var in equation.outvars[len(carry) :]]
        self.x_dtypes = [np.dtype(v.aval.dtype) for v in equation.invars[-len(xs) :]] if xs else []
        self.dtypes = [np.dtype(v.aval.dtype) for v in equation.outvars[: len(carry)]]

    def emit(self):
        em = self.em
        xs = [em.in_memory(x, dtype) for x, dtype in zip(self.xs, self.x_dtypes, strict=True)]
        with em.kept([*self.consts, *xs]):
            return self._emit(xs)

    def _emit(self, xs):
        em, build = self.em, self.em.builder
        outs = [em.memory.allocate(aval.shape, aval.dtype) for aval in self.out_avals]
        variables = []
        for x, dtype in zip(self.carry, self.dtypes, strict=True):
            large = x.size > REGISTERS
            variables.append(em.copied(x, dtype) if large else em.registers(x))
        changing = [v.buffer for v in variables if isinstance(v, View)] + [o.buffer for o in outs]
        for buffer in changing:
            buffer.pinned += 1
        before = build.block
        with em.loop(self.p["length"]) as turn:
            phis, carry = self._phis(variables, before)
            length = ir.Constant(turn.type, self.p["length"] - 1)
            k = build.sub(length, turn) if self.p["reverse"] else turn
            now = [taken(em, x, 0, k) for x in xs]
            results = em.run(self.p["jaxpr"], self.consts + carry + now)
            new, slices = results[: len(carry)], results[len(carry) :]
            for out, part, aval in zip(outs, slices, self.out_avals, strict=True):
                at = em.memory.position(out, (k, *(0 for _ in aval.shape[1:])))
                row = View(out.buffer, tuple(aval.shape[1:]), out.strides[1:], at)
                em.copied(part, out.buffer.dtype, into=row)
            self._advance(variables, carry, phis, new)
        for buffer in changing:
            buffer.pinned -= 1
        final = [
            v if nodes is None else self._last[k]
            for k, (v, nodes) in enumerate(zip(variables, phis, strict=True))
        ]
        return final + [em.settled(out) for out in outs]

    def _phis(self, variables, before):
        em = self.em
        phis, carry = [], []
        for variable, dtype in zip(variables, self.dtypes, strict=True):
            if isinstance(variable, View):
                phis.append(None)
                carry.append(variable)
                continue
            nodes: Any = np.empty(variable.shape, object)
            for index in np.ndindex(variable.shape):
                nodes[index] = em.builder.phi(em.lanes.type(dtype))
                nodes[index].add_incoming(em.lanes.value(variable[index], dtype), before)
            phis.append(nodes)
            carry.append(nodes)
        return phis, carry

    def _advance(self, variables, carry, phis, new):
        em = self.em
        buffers = [v.buffer for v in variables if isinstance(v, View)]
        apart = []
        for old, value, dtype in zip(carry, new, self.dtypes, strict=True):
            if isinstance(value, View):
                same = isinstance(old, View) and value.buffer is old.buffer and value.is_whole
                if not same and any(value.buffer is b for b in buffers):
                    value = em.copied(value, dtype)
            apart.append(value)
        for old, value, nodes, dtype in zip(carry, apart, phis, self.dtypes, strict=True):
            if nodes is None and not (isinstance(value, View) and value.buffer is old.buffer):
                em.copied(value, dtype, into=old, mask=em.mask)
        # After the copies, whose loops end in blocks of their own.
        self._last: list[Any] = [None] * len(carry)
        for k, (value, nodes, dtype) in enumerate(zip(apart, phis, self.dtypes, strict=True)):
            if nodes is None:
                continue
            value = em.registers(value)
            self._last[k] = np.empty(nodes.shape, object)
            for index in np.ndindex(nodes.shape):
                one = em.lanes.value(value[index], dtype)
                nodes[index].add_incoming(one, em.builder.block)
                self._last[k][index] = one
