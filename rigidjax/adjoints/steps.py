r"""Discrete adjoint of runs whose solver can replay steps, see `AbstractReplayable.replay`.

A run is repeated once to record its steps: their boundaries, their starts and their step records
(converged stages, order, number of columns). In the backward pass each step is transposed with its
record as a constant: instead of differentiating an iteration, it solves a transposed linear system
of the converged stage equations.

If such a record would take more than `_MAX_DIRECT_BYTES` bytes, or in a batch, only every $C$-th
unknowns and solver state are recorded, and the steps of one segment at a time are recomputed from
there, at the cost of one more integration. The state of a solver with its Jacobian and inverse is
large, the record of a step is small: $C$ is chosen such that the buffers of both are equally large.

Trajectories of a batch proceed in lockstep as in `explicit`.
"""

import math
from typing import Any, TypeAlias

import diffrax
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..annotations import Count, DenseInfo, Scalar, Vector, Y
from ..solvers.base.hooked import HookedSolver
from ..solvers.base.replayable import Start, as_replayable
from ..solvers.conserving.base import AbstractStructureSolver
from ..solvers.dae.base import AbstractDAESolver
from ..solvers.dae.controllers import PredictiveController, ProposedStepController
from ..solvers.wrappers.counting import CountingController
from ..solvers.wrappers.knots import KnotController
from .boundaries import Boundaries, Tree, after_last_step, boundaries_are_wanted
from .record import Record, is_recordable, put, record_run, take

# Largest size of a record of all steps, in bytes.
_MAX_DIRECT_BYTES = 2**22

# Unknowns and state of the solver.
SolverState: TypeAlias = tuple[Y, PyTree]

_CONTROLLERS = (
    PredictiveController,
    ProposedStepController,
    diffrax.PIDController,
    diffrax.ConstantStepSize,
)


def is_supported(kwargs: Tree) -> bool:
    """Return whether `transpose_run` supports the loop with these arguments."""
    solver, controller = kwargs["solver"], kwargs["stepsize_controller"]
    if issubclass(type(solver), HookedSolver):
        solver = solver.solver
    while type(controller) in (CountingController, KnotController):
        controller = controller.controller
    # Implicit methods of diffrax are left out: `Kvaerno5` raises errors about infinite values in a
    # batch.
    kinds: Any = AbstractDAESolver | AbstractStructureSolver
    if not kwargs["saveat"].solver_state:  # Unrolling changes an `ERK`'s state.
        kinds |= diffrax.AbstractERK
    return isinstance(solver, kinds) and type(controller) in _CONTROLLERS and is_recordable(kwargs)


def transpose_run(
    kwargs: Tree, recorded_kwargs: Tree, ct_ts: Float[Array, " T"] | None, ct_ys: Y,
    ct_solver: PyTree, wanted: Tree, batched: bool,
) -> Tree:  # fmt: skip
    """Return the cotangents of a loop's arguments from those of the saved times and unknowns.

    The state of the controller, which may be saved too, has no derivatives. See
    `rigidjax.adjoints.traced_solve.transpose_run`.
    """
    run = _ReplayedRun(kwargs, recorded_kwargs, wanted, batched)
    record = record_run(
        recorded_kwargs, run.segment, run.record_step if run.is_direct else _state_after, run.moves
    )
    return run.assemble_cotangents(run.backward(record, ct_ts, ct_ys, ct_solver), ct_ts)


def _state_after(before: SolverState, after: SolverState):
    return after


def _differentiable_parts(kwargs: Tree):
    """Return the arguments that a step is differentiated with respect to, besides its start."""
    return kwargs["terms"], kwargs["args"], kwargs["solver"]


