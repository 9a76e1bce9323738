"""Batches of loops in which members that have finished keep no others waiting.

`jax.vmap` of a loop runs all members until the last one has finished. Here blocks of members run
until those that have finished have cost more turns than it takes to set the others aside. These
then share a few lanes, in which others take the places of those that have finished: a member that
takes a hundred times longer than the rest keeps one lane, not all members, busy.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var
from jaxtyping import Array, Bool, Int, PyTree

# Lanes for members that were set aside: enough that XLA's loops are worth their while.
LANES = 64
# Members of a block, and numbers that all of them compute in a turn: as many as stay in the cache.
_MAX_BLOCK, _MAX_ELEMENTS = 1024, 1_500_000
# Turns that take as long as to set a member aside; the share of turns that may be idle in any case
# is one of so many.
_SETTING_ASIDE_COST, _TOLERATED_WASTE = 4, 16


# Equinox's reduction over all members of a batch, with which the conditions of its loops end, and
# its assertion that what comes of it is the same for all.
_ANY, _NONBATCHABLE = "unvmap_any", "nonbatchable"


def evaluate_with_lane_compaction(closed: ClosedJaxpr, args: list[Array]) -> list[Array]:
    """Results of a program; batches of its outermost loops are refilled as members finish.

    Values are those of `jax.vmap` of the program, to round-off. Not to be differentiated.
    """
    jaxpr = closed.jaxpr
    atoms = [*jaxpr.outvars, *(atom for eqn in jaxpr.eqns for atom in eqn.invars)]
    used = {atom for atom in atoms if not isinstance(atom, Literal)}

    def equation(eqn, values):
        if eqn.primitive.name == "while":
            # What nobody asks for needs no memory.
            wanted = [var in used for var in eqn.outvars]
            some = iter(_Loop.of(eqn).each(wanted)(*values))
            return [next(some) if w else None for w in wanted]
        if eqn.primitive.name == "jit":
            return evaluate_with_lane_compaction(eqn.params["jaxpr"], values)
        return None

    return _evaluate(closed, args, equation)


def _evaluate_per_element(closed: ClosedJaxpr, args: list[Array]) -> list[Array]:
    """The condition or the body of a loop, where each member says for itself whether it goes on."""
    asked = {out for out in closed.jaxpr.outvars if not isinstance(out, Literal)}
    for eqn in reversed(closed.jaxpr.eqns):
        name = eqn.primitive.name
        if name == _NONBATCHABLE or (name == "and" and eqn.outvars[0] in asked):
            asked |= {atom for atom in eqn.invars if not isinstance(atom, Literal)}

    def equation(eqn, values):
        name = eqn.primitive.name
        return (
            values if name == _NONBATCHABLE or (name == _ANY and eqn.outvars[0] in asked) else None
        )

    return _evaluate(closed, args, equation)


def _evaluate(closed, args, equation):
    """Results of a program, of whose equations some are computed by `equation`."""
    jaxpr = closed.jaxpr
    env: dict[Var, Array] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env |= dict(zip(jaxpr.invars, args, strict=True))

    def read(atom):
        return atom.val if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        values = [read(atom) for atom in eqn.invars]
        out = equation(eqn, values)
        out = _bind(eqn, values) if out is None else out
        env |= dict(zip(eqn.outvars, out, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _bind(eqn, args):
    """The equation as it stands."""
    out = eqn.primitive.bind(*args, **eqn.primitive.get_bind_params(eqn.params))
    return out if eqn.primitive.multiple_results else [out]


class _Loop(NamedTuple):
    """A loop of one member: its equation, and the constants of its condition and of both."""

    eqn: JaxprEqn
    first: int
    second: int

    @classmethod
    def of(cls, eqn: JaxprEqn) -> "_Loop":
        first = eqn.params["cond_nconsts"]
        return cls(eqn, first, first + eqn.params["body_nconsts"])

    def running(self, consts: list[Array], carry: list[Array]) -> Bool[Array, "..."]:
        """The condition: of a member that is a batch itself, one for each part of it."""
        return _evaluate_per_element(
            self.eqn.params["cond_jaxpr"], [*consts[: self.first], *carry]
        )[0]

    def goes_on(self, consts: list[Array], carry: list[Array]) -> Bool[Array, "..."]:
        """Whether there is another turn."""
        return jnp.any(self.running(consts, carry))

    def turn(self, consts: list[Array], carry: list[Array]) -> list[Array]:
        """What is carried after one more turn."""
        after = _evaluate_per_element(
            self.eqn.params["body_jaxpr"], [*consts[self.first :], *carry]
        )
        running = self.running(consts, carry)
        if running.ndim == 0:
            return after
        return _where(running, after, carry)

    def each(self, wanted: list[bool]) -> Callable[..., list[Array]]:
        """The loop as a function of its operands; batches of it are refilled."""

        def alone(*args):
            return [x for x, w in zip(_bind(self.eqn, args), wanted, strict=True) if w]

        return _compacted_under_vmap(alone, self, wanted)


def _compacted_under_vmap(alone, loop, wanted):
    mapped = custom_vmap(alone)

    @mapped.def_vmap
    def _(size, batched, *args):
        if size > LANES:
            out = _run_with_compaction(loop, size, batched, args, wanted)
        else:
            # Members of one member: their loops end together, and may be refilled among others.
            axes = [0 if b else None for b in batched]
            out = evaluate_with_lane_compaction(
                jax.make_jaxpr(jax.vmap(alone, in_axes=axes, axis_size=size))(*args), list(args)
            )
        return out, [True] * sum(wanted)

    return mapped


class _Lanes(NamedTuple):
    """Members at work: their numbers, whether they go on, their own constants, what they carry."""

    numbers: Int[Array, " L"] | None
    alive: Bool[Array, " L"]
    consts: PyTree
    carry: PyTree

    def advanced(
        self, work: "_LaneStep", members: PyTree, goes_on: Callable[..., PyTree]
    ) -> "_Lanes":
        """After as many turns as `goes_on(alive, idle, busy)` allows: the last two count turns of
        lanes that have finished and that have not, of `members`."""

        def more(state):
            alive, _, idle, busy = state
            return jnp.any(alive) & goes_on(alive, idle, busy)

        def turn(state):
            alive, carry, idle, busy = state
            after = work.turn(self.consts, carry)
            carry = _where(alive, after, carry)
            alive = alive & work.alive(self.consts, carry)
            count = jnp.sum(alive)
            return alive, carry, idle + members - count, busy + count

        zero = jnp.zeros_like(jnp.sum(self.alive))
        alive, carry, *_ = jax.lax.while_loop(more, turn, (self.alive, self.carry, zero, zero))
        return self._replace(alive=alive, carry=carry)


class _LaneStep(NamedTuple):
    """Of lanes, by their own constants and what they carry: whether they go on, and one turn."""

    alive: Callable[[PyTree, PyTree], PyTree]
    turn: Callable[[PyTree, PyTree], PyTree]


class _BatchedLoop:
    """A loop for all members of a batch: which of its constants are their own, and its work."""

    def __init__(self, loop, size, batched, args):
        count = loop.second
        self.loop, self.size = loop, size
        self.own = [x for x, b in zip(args[:count], batched[:count], strict=True) if b]
        self.carry = [
            x if b else jnp.broadcast_to(x, (size, *jnp.shape(x)))
            for x, b in zip(args[count:], batched[count:], strict=True)
        ]

        def consts(own):
            """All constants, with those of a member among those of all."""
            own = iter(own)
            pairs = zip(args[:count], batched[:count], strict=True)
            return [next(own) if b else x for x, b in pairs]

        self.work = _LaneStep(
            jax.vmap(lambda own, carry: loop.goes_on(consts(own), carry)),
            jax.vmap(lambda own, carry: loop.turn(consts(own), carry)),
        )


def _run_with_compaction(loop, size, batched, args, wanted):
    """What is carried at the end, the members in front, for the outputs that are wanted."""
    batch = _BatchedLoop(loop, size, batched, args)
    alive = jnp.ones(size, bool)
    from ..lowering import rules  # noqa: F401  (fills the registry; imports LLVM)
    from ..passes.analysis import cost

    width = _MAX_ELEMENTS // max(cost(loop.eqn.params["body_jaxpr"].jaxpr), 1)
    # Few members are not worth that XLA compiles the loop twice.
    if width > LANES and size > 4 * LANES:
        alive = _run_in_blocks(batch, -(-size // min(width, _MAX_BLOCK)))
    return [x for x, w in zip(_run_in_lanes(batch, alive, wanted), wanted, strict=True) if w]


def _run_in_blocks(batch, count):
    """Advance the members in blocks, again and again, as long as those that are left fill half of
    one; returns which are left."""
    size, length = batch.size, -(-batch.size // count)

    def block(begin, state, order):
        alive, carry = state
        # Places behind the last member are those of lanes that have none.
        places = jax.lax.dynamic_slice_in_dim(order, begin, length)
        # The members in their order, which needs no search: the first time.
        whole = (places[0] + length <= size) & (places[-1] == places[0] + length - 1)

        def some(arrays):
            row = lambda x: jax.lax.dynamic_slice_in_dim(x, places[0], length)  # noqa: E731
            rows = lambda x: x[jnp.minimum(places, size - 1)]  # noqa: E731
            found = jax.lax.cond(whole, lambda a: [*map(row, a)], lambda a: [*map(rows, a)], arrays)
            return found

        def put(arrays, new):
            row = lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, places[0], 0)  # noqa: E731
            rows = lambda x, y: x.at[places].set(y, mode="drop")  # noqa: E731
            return jax.lax.cond(
                whole, lambda a, b: [*map(row, a, b)], lambda a, b: [*map(rows, a, b)], arrays, new
            )

        own, mine = some(batch.own), some(carry)
        lanes = _Lanes(None, (places < size) & batch.work.alive(own, mine), own, mine)

        def worth(alive, idle, busy):
            return (idle < _SETTING_ASIDE_COST * jnp.sum(alive)) | (idle < busy // _TOLERATED_WASTE)

        lanes = lanes.advanced(batch.work, jnp.sum(lanes.alive), worth)
        alive, *carry = put([alive, *carry], [lanes.alive, *lanes.carry])
        return alive, carry

    def once(state):
        (order,) = jnp.nonzero(state[0], size=size + length, fill_value=size)
        blocks = (jnp.sum(state[0]) + length - 1) // length
        step = lambda k, state: block(k * length, state, order)  # noqa: E731
        return jax.lax.fori_loop(0, blocks, step, state)

    enough = lambda state: 2 * jnp.sum(state[0]) >= length  # noqa: E731
    alive, batch.carry = jax.lax.while_loop(enough, once, (jnp.ones(size, bool), batch.carry))
    return alive


def _run_in_lanes(batch, alive, wanted):
    """What all members carry at the end; those that are `alive` go on in lanes."""
    # Behind the last member there are none: nothing is written there.
    (waiting,) = jnp.nonzero(alive, size=batch.size, fill_value=batch.size)

    def begin(rows, carry):
        return [x[rows] for x in batch.own], [x[rows] for x in carry]

    def put(carry, places, lanes):
        each = zip(carry, lanes.carry, wanted, strict=True)
        return [x.at[places].set(end, mode="drop") if w else x for x, end, w in each]

    return _refill_lanes(waiting, begin, batch.work, put, LANES, batch.carry)


def map_with_lane_compaction(
    members: PyTree,
    begin: Callable[[PyTree], PyTree],
    goes_on: Callable[[PyTree], PyTree],
    turn: Callable[[PyTree, PyTree], PyTree],
    end: Callable[[PyTree, PyTree], PyTree],
    lanes: int,
) -> PyTree:
    """Results of members that take one turn after the other, different numbers of them.

    **Arguments:** `members`, arrays with all of them in front; of one of them, `begin(member)`,
    what it carries at first; `goes_on(carry)`, whether there is another turn; `turn(member, carry)`
    and `end(member, carry)`, its results; `lanes`, how many are at work at once.
    """
    size = len(jax.tree.leaves(members)[0])
    start, ends = jax.vmap(begin), jax.vmap(end)

    def entering(rows, _):
        some = jax.tree.map(lambda x: x[rows], members)
        return some, start(some)

    def put(out, places, lanes):
        found = ends(lanes.consts, lanes.carry)
        return jax.tree.map(lambda x, end: x.at[places].set(end, mode="drop"), out, found)

    work = _LaneStep(lambda _, carry: jax.vmap(goes_on)(carry), jax.vmap(turn))
    shapes = jax.eval_shape(lambda all: ends(all, start(all)), members)
    out = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    return _refill_lanes(jnp.arange(size), entering, work, put, min(lanes, size), out)


def _refill_lanes(waiting, begin, work, put, count, out):
    """`out` with the results of the members that are `waiting`.

    **Arguments:** `begin(rows, out)`, constants of members and what they carry at first;
    `put(out, places, lanes)`, results of lanes at their places.
    """
    size = len(waiting)
    number = lambda k: jnp.where(k < size, waiting[jnp.minimum(k, size - 1)], size)  # noqa: E731

    def taken(numbers, out):
        """Members as lanes that begin."""
        consts, carry = begin(jnp.minimum(numbers, size - 1), out)
        return _Lanes(numbers, (numbers < size) & work.alive(consts, carry), consts, carry)

    def refill(state):
        lanes, begun, out = state
        most = jnp.where(number(begun) < size, count, jnp.iinfo(jnp.int32).max)
        lanes = lanes.advanced(work, count, lambda _, idle, __: idle < most)
        out = put(out, jnp.where(lanes.alive, size, lanes.numbers), lanes)
        free = ~lanes.alive
        fresh = taken(number(begun + jnp.cumsum(free) - 1), out)
        return _where(free, fresh, lanes), begun + jnp.sum(free), out

    state = taken(number(jnp.arange(count)), out), jnp.array(count), out
    goes_on = lambda s: jnp.any(s[0].alive) | (number(s[1]) < size)  # noqa: E731
    return jax.lax.while_loop(goes_on, refill, state)[2]


def _where(which, new, old):
    """Arrays of either, by members."""

    def one(new, old):
        return jnp.where(which.reshape(*which.shape, *[1] * (new.ndim - which.ndim)), new, old)

    return jax.tree.map(one, new, old)
