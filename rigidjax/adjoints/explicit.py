r"""The discrete adjoint of explicit Runge-Kutta runs.

A run is repeated once to record its step boundaries, every $C$-th state, and the states and stages
of the last $C$ steps, then walked backwards in segments of $C$ steps: states and stages of earlier
segments are computed again from their first state, and each step is transposed by the adjoint
Runge-Kutta recursion. That is one more integration than the run itself if it is longer than a
segment, and two buffers of about $\sqrt{\mathrm{max\_steps}}$ states.

Since the boundaries are recorded, the states that are computed again are those of the run. (The
checkpointed adjoints of diffrax choose the steps again as well; at tight tolerances the error
estimate is mostly round-off, the steps come out differently, and derivatives with it: by 1e-6 for
the tennis racket with projection at 1e-10, where this adjoint and forward mode agree to 1e-11.)

In a batch all trajectories walk together: loops run as long as any of them needs, indices are
common, and a trajectory that has ended, or whose step is rejected, makes a step of length zero,
which changes nothing. (A loop with a condition of its own for each trajectory would copy the
buffers in every turn.)

Each step is the branch of a `lax.cond` that is always taken but for those steps of length zero. Its
purpose is speed: XLA on CPUs runs the kernels of a computation one after the other, at about 20 ns
each, only if none of their buffers exceeds 512 bytes (or if they are at most eight); otherwise it
schedules them as a graph, at about 100 ns each. A loop body that touches the recorded boundaries
is of the second kind, a branch that gets its step handed over is of the first: for this reason
alone the gradient of the heavy top took 13 ms instead of 24 ms, of a run of 2.6 ms. (It takes
9.3 ms now: the stages are written out, and the field is kept rather than its product with `dt`.)
"""

import math

import diffrax
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..annotations import Y
from ..solvers.explicit.unrolled import StageLoop, Unrolled, directed_rate, is_small_field
from ..solvers.terms import unwrap
from ..solvers.wrappers.after_step import AbstractAfterStep, Projected, Recharted
from ..solvers.wrappers.knots import KnotController, SignalFrozenStep
from .boundaries import Tree, behind, do_move
from .record import is_recordable, put, recorded, take


def is_supported(kwargs: Tree) -> bool:
    """Whether the loop with these arguments is one that `cotangents` can transpose."""
    controller = kwargs["stepsize_controller"]
    if type(controller) is KnotController:
        controller = controller.controller
    return (
        _tableau(kwargs["solver"]) is not None
        and type(unwrap(kwargs["terms"])[0]) is diffrax.ODETerm
        and type(controller) in (diffrax.PIDController, diffrax.ConstantStepSize)
        and not kwargs["saveat"].controller_state
        and is_recordable(kwargs)
    )


def _tableau(solver: diffrax.AbstractSolver) -> diffrax.ButcherTableau | None:
    if type(solver) in (Projected, Recharted, SignalFrozenStep, Unrolled, StageLoop):
        return _tableau(solver.solver)  # pyright: ignore[reportAttributeAccessIssue]
    if not issubclass(type(solver), diffrax.AbstractERK):
        return None
    tableau = type(solver).tableau  # pyright: ignore[reportAttributeAccessIssue]
    return tableau if isinstance(tableau, diffrax.ButcherTableau) else None


def _is_written_out(solver: diffrax.AbstractSolver) -> bool:
    """Whether stages are."""
    while type(solver) in (Projected, Recharted, SignalFrozenStep):
        solver = solver.solver  # pyright: ignore[reportAttributeAccessIssue]
    return type(solver) is Unrolled


def _pinned(solver: diffrax.AbstractSolver) -> SignalFrozenStep | None:
    while type(solver) in (Projected, Recharted):
        solver = solver.solver  # pyright: ignore[reportAttributeAccessIssue]
    return solver if type(solver) is SignalFrozenStep else None


def cotangents(
    kwargs: Tree, of_record: Tree, ct_ts: Float[Array, " T"] | None, ct_ys: Y, wanted: Tree,
    batched: bool,
) -> Tree:  # fmt: skip
    """Cotangents of a loop's arguments from those of the saved times and unknowns.

    Arguments and result as in `rigidjax.adjoints.cotangents`.
    """
    run = _Run(kwargs, do_move(wanted), batched)
    state_of = lambda _, new: ravel_pytree(new[0])[0]  # noqa: E731
    record = recorded(of_record, run.segment, state_of, run.moves, run.row_of)
    return run.collect(run.backward(record, ct_ts, ct_ys), ct_ts)