class _ReplayedRun:
    """A run, and the functions that replay and transpose its steps.

    A step consists of its start and its step record. The start contains the unknowns and the
    history of a multistep method, followed by the lengths of earlier steps.
    """

    def __init__(self, kwargs: Tree, recorded_kwargs: Tree, wanted: Tree, batched: bool):
        self.kwargs, self.recorded_kwargs = kwargs, recorded_kwargs
        self.init = kwargs["init_state"]
        self.solver, self.recorder = (
            as_replayable(kwargs["solver"]),
            as_replayable(recorded_kwargs["solver"]),
        )
        self.theta, self.theta_static = eqx.partition(
            _differentiable_parts(kwargs), _differentiable_parts(wanted)
        )
        self.saved_ts = kwargs["saveat"].subs.ts
        self.moves = boundaries_are_wanted(wanted)
        self.state = self.init.y, recorded_kwargs["init_state"].solver_state
        self.nothing = jax.tree.map(
            lambda x: jnp.zeros(x.shape, x.dtype),
            jax.eval_shape(self.record_step, self.state, self.state),
        )
        max_steps, size = kwargs["max_steps"], _count_bytes(self.nothing)
        self.is_direct = not batched and max_steps * size <= _MAX_DIRECT_BYTES
        ideal = math.isqrt(int(max_steps * _count_bytes(self.state) / max(size, 1)))
        self.segment = 1 if self.is_direct else max(16, min(ideal, max_steps))

    def differentiable_start(self, state: SolverState):
        y, solver_state = state
        values, lengths = self.recorder.history(solver_state)
        return (y, values), lengths

    def record_step(self, before: SolverState, after: SolverState):
        """Return the start and the step record of the step between two states."""
        return self.differentiable_start(before), self.recorder.step_record(before[1], after[1])

    def step(self, times: Float[Array, "2"], state: SolverState):
        """Repeat the step; return its start and record, and the state after it."""
        y, before = state
        recorded_kwargs = self.recorded_kwargs
        y1, _, _, after, _ = recorded_kwargs["solver"].step(
            recorded_kwargs["terms"],
            *times,
            y,
            recorded_kwargs["args"],
            before,
            self.init.made_jump,
        )
        return self.record_step(state, (y1, after)), (y1, after)

    def replay(
        self, step_record: PyTree[Array], theta: PyTree, ta: Scalar, tb: Scalar, memory: PyTree
    ):
        """Replay a step; return the start of the next step and dense information."""
        terms, args, solver = eqx.combine(theta, self.theta_static)
        (y, values), lengths = memory
        start = Start(solver, terms, ta, tb, y, args, self.init.made_jump, (values, lengths))
        y1, dense, (values, lengths) = as_replayable(solver).replay(start, step_record)
        return ((y1, values), lengths), dense

    def output(self, ta: Scalar, tb: Scalar, dense: DenseInfo, t: Scalar):
        return self.kwargs["solver"].interpolation_cls(t0=ta, t1=tb, **dense).evaluate(t)

    # Backward pass.

    def backward(
        self, record: Record, ct_ts: Float[Array, " T"] | None, ct_ys: Y, ct_solver: PyTree
    ):
        carry = self.last_cotangents(record, ct_ts, ct_ys, ct_solver)
        longest = record.longest

        def transpose_step(*args):
            return self.transpose_step(record, ct_ys, *args)

        def transpose_segment(val):
            c, carry = val
            start = c * self.segment
            end = jnp.minimum(start + self.segment, longest)
            steps, first = record.states, 0
            if not self.is_direct:
                steps, first = self.recompute_segment(record, c, end), start

            def transpose_last(val):
                m, carry = val
                times = record.times(m)
                motion = take(record.motions, m + 1)
                carry = jax.lax.cond(
                    times[1] > times[0], transpose_step, lambda *args: args[-1],
                    times, motion, take(steps, m - first), carry,
                )  # fmt: skip
                return m - 1, carry

            return c - 1, jax.lax.while_loop(
                lambda val: val[0] >= start, transpose_last, (end - 1, carry)
            )[1]

        val = (longest - 1) // self.segment, carry
        return jax.lax.while_loop(lambda val: val[0] >= 0, transpose_segment, val)[1]

    def last_cotangents(
        self, record: Record, ct_ts: Float[Array, " T"] | None, ct_ys: Y, ct_solver: PyTree
    ) -> Tree:
        """Return the cotangents after the last step."""
        (y, values), lengths = jax.tree.map(jnp.zeros_like, self.differentiable_start(self.state))
        t = jnp.zeros_like(record.end)
        if self.kwargs["saveat"].subs.t1:
            # `SaveAt(t1=True)` saves the end after the other times.
            assert ct_ts is not None
            t, y = ct_ts[-1], jax.tree.map(lambda ct: ct[-1], ct_ys)
        if self.kwargs["saveat"].solver_state:
            # The history is a part of the state of the solver.
            values, lengths = self.recorder.history(ct_solver)
        num_ts = 0 if self.saved_ts is None else len(self.saved_ts)
        return dict(
            start=((y, values), lengths),
            theta=jax.tree.map(jnp.zeros_like, self.theta),
            boundaries=after_last_step(t, self.kwargs["stepsize_controller"]),
            ts=jnp.zeros(num_ts, record.end.dtype),
            next=jnp.asarray(num_ts - 1),
        )

    def recompute_segment(self, record: Record, c: Count, end: Count):
        """Recompute the steps of the c-th segment."""
        C = self.segment

        def recompute(m, val):
            steps, state = val
            times = record.times(m)
            step, state = jax.lax.cond(
                times[1] > times[0], self.step, lambda _, state: (self.nothing, state), times, state
            )
            return put(steps, m - c * C, step), state

        steps = jax.tree.map(lambda x: jax.lax.empty((C, *x.shape), x.dtype), self.nothing)
        return jax.lax.fori_loop(c * C, end, recompute, (steps, take(record.states, c)))[0]

    def transpose_step(
        self,
        record: Record,
        ct_ys: Y,
        times: Float[Array, "2"],
        motion: Vector,
        step: PyTree,
        carry: Tree,
    ):
        """Return the cotangents before a step from those after it."""
        ta, tb = times
        (values, lengths), step_record = step
        ct_values, ct_lengths = carry["start"]

        def replay_with_fixed_times(theta, values):
            (values, _), dense = self.replay(step_record, theta, ta, tb, (values, lengths))
            return values, dense

        def replay_with_times(theta, values, lengths, ta, tb):
            return self.replay(step_record, theta, ta, tb, (values, lengths))

        if not self.moves:
            (_, dense), transpose = jax.vjp(replay_with_fixed_times, self.theta, values)
            carry, bars = self.transpose_outputs(record, ct_ys, (ta, tb, dense), carry)
            theta, ct_values = transpose((ct_values, bars[2]))
        else:
            (_, dense), transpose = jax.vjp(replay_with_times, self.theta, values, lengths, ta, tb)
            carry, bars = self.transpose_outputs(record, ct_ys, (ta, tb, dense), carry)
            theta, ct_values, ct_lengths, bar_a, bar_b = transpose((carry["start"], bars[2]))
            boundaries: Boundaries = carry["boundaries"]
            boundaries = boundaries.step_back(motion, bar_a + bars[0], bar_b + bars[1])
            carry = {**carry, "boundaries": boundaries}
        return {
            **carry,
            "start": (ct_values, ct_lengths),
            "theta": jax.tree.map(jnp.add, carry["theta"], theta),
        }

    def transpose_outputs(
        self, record: Record, ct_ys: Y, inner: tuple[Scalar, Scalar, DenseInfo], carry: Tree
    ):
        """Return cotangents of the boundaries and dense information from the outputs in a step."""
        bars = jax.tree.map(jnp.zeros_like, inner)
        if self.saved_ts is None:
            return carry, bars
        ta = inner[0]

        def is_within(j):
            t = self.saved_ts[jnp.maximum(j, 0)]
            return (j >= 0) & ((t > ta) | (ta == record.start))

        def add(val):
            j, ts, bars = val
            within = is_within(j)
            ct = jax.tree.map(lambda ct: jnp.where(within, ct[j], 0.0), ct_ys)
            _, transpose = jax.vjp(self.output, *inner, self.saved_ts[j])
            *more, d_t = transpose(ct)
            bars = jax.tree.map(jnp.add, bars, tuple(more))
            return jnp.where(within, j - 1, j), ts.at[j].add(d_t), bars

        val = carry["next"], carry["ts"], bars
        j, ts, bars = jax.lax.while_loop(lambda val: eqxi.unvmap_any(is_within(val[0])), add, val)
        return {**carry, "next": j, "ts": ts}, bars

    def assemble_cotangents(self, carry: Tree, ct_ts: Float[Array, " T"] | None):
        """Return the cotangents as a tree like the arguments of the loop."""
        kwargs = self.kwargs
        out = jax.tree.map(lambda x: jnp.zeros_like(x) if eqx.is_inexact_array(x) else None, kwargs)
        rest = out["terms"], out["args"], out["solver"]
        out["terms"], out["args"], out["solver"] = eqx.combine(carry["theta"], rest)
        (y, values), lengths = carry["start"]
        _, transpose = eqx.filter_vjp(self.solver.history, self.init.solver_state)
        out["init_state"] = eqx.tree_at(
            lambda s: (s.y, s.solver_state),
            out["init_state"],
            (y, transpose((values, lengths))[0]),
            is_leaf=lambda x: x is None,
        )
        if self.saved_ts is not None:
            assert ct_ts is not None
            ts = carry["ts"] + ct_ts[: len(self.saved_ts)]
            out["saveat"] = eqx.tree_at(lambda s: s.subs.ts, out["saveat"], ts)
        return carry["boundaries"].add_to(out)


def _count_bytes(tree: PyTree):
    return sum(x.size * x.dtype.itemsize for x in map(jnp.asarray, jax.tree.leaves(tree)))
