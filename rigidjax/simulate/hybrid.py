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
from ..control.transition import (
    AbstractChange,
    Transition,
    TransitionRecord,
    check_functions,
    restart,
    split_change,
)
from ..formulations import AbstractAbsolute, AbstractFormulation
from ..formulations.binding import set_inputs
from ..formulations.charts import Unknowns, constant_chart, split_chart
from ..mechanics import has_joints
from ..mechanics.kinematics.poses import joint_frames_at, poses_of_state
from ..mechanics.violations import constraint_violations, violation_tolerance
from ..results import RESULTS
from ..state import State
from .backend_policy import choose_call
from .crossings import CrossingSearch, FallingValues
from .endings import is_okay
from .solution import Solution

if TYPE_CHECKING:
    from .integration import RunArguments

# Times that differ by this number of units in the last place are simultaneous.
_SIMULTANEOUS = 1024
# Number of successive intervals, each shorter than the square root of the round-off of the run,
# after which transitions accumulate.
_SHORT_INTERVALS = 3
# Newton iterations for the transition time. The first one removes the difference between the end
# of the segment and its dense output, the second one makes second derivatives exact.
_ITERATIONS = 2
# Rate of `when` after a transition, relative to the rate before, that counts as zero.
_AT_REST = 1e-12


class _Carry(eqx.Module):
    """Progress of a hybrid run at the start of a segment."""

    t: Scalar
    y: Unknowns
    last: Count  # index of the last transition, -1 before the first
    side: Float[Array, " K"]  # sign of each function on the side from which it is watched
    pending: Bool[Array, " K"]  # transitions at the same time as the last one
    short: Count  # number of successive short intervals
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
        self.solve_segment, self.run, self.term, self.y0 = solve, run, term, y0
        self.model, self.transitions = run.model, run.transitions
        check_functions(self.transitions, self.model, run.t0, y0)
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
            tuple(item.name or str(k) for k, item in enumerate(self.transitions)),
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

    def _value_of(self, item: Transition) -> Callable[..., Scalar]:
        return lambda t, y: item.value(self.model, t, y)

    def _first_carry(self) -> _Carry:
        run, y0, count = self.run, self.y0, len(self.transitions)
        size = len(self.ts)
        ys = jax.tree.map(lambda y: jnp.full((size, *y.shape), jnp.inf, y.dtype), y0)
        sides = jnp.ones(count, run.t0.dtype)
        return _Carry(
            run.t0, y0, jnp.array(-1), sides, jnp.zeros(count, bool), jnp.array(0),
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
        values, side, due = self._watch(carry)
        kind_due, at_once = jnp.argmax(due), jnp.any(due)
        refused = at_once & (i == 0)
        at_once = at_once & (i > 0)
        waits = at_once | refused | ~carry.is_running
        crossings, tries = self._search(carry, values, side, waits)
        first = jnp.min(crossings)
        crosses = jnp.isfinite(first) & ~waits
        kind = jnp.where(at_once, kind_due, jnp.argmax(crossings <= first + self.resolution))
        t_b = jnp.where(waits, t, jnp.where(crosses, crossings[kind], run.t1))
        solution, okay, inside = self._integrate(t, t_b, y, i)
        y_b = jax.tree.map(lambda end, y: jnp.where(waits, y, end[-1]), solution.ys, y)
        t_c, y_c, rate = self._locate(kind, crosses, t_b, y_b)
        occurs = (at_once | crosses) & okay & carry.is_running
        exceeds = occurs & (i == run.max_transitions)
        occurs = occurs & ~exceeds
        y_new, admitted, unchanged, switches = self._change(kind, occurs, t_c, y_c)
        rate_after = jnp.stack([r for _, r in self._values_and_rates(t_c, y_new)])[kind]
        rests = ~at_once & ~switches & (jnp.abs(rate_after) <= _AT_REST * jnp.abs(rate))
        interval = t_c - t
        is_short = (interval < self.short) & (last >= 0)
        short = jnp.where(at_once, carry.short, jnp.where(is_short, carry.short + 1, 0))
        stats = {**solution.stats, "num_search_steps": tries}
        del stats["backend"]
        stats = {name: carry.stats[name] + stats[name] for name in carry.stats}
        result = solution.result
        for condition, name in (
            (occurs & (short >= _SHORT_INTERVALS), "transitions_accumulate"),
            (occurs & rests, "contact_persists"),
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
        reached = inside & jnp.isfinite(solution.ts[:-1]) & carry.is_running & ~refused
        following = _Carry(
            t_c, y_new, jnp.where(occurs, kind, last), side, pending, short, result,
            occurs & is_okay(result), jnp.where(reached, self.ts, carry.ts),
            jax.tree.map(lambda new, old: _pad(reached, new[:-1], old), solution.ys, carry.ys),
            jax.tree.map(lambda a, b: jnp.where(carry.is_running, a, b), stats, carry.stats),
        )  # fmt: skip
        before, after = self.model.decode(t_c, y_c), self.model.decode(t_c, y_new)
        return _cast(following, carry), (occurs, t_c, kind, before, after)

    def _values_and_rates(self, t: Scalar, y: Unknowns) -> list[tuple[Scalar, Scalar]]:
        """Return the value of each `when` and its rate along the motion."""
        along = (jnp.ones_like(t), _field(self.model, t, y))
        return [jax.jvp(function, (t, y), along) for function in self.functions]

    def _watch(self, carry: _Carry) -> tuple[FallingValues, Float[Array, " K"], Bool[Array, " K"]]:
        """Return the functions at the start of a segment, and which transitions are due there.

        **Returns:** values and rates with the sign for which a transition is a fall through zero;
        these signs; flags of transitions that occur at once.
        """
        pairs = self._values_and_rates(carry.t, carry.y)
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
        return FallingValues(values, falling, jnp.where(near, falling > 0, values > 0)), side, due

    def _search(
        self, carry: _Carry, values: FallingValues, side: Float[Array, " K"], waits: Flag
    ) -> tuple[Float[Array, " K"], Count]:
        """Return the time of the first crossing of each function, and the number of steps."""
        run = self.run
        t1 = jnp.where(waits, carry.t, run.t1)
        run = run._replace(t0=carry.t, t1=t1, saveat=diffrax.SaveAt(t1=True))
        run, y, functions, term = stop_gradients((run, carry.y, self.functions, self.term))
        call = choose_call(run.adjoint)
        return call(_search, self.solve_segment, run, y, term, functions, values, side)

    def _integrate(
        self, t: Scalar, t_b: Scalar, y: Unknowns, i: Count
    ) -> tuple[Solution, Flag, Bool[Array, " T"]]:
        """Integrate a segment, with samples where it contains one.

        **Returns:** its solution, whose last sample is its end; whether it succeeded; which samples
        it contains.
        """
        after = jnp.where(i == 0, self.ts >= t, self.ts > t)
        inside = after & (self.ts <= t_b)
        ts = jnp.where(inside, self.ts, jnp.where(after, t_b, t))
        run = self.run._replace(t0=t, t1=t_b, saveat=diffrax.SaveAt(ts=ts, t1=True))
        solution, okay = self.solve_segment(run, y, self.term)
        return solution, okay, inside

    def _locate(
        self, kind: Count, crosses: Flag, t: Scalar, y: Unknowns
    ) -> tuple[Scalar, Unknowns, Scalar]:
        """Move the end of a segment to the zero of `when`.

        **Returns:** time and unknowns, with their derivatives, and the rate of `when`.
        """
        rate_at_end = _field(self.model, t, y)
        # Functions, because a branch of `switch` has to be hashable.
        branches = [lambda t, y, f=function: f(t, y) for function in self.functions]

        def move(s):
            middle = _add(y, 0.5 * s, rate_at_end)
            return t + s, _add(y, s, _field(self.model, t + 0.5 * s, middle))

        def value(s):
            return jax.lax.switch(kind, branches, *move(s))

        def improve(carry, _):
            s, _ = carry
            value_at, rate = jax.jvp(value, (s,), (jnp.ones_like(s),))
            step = value_at / jnp.where(rate == 0, 1.0, rate)
            return (jnp.where(crosses, s - step, s), rate), None

        zero = jnp.zeros_like(t)
        (s, rate), _ = jax.lax.scan(improve, (zero, zero), length=_ITERATIONS)
        t_c, y_c = move(s)
        y_c = jax.tree.map(lambda new, old: jnp.where(crosses, new, old), y_c, y)
        return t_c, y_c, jax.lax.stop_gradient(rate)

    def _change(
        self, kind: Count, occurs: Flag, t: Scalar, y: Unknowns
    ) -> tuple[Unknowns, Flag, Flag, Flag]:
        """Return the unknowns after a transition, and whether they are admissible and unchanged.

        The last flag tells whether the transition sets inputs.
        """

        def branch(item):
            return lambda t, y: self._change_by(item, t, y)

        y_new, admitted, *flags = jax.lax.switch(
            kind, [branch(item) for item in self.transitions], t, y
        )
        keep = occurs & admitted
        return jax.tree.map(lambda a, b: jnp.where(keep, a, b), y_new, y), admitted, *flags

    def _change_by(
        self, item: Transition, t: Scalar, y: Unknowns
    ) -> tuple[Unknowns, Flag, Flag, Flag]:
        model, admitted, inputs = self.model, jnp.array(True), {}
        if isinstance(item.change, AbstractChange):
            y_new = item.change.apply(model, t, y, item.when)
            unchanged = _are_equal(y_new, y)
        else:
            state = model.decode(t, y)
            changed, inputs = split_change(item.change(t, state))
            new = _with_revolutions(changed, state)
            unchanged = _are_equal(new, state)
            admitted, new = _is_admissible(model, new, t), new.normalized()
            y_new = set_inputs(model, restart(model, t, new, y), inputs)
        finite = jnp.all(jnp.isfinite(split_chart(y_new)[0]))
        switches = jnp.array(bool(inputs))
        return y_new, finite & admitted, unchanged & ~switches, switches


class _Falling(eqx.Module):
    """A function times the sign for which a transition is a fall through zero."""

    function: Callable[..., Scalar]
    side: Scalar

    def __call__(self, t: Scalar, y: Unknowns) -> Scalar:
        return self.side * self.function(t, y)


def _search(
    solve: Callable[..., tuple[Solution, Flag]],
    run: "RunArguments",
    y: Unknowns,
    term: diffrax.AbstractTerm | None,
    functions: list[Callable[..., Scalar]],
    values: FallingValues,
    side: Float[Array, " K"],
) -> tuple[Float[Array, " K"], Count]:
    falling = tuple(_Falling(function, side[k]) for k, function in enumerate(functions))
    solution, _ = solve(run._replace(adjoint=CrossingSearch(falling, values)), y, term)
    return solution.stats["crossings"], solution.stats["num_search_steps"]


def stop_gradients(tree: Any) -> Any:
    """Return a tree whose arrays have no derivatives."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)


def _field(model: AbstractFormulation, t: Scalar, y: Unknowns) -> Unknowns:
    """Return the rate of the unknowns; zero for multipliers, which every segment determines."""
    if isinstance(model, AbstractAbsolute) and model.index > 0:
        values, _ = split_chart(y)
        rate, _ = split_chart(model.ordinary_field(t, model.without_multipliers(y)))
        padding = jnp.zeros(values.size - rate.size, rate.dtype)
        return constant_chart(jnp.concatenate([rate, padding]), y)
    return model.vector_field(t, y)


def _is_admissible(model: AbstractFormulation, state: State, t: Scalar) -> Flag:
    """Return whether the quaternions of a state have unit length and its poses obey the joints."""
    p = state.orientation
    is_unit = jnp.all(jnp.abs(jnp.sum(p * p, axis=-1) - 1.0) <= 2e-6)
    if not has_joints(model.system):
        return is_unit
    prepared = model.prepare(t).prepared_system
    frames = joint_frames_at(prepared, poses_of_state(prepared, state.normalized()))
    gaps = constraint_violations(prepared, t, frames)
    return is_unit & jnp.all(gaps <= violation_tolerance(gaps.dtype))


def _with_revolutions(new: State, old: State) -> State:
    """Return a changed state with the joint angles of the old one that it leaves out."""
    angles = {**old.angles, **new.angles}
    names = tuple(angles)
    return new.with_angles(names, jnp.stack([angles[name] for name in names]) if names else None)


def _add(y: Unknowns, s: Scalar, rate: Unknowns) -> Unknowns:
    return jax.tree.map(lambda y, rate: y + s.astype(y.dtype) * rate, y, rate)


def _are_equal(a: Any, b: Any) -> Flag:
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return jnp.all(jnp.stack([jnp.array_equal(x, y) for x, y in pairs]))


def _pad(known: Bool[Array, " T"], values: Array, fill: Any) -> Array:
    """Return an array with rows that are not known replaced."""
    return jnp.where(known.reshape(known.shape + (1,) * (values.ndim - 1)), values, fill)


def _cast(tree: Any, like: Any) -> Any:
    """Return a tree with the types of another one, weak types included."""
    return jax.tree.map(lambda x, y: jnp.asarray(x, y.dtype), tree, like)
