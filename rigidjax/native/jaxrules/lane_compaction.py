"""Batched loops in XLA whose finished elements do not hold up the others.

`jax.vmap` of a loop iterates all batch elements until the last one has finished. Here blocks of
elements iterate until the wasted iterations of finished elements cost more than setting the
unfinished ones aside. These then share a few lanes; a lane whose element has finished takes the
next one. An element that takes a hundred times longer than the others occupies one lane instead of
delaying the whole batch.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var
from jaxtyping import Array, Bool, Int, PyTree

# Lanes for elements that were set aside: enough to make up for the overhead of XLA's loops.
LANES = 64
# Largest number of elements of a block, and of scalars that a block computes in an iteration, so
# that its arrays stay in the cache.
_MAX_BLOCK, _MAX_ELEMENTS = 1024, 1_500_000
# Setting an element aside costs as much as this number of iterations. One iteration in
# `_TOLERATED_WASTE` may be wasted in any case.
_SETTING_ASIDE_COST, _TOLERATED_WASTE = 4, 16


# Primitives of Equinox: the reduction over a batch that ends the loops of its elements together,
# and the assertion that a value is equal for the whole batch.
_ANY, _NONBATCHABLE = "unvmap_any", "nonbatchable"


def evaluate_with_lane_compaction(closed: ClosedJaxpr, args: list[Array]) -> list[Array]:
    """Evaluate a jaxpr such that batches of its outermost loops use lane compaction.

    Under `jax.vmap` the values equal those of the jaxpr up to round-off. Not differentiable.
    """
    jaxpr = closed.jaxpr
    atoms = [*jaxpr.outvars, *(atom for eqn in jaxpr.eqns for atom in eqn.invars)]
    used = {atom for atom in atoms if not isinstance(atom, Literal)}

    def equation(eqn, values):
        if eqn.primitive.name == "while":
            # Results that are not used need no memory.
            wanted = [var in used for var in eqn.outvars]
            results = iter(_Loop.from_equation(eqn).with_lane_compaction(wanted)(*values))
            return [next(results) if w else None for w in wanted]
        if eqn.primitive.name == "jit":
            return evaluate_with_lane_compaction(eqn.params["jaxpr"], values)
        return None

    return _evaluate(closed, args, equation)


def _evaluate_per_element(closed: ClosedJaxpr, args: list[Array]) -> list[Array]:
    """Evaluate the condition or the body of a loop without Equinox's reductions over the batch."""
    conditions = {out for out in closed.jaxpr.outvars if not isinstance(out, Literal)}
    for eqn in reversed(closed.jaxpr.eqns):
        name = eqn.primitive.name
        if name == _NONBATCHABLE or (name == "and" and eqn.outvars[0] in conditions):
            conditions |= {atom for atom in eqn.invars if not isinstance(atom, Literal)}

    def equation(eqn, values):
        name = eqn.primitive.name
        is_skipped = name == _NONBATCHABLE or (name == _ANY and eqn.outvars[0] in conditions)
        return values if is_skipped else None

    return _evaluate(closed, args, equation)


