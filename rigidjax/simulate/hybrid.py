r"""Hybrid runs: segments of motion, between which transitions change the state.

A segment is searched for its first transition without derivatives, and integrated again up to this
time $t_b$, with the derivatives and the samples of an ordinary run. The residual of the function
$h$ at its end, round-off in value, carries the derivatives of the transition time:

$$t_c = t_b - h / \dot h, \qquad y_c = y_b + \int_{t_b}^{t_c} f\,dt.$$

Derivatives of the changed state are therefore those of the saltation matrix.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox.internal import unvmap_any
from jaxtyping import Array, Bool, Float

from ..annotations import Count, Flag, Scalar
from ..control.contacts import AbstractContact
from ..control.held_joints import start_modes, stick_and_slip
from ..control.resting import (
    ContactMotions,
    can_rest,
    closing_and_opening,
    contact_motions,
    with_contacts,
)
from ..control.restitution import Restitution
from ..control.transition import (
    AbstractChange,
    Transition,
    TransitionRecord,
    check_functions,
    split_change,
)
from ..formulations.charts import Unknowns, split_chart
from ..formulations.holding import with_closed
from ..formulations.view import SystemView
from ..results import RESULTS
from ..solvers.dae.equations import stop_gradients
from ..solvers.wrappers.sampled import take_first_samples
from .crossings import FallingValues, search_crossings
from .endings import is_okay
from .integration import choose_call
from .solution import Solution
from .transitions import change_unknowns, locate_zero, rate_of_unknowns

if TYPE_CHECKING:
    from .integration import RunArguments

_EVENT: Any = RESULTS.event_occurred
# Times that differ by this number of units in the last place are simultaneous.
_SIMULTANEOUS = 1024
# Number of successive intervals, each shorter than the square root of the round-off of the run,
# after which transitions accumulate.
_SHORT_INTERVALS = 3
# Rate of `when` after a transition, relative to the rate before, that counts as zero.
_AT_REST = 1e-12
# Smallest rate of `when` for which a transition acts again at the same time, relative to the rate
# when it acted last.
_SIGNIFICANT = 1e-9
# Change of a function over the run, in units of the last place of the unknowns, that is round-off.
_NOISE = 64


class _End(AbstractChange):
    """The end of a run at an event, which changes nothing."""

    sets_modes: ClassVar[bool] = True

    def apply(self, model: Any, t: Scalar, y: Unknowns, when: Callable[..., Scalar]) -> Unknowns:
        return y


class _EventFunction(eqx.Module):
    """The function of a diffrax event as that of a transition."""

    function: Callable[..., Scalar]
    args: Any

    def __call__(self, t: Scalar, view: SystemView) -> Scalar:
        return self.function(t, view.y, self.args)


def _transitions_of_event(event: diffrax.Event | None, args: Any) -> tuple[Transition, ...]:
    """Return the transitions at which an event ends a run, in the order of its functions."""
    if event is None:
        return ()
    functions, structure = jax.tree.flatten(event.cond_fn, is_leaf=callable)
    directions: Any = event.direction
    if directions is None or isinstance(directions, bool):
        directions = [directions] * len(functions)
    else:
        directions = structure.flatten_up_to(directions)
    signs = {None: 0, True: 1, False: -1}
    return tuple(
        Transition(_EventFunction(function, args), _End(), signs[direction], f"event {k}")
        for k, (function, direction) in enumerate(zip(functions, directions, strict=True))
    )


class _Carry(eqx.Module):
    """Progress of a hybrid run at the start of a segment."""

    t: Scalar
    y: Unknowns
    closed: Bool[Array, " C"]  # contacts that are closed
    sampled: Scalar  # time up to which samples have been taken
    last: Count  # index of the last transition, -1 before the first
    acted: Bool[Array, " K"]  # transitions that have acted at this time
    speeds: Float[Array, " K"]  # rate of each function when it acted last
    side: Float[Array, " K"]  # sign of each function on the side from which it is watched
    pending: Bool[Array, " K"]  # transitions expected at this time, or a short time later
    jumped: Bool[Array, " K"]  # pending transitions whose functions have jumped
    short: Count  # number of successive short intervals
    bands: Float[Array, " K"]  # values of functions that rest at zero after a change, up to noise
    result: Any
    is_running: Flag
    ts: Float[Array, " T"]
    ys: Unknowns
    closed_at: Bool[Array, "T C"]  # contacts that are closed at the samples
    stats: dict[str, Any]


class _AtContacts(eqx.Module):
    """A function of time and unknowns while given contacts are closed."""

    function: Callable[..., Scalar]
    closed: Bool[Array, " C"]

    def __call__(self, t: Scalar, y: Unknowns) -> Scalar:
        return self.function(t, y, self.closed)


def solve_segments(
    solve: Callable[..., tuple[Solution, Flag]],
    run: "RunArguments",
    y0: Unknowns,
    term: diffrax.AbstractTerm | None,
) -> tuple[Solution, Flag]:
    """Integrate a prepared run with transitions.

    **Arguments:** `solve`, which integrates a segment; `run`; `y0`, unknowns at the start; `term`,
    of equations of an index above zero.
    **Returns:** the solution without its model, and whether the run succeeded.
    """
    return _HybridRun(solve, run, term, y0).solve()


class _Watch(NamedTuple):
    """Functions and contacts at the start of a segment.

    **Attributes:** `values` with the `side` for which a transition is a fall through zero; `due`,
    transitions that occur at once; `urgencies` of those of joints and contacts; `acted`, those
    that have acted at this time and are still at zero; `is_stuck`, whether the motion would pass
    through a zero from rest; `motion` of the contacts, `None` without any.
    """

    values: FallingValues
    side: Float[Array, " K"]
    due: Bool[Array, " K"]
    urgencies: Float[Array, " M"]
    acted: Bool[Array, " K"]
    is_stuck: Flag
    motion: ContactMotions | None


class _HybridRun:
    """A run with transitions and the functions that its segments share."""

    def __init__(
        self,
        solve: Callable[..., tuple[Solution, Flag]],
        run: "RunArguments",
        term: diffrax.AbstractTerm | None,
        y0: Unknowns,
    ):
        model = with_contacts(run.model, run.transitions)
        # Events are the last transitions of the caller.
        ends = _transitions_of_event(run.event, run.args)
        self.event, self.num_ends, self.meter = run.event, len(ends), run.method.meter
        run = run._replace(
            sampling_start=run.t0, model=model, event=None, transitions=(*run.transitions, *ends),
            method=run.method._replace(meter=diffrax.NoProgressMeter()),
        )  # fmt: skip
        self.solve_segment, self.run, self.term, self.model = solve, run, term, model
        check_functions(run.transitions, model, run.t0, y0)
        self.duration = jax.lax.stop_gradient(run.t1 - run.t0)
        dtype = run.t0.dtype
        self.short = jnp.sqrt(jnp.finfo(dtype).eps) * self.duration
        # Transitions of the caller come first, then those of joints that stick, then of contacts.
        self.joints = stick_and_slip(model, self.duration)
        self.contacts = closing_and_opening(model)
        self.transitions = (*run.transitions, *self.joints, *self.contacts)
        self.contact_kinds = np.array(
            [k for k, item in enumerate(run.transitions) if can_rest(model, item)], int
        )
        # Functions for which a motion that starts at rest at a zero and passes it is an error.
        self.checked_kinds = np.array(
            [k for k, item in enumerate(run.transitions) if self._needs_check(item, y0)], int
        )
        y0 = start_modes(model, run.t0, y0, self.duration)
        y0, closed = self._close_at_start(y0, jnp.zeros(len(self.contacts), bool))
        if run.num_samples:
            # The first samples see the contacts that rest with the defaults of their inputs.
            y0 = take_first_samples(self._model_at(closed), run.t0, y0)
            y0, closed = self._close_at_start(y0, closed)
        self.y0, self.closed = y0, closed
        self.directions = jnp.array([item.direction for item in self.transitions])
        self.repeats = np.array([_may_repeat(item) for item in self.transitions])
        self.resolution = (
            _SIMULTANEOUS
            * jnp.finfo(dtype).eps
            * jax.lax.stop_gradient(jnp.maximum(jnp.abs(run.t0), jnp.abs(run.t1)))
        )
        subs: Any = run.saveat.subs
        self.save = subs.fn
        parts = [[run.t0]] * subs.t0 + ([subs.ts] if subs.ts is not None else [])
        self.saves_end = bool(subs.t1) and self.num_ends > 0
        self.ts = jnp.concatenate([*map(jnp.asarray, parts), *([run.t1[None]] * subs.t1)])
        self.backend: Any = None  # that of the segments

    def _close_at_start(
        self, y: Unknowns, closed: Bool[Array, " C"]
    ) -> tuple[Unknowns, Bool[Array, " C"]]:
        """Return the unknowns at the start, and which contacts are closed there."""
        t = self.run.t0
        if not self.contacts:
            return y, closed

        def change_one(carry, _):
            y, closed = carry
            at = with_closed(self.model, closed)
            urgencies = contact_motions(*stop_gradients((at, t, y)), self.short).urgencies
            c = jnp.argmax(urgencies)
            changes: list[Any] = [item.change for item in self.contacts]
            branches = [
                lambda y, item=item, change=change: change.apply(at, t, y, item.when)
                for item, change in zip(self.contacts, changes, strict=True)
            ]
            changed = jax.lax.switch(c, branches, y), closed.at[c].set(~closed[c])
            keep = urgencies[c] > 0
            return jax.tree.map(lambda a, b: jnp.where(keep, a, b), changed, carry), None

        # One change is enough for each contact unless they depend on each other.
        return jax.lax.scan(change_one, (y, closed), length=2 * len(self.contacts))[0]

    def _needs_check(self, item: Transition, y: Unknowns) -> bool:
        """Return whether a motion that starts at a zero of `when`, from rest, is an error."""
        if item.direction == 0 or can_rest(self.model, item):
            return False
        if isinstance(item.change, AbstractChange):
            return not item.change.sets_modes
        state = eqx.filter_eval_shape(self.model.decode, self.run.t0, y)
        change: Any = item.change
        # After a change of mode the function may rest at zero.
        return not split_change(eqx.filter_eval_shape(change, self.run.t0, state))[1]

    def solve(self) -> tuple[Solution, Flag]:
        """Return the solution without its model, and whether the run succeeded."""
        run, count = self.run, self.run.max_transitions
        self.functions = [
            eqx.filter_closure_convert(self._value_of(item), run.t0, self.y0, self.closed)
            for item in self.transitions
        ]
        start = self._first_carry()
        state = eqx.filter_eval_shape(self.model.decode, run.t0, self.y0)
        skipped = (jnp.array(False), run.t0, jnp.array(0), state, state)
        skipped = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), skipped)

        def step(carry, i):
            carry, meter = carry
            carry, record = jax.lax.cond(
                unvmap_any(carry.is_running),
                lambda carry: _cast(self._segment(carry, i), (start, skipped)),
                lambda carry: (carry, skipped),
                _cast(carry, start),
            )
            done = jax.lax.stop_gradient((carry.t - run.t0) / (run.t1 - run.t0))
            return (carry, self.meter.step(meter, done)), record

        (end, meter), (recorded, times, kinds, before, after) = jax.lax.scan(
            step, (start, self.meter.init()), jnp.arange(count + 1)
        )
        self.meter.close(meter)
        occurred = end.result == _EVENT
        recorded = recorded[:count]
        before, after, times = jax.tree.map(
            lambda x: _pad(recorded, x[:count], jnp.inf), (before, after, times)
        )
        record = TransitionRecord(
            times, jnp.where(recorded, kinds[:count], -1), jnp.sum(recorded), before, after,
            self._names(),
        )  # fmt: skip
        ys = end.ys
        if not run.saves_unknowns:
            ys = jax.vmap(lambda t, y: self.save(t, y, run.args))(end.ts, ys)
            ys = jax.tree.map(lambda y: _pad(jnp.isfinite(end.ts), y, jnp.inf), ys)
        no_model: Any = None
        solution = Solution(
            no_model, end.ts, ys, {**end.stats, "backend": self.backend}, end.result,
            self._event_mask(end, occurred), None, None, None,
            *self._at_event(end, occurred),
            t0=run.t0, transitions=record,
            closed=end.closed_at if self.contacts else None,
        )  # fmt: skip
        return solution, is_okay(end.result)

    def _names(self) -> tuple[str, ...]:
        """Return the names of the kinds of transitions, two for each joint and each contact."""
        transitions = self.run.transitions[: len(self.run.transitions) - self.num_ends]
        names = [item.name or str(k) for k, item in enumerate(transitions)]
        for item in self.joints:
            names += [f"{item.name} slips", f"{item.name} sticks"]
        for item in self.contacts:
            names += [f"{item.name} opens", f"{item.name} closes"]
        return tuple(names)

    def _kind_of_record(self, kind: Count, y: Unknowns, closed: Bool[Array, " C"]) -> Count:
        """Return the index in `_names` of a transition.

        **Arguments:** `y` and `closed`, after the transition.
        """
        first = len(self.run.transitions)
        changes: list[Any] = [item.change for item in self.joints]
        sticks = [change.sticks(self.model, y) for change in changes]
        holds = jnp.concatenate([jnp.asarray(sticks, bool), closed])
        if not holds.size:
            return kind
        k = jnp.maximum(kind - first, 0)
        return jnp.where(kind < first, kind, first - self.num_ends + 2 * k + holds[k])

    def _ends(self, kind: Count) -> Flag:
        """Return whether a transition is an event that ends the run."""
        first = len(self.run.transitions)
        return (kind >= first - self.num_ends) & (kind < first)

    def _at_event(self, end: _Carry, occurred: Flag) -> tuple[Any, ...]:
        """Return time and unknowns of the event, NaN if none occurred."""
        if self.event is None:
            return None, None
        return jax.tree.map(lambda x: _pad(occurred, x, jnp.nan), (end.t, end.y))

    def _event_mask(self, end: _Carry, occurred: Flag) -> Any:
        """Return the mask of the event that ended the run, `None` without events."""
        if self.event is None:
            return None
        structure = jax.tree.structure(self.event.cond_fn, is_leaf=callable)
        first = len(self.run.transitions) - self.num_ends
        flags = occurred & (jnp.arange(first, first + self.num_ends) == end.last)
        return jax.tree.unflatten(structure, list(flags))

    def _value_of(self, item: Transition) -> Callable[..., Scalar]:
        return lambda t, y, closed: item.value(self._model_at(closed), t, y)

    def _model_at(self, closed: Bool[Array, " C"]) -> Any:
        """Return the model while these contacts are closed."""
        return with_closed(self.model, closed) if self.contacts else self.model

    def _functions_at(self, closed: Bool[Array, " C"]) -> list[Callable[..., Scalar]]:
        """Return the functions of all transitions while these contacts are closed."""
        return [_AtContacts(function, closed) for function in self.functions]

    def _first_carry(self) -> _Carry:
        run, y0, count = self.run, self.y0, len(self.transitions)
        size = len(self.ts)
        ys = jax.tree.map(lambda y: jnp.full((size, *y.shape), jnp.inf, y.dtype), y0)
        zeros, none = jnp.zeros(count, run.t0.dtype), jnp.zeros(count, bool)
        return _Carry(
            run.t0, y0, self.closed, jnp.array(-jnp.inf, run.t0.dtype), jnp.array(-1), none, zeros,
            jnp.ones_like(zeros), none, none, jnp.array(0), zeros,
            jax.tree.map(jnp.asarray, RESULTS.successful), jnp.array(True),
            jnp.full(size, jnp.inf, run.t0.dtype), ys, jnp.zeros((size, len(self.contacts)), bool),
            self._no_work(),
        )  # fmt: skip

    def _no_work(self) -> dict[str, Any]:
        """Return the counters of a run, all zero."""

        def counters(y):
            solution, _ = self.solve_segment(self.run, y, self.term)
            self.backend = solution.stats["backend"]
            return {k: v for k, v in solution.stats.items() if k != "backend"}

        shapes = eqx.filter_eval_shape(counters, self.y0)
        stats = {name: jnp.zeros(x.shape, x.dtype) for name, x in shapes.items()}
        return {**stats, "num_search_steps": jnp.zeros_like(stats["num_steps"])}

    def _segment(self, carry: _Carry, i: Count) -> tuple[_Carry, tuple[Any, ...]]:
        """Integrate until the next transition and change the state there.

        **Returns:** the progress at the start of the next segment; whether a transition occurred,
        its time and kind, and the states before and after.
        """
        (t, y), last = (carry.t, carry.y), carry.last
        run = self.run._replace(model=self._model_at(carry.closed))
        functions = self._functions_at(carry.closed)
        fixed, model, constant = stop_gradients((carry, run.model, functions))
        watch = self._watch(fixed, model, constant)
        first, closing = len(run.transitions), len(run.transitions) + len(self.joints)
        at_start = i == 0
        refused = (jnp.any(watch.due[:first]) | watch.is_stuck) & at_start
        at_once = jnp.any(watch.due) & ~refused
        stuck = watch.is_stuck & ~at_once & ~refused
        waits = at_once | refused | stuck | ~carry.is_running
        crossings, jumps, tries = self._search(carry, run, functions, watch, waits)
        earliest = jnp.min(crossings)
        crosses = jnp.isfinite(earliest) & ~waits
        kind = jnp.where(
            at_once, self._choose_due(watch), jnp.argmax(crossings <= earliest + self.resolution)
        )
        t_b = jnp.where(waits, t, jnp.where(crosses, crossings[kind], run.t1))
        solution, okay, inside, sampled = self._integrate(carry, run, t_b)
        y_b = jax.tree.map(lambda end, y: jnp.where(waits, y, end[-1]), solution.ys, y)
        smooth = crosses & ~jumps[kind]
        t_c, y_c, rate = locate_zero(
            run.model, functions, kind, smooth, crosses & ~smooth, t_b, y_b, self.short
        )
        occurs = (at_once | crosses) & okay & carry.is_running
        ends = self._ends(kind)
        exceeds = occurs & (i == run.max_transitions) & ~ends
        occurs = occurs & ~exceeds
        y_new, admitted, unchanged, switches = self._change(kind, occurs, t_c, y_c, carry.closed)
        is_kind = jnp.arange(len(self.transitions)) == kind
        toggled = is_kind[closing:] & occurs
        at_end = stop_gradients((t_c, y_c))
        closed = self._still_closed(kind, occurs, *at_end, stop_gradients(y_new), carry.closed)
        closed ^= toggled
        # A joint may rest after its own transitions.
        after = self._values_and_rates(at_end[0], stop_gradients(y_new), model, constant[:first])
        rates_after = jnp.stack(
            [*(r for _, r in after), *[jnp.ones_like(t)] * (len(self.transitions) - first)]
        )
        rests = smooth & (jnp.abs(rates_after[kind]) <= _AT_REST * jnp.abs(rate))
        can_close = np.isin(np.arange(len(self.transitions)), self.contact_kinds)
        persists = rests & ~switches & ~jnp.asarray(can_close)[kind]
        interval = t_c - t
        is_short = (interval < self.short) & (last >= 0)
        short = jnp.where(at_once, carry.short, jnp.where(is_short, carry.short + 1, 0))
        stats = {**solution.stats, "num_search_steps": tries}
        del stats["backend"]
        stats = {name: carry.stats[name] + stats[name] for name in carry.stats}
        result = solution.result
        passes = self._passes_through(*at_end, fixed, model) & carry.is_running
        for condition, name in (
            (occurs & (short >= _SHORT_INTERVALS), "transitions_accumulate"),
            ((occurs & persists) | stuck | passes, "contact_persists"),
            (occurs & unchanged & (kind < closing) & ~ends, "transition_without_effect"),
            (occurs & ~admitted, "inadmissible_change"),
            (exceeds, "max_transitions_reached"),
            (refused | (passes & at_start & (interval == 0)), "transition_at_start"),
            (occurs & (stats["num_steps"] >= run.method.max_steps), "max_steps_reached"),
        ):
            result = RESULTS.where(condition & is_okay(result), getattr(RESULTS, name), result)
        ends = ends & occurs & is_okay(result)
        result = RESULTS.where(ends, _EVENT, result)
        result = RESULTS.where(carry.is_running, result, carry.result)
        pending = jnp.where(at_once, carry.pending, crossings <= t_c + self.short) & ~is_kind
        jumped = pending & jnp.where(at_once, carry.jumped, jumps)
        # A locked joint stays where its `when` is zero: noise there is no crossing.
        bands = jnp.where(is_kind & rests & occurs, jnp.abs(rate) * self.resolution, carry.bands)
        if watch.motion is not None:
            opens = toggled & carry.closed
            width = 2.0 * jnp.abs(watch.motion.values) + watch.motion.noise
            kinds = self.contact_kinds
            bands = bands.at[kinds].set(jnp.where(opens, width, bands[kinds]))
        reached = inside & jnp.isfinite(solution.ts[:-1]) & carry.is_running & ~refused
        ts = jnp.where(reached, self.ts, carry.ts)
        ys = jax.tree.map(lambda new, old: _pad(reached, new[:-1], old), solution.ys, carry.ys)
        if self.saves_end:
            ts, ys = jax.tree.map(
                lambda x, new: jnp.where(ends, x.at[-1].set(new), x), (ts, ys), (t_c, y_new)
            )
        following = _Carry(
            t_c, y_new, closed, sampled, jnp.where(occurs, kind, last),
            (watch.acted & at_once) | is_kind, jnp.where(is_kind, jnp.abs(rate), carry.speeds),
            watch.side, pending, jumped, short, bands, result, occurs & is_okay(result) & ~ends,
            ts, ys,
            jnp.where(reached[:, None], carry.closed, carry.closed_at),
            jax.tree.map(lambda a, b: jnp.where(carry.is_running, a, b), stats, carry.stats),
        )  # fmt: skip
        states = self.model.decode(t_c, y_c), self.model.decode(t_c, y_new)
        recorded = self._kind_of_record(kind, y_new, closed)
        return following, (occurs & ~ends, t_c, recorded, *states)

    def _choose_due(self, watch: _Watch) -> Count:
        """Return the transition that acts first of those that occur at once.

        Contacts open that are left, then the caller's transitions act in their order, then the most
        urgent one of joints and contacts.
        """
        first, count = len(self.run.transitions), len(self.transitions)
        order = jnp.arange(count, 0, -1).astype(watch.side.dtype)
        by_caller = jnp.argmax(jnp.where(watch.due, order, 0.0).at[first:].set(0.0))
        if count == first:
            return by_caller
        urgencies = jnp.where(watch.due[first:], watch.urgencies, -1.0)
        by_mode = first + jnp.argmax(urgencies)
        leaving = urgencies[len(self.joints) :] == jnp.inf
        kind = jnp.where(jnp.any(watch.due[:first]), by_caller, by_mode)
        left = first + len(self.joints) + (jnp.argmax(leaving) if self.contacts else 0)
        return jnp.where(jnp.any(leaving), left, kind)

    def _values_and_rates(
        self, t: Scalar, y: Unknowns, model: Any, functions: Sequence[Callable[..., Scalar]]
    ) -> list[tuple[Scalar, Scalar]]:
        """Return the value of each `when` and its rate along the motion."""
        if not functions:
            return []
        along = (jnp.ones_like(t), rate_of_unknowns(model, t, y))
        return [jax.jvp(function, (t, y), along) for function in functions]

    def _watch(
        self, carry: _Carry, model: Any, functions: Sequence[Callable[..., Scalar]]
    ) -> _Watch:
        """Return the functions at the start of a segment, and which transitions are due there."""
        pairs = self._values_and_rates(carry.t, carry.y, model, functions)
        values, rates = (jnp.stack(part) for part in zip(*pairs, strict=True))
        count, first = len(pairs), len(self.run.transitions)
        closing = first + len(self.joints)
        is_last = jnp.arange(count) == carry.last
        soon = jnp.abs(values) <= jnp.abs(rates) * self.short
        # A function that has left zero may come back. The effort of an open contact is no such
        # function.
        acted = carry.acted & (soon | (np.arange(count) >= closing))
        # Zero up to round-off: the sign of the rate decides, not that of the value.
        near = jnp.where(acted | is_last, soon, jnp.abs(values) <= jnp.abs(rates) * self.resolution)
        both = self.directions == 0
        side = jnp.where(both, jnp.sign(jnp.where(near, rates, values)), -self.directions)
        side = jnp.where(side == 0, 1.0, side).astype(values.dtype)
        watched = jnp.where(both, carry.side, side)
        # By errors of the search, a function that was expected to reach zero may have passed it.
        crossed = carry.pending & (soon | carry.jumped) & (watched * values <= 0)
        again = self.repeats & (jnp.abs(rates) > _SIGNIFICANT * carry.speeds)
        blocked = jnp.where(np.arange(count) < first, acted & ~again, is_last)
        falls = (watched * rates < 0) | carry.jumped
        due = (jnp.where(both, carry.pending & near, near) | crossed) & falls & ~blocked
        stuck = self._passes_from_rest(carry, model, functions, side, values, rates)
        stuck = jnp.any(stuck & ~due[self.checked_kinds] & ~acted[self.checked_kinds])
        bands, motion, urgencies = carry.bands, None, jnp.zeros(0, values.dtype)
        changes: list[Any] = [item.change for item in self.joints]
        if changes:
            urgencies, sticks = (
                jnp.stack(parts)
                for parts in (
                    [change.urgency(model, carry.t, carry.y) for change in changes],
                    [change.sticks(model, carry.y) for change in changes],
                )
            )
            # The rate of a joint that starts to slide is zero up to round-off, and so may be its
            # acceleration.
            joints = slice(first, closing)
            due = due.at[joints].set((due[joints] & sticks) | (urgencies > 0))
        positive = values * side > bands
        if self.contacts:
            kinds = self.contact_kinds
            motion = contact_motions(model, carry.t, carry.y, self.short)
            urgent = motion.urgencies
            hits = (motion.is_near | motion.is_closed) & (motion.rates < 0) & motion.is_moving
            hits &= ~blocked[kinds] & (urgent == 0)
            due = due.at[kinds].set(hits)
            # A contact that has opened does not close again at the same time.
            changes_mode = (urgent > 0) & ~(acted[closing:] & ~motion.is_closed)
            due = due.at[closing:].set(changes_mode)
            urgencies = jnp.concatenate([urgencies, urgent])
            bands = bands.at[kinds].set(jnp.where(motion.is_closed, jnp.inf, bands[kinds]))
            positive = positive.at[kinds].set(positive[kinds] & ~motion.is_closed)
            near = near.at[kinds].set(near[kinds] & ~motion.is_closed)
            # An effort may be zero until it falls below.
            near = near.at[closing:].set(False)
            positive = positive.at[closing:].set(urgent == 0)
            bands = bands.at[closing:].set(-jnp.finfo(bands.dtype).tiny)
        values, falling = jnp.where(near, 0.0, side * values), side * rates
        start = FallingValues(values, falling, jnp.where(near, falling > 0, positive), bands)
        return _Watch(start, side, due, urgencies, acted, stuck, motion)

    def _passes_from_rest(
        self,
        carry: _Carry,
        model: Any,
        functions: Sequence[Callable[..., Scalar]],
        side: Float[Array, " K"],
        values: Float[Array, " K"],
        rates: Float[Array, " K"],
    ) -> Bool[Array, " k"]:
        """Return whether the checked functions would fall through zero from rest."""
        kinds = self.checked_kinds
        if not kinds.size:
            return jnp.zeros(0, bool)
        t, y = carry.t, carry.y
        moved = jax.tree.map(
            lambda y, rate: y + self.short * rate, y, rate_of_unknowns(model, t, y)
        )
        later = self._values_and_rates(t + self.short, moved, model, [functions[k] for k in kinds])
        rates, values, side = rates[kinds], values[kinds], side[kinds]
        inward = -side * (jnp.stack([rate for _, rate in later]) - rates) / self.short
        positions, _ = split_chart(y)
        noise = _NOISE * jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(positions))
        acts = 0.5 * inward * self.duration**2 > noise
        near = jnp.abs(values) <= 0.5 * inward * self.short**2
        return acts & near & (jnp.abs(rates) <= inward * self.short)

    def _still_closed(
        self,
        kind: Count,
        occurs: Flag,
        t: Scalar,
        y: Unknowns,
        y_new: Unknowns,
        closed: Bool[Array, " C"],
    ) -> Bool[Array, " C"]:
        """Return the contacts that are closed after a change, which may move bodies away."""
        if not self.contacts:
            return closed
        view, view_new = (SystemView(self.model, t, z) for z in (y, y_new))
        moves = []
        for k in self.contact_kinds:
            when: Any = self.run.transitions[k].when
            limit = jnp.finfo(t.dtype).eps ** 0.5 * when.size(view)
            moves.append(jnp.abs(when(t, view_new) - when(t, view)) > limit)
        return closed & ~(jnp.stack(moves) & occurs & (kind < len(self.run.transitions)))

    def _passes_through(self, t: Scalar, y: Unknowns, carry: _Carry, model: Any) -> Flag:
        """Return whether a contact that is open has a distance below zero."""
        passes, view = jnp.array(False), SystemView(model, t, y)
        for k, item in enumerate(self.run.transitions):
            when: Any = item.when
            is_contact = isinstance(when, AbstractContact) and isinstance(item.change, Restitution)
            if not is_contact or item.direction != -1:
                continue
            limit = jnp.finfo(t.dtype).eps ** 0.5 * when.size(view) + carry.bands[k]
            below = when(t, view) < -limit
            if k in self.contact_kinds:
                below &= ~carry.closed[list(self.contact_kinds).index(k)]
            passes |= below
        return passes

    def _search(
        self,
        carry: _Carry,
        run: "RunArguments",
        functions: Sequence[Callable[..., Scalar]],
        watch: _Watch,
        waits: Flag,
    ) -> tuple[Float[Array, " K"], Bool[Array, " K"], Count]:
        """Return the time of the first crossing of each function, whether it jumps there, and the
        number of steps."""
        t1 = jnp.where(waits, carry.t, run.t1)
        run = run._replace(t0=carry.t, t1=t1, saveat=diffrax.SaveAt(t1=True))
        run, y, functions, term = stop_gradients((run, carry.y, functions, self.term))
        call = choose_call(run.method.adjoint)
        crossings, jumps, tries = call(
            search_crossings, self.solve_segment, run, y, term, functions, watch.values, watch.side,
            self.short,
        )  # fmt: skip
        # The segment contains the sample at which a function jumps.
        after = jnp.minimum(crossings + self.resolution, run.t1)
        return jnp.where(jumps, after, crossings), jumps, tries

    def _integrate(
        self, carry: _Carry, run: "RunArguments", t_b: Scalar
    ) -> tuple[Solution, Flag, Bool[Array, " T"], Scalar]:
        """Integrate a segment, with samples where it contains one.

        **Returns:** its solution, whose last sample is its end; whether it succeeded; which samples
        it contains; the time up to which samples have been taken.
        """
        t, y = carry.t, carry.y
        # A sample at a transition shows the state before, though its time be known to round-off.
        sampled = jax.lax.stop_gradient(t_b) + self.resolution
        inside = (self.ts > carry.sampled) & (self.ts <= sampled)
        ts = jnp.where(self.ts < t, t, jnp.where(self.ts > t_b, t_b, self.ts))
        run = run._replace(t0=t, t1=t_b, saveat=diffrax.SaveAt(ts=ts, t1=True))
        solution, okay = self.solve_segment(run, y, self.term)
        return solution, okay, inside, sampled

    def _change(
        self, kind: Count, occurs: Flag, t: Scalar, y: Unknowns, closed: Bool[Array, " C"]
    ) -> tuple[Unknowns, Flag, Flag, Flag]:
        """Return the unknowns after a transition; see `change_unknowns`."""

        def branch(k, item):
            # An impact on a contact does not act on it as closed.
            own = jnp.asarray(self.contact_kinds == k)
            return lambda t, y: change_unknowns(self._model_at(closed & ~own), item, t, y)

        branches = [branch(k, item) for k, item in enumerate(self.transitions)]
        if self.contacts:
            model = self._model_at(closed)
            branches[-len(self.contacts) :] = [
                lambda t, y, item=item: change_unknowns(model, item, t, y) for item in self.contacts
            ]
        y_new, admitted, *flags = jax.lax.switch(kind, branches, t, y)
        keep = occurs & admitted
        return jax.tree.map(lambda a, b: jnp.where(keep, a, b), y_new, y), admitted, *flags


def _may_repeat(item: Transition) -> bool:
    return isinstance(item.change, AbstractChange) and item.change.may_repeat


def _pad(known: Bool[Array, " T"], values: Array, fill: Any) -> Array:
    """Return an array with rows that are not `known` replaced by `fill`."""
    return jnp.where(known.reshape(known.shape + (1,) * (values.ndim - 1)), values, fill)


def _cast(tree: Any, like: Any) -> Any:
    """Return a tree with the types of another one, weak types included."""
    return jax.tree.map(lambda x, y: jnp.asarray(x, y.dtype), tree, like)
