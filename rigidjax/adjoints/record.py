"""The steps of a run, recorded for the discrete adjoint."""

from collections.abc import Callable
from typing import NamedTuple

import diffrax
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..annotations import Count, DenseInfo, Scalar, T, Time, Y
from ..native import lockstep_max
from ..solvers.wrappers.counting import CountingController
from ..solvers.wrappers.knots import find_knot_controller, signal_delays
from .boundaries import Tree


class Record(NamedTuple):
    """What is kept of a run; all trajectories of a batch share its indices."""

    boundaries: Float[Array, " N"]  # of the steps; a step of length zero was rejected
    # Number of attempts.
    count: Count  # pyright: ignore[reportIncompatibleMethodOverride]
    start: Scalar  # first boundary
    end: Scalar  # last boundary
    # Derivatives of the boundaries by start, planned end of the first step, end, delays.
    motions: Float[Array, "N 3+D"] | None
    states: PyTree[Array]  # at the start of every segment
    # Of the steps of the last segment, at their number in it; `None` if none were asked for.
    rows: Float[Array, "C ..."] | None

    @property
    def longest(self) -> Count:
        """The largest count of the runs that are computed at the same time (see `lockstep`)."""
        return lockstep_max(self.count)

    def times(self, m: Count) -> Float[Array, "2"]:
        """Boundaries of an attempt; behind those of this run twice its end."""
        times = jax.lax.dynamic_slice(self.boundaries, (m,), (2,))
        return jnp.where(m < self.count, times, self.end)


SAVE_Y = diffrax.SubSaveAt(t1=True).fn


def is_recordable(kwargs: Tree) -> bool:
    """Whether `recorded` makes the run of these arguments, and all of what it saves."""
    saveat, subs = kwargs["saveat"], kwargs["saveat"].subs
    return (
        kwargs["event"] is None
        and kwargs["max_steps"] is not None
        and not (saveat.dense or saveat.solver_state)
        and type(subs) is diffrax.SubSaveAt
        and subs.steps == 0
        and not subs.t0
        and subs.fn is SAVE_Y
    )


class _Attempts:
    """The loop of diffrax with what `is_recordable` leaves of it, one attempt of a step at a time.

    A run is a dictionary: boundaries of the step and how they move, unknowns, states of solver and
    controller, whether all went well, and how many attempts there were.
    """

    def __init__(self, kwargs: Tree, row_of: Callable[[Time, Y, DenseInfo], Array] | None):
        self.solver, self.controller, self.terms, self.args, self.t1 = (
            kwargs[key] for key in ("solver", "stepsize_controller", "terms", "args", "t1")
        )
        self.init, self.max_steps = kwargs["init_state"], kwargs["max_steps"]
        self.row_of, self.knots = row_of, find_knot_controller(self.controller)
        # Where diffrax rounds the end of a step to `t1`.
        self.clip_floor = self.t1
        for _ in range(100):
            self.clip_floor = eqxi.prevbefore(self.clip_floor)
        # How boundaries move with the start, the first step and the end of the run.
        size = 3 + len(signal_delays(self.controller))
        self.by_start, self.by_step, self.by_end = jnp.eye(3, size, dtype=self.init.tprev.dtype)

    def first(self) -> Tree:
        """A run at its start."""
        init = self.init
        return dict(
            t=init.tprev, t_next=init.tnext, y=init.y, solver=init.solver_state,
            controller=init.controller_state, ok=jnp.array(True), tries=jnp.array(0),
            motion=self.by_start, motion_next=self.by_step,
        )  # fmt: skip

    def is_running(self, run: Tree) -> Array:
        """Whether there is another attempt."""
        return (run["t"] < self.t1) & run["ok"] & (run["tries"] < self.max_steps)

    def attempt(self, run: Tree) -> tuple[Tree, Array | None]:
        """The run after another attempt, and what is recorded of that."""
        t1, t, t_next, y = self.t1, run["t"], run["t_next"], run["y"]
        length = t_next - t
        y_new, error, dense, solver_state, result = self.solver.step(
            self.terms, t, t_next, y, self.args, run["solver"], self.init.made_jump
        )
        row = None if self.row_of is None else self.row_of(length, y, dense)
        error = jax.tree.map(lambda x: jnp.where(jnp.isnan(x), jnp.inf, x), error)
        order = self.solver.error_order(self.terms)
        keep, t, t_next, _, controller_state, outcome = self.controller.adapt_step_size(
            t, t_next, y, y_new, self.args, error, order, run["controller"]
        )
        motion, motion_next = self._motions(run, keep, length, t_next - t, controller_state)
        t = jnp.minimum(t, t1)
        part = jnp.where(keep, 1.0, 0.5).astype(t.dtype)
        clips = t_next > self.clip_floor
        new = dict(
            t=t,
            t_next=jnp.where(clips, jnp.where(keep, t1, t + part * (t1 - t)), t_next),
            motion=motion,
            motion_next=jnp.where(clips, motion + part * (self.by_end - motion), motion_next),
            y=_where(keep, y_new, y),
            solver=_where(keep, solver_state, run["solver"]),
            controller=controller_state,
            ok=(diffrax.is_successful(result) | ~jnp.asarray(keep))
            & diffrax.is_successful(outcome),
            tries=run["tries"] + 1,
        )
        return new, row

    def _motions(self, run, keep, length, following, controller_state):
        """How both boundaries of the following step move, from those of the one before."""
        motion = jnp.where(keep, run["motion_next"], run["motion"])
        if self.knots is not None:
            inner = controller_state
            if type(self.controller) is CountingController:
                inner, _ = controller_state
            return motion, self.knots.boundary_motion(inner, motion)
        # The controller's factor of the step is a constant.
        factor = following / jnp.where(length > 0, length, 1.0)
        return motion, motion + factor * (run["motion_next"] - run["motion"])


