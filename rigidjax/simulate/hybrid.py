r"""Hybrid runs: segments of motion, between which transitions change the state.

A segment is searched for its first transition without derivatives, and integrated again up to this
time $t_b$, with the derivatives and the samples of an ordinary run. The residual of the function
$h$ at its end, round-off in value, carries the derivatives of the transition time:

$$t_c = t_b - h / \dot h, \qquad y_c = y_b + \int_{t_b}^{t_c} f\,dt.$$

Derivatives of the changed state are therefore those of the saltation matrix.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Bool, Float

from ..annotations import Count, Flag, Scalar
from ..control.sticking import start_modes, stick_and_slip
from ..control.transition import Transition, TransitionRecord, check_functions
from ..formulations.charts import Unknowns
from ..results import RESULTS
from .backend_policy import choose_call
from .changes import change_unknowns
from .crossings import FallingValues, search_crossings
from .endings import is_okay
from .location import locate_zero, rate_of_unknowns
from .solution import Solution

if TYPE_CHECKING:
    from .integration import RunArguments

# Times that differ by this number of units in the last place are simultaneous.
_SIMULTANEOUS = 1024
# Number of successive intervals, each shorter than the square root of the round-off of the run,
# after which transitions accumulate.
_SHORT_INTERVALS = 3
# Rate of `when` after a transition, relative to the rate before, that counts as zero.
_AT_REST = 1e-12


class _Carry(eqx.Module):
    """Progress of a hybrid run at the start of a segment."""

    t: Scalar
    y: Unknowns
    sampled: Scalar  # time up to which samples have been taken
    last: Count  # index of the last transition, -1 before the first
    side: Float[Array, " K"]  # sign of each function on the side from which it is watched
    pending: Bool[Array, " K"]  # transitions at the same time as the last one
    short: Count  # number of successive short intervals
    bands: Float[Array, " K"]  # values of functions that rest at zero after a change, up to noise
    result: Any
    is_running: Flag
    ts: Float[Array, " T"]
    ys: Unknowns
    stats: dict[str, Any]


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


class _HybridRun:
    """A run with transitions and the functions that its segments share."""

    def __init__(
        self,
        solve: Callable[..., tuple[Solution, Flag]],
        run: "RunArguments",
        term: diffrax.AbstractTerm | None,
        y0: Unknowns,
    ):
        run = run._replace(sampling_start=run.t0)
        self.solve_segment, self.run, self.term = solve, run, term
        self.model = run.model
        check_functions(run.transitions, self.model, run.t0, y0)
        duration = jax.lax.stop_gradient(run.t1 - run.t0)
        # Transitions of the caller come first, then those of joints that stick.
        self.joints = stick_and_slip(self.model, duration)
        self.transitions = (*run.transitions, *self.joints)
        self.y0 = start_modes(self.model, run.t0, y0, duration)
        self.directions = jnp.array([item.direction for item in self.transitions])
        dtype = run.t0.dtype
        self.resolution = (
            _SIMULTANEOUS
            * jnp.finfo(dtype).eps
            * jax.lax.stop_gradient(jnp.maximum(jnp.abs(run.t0), jnp.abs(run.t1)))
        )
        self.short = jax.lax.stop_gradient(jnp.sqrt(jnp.finfo(dtype).eps) * (run.t1 - run.t0))
        subs: Any = run.saveat.subs
        self.save = subs.fn
        parts = [[run.t0]] * subs.t0 + ([subs.ts] if subs.ts is not None else [])
        self.ts = jnp.concatenate([*map(jnp.asarray, parts), *([run.t1[None]] * subs.t1)])
        self.backend: Any = None  # that of the segments

    def solve(self) -> tuple[Solution, Flag]:
        """Return the solution without its model, and whether the run succeeded."""
        run, count = self.run, self.run.max_transitions
        self.functions = [
            eqx.filter_closure_convert(self._value_of(item), run.t0, self.y0)
            for item in self.transitions
        ]
        start = self._first_carry()
        empty = eqx.filter_eval_shape(self._segment, start, jnp.array(0))
        skipped = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), empty[1])

        def step(carry, i):
            carry = _cast(carry, start)
            return jax.lax.cond(
                unvmap_any(carry.is_running),
                lambda carry: self._segment(carry, i),
                lambda carry: (carry, skipped),
                carry,
            )

        end, (recorded, times, kinds, before, after) = jax.lax.scan(
            step, start, jnp.arange(count + 1)
        )
        recorded = recorded[:count]
        before, after, times = (
            jax.tree.map(lambda x, fill=fill: _pad(recorded, x[:count], fill), tree)
            for tree, fill in ((before, jnp.nan), (after, jnp.nan), (times, jnp.inf))
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
            no_model, end.ts, ys, {**end.stats, "backend": self.backend}, end.result, None, None,
            None, None, t0=run.t0, transitions=record,
        )  # fmt: skip
        return solution, is_okay(end.result)

    def _names(self) -> tuple[str, ...]:
        """Return the names of the kinds of transitions, two for each joint that sticks."""
        names = [item.name or str(k) for k, item in enumerate(self.run.transitions)]
        for item in self.joints:
            names += [f"{item.name} slips", f"{item.name} sticks"]
        return tuple(names)

    def _kind_of_record(self, kind: Count, y: Unknowns) -> Count:
        """Return the index in `_names` of a transition after which the unknowns are `y`."""
        first = len(self.run.transitions)
        if not self.joints:
            return kind
        changes: list[Any] = [item.change for item in self.joints]
        sticks = jnp.stack([change.sticks(self.model, y) for change in changes])
        k = jnp.maximum(kind - first, 0)
        return jnp.where(kind < first, kind, first + 2 * k + sticks[k])

    def _value_of(self, item: Transition) -> Callable[..., Scalar]:
        return lambda t, y: item.value(self.model, t, y)

    def _first_carry(self) -> _Carry:
        run, y0, count = self.run, self.y0, len(self.transitions)
        size = len(self.ts)
        ys = jax.tree.map(lambda y: jnp.full((size, *y.shape), jnp.inf, y.dtype), y0)
        sides = jnp.ones(count, run.t0.dtype)
        return _Carry(
            run.t0, y0, jnp.array(-jnp.inf, run.t0.dtype), jnp.array(-1), sides,
            jnp.zeros(count, bool), jnp.array(0), jnp.zeros_like(sides),
            jax.tree.map(jnp.asarray, RESULTS.successful), jnp.array(True),
            jnp.full(size, jnp.inf, run.t0.dtype), ys, self._no_work(),
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
        run, (t, y), last = self.run, (carry.t, carry.y), carry.last
        values, side, due, urgencies = self._watch(carry)
        first = len(run.transitions)
        refused = jnp.any(due[:first]) & (i == 0)
        at_once = jnp.any(due) & ~refused
        # The caller's transitions act in their order, then the most urgent one of the joints.
        order = jnp.arange(len(due), 0, -1).astype(urgencies.dtype)
        kind_due = jnp.argmax(jnp.where(due, order, 0.0).at[first:].set(0.0))
        if self.joints:
            joint_due = first + jnp.argmax(jnp.where(due[first:], urgencies, -1.0))
            kind_due = jnp.where(jnp.any(due[:first]), kind_due, joint_due)
        waits = at_once | refused | ~carry.is_running
        crossings, tries = self._search(carry, values, side, waits)
        earliest = jnp.min(crossings)
        crosses = jnp.isfinite(earliest) & ~waits
        kind = jnp.where(at_once, kind_due, jnp.argmax(crossings <= earliest + self.resolution))
        t_b = jnp.where(waits, t, jnp.where(crosses, crossings[kind], run.t1))
        solution, okay, inside, sampled = self._integrate(carry, t_b)
        y_b = jax.tree.map(lambda end, y: jnp.where(waits, y, end[-1]), solution.ys, y)
        t_c, y_c, rate = locate_zero(self.model, self.functions, kind, crosses, t_b, y_b)
        occurs = (at_once | crosses) & okay & carry.is_running
        exceeds = occurs & (i == run.max_transitions)
        occurs = occurs & ~exceeds
        y_new, admitted, unchanged, switches = self._change(kind, occurs, t_c, y_c)
        # A joint may rest after its own transitions.
        count = len(run.transitions)
        pairs = self._values_and_rates(t_c, y_new, self.functions[:count])
        rates_after = jnp.stack([*(r for _, r in pairs), *[jnp.ones_like(t)] * len(self.joints)])
        rests = ~at_once & (jnp.abs(rates_after[kind]) <= _AT_REST * jnp.abs(rate))
        interval = t_c - t
        is_short = (interval < self.short) & (last >= 0)
        short = jnp.where(at_once, carry.short, jnp.where(is_short, carry.short + 1, 0))
        stats = {**solution.stats, "num_search_steps": tries}
        del stats["backend"]
        stats = {name: carry.stats[name] + stats[name] for name in carry.stats}
        result = solution.result
        for condition, name in (
            (occurs & (short >= _SHORT_INTERVALS), "transitions_accumulate"),
            (occurs & rests & ~switches, "contact_persists"),
            (occurs & unchanged, "transition_without_effect"),
            (occurs & ~admitted, "inadmissible_change"),
            (exceeds, "max_transitions_reached"),
            (refused, "transition_at_start"),
            (occurs & (stats["num_steps"] >= run.max_steps), "max_steps_reached"),
        ):
            result = RESULTS.where(condition & is_okay(result), getattr(RESULTS, name), result)
        result = RESULTS.where(carry.is_running, result, carry.result)
        is_kind = jnp.arange(len(self.transitions)) == kind
        pending = jnp.where(at_once, carry.pending, crossings <= t_c + self.resolution) & ~is_kind
        # A locked joint stays where its `when` is zero: noise there is no crossing.
        bands = jnp.where(is_kind & rests & occurs, jnp.abs(rate) * self.resolution, carry.bands)
        reached = inside & jnp.isfinite(solution.ts[:-1]) & carry.is_running & ~refused
        following = _Carry(
            t_c, y_new, sampled, jnp.where(occurs, kind, last), side, pending, short, bands, result,
            occurs & is_okay(result), jnp.where(reached, self.ts, carry.ts),
            jax.tree.map(lambda new, old: _pad(reached, new[:-1], old), solution.ys, carry.ys),
            jax.tree.map(lambda a, b: jnp.where(carry.is_running, a, b), stats, carry.stats),
        )  # fmt: skip
        before, after = self.model.decode(t_c, y_c), self.model.decode(t_c, y_new)
        recorded = self._kind_of_record(kind, y_new)
        return _cast(following, carry), (occurs, t_c, recorded, before, after)

    def _values_and_rates(
        self, t: Scalar, y: Unknowns, functions: list[Callable[..., Scalar]]
    ) -> list[tuple[Scalar, Scalar]]:
        """Return the value of each `when` and its rate along the motion."""
        if not functions:
            return []
        along = (jnp.ones_like(t), rate_of_unknowns(self.model, t, y))
        return [jax.jvp(function, (t, y), along) for function in functions]

    def _watch(
        self, carry: _Carry
    ) -> tuple[FallingValues, Float[Array, " K"], Bool[Array, " K"], Float[Array, " k"]]:
        """Return the functions at the start of a segment, and which transitions are due there.

        **Returns:** values and rates with the sign for which a transition is a fall through zero;
        these signs; flags of transitions that occur at once; urgencies of those of joints.
        """
        pairs = self._values_and_rates(carry.t, carry.y, self.functions)
        values, rates = (
            jax.lax.stop_gradient(jnp.stack(part)) for part in zip(*pairs, strict=True)
        )
        is_last = jnp.arange(len(pairs)) == carry.last
        # Zero up to round-off: the sign of the rate decides, not that of the value.
        near = jnp.abs(values) <= jnp.abs(rates) * jnp.where(is_last, self.short, self.resolution)
        both = self.directions == 0
        side = jnp.where(both, jnp.sign(jnp.where(near, rates, values)), -self.directions)
        side = jnp.where(side == 0, 1.0, side).astype(values.dtype)
        values, falling = jnp.where(near, 0.0, side * values), side * rates
        watched = jnp.where(both, carry.side, side)
        due = (
            jnp.where(both, carry.pending, near | carry.pending) & ~is_last & (watched * rates < 0)
        )
        changes: list[Any] = [item.change for item in self.joints]
        urgencies = jnp.zeros(0, values.dtype)
        if changes:
            urgencies, sticks = (
                jax.lax.stop_gradient(jnp.stack(parts))
                for parts in (
                    [change.urgency(self.model, carry.t, carry.y) for change in changes],
                    [change.sticks(self.model, carry.y) for change in changes],
                )
            )
            # The rate of a joint that starts to slide is zero up to round-off, and so may be its
            # acceleration.
            first = len(self.run.transitions)
            due = due.at[first:].set((due[first:] & sticks) | (urgencies > 0))
        positive = jnp.where(near, falling > 0, values > carry.bands)
        start = FallingValues(values, falling, positive, carry.bands)
        return start, side, due, urgencies

    def _search(
        self, carry: _Carry, values: FallingValues, side: Float[Array, " K"], waits: Flag
    ) -> tuple[Float[Array, " K"], Count]:
        """Return the time of the first crossing of each function, and the number of steps."""
        run = self.run
        t1 = jnp.where(waits, carry.t, run.t1)
        run = run._replace(t0=carry.t, t1=t1, saveat=diffrax.SaveAt(t1=True))
        run, y, functions, term = stop_gradients((run, carry.y, self.functions, self.term))
        call = choose_call(run.adjoint)
        return call(search_crossings, self.solve_segment, run, y, term, functions, values, side)

    def _integrate(
        self, carry: _Carry, t_b: Scalar
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
        run = self.run._replace(t0=t, t1=t_b, saveat=diffrax.SaveAt(ts=ts, t1=True))
        solution, okay = self.solve_segment(run, y, self.term)
        return solution, okay, inside, sampled

    def _change(
        self, kind: Count, occurs: Flag, t: Scalar, y: Unknowns
    ) -> tuple[Unknowns, Flag, Flag, Flag]:
        """Return the unknowns after a transition; see `change_unknowns`."""

        def branch(item):
            return lambda t, y: change_unknowns(self.model, item, t, y)

        y_new, admitted, *flags = jax.lax.switch(
            kind, [branch(item) for item in self.transitions], t, y
        )
        keep = occurs & admitted
        return jax.tree.map(lambda a, b: jnp.where(keep, a, b), y_new, y), admitted, *flags


def stop_gradients(tree: Any) -> Any:
    """Return a tree whose arrays have no derivatives."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)


def _pad(known: Bool[Array, " T"], values: Array, fill: Any) -> Array:
    """Return an array with rows that are not known replaced."""
    return jnp.where(known.reshape(known.shape + (1,) * (values.ndim - 1)), values, fill)


def _cast(tree: Any, like: Any) -> Any:
    """Return a tree with the types of another one, weak types included."""
    return jax.tree.map(lambda x, y: jnp.asarray(x, y.dtype), tree, like)
