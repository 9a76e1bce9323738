r"""The discrete adjoint of runs whose solver can repeat a step, see `AbstractDAESolver.repeated`.

A run is repeated once to record its step boundaries and, every $C$ steps, the unknowns and the
state of the solver. Then it is walked backwards in segments of $C$ steps: they are made again from
the state at their start, which keeps of each step its start and what it had to find out (converged
stages, order, number of columns), and each step is transposed with that known: no iteration is
differentiated, and a transposed linear system of the converged stage equations takes its place.

That is one more integration than the run itself. The state of a solver with its Jacobian and
inverse is large, what is kept of a step is not: $C$ makes the buffers of both equally large.

Trajectories of a batch walk together as in `explicit`.
"""

import math
from typing import Any

import diffrax
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp

from ..solvers.after_step import Projected, Recharted
from ..solvers.base import AbstractDAESolver
from ..solvers.counting import CountingController, CountingSolver
from ..solvers.predictive import PredictiveController
from ..solvers.proposed import ProposedStepController
from .boundaries import Boundaries, no_cotangents
from .record import Record, is_recordable, put, recorded, take

_CONTROLLERS = (
    PredictiveController,
    ProposedStepController,
    diffrax.PIDController,
    diffrax.ConstantStepSize,
)


def is_supported(kwargs: dict[str, Any]) -> bool:
    """Whether the loop with these arguments is one that `cotangents` can transpose."""
    solver, controller = kwargs["solver"], kwargs["stepsize_controller"]
    while type(solver) in (Projected, Recharted, CountingSolver):
        solver = solver.solver
    if type(controller) is CountingController:
        controller = controller.controller
    return (
        isinstance(solver, AbstractDAESolver)
        and type(controller) in _CONTROLLERS
        and is_recordable(kwargs)
    )


def cotangents(kwargs: dict[str, Any], ct_ts: Any, ct_ys: Any) -> dict[str, Any]:
    """Cotangents of a loop's arguments from those of the saved times and unknowns.

    The state of the controller, which may be saved as well, has no derivatives.

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `ct_ts`, `ct_ys`, as `save_state.ts` and
    `save_state.ys`.
    **Returns:** the inexact arrays of `kwargs` replaced by their cotangents, the rest by `None`.
    """
    run = _Run(kwargs)
    record = recorded(kwargs, run.segment, lambda *state: state)
    return run.collect(run.backward(record, ct_ys), record, ct_ts)