def recorded(
    kwargs: Tree,
    segment: int,
    state_of: Callable[[PyTree, PyTree], PyTree],
    moves: bool,
    row_of: Callable[[Time, Y, DenseInfo], Array] | None = None,
) -> Record:
    """The run again, with its step boundaries and every `segment`-th state.

    (The loop of diffrax itself can save all of this as well, but writes to its buffers at an index
    for each trajectory, and copied one of them in every step: 7.7 ms instead of 2.7 ms for the
    heavy top.)

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `segment`, steps from state to state;
    `state_of`, what to record, from unknowns and state of the solver before and after a step;
    `moves`, whether to record how boundaries move; `row_of`, what to record of each step of a
    segment (the next one writes over it), from its length, its start and its dense information.
    **Returns:** the record.
    """
    attempts, C = _Attempts(kwargs, row_of), segment
    run, most = attempts.first(), attempts.max_steps

    def turn(val):
        k, boundaries, motions, states, rows, run = val
        none = None if rows is None else jnp.zeros_like(rows[0])
        new, row = jax.lax.cond(
            attempts.is_running(run), attempts.attempt, lambda run: (run, none), run
        )
        if rows is not None:
            rows = put(rows, jax.lax.rem(k, C), row)
        boundaries = put(boundaries, k + 1, new["t"])
        motions = put(motions, k + 1, new["motion"]) if moves else None
        # The last state written to an entry is the one that starts a segment.
        i = k if C == 1 else jax.lax.div(k + C, C)
        states = put(states, i, state_of(_state(run), _state(new)))
        return k + 1, boundaries, motions, states, rows, new

    boundaries = table(most + 1, run["t"])
    motions = table(most + 1, run["motion"]) if moves else None
    states = table(most // C + 2, state_of(*2 * [_state(run)]))
    rows = None
    if row_of is not None:
        row = jax.eval_shape(lambda run: attempts.attempt(run)[1], run)
        rows = jax.lax.empty((C, *row.shape), row.dtype)
    start = run["t"]
    val = jnp.array(0), boundaries, motions, states, rows, run
    count, boundaries, motions, states, rows, run = jax.lax.while_loop(
        lambda val: eqxi.unvmap_any(attempts.is_running(val[-1])), turn, val
    )
    return Record(boundaries, count, start, run["t"], motions, states, rows)


def table(rows: int, first: T) -> T:
    """Tables with `first`, leaf by leaf, in the first row. The others are not filled in.

    To fill in as many rows as a run may have steps would take a kernel longer than a short run.
    """

    def leaf(x):
        x = jnp.asarray(x)
        return put(jax.lax.empty((rows, *x.shape), x.dtype), 0, x)

    return jax.tree.map(leaf, first)


def put(buffers: T, i: int | Count, tree: PyTree[Array]) -> T:
    """`buffer.at[i].set(x)`, leaf by leaf, for an index within bounds.

    The check of the bounds makes it a scatter otherwise.
    """
    return jax.tree.map(
        lambda buffer, x: jax.lax.dynamic_update_index_in_dim(buffer, x, i, 0), buffers, tree
    )


def take(buffers: T, i: Count) -> T:
    """`buffer[i]`, leaf by leaf, for an index within bounds."""
    return jax.tree.map(
        lambda buffer: jax.lax.dynamic_index_in_dim(buffer, i, 0, keepdims=False), buffers
    )


def _state(run):
    return run["y"], run["solver"]


def _where(condition, new, old):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)
