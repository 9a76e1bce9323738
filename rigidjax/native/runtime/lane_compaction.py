"""Kernels with lane compaction: a lane whose batch element has finished starts the next one.

The jaxpr of a batch is split at its main loop, that of the time steps. Lanes leave this loop when
finished ones have been idle for as long as the code around it takes. Then their results are stored,
and they start the batch elements that wait. A batch element with a hundred times more steps than
the others therefore occupies one lane instead of a block of lanes. The lanes of all threads take
elements from one counter, so that no thread has long elements left when the others have finished.
"""

import math
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

from ..lowering.block_io import DiscardBuffer, byte_size, load_argument, store_result
from ..lowering.emitter import Emitter
from ..lowering.rules.loops import Loop, find_constant_trip_count, split_arguments
from ..passes.analysis import cost, sub_jaxprs
from ..values.builder import I64, Value, Values, int64
from ..values.complex import DType
from ..values.lanes import is_constant
from ..values.memory import ArrayView, EmittedArray

# Trip count assumed for other loops of unknown length.
_ASSUMED_TRIP_COUNT = 10
# Cost of storing and starting batch elements, in iterations of the main loop, up to which lane
# compaction is used.
_MAX_OVERHEAD = 8


class ConstantTripCount(Exception):
    """The main loop has the same constant trip count for all batch elements."""


class MainLoopSplit(NamedTuple):
    """A jaxpr split into the code before its main loop, the loop and the code after it.

    **Attributes:** `shared`, the code that is the same for all batch elements; `before` and
    `after`, the remaining code before and after the loop; `loop`, its equation; `live`, variables
    of a batch element that the loop and the code after it read; `overhead`, number of elements that
    `before` and `after` compute divided by that of one iteration.
    """

    shared: Jaxpr
    before: Jaxpr
    loop: Any
    after: Jaxpr
    live: list[Var]
    overhead: float


def split_at_main_loop(closed: ClosedJaxpr, batched: tuple[bool, ...]) -> MainLoopSplit | None:
    """Split a jaxpr at its main loop; return `None` if no loop takes most of its time."""
    jaxpr = closed.jaxpr
    loops = [k for k, equation in enumerate(jaxpr.eqns) if equation.primitive.name == "while"]
    if not loops:
        return None
    loop_index = max(loops, key=lambda k: cost(jaxpr.eqns[k].params["body_jaxpr"].jaxpr))
    loop = jaxpr.eqns[loop_index]
    batched_vars = {var for var, b in zip(jaxpr.invars, batched, strict=True) if b}
    shared, before, after = [], [], jaxpr.eqns[loop_index + 1 :]
    for equation in jaxpr.eqns[:loop_index]:
        if batched_vars.isdisjoint(_read_variables(equation)):
            shared.append(equation)
        else:
            before.append(equation)
            batched_vars.update(equation.outvars)
    if batched_vars.isdisjoint(_read_variables(loop)):
        return None
    overhead = sum(map(_count_elements, [*before, *after])) / cost(loop.params["body_jaxpr"].jaxpr)
    if overhead > _MAX_OVERHEAD:
        return None
    num_consts = loop.params["cond_nconsts"] + loop.params["body_nconsts"]
    later_atoms = [*loop.invars[:num_consts], *jaxpr.outvars]
    later_atoms += [atom for equation in after for atom in equation.invars]
    live = list(
        dict.fromkeys(atom for atom in later_atoms if _is_var(atom) and atom in batched_vars)
    )
    initial_carry = list(dict.fromkeys(filter(_is_var, loop.invars[num_consts:])))
    uniform_inputs = [*jaxpr.constvars, *(v for v in jaxpr.invars if v not in batched_vars)]
    uniform_outputs = [var for equation in shared for var in equation.outvars]
    after_inputs = [*uniform_inputs, *uniform_outputs, *live, *loop.outvars]
    before_outputs = list(dict.fromkeys([*live, *(v for v in initial_carry if v in batched_vars)]))
    before_inputs = [
        *uniform_inputs,
        *uniform_outputs,
        *(v for v in jaxpr.invars if v in batched_vars),
    ]
    return MainLoopSplit(
        _make_jaxpr(jaxpr, shared, uniform_inputs, uniform_outputs),
        _make_jaxpr(jaxpr, before, before_inputs, before_outputs),
        loop,
        _make_jaxpr(jaxpr, after, after_inputs, jaxpr.outvars),
        live,
        overhead,
    )


