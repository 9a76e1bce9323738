r"""The discrete adjoint of explicit Runge-Kutta runs.

A run is repeated once to record its step boundaries and every $C$-th state, then walked backwards
in segments of $C$ steps: a segment's states and stages are computed again from its first state, and
each step is transposed by the adjoint Runge-Kutta recursion. That is one more integration than the
run itself, and two buffers of about $\sqrt{\mathrm{max\_steps}}$ states.

Since the boundaries are recorded, the states that are computed again are those of the run. (The
checkpointed adjoints of diffrax choose the steps again as well; at tight tolerances the error
estimate is mostly round-off, the steps come out differently, and derivatives with it: by 1e-6 for
the tennis racket with projection at 1e-10, where this adjoint and forward mode agree to 1e-11.)

In a batch all trajectories walk together: loops run as long as any of them needs, indices are
common, and a trajectory that has ended makes steps of length zero, which change nothing. (A loop
with a condition of its own for each trajectory would copy the buffers in every turn.)
"""

import math
from typing import Any

import diffrax
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .solvers.after_step import AbstractAfterStep, Projected, Recharted
from .solvers.unrolled import Unrolled

_SAVE_Y = diffrax.SubSaveAt(t1=True).fn


def is_supported(kwargs: dict[str, Any]) -> bool:
    """Whether the loop with these arguments is one that `cotangents` can transpose."""
    saveat, subs = kwargs["saveat"], kwargs["saveat"].subs
    terms = kwargs["terms"]
    # diffrax wraps a term to let time run backwards; the wrapper has no public name.
    field = terms.term if type(terms).__name__ == "WrapTerm" else terms
    return (
        _tableau(kwargs["solver"]) is not None
        and type(field) is diffrax.ODETerm
        and type(kwargs["stepsize_controller"]) in (diffrax.PIDController, diffrax.ConstantStepSize)
        and kwargs["event"] is None
        and kwargs["max_steps"] is not None
        and not (saveat.dense or saveat.solver_state or saveat.controller_state)
        and type(subs) is diffrax.SubSaveAt
        and subs.steps == 0
        and not subs.t0
        and subs.fn is _SAVE_Y
    )


def _tableau(solver: Any) -> diffrax.ButcherTableau | None:
    if type(solver) in (Projected, Recharted, Unrolled):
        return _tableau(solver.solver)
    if not issubclass(type(solver), diffrax.AbstractERK):
        return None
    tableau = type(solver).tableau
    return tableau if isinstance(tableau, diffrax.ButcherTableau) else None


def cotangents(kwargs: dict[str, Any], ct_ts: Any, ct_ys: Any, unroll: bool) -> dict[str, Any]:
    """Cotangents of a loop's arguments from those of the saved times and unknowns.

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `ct_ts`, `ct_ys`, as `save_state.ts` and
    `save_state.ys`; `unroll`, write the stages out (faster in a batch, slower for one trajectory).
    **Returns:** the inexact arrays of `kwargs` replaced by their cotangents, the rest by `None`.
    """
    run = _Run(kwargs, unroll)
    boundaries, num_steps, checkpoints = run.record()
    carry = run.backward(boundaries, num_steps, checkpoints, ct_ys)
    return run.collect(carry, boundaries, num_steps, ct_ts)


