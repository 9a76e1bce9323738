"""Kernels whose lanes are refilled: a member that has finished makes room for one that waits.

A program of a batch is cut at its main loop, that of the steps. Lanes leave that loop when those
that have finished have been idle for as long as the program around it takes; then results of these
lanes are stored, and members that wait begin in them. So a member that takes a hundred times longer
than the others keeps one lane, not a block of them, busy.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

from ..passes.analysis import cost, sub_jaxprs
from .block_io import DiscardBuffer, byte_size, load_argument, store_result
from .builder import I64, Value, Values
from .emitter import Emitter
from .lanes import is_constant
from .memory import ArrayView, EmittedArray
from .rules.loops import Loop, find_constant_trip_count, split_arguments

# Turns for which loops of unknown length count that are not the main one.
_TURNS = 10
# So many turns of the main loop may be as expensive as one refill, or lanes are not refilled.
_MOST_TURNS = 8


class ConstantTripCount(Exception):
    """The main loop takes the same known number of turns for all members."""


class MainLoopSplit(NamedTuple):
    """A program around its main loop.

    **Attributes:** `shared`, what is the same for all members; `before` and `after` the loop, what
    is not; `loop`, its equation; `kept`, variables of a member that the loop and what follows read;
    `ratio`, what is not shared and not the loop over one turn, both as numbers that are computed.
    """

    shared: Jaxpr
    before: Jaxpr
    loop: Any
    after: Jaxpr
    live: list[Var]
    overhead: float


def split_at_main_loop(closed: ClosedJaxpr, batched: tuple[bool, ...]) -> MainLoopSplit | None:
    """The parts of a program; `None` if no loop takes most of its time."""
    jaxpr = closed.jaxpr
    loops = [k for k, equation in enumerate(jaxpr.eqns) if equation.primitive.name == "while"]
    if not loops:
        return None
    place = max(loops, key=lambda k: cost(jaxpr.eqns[k].params["body_jaxpr"].jaxpr))
    loop = jaxpr.eqns[place]
    own = {var for var, b in zip(jaxpr.invars, batched, strict=True) if b}
    shared, before, after = [], [], jaxpr.eqns[place + 1 :]
    for equation in jaxpr.eqns[:place]:
        if own.isdisjoint(_read(equation)):
            shared.append(equation)
        else:
            before.append(equation)
            own.update(equation.outvars)
    if own.isdisjoint(_read(loop)):
        return None
    ratio = sum(map(_work, [*before, *after])) / cost(loop.params["body_jaxpr"].jaxpr)
    if ratio > _MOST_TURNS:
        return None
    constants = loop.params["cond_nconsts"] + loop.params["body_nconsts"]
    later = [*loop.invars[:constants], *jaxpr.outvars]
    later += [atom for equation in after for atom in equation.invars]
    kept = list(dict.fromkeys(atom for atom in later if _is_var(atom) and atom in own))
    starts = list(dict.fromkeys(filter(_is_var, loop.invars[constants:])))
    first = [*jaxpr.constvars, *(v for v in jaxpr.invars if v not in own)]
    made = [var for equation in shared for var in equation.outvars]
    ends = [*first, *made, *kept, *loop.outvars]
    begun = list(dict.fromkeys([*kept, *(v for v in starts if v in own)]))
    entered = [*first, *made, *(v for v in jaxpr.invars if v in own)]
    return MainLoopSplit(
        _part(jaxpr, shared, first, made),
        _part(jaxpr, before, entered, begun),
        loop,
        _part(jaxpr, after, ends, jaxpr.outvars),
        kept,
        ratio,
    )


def _is_var(atom):
    return not isinstance(atom, Literal)


def _read(equation):
    return {atom for atom in equation.invars if _is_var(atom)}


def _work(equation):
    """Numbers that an equation computes."""
    inner = sub_jaxprs(equation)
    if not inner:
        return sum(var.aval.size for var in equation.outvars)
    times = equation.params.get("length", 1) if equation.primitive.name == "scan" else 1
    times = _TURNS if equation.primitive.name == "while" else times
    return times * sum(_work(one) for program in inner for one in program.eqns)


def _part(jaxpr, equations, inputs, outputs):
    """Some equations as a program."""
    info = jaxpr.debug_info._replace(
        arg_names=("",) * len(inputs), result_paths=("",) * len(outputs)
    )
    return jaxpr.replace(
        constvars=[], invars=inputs, outvars=outputs, eqns=equations, debug_info=info
    )


class LaneCompaction:
    """Emits a program for all members of a batch, the lanes refilled.

    **Raises:** `_KnownTurns` where no lane would ever wait.
    """

    def __init__(
        self, em: Emitter, closed: ClosedJaxpr, batched: tuple[bool, ...], parts: MainLoopSplit
    ):
        self.em, self.closed, self.batched, self.parts = em, closed, batched, parts
        self.limits = em.find_register_limits(closed.jaxpr, [None] * len(closed.in_avals))
        # Arrays by their variables: what they are for the members in the lanes.
        self.arrays: dict[Var, EmittedArray] = {}
        # Buffers and numbers that no refill changes.
        self.shared: set[int] = set()
        # The block that each refill enters, the one before the first, lanes that get a member.
        self.head = self.start = self.fresh = None
        # Phi nodes of `head`: number type (`None` for a scalar), node, what it is the next time.
        self.again: list[tuple[Any, Any, Any]] = []

    def emit(self, inputs: Values, outputs: Values, first: Value, count: Value) -> None:
        """All members from `first` to `count`, of which there is one at least."""
        em, build, lanes = self.em, self.em.builder, self.em.lanes
        jaxpr = self.closed.jaxpr
        self.arrays |= zip(jaxpr.constvars, map(em.constant, self.closed.consts), strict=True)
        self._load(inputs, None)
        self._run(self.parts.shared)
        self._fix()
        self.start, self.head = build.block, build.append_basic_block("head")
        fill = build.append_basic_block("fill")
        build.branch(self.head)
        build.position_at_end(self.head)
        build.branch(fill)
        build.position_at_end(fill)
        begun, alive = self._node(None, first), self._node(np.bool_)
        numbers = [self._node(None, first) for _ in range(lanes.width)]
        # Free lanes get the members that follow; what others load is of no use to them.
        following, fresh, loaded, owners = begun, [], [], []
        for k, number in enumerate(numbers):
            taken = build.icmp_signed("<", following, count)
            taken = build.and_(taken, build.not_(lanes.extract_lane(alive, k)))
            fresh.append(taken)
            loaded.append(build.select(taken, following, begun))
            owners.append(build.select(taken, following, number))
            following = build.add(following, build.zext(taken, I64))
        self.fresh = lanes.pack_lanes(fresh)
        waiting = build.icmp_signed("<", following, count)
        self._load(inputs, loaded)
        self._run(self.parts.before)
        working = build.or_(alive, self.fresh)
        active = self._main_loop(working, waiting)
        finished = build.and_(working, build.not_(active))
        with em.restrict_lanes(finished):
            self._run(self.parts.after)
        size = max(map(byte_size, self.closed.out_avals), default=0)
        spare = DiscardBuffer(
            finished, em.memory.allocate((size,), np.int8, unused=True).buffer.pointer
        )
        for pointer, aval, atom in zip(outputs, self.closed.out_avals, jaxpr.outvars, strict=True):
            store_result(em, pointer, aval, self._array(atom), owners, spare)
        self.again += [(None, begun, following), (np.bool_, alive, active)]
        self.again += [(None, *pair) for pair in zip(numbers, owners, strict=True)]
        for dtype, node, value in self.again:
            if dtype is None:
                node.add_incoming(value, build.block)
            else:
                lanes.add_incoming(dtype, node, value, build.block)
        end = build.append_basic_block("end")
        build.cbranch(waiting, self.head, end)
        build.position_at_end(end)

    def _array(self, atom):
        return self.em.constant(atom.val) if isinstance(atom, Literal) else self.arrays[atom]

    def _load(self, inputs, members):
        """Arguments of these members, or those without members."""
        avals, variables = self.closed.in_avals, self.closed.jaxpr.invars
        for pointer, aval, var, batched, limit in zip(
            inputs, avals, variables, self.batched, self.limits, strict=True
        ):
            if batched == (members is not None):
                self.arrays[var] = load_argument(self.em, pointer, aval, members, limit)

    def _run(self, part):
        args = [self.arrays[var] for var in part.invars]
        # All refills read them; what belongs to members may be written in the lanes of the mask.
        shared = [x for x in args if isinstance(x, ArrayView) and id(x.buffer) in self.shared]
        with self.em.keep_alive(shared):
            out = self.em.emit_jaxpr(part, [], args)
        for atom, array in zip(part.outvars, out, strict=True):
            if _is_var(atom):
                self.arrays[atom] = array

    def _fix(self):
        """What there is now is the same for all members: nobody may write it."""
        for array in self.arrays.values():
            if isinstance(array, ArrayView):
                array.buffer.pin_count += 1
                self.shared.add(id(array.buffer))
            else:
                self.shared |= {id(number) for number in array.ravel()}

    def _node(self, dtype, first=None):
        """A phi node of `head`, zero at first unless a scalar is given."""
        lanes = self.em.lanes
        with self.em.builder.goto_block(self.head):
            node = self.em.builder.phi(I64) if dtype is None else lanes.phi(dtype)
        if dtype is None:
            node.add_incoming(first, self.start)
        else:
            lanes.add_incoming(dtype, node, np.zeros((), dtype)[()], self.start)  # pyright: ignore[reportArgumentType]
        return node

    def _main_loop(self, working, waiting):
        """The main loop; returns the lanes that go on after it."""
        em, equation = self.em, self.parts.loop
        p = equation.params
        condition, body = p["cond_jaxpr"], p["body_jaxpr"]
        counts = p["cond_nconsts"], p["body_nconsts"]
        given = [self._array(atom) for atom in equation.invars]
        if (
            find_constant_trip_count(em, condition, body, *split_arguments(given, *counts))
            is not None
        ):
            raise ConstantTripCount
        for var in self.parts.live:
            self.arrays[var] = self._kept(self.arrays[var], var.aval.dtype)  # pyright: ignore[reportAttributeAccessIssue]
        given = [self._array(atom) for atom in equation.invars]
        of_condition, of_body, start = split_arguments(given, *counts)
        loop = Loop(em, condition, body, of_condition, of_body, start)
        variables, nodes = [], []
        for x, dtype, fixed, limit in zip(start, loop.dtypes, loop.fixed, loop.limits, strict=True):
            kept = self._kept(x, dtype) if fixed else None
            value, own = (kept, None) if fixed else self._carried(x, dtype, limit)
            variables.append(value)
            nodes.append(own)
        idle = em.lanes.width * (1 + math.ceil(self.parts.overhead))
        unchanged = [v for v, fixed in zip(variables, loop.fixed, strict=True) if fixed]
        with em.keep_alive([*of_condition, *loop.of_body, *unchanged]):
            carry, active = loop.turns(variables, working, (waiting, idle))
        for own, end, dtype in zip(nodes, carry, loop.dtypes, strict=True):
            if own is not None:
                pairs = zip(own.ravel(), end.ravel(), strict=True)
                self.again += [(dtype, *pair) for pair in pairs]
        self.arrays |= zip(equation.outvars, carry, strict=True)
        return active

    def _kept(self, x, dtype):
        """An array of members that came, in the lanes that are not fresh what it was."""
        if isinstance(x, ArrayView):
            stays = x.buffer.shared or id(x.buffer) in self.shared
            return x if stays and is_constant(x.offset) else self._placed(x, dtype)
        out = np.empty(x.shape, object)
        for index in np.ndindex(x.shape):
            number = x[index]
            if not is_constant(number) and id(number) not in self.shared:
                node = self._node(dtype)
                number = self.em.lanes.select(dtype, self.fresh, number, node)
                self.again.append((dtype, node, number))
            out[index] = number
        return out

    def _carried(self, x, dtype, largest):
        """What a variable of the loop starts from, and its phi nodes if it is in registers."""
        if x.size > largest:
            return self._placed(x, dtype), None
        nodes = np.empty(x.shape, object)
        for index in np.ndindex(x.shape):
            nodes[index] = self._node(dtype)
        return self.em.select_array(dtype, self.fresh, self.em.to_registers(x), nodes), nodes  # pyright: ignore[reportArgumentType]

    def _placed(self, x, dtype):
        """An array in a place of its own, changed in the fresh lanes only."""
        out = self.em.memory.allocate(x.shape, dtype, unused=True)
        out.buffer.pin_count += 1
        return self.em.copy_to_memory(x, dtype, into=out, mask=self.fresh)
