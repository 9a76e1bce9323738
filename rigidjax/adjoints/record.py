"""Record of the steps of a run for the discrete adjoint."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..annotations import Count, DenseInfo, Flag, Scalar, T, Y
from ..native import lockstep_max
from ..results import is_successful
from ..solvers.wrappers.counting import CountingController
from ..solvers.wrappers.knots import find_knot_controller, knot_parameters
from .boundaries import Tree


class Record(NamedTuple):
    """Record of a run; indices of steps are common to all trajectories of a batch."""

    # Boundaries of the steps; rejected steps have length zero.
    boundaries: Float[Array, " N"]
    # Number of attempts.
    count: Count  # pyright: ignore[reportIncompatibleMethodOverride]
    start: Scalar  # first boundary
    end: Scalar  # last boundary
    # Derivatives of the boundaries with respect to the start, the planned end of the first step,
    # the end, and the parameters of knots.
    motions: Float[Array, "N 3+D"] | None
    states: PyTree[Array]  # at the start of every segment
    # Rows of the steps of the last segment, by their index in it; `None` if there is no `row_of`.
    rows: Float[Array, "C ..."] | None

    @property
    def longest(self) -> Count:
        """Largest count of all runs that execute in lockstep."""
        return lockstep_max(self.count)

    def times(self, m: Count) -> Float[Array, "2"]:
        """Return both boundaries of an attempt; after the last attempt both are the end."""
        times = jax.lax.dynamic_slice(self.boundaries, (m,), (2,))
        return jnp.where(m < self.count, times, self.end)


SAVE_Y = diffrax.SubSaveAt(t1=True).fn


def is_recordable(kwargs: Tree) -> bool:
    """Return whether `record_run` supports the run with these arguments and all that it saves."""
    saveat, subs = kwargs["saveat"], kwargs["saveat"].subs
    return (
        kwargs["event"] is None
        and kwargs["max_steps"] is not None
        and not saveat.dense
        and type(subs) is diffrax.SubSaveAt
        and subs.steps == 0
        and not subs.t0
        and subs.fn is SAVE_Y
    )


class Attempts:
    """The main loop of diffrax for runs that `is_recordable` admits, one attempt at a time.

    A run is a dictionary of the boundaries of the next step and their derivatives, the unknowns,
    the states of solver and controller, whether all steps succeeded, and the number of attempts.
    """

    def __init__(self, kwargs: Tree, row_of: Callable[..., Any] | None):
        self.solver, self.controller, self.terms, self.args, self.t1 = (
            kwargs[key] for key in ("solver", "stepsize_controller", "terms", "args", "t1")
        )
        self.init, self.max_steps = kwargs["init_state"], kwargs["max_steps"]
        self.row_of, self.knots = row_of, find_knot_controller(self.controller)
        # diffrax rounds the end of a step above this time to `t1`.
        self.clip_floor = self.t1
        for _ in range(100):
            self.clip_floor = eqxi.prevbefore(self.clip_floor)
        # Derivatives of boundaries with respect to the run's start, first step's end, and end.
        size = 3 + len(knot_parameters(self.controller))
        self.by_start, self.by_step, self.by_end = jnp.eye(3, size, dtype=self.init.tprev.dtype)

    def first(self) -> Tree:
        """Return the run at its start."""
        init = self.init
        return dict(
            t=init.tprev, t_next=init.tnext, y=init.y, solver=init.solver_state,
            controller=init.controller_state, ok=jnp.array(True), tries=jnp.array(0),
            motion=self.by_start, motion_next=self.by_step,
        )  # fmt: skip

    def is_running(self, run: Tree) -> Array:
        """Return whether the run makes another attempt."""
        return (run["t"] < self.t1) & run["ok"] & (run["tries"] < self.max_steps)

    def attempt(self, run: Tree) -> tuple[Tree, Any]:
        """Return the run after another attempt, and the recorded row of the attempt."""
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
        motion, motion_next = self._next_motions(run, keep, length, t_next - t, controller_state)
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
            ok=(is_successful(result) | ~jnp.asarray(keep)) & is_successful(outcome),
            tries=run["tries"] + 1,
        )
        return new, row

    def _next_motions(
        self, run: Tree, keep: Flag, length: Scalar, following: Scalar, controller_state: PyTree
    ):
        """Return the derivatives of both boundaries of the next step."""
        motion = jnp.where(keep, run["motion_next"], run["motion"])
        if self.knots is not None:
            inner = controller_state
            if type(self.controller) is CountingController:
                inner, _ = controller_state
            return motion, self.knots.boundary_motion(inner, motion)
        # The factor by which the controller changes the step counts as a constant.
        factor = following / jnp.where(length > 0, length, 1.0)
        return motion, motion + factor * (run["motion_next"] - run["motion"])


def record_run(
    kwargs: Tree,
    segment: int,
    state_of: Callable[[PyTree, PyTree], PyTree],
    moves: bool,
    row_of: Callable[[Scalar, Y, DenseInfo], Array] | None = None,
    row_shape: tuple[int, ...] = (),
) -> Record:
    """Repeat the run and record its step boundaries and every `segment`-th state.

    The loop of diffrax can save these too, but writes to its buffers at a different index for each
    trajectory, for which one of them is copied in every step.

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `segment`, the number of steps between two
    recorded states; `state_of`, a function that returns the state to record from unknowns and
    solver state before and after a step; `moves`, whether to record derivatives of boundaries;
    `row_of`, a function that returns a row to record for each step of the last segment from its
    length, its start and its dense information; `row_shape`, the shape of a row.
    """
    attempts, C = Attempts(kwargs, row_of), segment
    run, most = attempts.first(), attempts.max_steps

    def record_attempt(val):
        k, boundaries, motions, states, rows, run = val
        none = None if rows is None else jnp.zeros_like(rows[0])
        new, row = jax.lax.cond(
            attempts.is_running(run), attempts.attempt, lambda run: (run, none), run
        )
        if rows is not None:
            rows = put(rows, jax.lax.rem(k, C), row)
        boundaries = put(boundaries, k + 1, new["t"])
        motions = put(motions, k + 1, new["motion"]) if moves else None
        # The last state that is written to an entry is the start of a segment.
        i = k if C == 1 else jax.lax.div(k + C, C)
        states = put(states, i, state_of(_solver_state(run), _solver_state(new)))
        return k + 1, boundaries, motions, states, rows, new

    boundaries = table(most + 1, run["t"])
    motions = table(most + 1, run["motion"]) if moves else None
    states = table(most // C + 2, state_of(*2 * [_solver_state(run)]))
    rows = None
    if row_of is not None:
        rows = jax.lax.empty((C, *row_shape), jnp.result_type(*jax.tree.leaves(run["y"])))
    start = run["t"]
    val = jnp.array(0), boundaries, motions, states, rows, run
    count, boundaries, motions, states, rows, run = jax.lax.while_loop(
        lambda val: eqxi.unvmap_any(attempts.is_running(val[-1])), record_attempt, val
    )
    return Record(boundaries, count, start, run["t"], motions, states, rows)


def table(rows: int, first: T) -> T:
    """Return uninitialised tables, leaf by leaf, with `first` in the first row.

    Initialising as many rows as a run may have steps could take longer than a short run.
    """

    def leaf(x):
        x = jnp.asarray(x)
        return put(jax.lax.empty((rows, *x.shape), x.dtype), 0, x)

    return jax.tree.map(leaf, first)


def put(buffers: T, i: int | Count, tree: PyTree[Array]) -> T:
    """Return `buffer.at[i].set(x)`, leaf by leaf, for an index within bounds.

    `at[i].set` itself checks the bounds and becomes a scatter.
    """
    return jax.tree.map(
        lambda buffer, x: jax.lax.dynamic_update_index_in_dim(buffer, x, i, 0), buffers, tree
    )


def take(buffers: T, i: Count) -> T:
    """Return `buffer[i]`, leaf by leaf, for an index within bounds."""
    return jax.tree.map(
        lambda buffer: jax.lax.dynamic_index_in_dim(buffer, i, 0, keepdims=False), buffers
    )


def _solver_state(run: Tree):
    return run["y"], run["solver"]


def _where(condition: Flag, new: T, old: T):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)