def _is_var(atom: Var | Literal) -> TypeGuard[Var]:
    return not isinstance(atom, Literal)


def _read_variables(equation: Any) -> set[Var]:
    return {atom for atom in equation.invars if _is_var(atom)}


def _count_elements(equation: Any) -> int:
    """Return the number of elements that an equation computes."""
    jaxprs = sub_jaxprs(equation)
    if not jaxprs:
        return sum(var.aval.size for var in equation.outvars)
    trip_count = equation.params.get("length", 1) if equation.primitive.name == "scan" else 1
    trip_count = _ASSUMED_TRIP_COUNT if equation.primitive.name == "while" else trip_count
    return trip_count * sum(
        _count_elements(sub_equation) for sub_jaxpr in jaxprs for sub_equation in sub_jaxpr.eqns
    )


def _make_jaxpr(jaxpr: Jaxpr, equations: list[Any], inputs: list[Any], outputs: list[Any]) -> Jaxpr:
    """Return a jaxpr of some of the equations."""
    info = jaxpr.debug_info._replace(
        arg_names=("",) * len(inputs), result_paths=("",) * len(outputs)
    )
    return jaxpr.replace(
        constvars=[], invars=inputs, outvars=outputs, eqns=equations, debug_info=info
    )


class LaneCompaction:
    """Emits a jaxpr for all elements of a batch, with lane compaction.

    **Raises:** `ConstantTripCount` if all batch elements finish at the same time.
    """

    def __init__(
        self, em: Emitter, closed: ClosedJaxpr, batched: tuple[bool, ...], split: MainLoopSplit
    ):
        self.em, self.closed, self.batched, self.split = em, closed, batched, split
        self.register_limits = em.find_register_limits(closed.jaxpr, [None] * len(closed.in_avals))
        # Values of the variables, for the batch elements that are now in the lanes.
        self.arrays: dict[Var, EmittedArray] = {}
        # Ids of buffers and elements that are the same for all batch elements.
        self.shared: set[int] = set()
        # Header block of the outer loop, its predecessor, and the lanes that start an element.
        self.head = self.start = self.started = None
        # Phi nodes of the header: dtype (`None` for a scalar), node, value from the back edge.
        self.incoming: list[tuple[Any, Any, Any]] = []

    def emit(self, inputs: Values, outputs: Values, progress: Value, count: Value) -> None:
        """Emit the code that computes batch elements until none is left.

        **Arguments:** `progress`, pointer to the index of the next element that waits and to the
        number of finished ones, 64-bit integers that threads share; `count`, the number of
        elements.
        """
        em, build, lanes = self.em, self.em.builder, self.em.lanes
        jaxpr = self.closed.jaxpr
        self.arrays |= zip(jaxpr.constvars, map(em.constant, self.closed.consts), strict=True)
        self._load(inputs, None)
        self._emit_part(self.split.shared)
        self._pin_uniform_arrays()
        self.start, self.head = build.block, build.append_basic_block("head")
        fill = build.append_basic_block("fill")
        build.branch(self.head)
        build.position_at_end(self.head)
        build.branch(fill)
        build.position_at_end(fill)
        was_active = self._emit_phi(np.bool_)
        batch_indices = [self._emit_phi(None, int64(0)) for _ in range(lanes.width)]
        num_free = lanes.count(build.not_(was_active))
        # Free lanes start the next batch elements; the others load theirs again, and do not use it.
        next_free = build.atomic_rmw("add", progress, num_free, "acq_rel")
        started_lanes, indices = [], []
        for k, batch_index in enumerate(batch_indices):
            is_free = build.not_(lanes.extract_lane(was_active, k))
            is_started = build.and_(is_free, build.icmp_signed("<", next_free, count))
            started_lanes.append(is_started)
            indices.append(build.select(is_started, next_free, batch_index))
            next_free = build.add(next_free, build.zext(is_free, I64))
        self.started = lanes.pack_lanes(started_lanes)
        # Other threads may take the waiting elements meanwhile; the next round then finds none.
        has_waiting = build.icmp_signed("<", next_free, count)
        self._load(inputs, indices)
        self._emit_part(self.split.before)
        is_active = build.or_(was_active, self.started)
        unfinished = self._emit_main_loop(is_active, has_waiting)
        finished = build.and_(is_active, build.not_(unfinished))
        with em.restrict_lanes(finished):
            self._emit_part(self.split.after)
        size = max(map(byte_size, self.closed.out_avals), default=0)
        discard = DiscardBuffer(
            finished, em.memory.allocate((size,), np.int8, fresh=True).buffer.pointer
        )
        for pointer, aval, atom in zip(outputs, self.closed.out_avals, jaxpr.outvars, strict=True):
            store_result(em, pointer, aval, self._read(atom), indices, discard)
        done = build.gep(progress, [int64(1)], source_etype=I64)
        build.atomic_rmw("add", done, lanes.count(finished), "acq_rel")
        self.incoming.append((np.bool_, was_active, unfinished))
        self.incoming += [(None, *pair) for pair in zip(batch_indices, indices, strict=True)]
        for dtype, node, value in self.incoming:
            if dtype is None:
                node.add_incoming(value, build.block)
            else:
                lanes.add_incoming(dtype, node, value, build.block)
        end = build.append_basic_block("end")
        build.cbranch(has_waiting, self.head, end)
        build.position_at_end(end)

    def _read(self, atom: Var | Literal) -> EmittedArray:
        return self.em.constant(atom.val) if isinstance(atom, Literal) else self.arrays[atom]

    def _load(self, inputs: Values, indices: list[Value] | None):
        """Load the arguments for the batch elements `indices`, or those without a batch axis."""
        avals, variables = self.closed.in_avals, self.closed.jaxpr.invars
        for pointer, aval, var, batched, limit in zip(
            inputs, avals, variables, self.batched, self.register_limits, strict=True
        ):
            if batched == (indices is not None):
                self.arrays[var] = load_argument(self.em, pointer, aval, indices, limit)

    def _emit_part(self, part: Jaxpr):
        args = [self.arrays[var] for var in part.invars]
        # Uniform arrays are read again; others may be overwritten in the lanes of the mask.
        shared = [x for x in args if isinstance(x, ArrayView) and id(x.buffer) in self.shared]
        with self.em.keep_alive(shared):
            out = self.em.emit_jaxpr(part, [], args)
        for atom, array in zip(part.outvars, out, strict=True):
            if _is_var(atom):
                self.arrays[atom] = array

    def _pin_uniform_arrays(self):
        """Mark all present arrays as uniform and prevent them from being overwritten."""
        for array in self.arrays.values():
            if isinstance(array, ArrayView):
                array.buffer.pin_count += 1
                self.shared.add(id(array.buffer))
            else:
                self.shared |= {id(element) for element in array.ravel()}

    def _emit_phi(self, dtype: DType | None, first: Value | None = None) -> Any:
        """Emit a phi node of the header with the initial value zero, or the scalar `first`."""
        lanes = self.em.lanes
        with self.em.builder.goto_block(self.head):
            node = self.em.builder.phi(I64) if dtype is None else lanes.phi(dtype)
        if dtype is None:
            node.add_incoming(first, self.start)
        else:
            lanes.add_incoming(dtype, node, np.zeros((), dtype)[()], self.start)  # pyright: ignore[reportArgumentType]
        return node

    def _emit_main_loop(self, mask: Value, has_waiting: Value) -> Value:
        """Emit the main loop and return the lanes that have not finished."""
        em, equation = self.em, self.split.loop
        p = equation.params
        condition, body = p["cond_jaxpr"], p["body_jaxpr"]
        counts = p["cond_nconsts"], p["body_nconsts"]
        operands = [self._read(atom) for atom in equation.invars]
        if (
            find_constant_trip_count(em, condition, body, *split_arguments(operands, *counts))
            is not None
        ):
            raise ConstantTripCount
        for var in self.split.live:
            self.arrays[var] = self._merge(self.arrays[var], var.aval.dtype)  # pyright: ignore[reportAttributeAccessIssue]
        operands = [self._read(atom) for atom in equation.invars]
        cond_consts, body_consts, start = split_arguments(operands, *counts)
        loop = Loop(em, condition, body, cond_consts, body_consts, start)
        variables, nodes = [], []
        for x, dtype, is_invariant, limit in zip(
            start, loop.dtypes, loop.is_invariant, loop.register_limits, strict=True
        ):
            invariant = self._merge(x, dtype) if is_invariant else None
            value, carry_nodes = (
                (invariant, None) if is_invariant else self._prepare_carry(x, dtype, limit)
            )
            variables.append(value)
            nodes.append(carry_nodes)
        max_idle = em.lanes.width * (1 + math.ceil(self.split.overhead))
        unchanged = [
            v for v, is_invariant in zip(variables, loop.is_invariant, strict=True) if is_invariant
        ]
        with em.keep_alive([*cond_consts, *loop.body_consts, *unchanged]):
            carry, active = loop.emit_iterations(variables, mask, (has_waiting, max_idle))
        for carry_nodes, end, dtype in zip(nodes, carry, loop.dtypes, strict=True):
            if carry_nodes is not None:
                pairs = zip(carry_nodes.ravel(), end.ravel(), strict=True)
                self.incoming += [(dtype, *pair) for pair in pairs]
        self.arrays |= zip(equation.outvars, carry, strict=True)
        return active

    def _merge(self, x: EmittedArray, dtype: DType) -> EmittedArray:
        """Return an array with new values in the lanes that started, and the previous elsewhere."""
        if isinstance(x, ArrayView):
            is_uniform = x.buffer.shared or id(x.buffer) in self.shared
            return x if is_uniform and is_constant(x.offset) else self._copy_to_own_buffer(x, dtype)
        out = np.empty(x.shape, object)
        for index in np.ndindex(x.shape):
            element = x[index]
            if not is_constant(element) and id(element) not in self.shared:
                node = self._emit_phi(dtype)
                element = self.em.lanes.select(dtype, self.started, element, node)
                self.incoming.append((dtype, node, element))
            out[index] = element
        return out

    def _prepare_carry(
        self, x: EmittedArray, dtype: DType, register_limit: int
    ) -> tuple[EmittedArray, np.ndarray | None]:
        """Return the initial value of a loop carry, and its phi nodes if it is in registers."""
        if x.size > register_limit:
            return self._copy_to_own_buffer(x, dtype), None
        nodes = np.empty(x.shape, object)
        for index in np.ndindex(x.shape):
            nodes[index] = self._emit_phi(dtype)
        return self.em.select_array(dtype, self.started, self.em.to_registers(x), nodes), nodes  # pyright: ignore[reportArgumentType]

    def _copy_to_own_buffer(self, x: EmittedArray, dtype: DType) -> ArrayView:
        """Copy an array, in the lanes that started, into a buffer that keeps its values."""
        out = self.em.memory.allocate(x.shape, dtype, fresh=True)
        out.buffer.pin_count += 1
        return self.em.copy_to_memory(x, dtype, into=out, mask=self.started)