def _evaluate(
    closed: ClosedJaxpr,
    args: list[Array],
    equation: Callable[[JaxprEqn, list[Array]], Sequence[Array | None] | None],
) -> list[Any]:
    """Evaluate a jaxpr; equations for which `equation` returns `None` are evaluated unchanged."""
    jaxpr = closed.jaxpr
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env |= dict(zip(jaxpr.invars, args, strict=True))

    def read(atom):
        return atom.val if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        values = [read(atom) for atom in eqn.invars]
        out = equation(eqn, values)
        out = _bind(eqn, values) if out is None else out
        env |= dict(zip(eqn.outvars, out, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _bind(eqn: JaxprEqn, args: Sequence[Array]) -> list[Array]:
    out = eqn.primitive.bind(*args, **eqn.primitive.get_bind_params(eqn.params))
    return out if eqn.primitive.multiple_results else [out]


class _Loop(NamedTuple):
    """The loop of one batch element.

    **Attributes:** `eqn`, the `while` equation; `num_cond_consts`, the number of constants of the
    condition; `num_consts`, the number of constants of condition and body.
    """

    eqn: JaxprEqn
    num_cond_consts: int
    num_consts: int

    @classmethod
    def from_equation(cls, eqn: JaxprEqn) -> "_Loop":
        count = eqn.params["cond_nconsts"]
        return cls(eqn, count, count + eqn.params["body_nconsts"])

    def is_running(self, consts: list[Array], carry: list[Array]) -> Bool[Array, "..."]:
        """Evaluate the condition; it has a batch axis if the element is itself a batch."""
        args = [*consts[: self.num_cond_consts], *carry]
        return _evaluate_per_element(self.eqn.params["cond_jaxpr"], args)[0]

    def continues(self, consts: list[Array], carry: list[Array]) -> Bool[Array, "..."]:
        """Return whether there is another iteration."""
        return jnp.any(self.is_running(consts, carry))

    def iterate(self, consts: list[Array], carry: list[Array]) -> list[Array]:
        """Return the carry after another iteration."""
        args = [*consts[self.num_cond_consts :], *carry]
        new = _evaluate_per_element(self.eqn.params["body_jaxpr"], args)
        running = self.is_running(consts, carry)
        if running.ndim == 0:
            return new
        return _where(running, new, carry)

    def with_lane_compaction(self, wanted: list[bool]) -> Callable[..., list[Array]]:
        """Return the loop as a function of its operands, whose batches use lane compaction."""

        def plain(*args):
            return [x for x, w in zip(_bind(self.eqn, args), wanted, strict=True) if w]

        return _compacted_under_vmap(plain, self, wanted)


def _compacted_under_vmap(
    plain: Callable[..., list[Array]], loop: _Loop, wanted: list[bool]
) -> Callable[..., list[Array]]:
    mapped = custom_vmap(plain)

    @mapped.def_vmap
    def _(size, batched, *args):
        if size > LANES:
            out = _run_with_compaction(loop, size, batched, args, wanted)
        else:
            # A small batch is vectorised. Under another `jax.vmap` it is one element of a larger
            # batch, which may use lane compaction.
            axes = [0 if b else None for b in batched]
            vectorised = jax.vmap(plain, in_axes=axes, axis_size=size)
            out = evaluate_with_lane_compaction(jax.make_jaxpr(vectorised)(*args), list(args))
        return out, [True] * sum(wanted)

    return mapped


class _Lanes(NamedTuple):
    """State of the lanes.

    **Attributes:** `elements`, the index of the batch element of each lane, `None` in a block;
    `running`, whether the element has not finished; `consts` and `carry`, its constants and carry.
    """

    elements: Int[Array, " L"] | None
    running: Bool[Array, " L"]
    consts: PyTree
    carry: PyTree

    def advance(
        self, step: "_LaneStep", count: PyTree, continues: Callable[..., PyTree]
    ) -> "_Lanes":
        """Iterate while a lane is running and `continues(running, idle, busy)` is true.

        **Arguments:** `count`, the number of lanes with an element. `idle` and `busy` are the
        numbers of iterations of finished and of running lanes so far.
        """

        def condition(state):
            running, _, idle, busy = state
            return jnp.any(running) & continues(running, idle, busy)

        def body(state):
            running, carry, idle, busy = state
            new = step.iterate(self.consts, carry, running)
            carry = _where(running, new, carry)
            running = running & step.continues(self.consts, carry)
            num_running = jnp.sum(running)
            return running, carry, idle + count - num_running, busy + num_running

        zero = jnp.zeros_like(jnp.sum(self.running))
        running, carry, *_ = jax.lax.while_loop(
            condition, body, (self.running, self.carry, zero, zero)
        )
        return self._replace(running=running, carry=carry)


class _LaneStep(NamedTuple):
    """Functions of the constants and the carry of all lanes.

    **Attributes:** `continues`, whether each lane goes on; `iterate`, the carry after an iteration,
    which the lanes that are not running will not use.
    """

    continues: Callable[[PyTree, PyTree], PyTree]
    iterate: Callable[[PyTree, PyTree, PyTree], PyTree]


class _BatchedLoop:
    """A loop for all elements of a batch.

    **Attributes:** `batched_consts`, the constants with a batch axis; `carry`, all with a batch
    axis; `step`, functions of these constants and the carry.
    """

    def __init__(self, loop: _Loop, size: int, batched: Sequence[bool], args: Sequence[Array]):
        count = loop.num_consts
        self.loop, self.size = loop, size
        self.batched_consts = [x for x, b in zip(args[:count], batched[:count], strict=True) if b]
        self.carry = [
            x if b else jnp.broadcast_to(x, (size, *jnp.shape(x)))
            for x, b in zip(args[count:], batched[count:], strict=True)
        ]

        def all_consts(batched_consts):
            """Return the constants of one element together with those of the whole batch."""
            batched_consts = iter(batched_consts)
            pairs = zip(args[:count], batched[:count], strict=True)
            return [next(batched_consts) if b else x for x, b in pairs]

        self.step = _LaneStep(
            jax.vmap(lambda consts, carry: loop.continues(all_consts(consts), carry)),
            jax.vmap(lambda consts, carry, _: loop.iterate(all_consts(consts), carry)),
        )


def _run_with_compaction(
    loop: _Loop, size: int, batched: Sequence[bool], args: Sequence[Array], wanted: list[bool]
) -> list[Array]:
    """Return the final carry of the wanted outputs, with a leading batch axis."""
    batch = _BatchedLoop(loop, size, batched, args)
    running = jnp.ones(size, bool)
    from ..lowering import rules  # noqa: F401  (fills the registry; imports LLVM)
    from ..passes.analysis import cost

    width = _MAX_ELEMENTS // max(cost(loop.eqn.params["body_jaxpr"].jaxpr), 1)
    # Blocks are a second copy of the loop for XLA to compile, which small batches do not repay.
    if width > LANES and size > 4 * LANES:
        running = _run_in_blocks(batch, -(-size // min(width, _MAX_BLOCK)))
    return [x for x, w in zip(_run_in_lanes(batch, running, wanted), wanted, strict=True) if w]


def _run_in_blocks(batch: _BatchedLoop, count: int) -> Bool[Array, " B"]:
    """Advance all elements in blocks, repeatedly while the running ones fill half a block.

    Updates `batch.carry` and returns which elements are still running.
    """
    size, length = batch.size, -(-batch.size // count)

    def run_block(begin, state, order):
        running, carry = state
        # Indices beyond the last element belong to lanes without an element.
        rows = jax.lax.dynamic_slice_in_dim(order, begin, length)
        # In the first pass the elements of a block are contiguous and need no gather.
        contiguous = (rows[0] + length <= size) & (rows[-1] == rows[0] + length - 1)

        def read(arrays):
            slice_of = lambda x: jax.lax.dynamic_slice_in_dim(x, rows[0], length)  # noqa: E731
            gather = lambda x: x[jnp.minimum(rows, size - 1)]  # noqa: E731
            return jax.lax.cond(
                contiguous, lambda a: [*map(slice_of, a)], lambda a: [*map(gather, a)], arrays
            )

        def write(arrays, new):
            update = lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, rows[0], 0)  # noqa: E731
            scatter = lambda x, y: x.at[rows].set(y, mode="drop")  # noqa: E731
            return jax.lax.cond(
                contiguous,
                lambda a, b: [*map(update, a, b)],
                lambda a, b: [*map(scatter, a, b)],
                arrays,
                new,
            )

        consts, block_carry = read(batch.batched_consts), read(carry)
        is_running = (rows < size) & batch.step.continues(consts, block_carry)
        lanes = _Lanes(None, is_running, consts, block_carry)

        def is_worthwhile(running, idle, busy):
            is_cheap = idle < _SETTING_ASIDE_COST * jnp.sum(running)
            return is_cheap | (idle < busy // _TOLERATED_WASTE)

        lanes = lanes.advance(batch.step, jnp.sum(lanes.running), is_worthwhile)
        running, *carry = write([running, *carry], [lanes.running, *lanes.carry])
        return running, carry

    def run_all_blocks(state):
        (order,) = jnp.nonzero(state[0], size=size + length, fill_value=size)
        blocks = (jnp.sum(state[0]) + length - 1) // length
        body = lambda k, state: run_block(k * length, state, order)  # noqa: E731
        return jax.lax.fori_loop(0, blocks, body, state)

    fills_half = lambda state: 2 * jnp.sum(state[0]) >= length  # noqa: E731
    start = jnp.ones(size, bool), batch.carry
    running, batch.carry = jax.lax.while_loop(fills_half, run_all_blocks, start)
    return running


def _run_in_lanes(
    batch: _BatchedLoop, running: Bool[Array, " B"], wanted: list[bool]
) -> list[Array]:
    """Finish the elements that are still running in lanes; return the carry of all elements."""
    # The index `size` stands for no element: writes to it are dropped.
    (waiting,) = jnp.nonzero(running, size=batch.size, fill_value=batch.size)

    def begin(rows, carry):
        return [x[rows] for x in batch.batched_consts], [x[rows] for x in carry]

    def write(carry, rows, lanes):
        triples = zip(carry, lanes.carry, wanted, strict=True)
        return [x.at[rows].set(end, mode="drop") if w else x for x, end, w in triples]

    return _refill_lanes(waiting, begin, batch.step, write, LANES, batch.carry)


def map_with_lane_compaction(
    elements: PyTree,
    begin: Callable[[PyTree], PyTree],
    continues: Callable[[PyTree], PyTree],
    iterate: Callable[[PyTree, PyTree, PyTree], PyTree],
    end: Callable[[PyTree, PyTree], PyTree],
    lanes: int,
) -> PyTree:
    """Map an iteration over batch elements that take different numbers of iterations.

    **Arguments:**

    - `elements`: pytree of arrays with a leading batch axis.
    - `begin`: `begin(element)`, the initial carry of an element.
    - `continues`: `continues(carry)`, whether the element takes another iteration.
    - `iterate`: `iterate(element, carry, running)`, the carry after one iteration; it is not used
      unless the lane is `running`.
    - `end`: `end(element, carry)`, the result of an element.
    - `lanes`: number of elements that are iterated at the same time.

    **Returns:** the results with a leading batch axis.
    """
    size = len(jax.tree.leaves(elements)[0])
    begin_all, end_all = jax.vmap(begin), jax.vmap(end)

    def begin_rows(rows, _):
        selected = jax.tree.map(lambda x: x[rows], elements)
        return selected, begin_all(selected)

    def write(out, rows, lanes):
        results = end_all(lanes.consts, lanes.carry)
        return jax.tree.map(lambda x, end: x.at[rows].set(end, mode="drop"), out, results)

    step = _LaneStep(lambda _, carry: jax.vmap(continues)(carry), jax.vmap(iterate))
    shapes = jax.eval_shape(lambda elements: end_all(elements, begin_all(elements)), elements)
    out = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    return _refill_lanes(jnp.arange(size), begin_rows, step, write, min(lanes, size), out)


def _refill_lanes(
    waiting: Int[Array, " B"],
    begin: Callable[..., tuple[PyTree, PyTree]],
    step: _LaneStep,
    write: Callable[..., PyTree],
    count: int,
    out: PyTree,
) -> PyTree:
    """Run waiting elements in lanes, and return `out` with their results.

    **Arguments:** `waiting`, indices of elements; `begin(rows, out)`, their constants and initial
    carry; `write(out, rows, lanes)`, `out` with the results of lanes in these rows; `count`, the
    number of lanes.
    """
    size = len(waiting)
    element = lambda k: jnp.where(k < size, waiting[jnp.minimum(k, size - 1)], size)  # noqa: E731

    def start_lanes(elements, out):
        consts, carry = begin(jnp.minimum(elements, size - 1), out)
        return _Lanes(elements, (elements < size) & step.continues(consts, carry), consts, carry)

    def refill(state):
        lanes, num_started, out = state
        # While elements are waiting, lanes are refilled after `count` idle iterations.
        max_idle = jnp.where(element(num_started) < size, count, jnp.iinfo(jnp.int32).max)
        lanes = lanes.advance(step, count, lambda _, idle, __: idle < max_idle)
        out = write(out, jnp.where(lanes.running, size, lanes.elements), lanes)
        free = ~lanes.running
        new = start_lanes(element(num_started + jnp.cumsum(free) - 1), out)
        return _where(free, new, lanes), num_started + jnp.sum(free), out

    start = start_lanes(element(jnp.arange(count)), out), jnp.array(count), out
    continues = lambda s: jnp.any(s[0].running) | (element(s[1]) < size)  # noqa: E731
    return jax.lax.while_loop(continues, refill, start)[2]


def _where(mask: Bool[Array, "..."], new: PyTree, old: PyTree) -> PyTree:
    """Select arrays of `new` or `old` along the leading axes of `mask`."""

    def select(new, old):
        return jnp.where(mask.reshape(*mask.shape, *[1] * (new.ndim - mask.ndim)), new, old)

    return jax.tree.map(select, new, old)
