"""Batches of loops in which a member that has finished makes room for one that waits.

`jax.vmap` of a loop runs all members until the last one has finished. Here a few lanes run, and
others take the places of those that have finished: a member that takes a hundred times longer than
the rest keeps one lane, not all members, busy.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.extend.core import ClosedJaxpr, Literal

# Members that run at once: enough for vector registers, and little enough to stay in the cache.
LANES = 128


# Equinox's reduction over all members of a batch, with which the conditions of its loops end, and
# its assertion that what comes of it is the same for all.
_ANY, _SAME = "unvmap_any", "nonbatchable"


def evaluate(closed: ClosedJaxpr, args: list[Any]) -> list[Any]:
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
            return evaluate(eqn.params["jaxpr"], values)
        return None

    return _run(closed, args, equation)


def _alone(closed: ClosedJaxpr, args: list[Any]) -> list[Any]:
    """The condition or the body of a loop, where each member says for itself whether it goes on."""
    asked = {out for out in closed.jaxpr.outvars if not isinstance(out, Literal)}
    for eqn in reversed(closed.jaxpr.eqns):
        name = eqn.primitive.name
        if name == _SAME or (name == "and" and eqn.outvars[0] in asked):
            asked |= {atom for atom in eqn.invars if not isinstance(atom, Literal)}

    def equation(eqn, values):
        name = eqn.primitive.name
        return values if name == _SAME or (name == _ANY and eqn.outvars[0] in asked) else None

    return _run(closed, args, equation)


def _run(closed, args, equation):
    """Results of a program, of whose equations some are computed by `equation`."""
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env |= dict(zip(jaxpr.invars, args, strict=True))

    def read(atom):
        return atom.val if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        values = [read(atom) for atom in eqn.invars]
        out = equation(eqn, values)
        out = _bound(eqn, values) if out is None else out
        env |= dict(zip(eqn.outvars, out, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _bound(eqn, args):
    """The equation as it stands."""
    out = eqn.primitive.bind(*args, **eqn.primitive.get_bind_params(eqn.params))
    return out if eqn.primitive.multiple_results else [out]


class _Loop(NamedTuple):
    """A loop of one member: its equation, and the constants of its condition and of both."""

    eqn: Any
    first: int
    second: int

    @classmethod
    def of(cls, eqn: Any) -> "_Loop":
        first = eqn.params["cond_nconsts"]
        return cls(eqn, first, first + eqn.params["body_nconsts"])

    def running(self, consts: list[Any], carry: list[Any]) -> Any:
        """The condition: of a member that is a batch itself, one for each part of it."""
        return _alone(self.eqn.params["cond_jaxpr"], [*consts[: self.first], *carry])[0]

    def goes_on(self, consts: list[Any], carry: list[Any]) -> Any:
        """Whether there is another turn."""
        return jnp.any(self.running(consts, carry))

    def turn(self, consts: list[Any], carry: list[Any]) -> list[Any]:
        """What is carried after one more turn."""
        after = _alone(self.eqn.params["body_jaxpr"], [*consts[self.first :], *carry])
        running = self.running(consts, carry)
        if running.ndim == 0:
            return after
        return [_chosen(running, new, x) for new, x in zip(after, carry, strict=True)]

    def each(self, wanted: list[bool]) -> Callable[..., list[Any]]:
        """The loop as a function of its operands; batches of it are refilled."""

        def alone(*args):
            return [x for x, w in zip(_bound(self.eqn, args), wanted, strict=True) if w]

        return _by_lanes(alone, self, wanted)


def _by_lanes(alone, loop, wanted):
    mapped = custom_vmap(alone)

    @mapped.def_vmap
    def _(size, batched, *args):
        if size > LANES:
            out = _refilled(loop, size, batched, args, wanted)
        else:
            # Members of one member: their loops end together, and may be refilled among others.
            axes = [0 if b else None for b in batched]
            out = evaluate(
                jax.make_jaxpr(jax.vmap(alone, in_axes=axes, axis_size=size))(*args), list(args)
            )
        return out, [True] * sum(wanted)

    return mapped


class _Lanes(NamedTuple):
    """Members at work: their numbers, whether they go on, their own constants, what they carry."""

    numbers: Any
    alive: Any
    consts: list[Any]
    carry: list[Any]


def _refilled(loop, size, batched, args, wanted):
    """What is carried at the end, the members in front, for the outputs that are wanted."""
    count = loop.second

    def consts(own):
        """All constants, with those of a member among those of all."""
        own = iter(own)
        return [next(own) if b else x for x, b in zip(args[:count], batched[:count], strict=True)]

    alive_after = jax.vmap(lambda own, carry: loop.goes_on(consts(own), carry))
    one_turn = jax.vmap(lambda own, carry: loop.turn(consts(own), carry))

    def taken(numbers):
        """Members as lanes that begin."""
        own = [x[numbers] for x, b in zip(args[:count], batched[:count], strict=True) if b]
        carry = [
            x[numbers] if b else jnp.broadcast_to(x, (LANES, *jnp.shape(x)))
            for x, b in zip(args[count:], batched[count:], strict=True)
        ]
        return _Lanes(numbers, alive_after(own, carry), own, carry)

    def advanced(lanes, waiting):
        """The lanes when they are to be refilled: when idle turns have cost what that costs."""

        def goes_on(state):
            alive, _, idle = state
            return jnp.any(alive) & (~waiting | (idle < LANES))

        def turn(state):
            alive, carry, idle = state
            after = one_turn(lanes.consts, carry)
            carry = [_chosen(alive, new, x) for new, x in zip(after, carry, strict=True)]
            idle = idle + jnp.sum(~alive)
            return alive & alive_after(lanes.consts, carry), carry, idle

        state = lanes.alive, lanes.carry, jnp.zeros_like(jnp.sum(lanes.alive))
        alive, carry, _ = jax.lax.while_loop(goes_on, turn, state)
        return lanes._replace(alive=alive, carry=carry)

    def refill(state):
        lanes, begun, out = state
        lanes = advanced(lanes, begun < size)
        # Places behind the last member are those of lanes that have none: nothing is written.
        places = jnp.where(lanes.alive, size, lanes.numbers)
        ends = [x for x, w in zip(lanes.carry, wanted, strict=True) if w]
        out = [x.at[places].set(end, mode="drop") for x, end in zip(out, ends, strict=True)]
        free = ~lanes.alive
        following = jnp.minimum(begun + jnp.cumsum(free) - 1, size)
        some = free & (following < size)
        fresh = taken(jnp.minimum(following, size - 1))
        lanes = jax.tree.map(lambda new, old: _chosen(some, new, old), fresh, lanes)
        lanes = lanes._replace(numbers=jnp.where(free & ~some, size, lanes.numbers))
        return lanes, jnp.minimum(begun + jnp.sum(free), size), out

    first = taken(jnp.arange(LANES))
    out = [
        jnp.zeros((size, *x.shape[1:]), x.dtype)
        for x, w in zip(first.carry, wanted, strict=True)
        if w
    ]
    state = first, jnp.array(LANES), out
    return jax.lax.while_loop(lambda s: jnp.any(s[0].alive) | (s[1] < size), refill, state)[2]


def _chosen(which, new, old):
    return jnp.where(which.reshape(*which.shape, *[1] * (new.ndim - which.ndim)), new, old)