def _finish(solver, t, end, dense):
    """What the wrappers of a solver make of the end of its step, the inner ones first."""
    if not issubclass(type(solver), AbstractAfterStep):
        return end, dense
    return solver.finish(t, *_finish(solver.solver, t, end, dense))


class _Run:
    """One run: flattened unknowns, parameters of the field and of the solver."""

    def __init__(self, kwargs, moves, batched):
        self.kwargs = kwargs
        self.moves = moves
        state, solver = kwargs["init_state"], kwargs["solver"]
        self.y0, self.unravel = ravel_pytree(state.y)
        self.theta, self.theta_static = eqx.partition(
            (kwargs["terms"], kwargs["args"]), eqx.is_inexact_array
        )
        self.phi, self.phi_static = eqx.partition(solver, eqx.is_inexact_array)
        self.saved_ts = kwargs["saveat"].subs.ts
        self.pinned = _pinned(solver)
        tableau = _tableau(solver)
        assert tableau is not None
        s = len(tableau.c) + 1
        A, b = np.zeros((s, s)), np.asarray(tableau.b_sol)
        for i, row in enumerate(tableau.a_lower):
            A[i + 1, : i + 1] = row
        c = np.concatenate([[0.0 if tableau.c1 is None else tableau.c1], tableau.c])
        if self.saved_ts is None:
            # Without dense output the last stage of a first-same-as-last method is of no use.
            s = int(np.flatnonzero(b)[-1]) + 1
        self.stages = s
        # As the steps are recorded; XLA pays for more in a batch (the 13 stages of Dopri8 take four
        # times as long to compile, 12 s for the heavy top).
        self.unroll = _is_written_out(solver) or (
            batched and is_small_field(kwargs["terms"], state.tprev, state.y, kwargs["args"])
        )
        array = np.asarray if self.unroll else jnp.asarray
        self.A, self.b = (array(x, self.y0.dtype) for x in (A[:s, :s], b[:s]))
        self.c = array(c[:s], state.tprev.dtype)
        self.max_steps = kwargs["max_steps"]
        # Half as many again as it takes for both buffers to be of a length: the stages of the last
        # segment need not be computed again.
        self.segment = max(16, 3 * math.isqrt(self.max_steps) // 2)

    def row_of(self, length, y, dense):
        """Start of a step and the field at its stages, as the solver has computed it."""
        while "dense_info" in dense:
            dense = dense["dense_info"]
        K = jax.vmap(lambda k: ravel_pytree(k)[0])(dense["k"])[: self.stages]
        F = K * (1 / length).astype(K.dtype)
        return jnp.concatenate([ravel_pytree(y)[0][None], F])

    # The maps that make up a step.

    def field(self, theta, times, t, y):
        """The field at `t` of the step with these boundaries."""
        terms, args = eqx.combine(theta, self.theta_static)
        if self.pinned is not None:
            terms = self.pinned.frozen_terms(terms, *jax.lax.stop_gradient(times))
        return ravel_pytree(directed_rate(terms, t, self.unravel(y), args))[0]

    def loop(self, body, val):
        """A loop over the stages, written out if there are few; `i` is a number or an array."""
        if self.unroll:
            for i in range(self.stages):
                val = body(i, val)
            return val
        return jax.lax.fori_loop(0, self.stages, body, val)

    def stage_time(self, i, ta, tb):
        c = self.c[i]
        # No floating point error at the end of the step.
        return jnp.where(c == 1, tb, ta + c * (tb - ta))

    def stages_of(self, ta, tb, y):
        """The field at all stages."""
        dt = (tb - ta).astype(y.dtype)

        def stage(i, F):
            Y = _combine(y, dt, self.A[i], F)
            return _set(F, i, self.field(self.theta, (ta, tb), self.stage_time(i, ta, tb), Y))

        return self.loop(stage, self.vectors(y))

    def vectors(self, y):
        """A vector for each stage: a list, or an array if the loop over stages is one."""
        zero = jnp.zeros_like(y)
        return [zero] * self.stages if self.unroll else jnp.stack([zero] * self.stages)

    def method(self, ta, tb, y, F):
        """End of a step of the bare method, and its increments `dt * f` (s, n)."""
        dt = (tb - ta).astype(y.dtype)
        return _combine(y, dt, self.b, F), dt * jnp.stack(F)

    def finish(self, phi, tb, y, y1, K):
        """End of the step and dense information, from the end and stages of the bare method."""
        solver = eqx.combine(phi, self.phi_static)
        dense = dict(y0=self.unravel(y), y1=self.unravel(y1), k=jax.vmap(self.unravel)(K))
        end = self.unravel(y1)
        end, dense = _finish(solver, tb, end, dense)
        return ravel_pytree(end)[0], dense

    def step(self, times, y):
        """End of a step, and the field at its stages."""
        ta, tb = times
        F = self.stages_of(ta, tb, y)
        return self.finish(self.phi, tb, y, *self.method(ta, tb, y, F))[0], F

    def output(self, phi, ta, tb, y, y1, K, t):
        _, dense = self.finish(phi, tb, y, y1, K)
        solver = eqx.combine(phi, self.phi_static)
        path = solver.interpolation_cls(t0=ta, t1=tb, **dense)
        return ravel_pytree(path.evaluate(t))[0]

    # Backward.

    def backward(self, record, ct_ts, ct_ys):
        n, dtype, C = self.y0.size, self.y0.dtype, self.segment
        ct_ys = jax.vmap(lambda y: ravel_pytree(y)[0])(ct_ys)
        num_ts = 0 if self.saved_ts is None else len(self.saved_ts)
        # `SaveAt(t1=True)` writes the end behind the other times.
        end, t = jnp.zeros(n, dtype), jnp.zeros_like(record.end)
        if self.kwargs["saveat"].subs.t1:
            end, t = ct_ys[-1], ct_ts[-1]
        carry = dict(
            y=end,
            theta=jax.tree.map(jnp.zeros_like, self.theta),
            phi=jax.tree.map(jnp.zeros_like, self.phi),
            boundaries=behind(t, self.kwargs["stepsize_controller"]),
        )
        # Apart from the rest, so that steps of length zero need not copy the buffer of times.
        outputs = dict(
            ts=jnp.zeros(num_ts, record.end.dtype),
            next=jnp.asarray(num_ts - 1),
            phi=jax.tree.map(jnp.zeros_like, self.phi),
        )

        def transpose_step(times, motion, step, bars, start):
            carry, bar_a, bar_b = self.transpose_method(times, step, bars, start)
            if not self.moves:
                return carry
            return {**carry, "boundaries": start["boundaries"].before(motion, bar_a, bar_b)}

        longest = record.longest
        last = (longest - 1) // C

        def transpose_segment(val):
            c, steps, outputs, carry = val
            start = c * C
            end = jnp.minimum(start + C, longest)

            def again(m, val):
                steps, y = val
                times = record.times(m)
                y1, F = jax.lax.cond(
                    times[1] > times[0], self.step, lambda _, y: (y, self.vectors(y)), times, y
                )
                return put(steps, m - start, jnp.stack([y, *F])), y1

            def back(val):
                m, outputs, carry = val
                step = take(steps, m - start)
                times = record.times(m)
                outputs, bars = self.transpose_outputs(record, times, step, ct_ys, outputs)
                carry = jax.lax.cond(
                    times[1] > times[0], transpose_step, lambda *args: args[-1],
                    times, take(record.motions, m + 1), step, bars, carry,
                )  # fmt: skip
                return m - 1, outputs, carry

            val = steps, take(record.states, c)
            steps, _ = jax.lax.fori_loop(jnp.where(c == last, end, start), end, again, val)
            val = end - 1, outputs, carry
            outputs, carry = jax.lax.while_loop(lambda val: val[0] >= start, back, val)[1:]
            return c - 1, steps, outputs, carry

        val = last, record.rows, outputs, carry
        _, _, outputs, carry = jax.lax.while_loop(lambda val: val[0] >= 0, transpose_segment, val)
        phi = jax.tree.map(jnp.add, carry["phi"], outputs["phi"])
        return {**carry, "phi": phi, "ts": outputs["ts"]}

    def transpose_outputs(self, record, times, step, ct_ys, outputs):
        """Cotangents of a step's parts from what was saved within it (`None` if nothing is)."""
        if self.saved_ts is None:
            return outputs, None
        ta, tb = times
        zeros = self.zero_bars(times, step)

        def is_within(j):
            t = self.saved_ts[jnp.maximum(j, 0)]
            return (j >= 0) & ((t > ta) | (ta == record.start))

        def add(val):
            j, phi, ts, bars = val
            mine = is_within(j)
            y, F = step[0], step[1:]
            y1, K = self.method(ta, tb, y, F)
            inputs = (self.phi, ta, tb, y, y1, K, self.saved_ts[j])
            _, transpose = jax.vjp(self.output, *inputs)
            d_phi, d_ta, d_tb, d_y, d_y1, d_K, d_t = transpose(jnp.where(mine, ct_ys[j], 0.0))
            new = dict(ta=d_ta, tb=d_tb, y=d_y, y1=d_y1, K=d_K)
            bars = {key: bars[key] + new[key] for key in bars}
            phi = jax.tree.map(jnp.add, phi, d_phi)
            return jnp.where(mine, j - 1, j), phi, ts.at[j].add(d_t), bars

        def is_any(val):
            return eqxi.unvmap_any(is_within(val[0]))

        val = outputs["next"], outputs["phi"], outputs["ts"], zeros
        j, phi, ts, bars = jax.lax.cond(
            is_any(val), lambda val: jax.lax.while_loop(is_any, add, val), lambda val: val, val
        )
        return dict(next=j, phi=phi, ts=ts), bars

    def zero_bars(self, times, step):
        """Cotangents of boundaries, start, bare end and increments of a step; all zero."""
        (ta, tb), y = jnp.zeros_like(times), jnp.zeros_like(step[0])
        return dict(ta=ta, tb=tb, y=y, y1=y, K=jnp.zeros((self.stages, y.size), y.dtype))

    def transpose_method(self, times, step, bars, carry):
        """The adjoint Runge-Kutta recursion; cotangents of the step's two boundaries."""
        ta, tb = times
        y, F = step[0], list(step[1:]) if self.unroll else step[1:]
        dt = (tb - ta).astype(y.dtype)
        if bars is None:
            bars = self.zero_bars(times, step)
        y1, K = self.method(ta, tb, y, F)
        _, transpose = jax.vjp(
            lambda phi, tb, y1: self.finish(phi, tb, y, y1, K)[0], self.phi, tb, y1
        )
        d_phi, d_tb, d_y1 = transpose(carry["y"])
        d_y1 = d_y1 + bars["y1"]

        def stage(k, val):
            i = self.stages - 1 - k
            d_Y, bar_y, theta, bar_a, bar_b, power = val
            # Cotangent of the increment dt * f.
            bar_k = _combine(bars["K"][i] + self.b[i] * d_y1, 1, self.A[:, i], d_Y)
            t, Y = self.stage_time(i, ta, tb), _combine(y, dt, self.A[i], F)
            _, transpose = jax.vjp(
                lambda theta, t, Y: self.field(theta, times, t, Y), self.theta, t, Y
            )
            d_theta, d_t, d = transpose(dt * bar_k)
            c = self.c[i]
            return (
                _set(d_Y, i, d),
                bar_y + d,
                jax.tree.map(jnp.add, theta, d_theta),
                bar_a + (1 - c) * d_t,
                bar_b + c * d_t,
                power + F[i] * bar_k,
            )

        val = (
            self.vectors(y), bars["y"] + d_y1, carry["theta"], bars["ta"], bars["tb"] + d_tb,
            jnp.zeros_like(y),
        )  # fmt: skip
        _, bar_y, theta, bar_a, bar_b, power = self.loop(stage, val)
        bar_dt = jnp.sum(power).astype(ta.dtype)
        phi = jax.tree.map(jnp.add, carry["phi"], d_phi)
        carry = {**carry, "y": bar_y, "theta": theta, "phi": phi}
        return carry, bar_a - bar_dt, bar_b + bar_dt

    def collect(self, carry, ct_ts):
        """The cotangents as a tree like the arguments."""
        kwargs = self.kwargs
        out = jax.tree.map(lambda x: jnp.zeros_like(x) if eqx.is_inexact_array(x) else None, kwargs)
        out["terms"], out["args"] = carry["theta"]
        out["solver"] = carry["phi"]
        if self.saved_ts is not None:
            ts = carry["ts"] + ct_ts[: len(self.saved_ts)]
            out["saveat"] = eqx.tree_at(lambda s: s.subs.ts, out["saveat"], ts)
        out["init_state"] = eqx.tree_at(lambda s: s.y, out["init_state"], self.unravel(carry["y"]))
        return carry["boundaries"].collected(out)


def _combine(y, dt, weights, vectors):
    """`y + dt * sum(weights * vectors)`, in a list without the zeros among the weights."""
    if not isinstance(vectors, list):
        return y + dt * (weights @ vectors)
    used = [float(w) * v for w, v in zip(weights, vectors, strict=False) if w != 0]
    return y + dt * sum(used) if used else y


def _set(vectors, i, x):
    if isinstance(vectors, list):
        return [*vectors[:i], x, *vectors[i + 1 :]]
    return put(vectors, i, x)
