r"""The discrete adjoint of runs whose solver can repeat a step, see `AbstractReplayable.repeated`.

A run is repeated once to record its steps: their boundaries, their starts and what they had to
find out (converged stages, order, number of columns). Then it is walked backwards, and each step is
transposed with that known: no iteration is differentiated, and a transposed linear system of the
converged stage equations takes its place.

If that were to take more than `_DIRECT` bytes, or in a batch, the record has the unknowns and the
state of the solver of every $C$-th step only, and the steps of one segment at a time are made again
from there, for the price of one more integration. The state of a solver with its Jacobian and
inverse is large, what is kept of a step is not: $C$ makes the buffers of both equally large, about
the root of `max_steps` times the root of the product of both sizes.

Trajectories of a batch walk together as in `explicit`.
"""

import math

import diffrax
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Y
from ..solvers.conserving.base import AbstractStructureSolver
from ..solvers.dae.base import AbstractDAESolver
from ..solvers.dae.predictive import PredictiveController
from ..solvers.dae.proposed import ProposedStepController
from ..solvers.wrappers.after_step import Projected, Recharted
from ..solvers.wrappers.counting import CountingController, CountingSolver
from ..solvers.wrappers.knots import KnotController, SignalFrozenStep
from ..solvers.wrappers.replayable import as_replayable
from ..solvers.wrappers.switched import Switched
from .boundaries import Boundaries, Tree, behind, do_move
from .record import Record, is_recordable, put, recorded, take

# Bytes of a record of all steps. To fill it with zeros takes 0.4 ms.
_DIRECT = 2**22

_CONTROLLERS = (
    PredictiveController,
    ProposedStepController,
    diffrax.PIDController,
    diffrax.ConstantStepSize,
)


def is_supported(kwargs: Tree) -> bool:
    """Whether the loop with these arguments is one that `cotangents` can transpose."""
    solver, controller = kwargs["solver"], kwargs["stepsize_controller"]
    while type(solver) in (Projected, Recharted, SignalFrozenStep, CountingSolver, Switched):
        solver = solver.solver
    while type(controller) in (CountingController, KnotController):
        controller = controller.controller
    # Not diffrax's implicit methods: `Kvaerno5` raises errors about infinite values in a batch.
    kinds = AbstractDAESolver | AbstractStructureSolver | diffrax.AbstractERK
    return isinstance(solver, kinds) and type(controller) in _CONTROLLERS and is_recordable(kwargs)


def cotangents(
    kwargs: Tree, of_record: Tree, ct_ts: Float[Array, " T"] | None, ct_ys: Y, wanted: Tree,
    batched: bool,
) -> Tree:  # fmt: skip
    """Cotangents of a loop's arguments from those of the saved times and unknowns.

    The state of the controller, which may be saved as well, has no derivatives. Arguments and
    result as in `rigidjax.adjoints.cotangents`.
    """
    run = _Run(kwargs, of_record, wanted, batched)
    record = recorded(of_record, run.segment, run.step_of if run.is_direct else _state, run.moves)
    return run.collect(run.backward(record, ct_ts, ct_ys), ct_ts)


def _state(before, after):
    return after


def _parts(kwargs):
    """What of the arguments a step depends on, beside its start."""
    return kwargs["terms"], kwargs["args"], kwargs["solver"]


