"""The steps of a run, recorded for the discrete adjoint."""

from collections.abc import Callable
from typing import NamedTuple

import diffrax
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..annotations import Count, DenseInfo, Scalar, T, Time, Y
from ..lockstep import most_of_all
from ..solvers.counting import CountingController
from ..solvers.knots import delays_of, knots_of
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
        return most_of_all(self.count)

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


def recorded(
    kwargs: Tree,
    segment: int,
    state_of: Callable[[PyTree, PyTree], PyTree],
    moves: bool,
    row_of: Callable[[Time, Y, DenseInfo], Array] | None = None,
) -> Record:
    """The run again, with its step boundaries and every `segment`-th state.

    This is the loop of diffrax with what `is_recordable` leaves of it. (That loop itself
    can save all of this as well, but writes to its buffers at an index for each trajectory, and
    copied one of them in every step: 7.7 ms instead of 2.7 ms for the heavy top.)

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `segment`, steps from state to state;
    `state_of`, what to record, from unknowns and state of the solver before and after a step;
    `moves`, whether to record how boundaries move; `row_of`, what to record of each step of a
    segment (the next one writes over it), from its length, its start and its dense information.
    **Returns:** the record.
    """
    solver, controller, terms, args, t1 = (
        kwargs[key] for key in ("solver", "stepsize_controller", "terms", "args", "t1")
    )
    init, C, max_steps = kwargs["init_state"], segment, kwargs["max_steps"]
    # Where diffrax rounds the end of a step to `t1`.
    clip_floor = t1
    for _ in range(100):
        clip_floor = eqxi.prevbefore(clip_floor)

    size = 3 + len(delays_of(controller))
    by_start, by_step, by_end = jnp.eye(3, size, dtype=init.tprev.dtype)
    knots = knots_of(controller)

    def is_running(run):
        return (run["t"] < t1) & run["ok"] & (run["tries"] < max_steps)

    def attempt(run):
        t, t_next, y = run["t"], run["t_next"], run["y"]
        length = t_next - t
        y_new, error, dense, solver_state, result = solver.step(
            terms, t, t_next, y, args, run["solver"], init.made_jump
        )
        row = None if row_of is None else row_of(length, y, dense)
        error = jax.tree.map(lambda x: jnp.where(jnp.isnan(x), jnp.inf, x), error)
        keep, t, t_next, _, controller_state, outcome = controller.adapt_step_size(
            t, t_next, y, y_new, args, error, solver.error_order(terms), run["controller"]
        )
        motion = jnp.where(keep, run["motion_next"], run["motion"])
        # The controller's factor of the step is a constant.
        factor = (t_next - t) / jnp.where(length > 0, length, 1.0)
        motion_next = motion + factor * (run["motion_next"] - run["motion"])
        if knots is not None:
            inner = controller_state
            if type(controller) is CountingController:
                inner, _ = controller_state
            motion_next = knots.motion(inner, motion)
        t = jnp.minimum(t, t1)
        part = jnp.where(keep, 1.0, 0.5).astype(t.dtype)
        clips = t_next > clip_floor
        new = dict(
            t=t,
            t_next=jnp.where(clips, jnp.where(keep, t1, t + part * (t1 - t)), t_next),
            motion=motion,
            motion_next=jnp.where(clips, motion + part * (by_end - motion), motion_next),
            y=_where(keep, y_new, y),
            solver=_where(keep, solver_state, run["solver"]),
            controller=controller_state,
            ok=(diffrax.is_successful(result) | ~jnp.asarray(keep))
            & diffrax.is_successful(outcome),
            tries=run["tries"] + 1,
        )
        return new, row

    def turn(val):
        k, boundaries, motions, states, rows, run = val
        none = None if rows is None else jnp.zeros_like(rows[0])
        new, row = jax.lax.cond(is_running(run), attempt, lambda run: (run, none), run)
        if rows is not None:
            rows = put(rows, jax.lax.rem(k, C), row)
        boundaries = put(boundaries, k + 1, new["t"])
        motions = put(motions, k + 1, new["motion"]) if moves else None
        # The last state written to an entry is the one that starts a segment.
        i = k if C == 1 else jax.lax.div(k + C, C)
        states = put(states, i, state_of(_state(run), _state(new)))
        return k + 1, boundaries, motions, states, rows, new

    run = dict(
        t=init.tprev, t_next=init.tnext, y=init.y, solver=init.solver_state,
        controller=init.controller_state, ok=jnp.array(True), tries=jnp.array(0),
        motion=by_start, motion_next=by_step,
    )  # fmt: skip
    boundaries = table(max_steps + 1, init.tprev)
    motions = table(max_steps + 1, by_start) if moves else None
    states = table(max_steps // C + 2, state_of(*2 * [(init.y, init.solver_state)]))
    rows = None
    if row_of is not None:
        row = jax.eval_shape(lambda run: attempt(run)[1], run)
        rows = jax.lax.empty((C, *row.shape), row.dtype)
    val = jnp.array(0), boundaries, motions, states, rows, run
    count, boundaries, motions, states, rows, run = jax.lax.while_loop(
        lambda val: eqxi.unvmap_any(is_running(val[-1])), turn, val
    )
    return Record(boundaries, count, init.tprev, run["t"], motions, states, rows)


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