class _Run:
    """One run, and the maps that make up its steps.

    A step has a start, the unknowns and the past of the method, and what was found out.
    """

    def __init__(self, kwargs):
        self.kwargs = kwargs
        self.init = kwargs["init_state"]
        self.solver = kwargs["solver"]
        self.theta, self.theta_static = eqx.partition(
            (kwargs["terms"], kwargs["args"]), eqx.is_inexact_array
        )
        self.phi, self.phi_static = eqx.partition(self.solver, eqx.is_inexact_array)
        self.saved_ts = kwargs["saveat"].subs.ts
        self.state = self.init.y, self.init.solver_state
        times = jnp.stack([self.init.tprev, self.init.tnext])
        self.nothing = jax.tree.map(
            lambda x: jnp.zeros(x.shape, x.dtype),
            jax.eval_shape(lambda *args: self.step(*args)[0], times, self.state),
        )
        steps = kwargs["max_steps"] * _size(self.state) / max(_size(self.nothing), 1)
        self.segment = min(max(16, math.isqrt(int(steps))), max(16, kwargs["max_steps"]))

    def start_of(self, state):
        y, solver_state = state
        return y, self.solver.past(solver_state)

    def step(self, times, state):
        """The step again: its start and what was found, and the state behind it."""
        y, before = state
        y1, _, _, after, _ = self.solver.step(
            self.kwargs["terms"], *times, y, self.kwargs["args"], before, self.init.made_jump
        )
        return (self.start_of(state), self.solver.found(before, after)), (y1, after)

    def repeated(self, found, theta, phi, ta, tb, start):
        """Start of the next step, and dense information."""
        terms, args = eqx.combine(theta, self.theta_static)
        solver = eqx.combine(phi, self.phi_static)
        y, past = start
        y1, dense, past = solver.repeated(terms, ta, tb, y, args, past, found, self.init.made_jump)
        return (y1, past), dense

    def output(self, ta, tb, dense, t):
        return self.solver.interpolation_cls(t0=ta, t1=tb, **dense).evaluate(t)

    # Backward.

    def backward(self, record, ct_ys):
        carry = self.end(record, ct_ys)

        def transpose_step(*args):
            return self.transpose_step(record, ct_ys, *args)

        def transpose_segment(val):
            c, carry = val
            start = c * self.segment
            steps, end = self.made_again(record, c)

            def back(val):
                m, carry = val
                step = take(steps, m - start)
                times = jax.lax.dynamic_slice(record.boundaries, (m,), (2,))
                carry = jax.lax.cond(
                    times[1] > times[0], transpose_step, lambda *args: args[-1],
                    times, step, carry,
                )  # fmt: skip
                return m - 1, carry

            return c - 1, jax.lax.while_loop(lambda val: val[0] >= start, back, (end - 1, carry))[1]

        val = (record.count - 1) // self.segment, carry
        return jax.lax.while_loop(lambda val: val[0] >= 0, transpose_segment, val)[1]

    def end(self, record: Record, ct_ys) -> dict[str, Any]:
        """Cotangents behind the last step."""
        y, past = jax.tree.map(jnp.zeros_like, self.start_of(self.state))
        if self.kwargs["saveat"].subs.t1:
            # `SaveAt(t1=True)` writes the end behind the other times.
            y = jax.tree.map(lambda ct: ct[-1], ct_ys)
        num_ts = 0 if self.saved_ts is None else len(self.saved_ts)
        return dict(
            start=(y, past),
            theta=jax.tree.map(jnp.zeros_like, self.theta),
            phi=jax.tree.map(jnp.zeros_like, self.phi),
            boundaries=no_cotangents(record),
            ts=jnp.zeros(num_ts, record.end.dtype),
            next=jnp.asarray(num_ts - 1),
        )

    def made_again(self, record, c):
        """The steps of the c-th segment, and the number behind its last one."""
        C = self.segment
        end = jnp.minimum(c * C + C, record.count)

        def again(m, val):
            steps, state = val
            times = jax.lax.dynamic_slice(record.boundaries, (m,), (2,))
            step, state = jax.lax.cond(
                times[1] > times[0], self.step, lambda _, state: (self.nothing, state), times, state
            )
            return put(steps, m - c * C, step), state

        steps = jax.tree.map(lambda x: jnp.zeros((C, *x.shape), x.dtype), self.nothing)
        val = steps, take(record.states, c)
        return jax.lax.fori_loop(c * C, end, again, val)[0], end

    def transpose_step(self, record, ct_ys, times, step, carry):
        """Cotangents in front of a step from those behind it."""
        ta, tb = times
        start, found = step
        (_, dense), transpose = jax.vjp(
            lambda *inputs: self.repeated(found, *inputs), self.theta, self.phi, ta, tb, start
        )
        carry, bars = self.transpose_outputs(record, ct_ys, (ta, tb, dense), carry)
        theta, phi, bar_a, bar_b, ct_start = transpose((carry["start"], bars[2]))
        boundaries: Boundaries = carry["boundaries"]
        return {
            **carry,
            "start": ct_start,
            "theta": jax.tree.map(jnp.add, carry["theta"], theta),
            "phi": jax.tree.map(jnp.add, carry["phi"], phi),
            "boundaries": boundaries.before(record, tb, bar_a + bars[0], bar_b + bars[1]),
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

    def collect(self, carry, record, ct_ts):
        """The cotangents as a tree like the arguments."""
        kwargs = self.kwargs
        out = jax.tree.map(lambda x: jnp.zeros_like(x) if eqx.is_inexact_array(x) else None, kwargs)
        out["terms"], out["args"] = carry["theta"]
        out["solver"] = carry["phi"]
        y, past = carry["start"]
        _, transpose = eqx.filter_vjp(self.solver.past, self.init.solver_state)
        out["init_state"] = eqx.tree_at(
            lambda s: (s.y, s.solver_state), out["init_state"], (y, transpose(past)[0]),
            is_leaf=lambda x: x is None,
        )  # fmt: skip
        end = jnp.zeros_like(record.end)
        if kwargs["saveat"].subs.t1:
            end, ct_ts = ct_ts[-1], ct_ts[:-1]
        if self.saved_ts is not None:
            out["saveat"] = eqx.tree_at(lambda s: s.subs.ts, out["saveat"], carry["ts"] + ct_ts)
        return carry["boundaries"].collected(out, self.init, record, end)


def _size(tree):
    return sum(jnp.size(x) for x in jax.tree.leaves(tree))