class _Run:
    """One run, and the maps that make up its steps.

    A step has a start, the unknowns and the past of the method, and what was found out. A start has
    what depends on the unknowns, and lengths of earlier steps.
    """

    def __init__(self, kwargs, of_record, wanted, batched):
        self.kwargs, self.of_record = kwargs, of_record
        self.init = kwargs["init_state"]
        self.solver, self.recorder = (
            as_replayable(kwargs["solver"]),
            as_replayable(of_record["solver"]),
        )
        self.theta, self.theta_static = eqx.partition(_parts(kwargs), _parts(wanted))
        self.saved_ts = kwargs["saveat"].subs.ts
        self.moves = do_move(wanted)
        self.state = self.init.y, of_record["init_state"].solver_state
        self.nothing = jax.tree.map(
            lambda x: jnp.zeros(x.shape, x.dtype),
            jax.eval_shape(self.step_of, self.state, self.state),
        )
        max_steps, size = kwargs["max_steps"], _bytes(self.nothing)
        self.is_direct = not batched and max_steps * size <= _DIRECT
        ideal = math.isqrt(int(max_steps * _bytes(self.state) / max(size, 1)))
        self.segment = 1 if self.is_direct else max(16, min(ideal, max_steps))

    def start_of(self, state):
        y, solver_state = state
        values, lengths = self.recorder.history(solver_state)
        return (y, values), lengths

    def step_of(self, before, after):
        """What is kept of the step between two states."""
        return self.start_of(before), self.recorder.step_record(before[1], after[1])

    def step(self, times, state):
        """The step again: what is kept of it, and the state behind it."""
        y, before = state
        of_record = self.of_record
        y1, _, _, after, _ = of_record["solver"].step(
            of_record["terms"], *times, y, of_record["args"], before, self.init.made_jump
        )
        return self.step_of(state, (y1, after)), (y1, after)

    def replay(self, step_record, theta, ta, tb, start):
        """Start of the next step, and dense information."""
        terms, args, solver = eqx.combine(theta, self.theta_static)
        (y, values), lengths = start
        y1, dense, (values, lengths) = as_replayable(solver).replay(
            terms, ta, tb, y, args, (values, lengths), step_record, self.init.made_jump
        )
        return ((y1, values), lengths), dense

    def output(self, ta, tb, dense, t):
        return self.kwargs["solver"].interpolation_cls(t0=ta, t1=tb, **dense).evaluate(t)

    # Backward.

    def backward(self, record, ct_ts, ct_ys):
        carry, longest = self.end(record, ct_ts, ct_ys), record.longest

        def transpose_step(*args):
            return self.transpose_step(record, ct_ys, *args)

        def transpose_segment(val):
            c, carry = val
            start = c * self.segment
            end = jnp.minimum(start + self.segment, longest)
            steps, first = record.states, 0
            if not self.is_direct:
                steps, first = self.made_again(record, c, end), start

            def back(val):
                m, carry = val
                times = record.times(m)
                motion = take(record.motions, m + 1)
                carry = jax.lax.cond(
                    times[1] > times[0], transpose_step, lambda *args: args[-1],
                    times, motion, take(steps, m - first), carry,
                )  # fmt: skip
                return m - 1, carry

            return c - 1, jax.lax.while_loop(lambda val: val[0] >= start, back, (end - 1, carry))[1]

        val = (longest - 1) // self.segment, carry
        return jax.lax.while_loop(lambda val: val[0] >= 0, transpose_segment, val)[1]

    def end(self, record: Record, ct_ts, ct_ys) -> Tree:
        """Cotangents behind the last step."""
        (y, values), lengths = jax.tree.map(jnp.zeros_like, self.start_of(self.state))
        t = jnp.zeros_like(record.end)
        if self.kwargs["saveat"].subs.t1:
            # `SaveAt(t1=True)` writes the end behind the other times.
            t, y = ct_ts[-1], jax.tree.map(lambda ct: ct[-1], ct_ys)
        num_ts = 0 if self.saved_ts is None else len(self.saved_ts)
        return dict(
            start=((y, values), lengths),
            theta=jax.tree.map(jnp.zeros_like, self.theta),
            boundaries=behind(t, self.kwargs["stepsize_controller"]),
            ts=jnp.zeros(num_ts, record.end.dtype),
            next=jnp.asarray(num_ts - 1),
        )

    def made_again(self, record, c, end):
        """The steps of the c-th segment."""
        C = self.segment

        def again(m, val):
            steps, state = val
            times = record.times(m)
            step, state = jax.lax.cond(
                times[1] > times[0], self.step, lambda _, state: (self.nothing, state), times, state
            )
            return put(steps, m - c * C, step), state

        steps = jax.tree.map(lambda x: jax.lax.empty((C, *x.shape), x.dtype), self.nothing)
        return jax.lax.fori_loop(c * C, end, again, (steps, take(record.states, c)))[0]

    def transpose_step(self, record, ct_ys, times, motion, step, carry):
        """Cotangents in front of a step from those behind it."""
        ta, tb = times
        (values, lengths), step_record = step
        ct_values, ct_lengths = carry["start"]

        def still(theta, values):
            (values, _), dense = self.replay(step_record, theta, ta, tb, (values, lengths))
            return values, dense

        def moving(theta, values, lengths, ta, tb):
            return self.replay(step_record, theta, ta, tb, (values, lengths))

        if not self.moves:
            (_, dense), transpose = jax.vjp(still, self.theta, values)
            carry, bars = self.transpose_outputs(record, ct_ys, (ta, tb, dense), carry)
            theta, ct_values = transpose((ct_values, bars[2]))
        else:
            (_, dense), transpose = jax.vjp(moving, self.theta, values, lengths, ta, tb)
            carry, bars = self.transpose_outputs(record, ct_ys, (ta, tb, dense), carry)
            theta, ct_values, ct_lengths, bar_a, bar_b = transpose((carry["start"], bars[2]))
            boundaries: Boundaries = carry["boundaries"]
            boundaries = boundaries.before(motion, bar_a + bars[0], bar_b + bars[1])
            carry = {**carry, "boundaries": boundaries}
        return {
            **carry,
            "start": (ct_values, ct_lengths),
            "theta": jax.tree.map(jnp.add, carry["theta"], theta),
        }

    def transpose_outputs(self, record, ct_ys, inner, carry):
        """Cotangents of boundaries and dense information of a step from what was saved in it."""
        bars = jax.tree.map(jnp.zeros_like, inner)
        if self.saved_ts is None:
            return carry, bars
        ta = inner[0]

        def is_within(j):
            t = self.saved_ts[jnp.maximum(j, 0)]
            return (j >= 0) & ((t > ta) | (ta == record.start))

        def add(val):
            j, ts, bars = val
            mine = is_within(j)
            ct = jax.tree.map(lambda ct: jnp.where(mine, ct[j], 0.0), ct_ys)
            _, transpose = jax.vjp(self.output, *inner, self.saved_ts[j])
            *more, d_t = transpose(ct)
            bars = jax.tree.map(jnp.add, bars, tuple(more))
            return jnp.where(mine, j - 1, j), ts.at[j].add(d_t), bars

        val = carry["next"], carry["ts"], bars
        j, ts, bars = jax.lax.while_loop(lambda val: eqxi.unvmap_any(is_within(val[0])), add, val)
        return {**carry, "next": j, "ts": ts}, bars

    def collect(self, carry, ct_ts):
        """The cotangents as a tree like the arguments."""
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
            ts = carry["ts"] + ct_ts[: len(self.saved_ts)]
            out["saveat"] = eqx.tree_at(lambda s: s.subs.ts, out["saveat"], ts)
        return carry["boundaries"].collected(out)


def _bytes(tree):
    return sum(x.size * x.dtype.itemsize for x in map(jnp.asarray, jax.tree.leaves(tree)))