class _Run:
    """One run: flattened unknowns, parameters of the field and of the solver."""

    def __init__(self, kwargs, unroll):
        self.kwargs, self.unroll = kwargs, unroll
        state, solver = kwargs["init_state"], kwargs["solver"]
        self.y0, self.unravel = ravel_pytree(state.y)
        self.theta, self.theta_static = eqx.partition(
            (kwargs["terms"], kwargs["args"]), eqx.is_inexact_array
        )
        self.phi, self.phi_static = eqx.partition(solver, eqx.is_inexact_array)
        tableau: Any = _tableau(solver)
        stages = len(tableau.c) + 1
        self.A = np.zeros((stages, stages))
        for i, row in enumerate(tableau.a_lower):
            self.A[i + 1, : i + 1] = row
        self.b = np.asarray(tableau.b_sol, dtype=float)
        self.c = np.concatenate([[0.0 if tableau.c1 is None else tableau.c1], tableau.c])
        self.stages = stages
        self.max_steps = kwargs["max_steps"]
        self.segment = max(16, math.isqrt(self.max_steps))
        self.saved_ts = kwargs["saveat"].subs.ts

    # The maps that make up a step.

    def field(self, theta, t, y):
        terms, args = eqx.combine(theta, self.theta_static)
        return ravel_pytree(terms.vf(t, self.unravel(y), args))[0]

    def stage_time(self, i, ta, tb):
        # No floating point error at the end of the step.
        c = jnp.asarray(self.c, ta.dtype)[i]
        return jnp.where(c == 1, tb, ta + c * (tb - ta))

    def stages_of(self, ta, tb, y):
        """Increments K (s, n) of all stages, `dt` times the field."""
        dt = (tb - ta).astype(y.dtype)
        A = jnp.asarray(self.A, y.dtype)

        def stage(i, K):
            k = dt * self.field(self.theta, self.stage_time(i, ta, tb), y + A[i] @ K)
            return K.at[i].set(k)

        K = jnp.zeros((self.stages, y.size), y.dtype)
        if self.unroll:
            for i in range(self.stages):
                K = stage(i, K)
            return K
        return jax.lax.fori_loop(0, self.stages, stage, K)

    def finish(self, phi, tb, y, y1, K):
        """End of the step and dense information, from the end and stages of the bare method."""
        solver = eqx.combine(phi, self.phi_static)
        dense = dict(y0=self.unravel(y), y1=self.unravel(y1), k=jax.vmap(self.unravel)(K))
        end = self.unravel(y1)
        if issubclass(type(solver), AbstractAfterStep):
            end, dense = solver.finish(tb, end, dense)
        return ravel_pytree(end)[0], dense

    def step(self, ta, tb, y):
        K = self.stages_of(ta, tb, y)
        y1, _ = self.finish(self.phi, tb, y, y + jnp.asarray(self.b, y.dtype) @ K, K)
        return y1, K

    def output(self, phi, ta, tb, y, y1, K, t):
        _, dense = self.finish(phi, tb, y, y1, K)
        solver = eqx.combine(phi, self.phi_static)
        path = solver.interpolation_cls(t0=ta, t1=tb, **dense)
        return ravel_pytree(path.evaluate(t))[0]

    # Forward: record.

    def record(self):
        """Step boundaries, number of steps, and every `segment`-th state."""
        kwargs = dict(self.kwargs)
        state = kwargs["init_state"]
        count = max(1, self.max_steps // self.segment)
        SaveState = type(state.save_state)  # the loop's own record of what was saved
        full = lambda n, like: jnp.full((n, *like.shape), jnp.inf, like.dtype)  # noqa: E731
        times = SaveState(
            saveat_ts_index=0, ts=full(self.max_steps, state.tprev), ys=None, save_index=0
        )
        states = SaveState(
            saveat_ts_index=0,
            ts=full(count, state.tprev),
            ys=jax.tree.map(lambda y: full(count, y), state.y),
            save_index=0,
        )
        kwargs["saveat"] = diffrax.SaveAt(
            subs=[
                diffrax.SubSaveAt(steps=1, fn=lambda t, y, args: None),
                diffrax.SubSaveAt(steps=self.segment),
            ]
        )
        kwargs["init_state"] = eqx.tree_at(lambda s: s.save_state, state, [times, states])
        final, _ = diffrax.ForwardMode().loop(**kwargs)
        times, states = final.save_state
        boundaries = jnp.concatenate([state.tprev[None], times.ts])
        later = jax.vmap(lambda y: ravel_pytree(y)[0])(states.ys)
        num_steps = final.num_accepted_steps
        boundaries = jnp.where(
            jnp.arange(self.max_steps + 1) <= num_steps, boundaries, boundaries[num_steps]
        )
        reached = (jnp.arange(1, count + 1) * self.segment <= num_steps)[:, None]
        later = jnp.where(reached, later, self.y0)
        return boundaries, num_steps, jnp.concatenate([self.y0[None], later])

    # Backward.

    def backward(self, boundaries, num_steps, checkpoints, ct_ys):
        n, dtype, C = self.y0.size, self.y0.dtype, self.segment
        ct_ys = jax.vmap(lambda y: ravel_pytree(y)[0])(ct_ys)
        num_ts = 0 if self.saved_ts is None else len(self.saved_ts)
        # `SaveAt(t1=True)` writes the end behind the other times.
        end = ct_ys[-1] if self.kwargs["saveat"].subs.t1 else jnp.zeros(n, dtype)
        time = boundaries.dtype
        carry = dict(
            y=end,
            theta=jax.tree.map(jnp.zeros_like, self.theta),
            phi=jax.tree.map(jnp.zeros_like, self.phi),
            ts=jnp.zeros(num_ts, time),
            first=jnp.zeros((), time),  # of the first boundary
            last=jnp.zeros((), time),  # of the last boundary
            inner=jnp.zeros(
                (), time
            ),  # of those between, weighted as they move with the first step
            later=jnp.zeros((), time),  # of the boundary after the step in hand
            next_ts=jnp.asarray(num_ts - 1),
        )
        span = boundaries[1] - boundaries[0]

        def transpose_step(m, y, K, start):
            ta, tb = boundaries[m], boundaries[m + 1]
            carry = start
            carry, bars = self.transpose_outputs(m, ta, tb, y, K, ct_ys, carry)
            carry, bar_a, bar_b = self.transpose_method(ta, tb, y, K, carry, bars)
            after = bar_b + carry["later"]
            is_inner = m < num_steps - 1
            last = jnp.where(m == num_steps - 1, after, carry["last"])
            moved = jnp.where(is_inner, after * (tb - boundaries[0]) / span, 0.0)
            first = carry["first"] + jnp.where(is_inner, after, 0.0)
            new = {
                **carry, "last": last, "inner": carry["inner"] + moved, "first": first,
                "later": bar_a,
            }  # fmt: skip
            # A step behind the end of this trajectory is none (its projection would not be the
            # identity); the buffer of times is not touched by it and need not be copied.
            mine = m < num_steps
            for key in new.keys() - {"ts", "next_ts"}:
                new[key] = jax.tree.map(
                    lambda x, old: jnp.where(mine, x, old), new[key], start[key]
                )
            return new

        longest = eqxi.unvmap_max(num_steps)

        def transpose_segment(val):
            c, carry = val
            start = c * C
            length = jnp.minimum(C, longest - start)

            def again(i, buffers):
                ys, Ks, y = buffers
                y1, K = self.step(boundaries[start + i], boundaries[start + i + 1], y)
                return ys.at[i].set(y), Ks.at[i].set(K), y1

            buffers = (
                jnp.zeros((C, n), dtype),
                jnp.zeros((C, self.stages, n), dtype),
                checkpoints[c],
            )
            ys, Ks, _ = jax.lax.fori_loop(0, length, again, buffers)
            back = lambda i, carry: transpose_step(  # noqa: E731
                start + length - 1 - i, ys[length - 1 - i], Ks[length - 1 - i], carry
            )
            return c - 1, jax.lax.fori_loop(0, length, back, carry)

        segments = (longest - 1) // C
        _, carry = jax.lax.while_loop(lambda val: val[0] >= 0, transpose_segment, (segments, carry))
        return carry

    def transpose_outputs(self, m, ta, tb, y, K, ct_ys, carry):
        """Cotangents of a step's parts from what was saved within it."""
        y1 = y + jnp.asarray(self.b, y.dtype) @ K
        bars = dict(
            ta=jnp.zeros_like(ta), tb=jnp.zeros_like(tb), y=jnp.zeros_like(y),
            y1=jnp.zeros_like(y), K=jnp.zeros_like(K),
        )  # fmt: skip
        if self.saved_ts is None:
            return carry, bars

        def is_within(j):
            t = self.saved_ts[jnp.maximum(j, 0)]
            return (j >= 0) & ((t > ta) | (m == 0))

        def add(val):
            j, phi, ts, bars = val
            mine = is_within(j)
            inputs = (self.phi, ta, tb, y, y1, K, self.saved_ts[j])
            _, transpose = jax.vjp(self.output, *inputs)
            d_phi, d_ta, d_tb, d_y, d_y1, d_K, d_t = transpose(jnp.where(mine, ct_ys[j], 0.0))
            new = dict(ta=d_ta, tb=d_tb, y=d_y, y1=d_y1, K=d_K)
            bars = {key: bars[key] + new[key] for key in bars}
            phi = jax.tree.map(jnp.add, phi, d_phi)
            return jnp.where(mine, j - 1, j), phi, ts.at[j].add(d_t), bars

        start = (carry["next_ts"], carry["phi"], carry["ts"], bars)
        j, phi, ts, bars = jax.lax.while_loop(
            lambda val: eqxi.unvmap_any(is_within(val[0])), add, start
        )
        return {**carry, "next_ts": j, "phi": phi, "ts": ts}, bars

    def transpose_method(self, ta, tb, y, K, carry, bars):
        """The adjoint Runge-Kutta recursion; cotangents of the step's two boundaries."""
        A, b = jnp.asarray(self.A, y.dtype), jnp.asarray(self.b, y.dtype)
        c = jnp.asarray(self.c, ta.dtype)
        dt = (tb - ta).astype(y.dtype)
        y1 = y + b @ K
        _, transpose = jax.vjp(
            lambda phi, tb, y1: self.finish(phi, tb, y, y1, K)[0], self.phi, tb, y1
        )
        d_phi, d_tb, d_y1 = transpose(carry["y"])
        d_y1 = d_y1 + bars["y1"]
        bar_K = bars["K"] + b[:, None] * d_y1

        def stage(k, val):
            i = self.stages - 1 - k
            bar_K, bar_y, theta, bar_dt, bar_a, bar_b = val
            t = self.stage_time(i, ta, tb)
            _, transpose = jax.vjp(self.field, self.theta, t, y + A[i] @ K)
            d_theta, d_t, d_Y = transpose(dt * bar_K[i])
            # The field at this stage is K / dt; a step of length zero belongs to nobody.
            bar_dt = bar_dt + jnp.sum(K[i] * bar_K[i]) / jnp.where(dt == 0, 1.0, dt)
            return (
                bar_K + A[i][:, None] * d_Y,
                bar_y + d_Y,
                jax.tree.map(jnp.add, theta, d_theta),
                bar_dt,
                bar_a + (1 - c[i]) * d_t,
                bar_b + c[i] * d_t,
            )

        val = (
            bar_K, bars["y"] + d_y1, carry["theta"], jnp.zeros_like(dt), bars["ta"],
            bars["tb"] + d_tb,
        )  # fmt: skip
        if self.unroll:
            for k in range(self.stages):
                val = stage(k, val)
        else:
            val = jax.lax.fori_loop(0, self.stages, stage, val)
        _, bar_y, theta, bar_dt, bar_a, bar_b = val
        bar_dt = bar_dt.astype(ta.dtype)
        phi = jax.tree.map(jnp.add, carry["phi"], d_phi)
        carry = {**carry, "y": bar_y, "theta": theta, "phi": phi}
        return carry, bar_a - bar_dt, bar_b + bar_dt

    def collect(self, carry, boundaries, num_steps, ct_ts):
        """The cotangents as a tree like the arguments."""
        kwargs = self.kwargs
        state = kwargs["init_state"]
        out = jax.tree.map(lambda x: jnp.zeros_like(x) if eqx.is_inexact_array(x) else None, kwargs)
        out["terms"], out["args"] = carry["theta"]
        out["solver"] = carry["phi"]
        end = carry["last"]
        ts = carry["ts"]
        if kwargs["saveat"].subs.t1:
            end = end + ct_ts[-1]
            ct_ts = ct_ts[:-1]
        if self.saved_ts is not None:
            out["saveat"] = eqx.tree_at(lambda s: s.subs.ts, out["saveat"], ts + ct_ts)
        # Boundaries move with the first one, and apart in proportion to the first step; the last
        # one is `t1`, unless it is the end of the first step already.
        single = num_steps == 1
        out["t1"] = out["t1"] + jnp.where(single, 0.0, end)
        step = carry["inner"] + jnp.where(single, end, 0.0)
        # A first step that was rejected shrank in proportion.
        planned = state.tnext - state.tprev
        step = step * jnp.where(single, 1.0, (boundaries[1] - boundaries[0]) / planned)
        out["init_state"] = eqx.tree_at(
            lambda s: (s.y, s.tprev, s.tnext),
            out["init_state"],
            (self.unravel(carry["y"]), carry["first"] + carry["later"] - step, step),
        )
        return out
