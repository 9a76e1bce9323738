r"""Discrete adjoint of explicit Runge-Kutta runs.

A run is repeated once to record its step boundaries, every $C$-th state, and the states and stages
of the last $C$ steps. The backward pass processes segments of $C$ steps: it recomputes the states
and stages of earlier segments from their first state, and transposes each step by the adjoint
Runge-Kutta recursion. This costs one more integration if the run is longer than a segment, and two
buffers of about $\sqrt{\mathrm{max\_steps}}$ states.

The recomputed states are those of the run, because the boundaries are recorded. The checkpointed
adjoints of diffrax choose the steps again. At tight tolerances the error estimate is mostly
round-off, so that their steps, and with them the derivatives, differ from those of the run.

All trajectories of a batch proceed in lockstep: loops run as long as any trajectory needs, indices
are common, and a trajectory that has ended or whose step is rejected makes a step of length zero,
which changes nothing. With an individual loop condition for each trajectory, the buffers would be
copied in every iteration.

Each step is in a branch of `lax.cond` that is taken unless the step has length zero. This is for
speed: XLA on CPUs executes the kernels of a computation sequentially, without a task graph, only if
all buffers are small or the kernels are few. The body of a loop over the recorded boundaries does
not qualify, but a branch whose operands are a single step does.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import diffrax
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from ..annotations import Count, DenseInfo, Scalar, Vector, Y
from ..solvers.base.hooked import HookedSolver, hooks_of
from ..solvers.base.terms import unwrap
from ..solvers.explicit.unrolled import StageLoop, Unrolled, directed_rate, is_small_field
from ..solvers.wrappers.knots import FrozenSignals, KnotController
from .boundaries import Tree, after_last_step, boundaries_are_wanted
from .record import Record, is_recordable, put, record_run, take

# A vector for each stage: a list if the loop over the stages is unrolled, else an array.
StageVectors: TypeAlias = Float[Array, "S n"] | list[Array]


def is_supported(kwargs: Tree) -> bool:
    """Return whether `transpose_run` supports the loop with these arguments."""
    controller = kwargs["stepsize_controller"]
    if type(controller) is KnotController:
        controller = controller.controller
    return (
        _tableau(kwargs["solver"]) is not None
        and type(unwrap(kwargs["terms"])[0]) is diffrax.ODETerm
        and type(controller) in (diffrax.PIDController, diffrax.ConstantStepSize)
        and not kwargs["saveat"].solver_state
        and is_recordable(kwargs)
    )


def _tableau(solver: Any) -> diffrax.ButcherTableau | None:
    if not all(hook.keeps_stages for hook in hooks_of(solver)):
        return None
    if issubclass(type(solver), HookedSolver) or type(solver) in (Unrolled, StageLoop):
        return _tableau(solver.solver)
    if not issubclass(type(solver), diffrax.AbstractERK):
        return None
    tableau = type(solver).tableau
    return tableau if isinstance(tableau, diffrax.ButcherTableau) else None


def transpose_run(
    kwargs: Tree, recorded_kwargs: Tree, ct_ts: Float[Array, " T"] | None, ct_ys: Y, wanted: Tree,
    batched: bool,
) -> Tree:  # fmt: skip
    """Return the cotangents of a loop's arguments from those of the saved times and unknowns.

    The state of the controller, which may be saved too, has no derivatives. See
    `rigidjax.adjoints.traced_solve.transpose_run`.
    """
    run = _ExplicitRun(kwargs, wanted, batched)
    state_of = lambda _, new: ravel_pytree(new[0])[0]  # noqa: E731
    record = record_run(
        recorded_kwargs, run.segment, state_of, run.moves, run.record_row,
        (run.stages + 1, run.y0.size),
    )  # fmt: skip
    return run.assemble_cotangents(run.backward(record, ct_ts, ct_ys), ct_ts)


class _ExplicitRun:
    """A run with flattened unknowns, and the functions that compose and transpose its steps.

    `theta` are the wanted parameters of the vector field, `phi` those of the solver.
    """

    def __init__(self, kwargs: Tree, wanted: Tree, batched: bool):
        self.kwargs = kwargs
        self.moves = boundaries_are_wanted(wanted)
        state, solver = kwargs["init_state"], kwargs["solver"]
        self.y0, self.unravel = ravel_pytree(state.y)
        self.theta, self.theta_static = eqx.partition(
            (kwargs["terms"], kwargs["args"]), (wanted["terms"], wanted["args"])
        )
        self.phi, self.phi_static = eqx.partition(solver, wanted["solver"])
        self.saved_ts = kwargs["saveat"].subs.ts
        frozen = [hook for hook in hooks_of(solver) if isinstance(hook, FrozenSignals)]
        self.frozen_signals = frozen[0] if frozen else None
        tableau = _tableau(solver)
        assert tableau is not None
        s = len(tableau.c) + 1
        A, b = np.zeros((s, s)), np.asarray(tableau.b_sol)
        for i, row in enumerate(tableau.a_lower):
            A[i + 1, : i + 1] = row
        c = np.concatenate([[0.0 if tableau.c1 is None else tableau.c1], tableau.c])
        if self.saved_ts is None:
            # Without dense output the last stage of a first-same-as-last method is not needed.
            s = int(np.flatnonzero(b)[-1]) + 1
        self.stages = s
        # As in the recorded run. Otherwise XLA unrolls in a batch only, because the compile time of
        # methods with many stages is long.
        inner = solver.solver if hooks_of(solver) else solver
        self.unroll = type(inner) is Unrolled or (
            batched and is_small_field(kwargs["terms"], state.tprev, state.y, kwargs["args"])
        )
        array = np.asarray if self.unroll else jnp.asarray
        self.A, self.b = (array(x, self.y0.dtype) for x in (A[:s, :s], b[:s]))
        self.c = array(c[:s], state.tprev.dtype)
        self.max_steps = kwargs["max_steps"]
        # Longer than the length for which both buffers are equal, because the stages of the last
        # segment need not be recomputed.
        self.segment = max(16, 3 * math.isqrt(self.max_steps) // 2)

    def record_row(self, length: Scalar, y: Y, dense: DenseInfo):
        """Return the start of a step and the vector field at its stages, from dense information."""
        while "dense_info" in dense:
            dense = dense["dense_info"]
        K = jax.vmap(lambda k: ravel_pytree(k)[0])(dense["k"])[: self.stages]
        F = K * (1 / length).astype(K.dtype)
        return jnp.concatenate([ravel_pytree(y)[0][None], F])

    # Functions that compose a step.

    def field(
        self, theta: PyTree, times: Float[Array, "2"] | tuple[Scalar, Scalar], t: Scalar, y: Vector
    ):
        """Return the vector field at time `t` of the step with these boundaries."""
        terms, args = eqx.combine(theta, self.theta_static)
        if self.frozen_signals is not None:
            terms = self.frozen_signals.frozen_terms(terms, *jax.lax.stop_gradient(times))
        return ravel_pytree(directed_rate(terms, t, self.unravel(y), args))[0]

    def loop(self, body: Callable[[int | Count, Any], Any], val: Any):
        """Loop over the stages, with an index `i` that is an integer if the loop is unrolled."""
        if self.unroll:
            for i in range(self.stages):
                val = body(i, val)
            return val
        return jax.lax.fori_loop(0, self.stages, body, val)

    def stage_time(self, i: int | Count, ta: Scalar, tb: Scalar):
        c = self.c[i]
        # A stage at the end of the step has its exact time, without round-off.
        return jnp.where(c == 1, tb, ta + c * (tb - ta))

    def evaluate_stages(self, ta: Scalar, tb: Scalar, y: Vector):
        """Evaluate the vector field at all stages."""
        dt = (tb - ta).astype(y.dtype)

        def stage(i, F):
            Y = _combine(y, dt, self.A[i], F)
            return _set(F, i, self.field(self.theta, (ta, tb), self.stage_time(i, ta, tb), Y))

        return self.loop(stage, self.stage_vectors(y))

    def stage_vectors(self, y: Vector):
        """Return a zero vector for each stage, as a list if the loop is unrolled or an array."""
        zero = jnp.zeros_like(y)
        return [zero] * self.stages if self.unroll else jnp.stack([zero] * self.stages)

    def bare_step(self, ta: Scalar, tb: Scalar, y: Vector, F: StageVectors):
        """Return the end of a step without wrappers, and its increments `dt * f`, (s, n)."""
        dt = (tb - ta).astype(y.dtype)
        return _combine(y, dt, self.b, F), dt * jnp.stack(F)

    def finish(self, phi: PyTree, tb: Scalar, y: Vector, y1: Vector, K: Float[Array, "S n"]):
        """Return the end of the step with wrappers, and dense information."""
        solver = eqx.combine(phi, self.phi_static)
        dense = dict(y0=self.unravel(y), y1=self.unravel(y1), k=jax.vmap(self.unravel)(K))
        end = self.unravel(y1)
        if hooks_of(solver):
            end, dense = solver.finish(tb, end, dense)
        return ravel_pytree(end)[0], dense

    def step(self, times: Float[Array, "2"], y: Vector):
        """Return the end of a step and the vector field at its stages."""
        ta, tb = times
        F = self.evaluate_stages(ta, tb, y)
        return self.finish(self.phi, tb, y, *self.bare_step(ta, tb, y, F))[0], F

    def output(
        self,
        phi: PyTree,
        ta: Scalar,
        tb: Scalar,
        y: Vector,
        y1: Vector,
        K: Float[Array, "S n"],
        t: Scalar,
    ):
        _, dense = self.finish(phi, tb, y, y1, K)
        solver = eqx.combine(phi, self.phi_static)
        path = solver.interpolation_cls(t0=ta, t1=tb, **dense)
        return ravel_pytree(path.evaluate(t))[0]

    # Backward pass.

    def backward(self, record: Record, ct_ts: Float[Array, " T"] | None, ct_ys: Y):
        n, dtype, C = self.y0.size, self.y0.dtype, self.segment
        ct_ys = jax.vmap(lambda y: ravel_pytree(y)[0])(ct_ys)
        num_ts = 0 if self.saved_ts is None else len(self.saved_ts)
        # `SaveAt(t1=True)` saves the end after the other times.
        end, t = jnp.zeros(n, dtype), jnp.zeros_like(record.end)
        if self.kwargs["saveat"].subs.t1:
            assert ct_ts is not None
            end, t = ct_ys[-1], ct_ts[-1]
        carry = dict(
            y=end,
            theta=jax.tree.map(jnp.zeros_like, self.theta),
            phi=jax.tree.map(jnp.zeros_like, self.phi),
            boundaries=after_last_step(t, self.kwargs["stepsize_controller"]),
        )
        # Separate from `carry`, so that steps of length zero do not copy the buffer of times.
        outputs = dict(
            ts=jnp.zeros(num_ts, record.end.dtype),
            next=jnp.asarray(num_ts - 1),
            phi=jax.tree.map(jnp.zeros_like, self.phi),
        )

        def transpose_step(times, motion, step, bars, start):
            carry, bar_a, bar_b = self.transpose_bare_step(times, step, bars, start)
            if not self.moves:
                return carry
            return {**carry, "boundaries": start["boundaries"].step_back(motion, bar_a, bar_b)}

        longest = record.longest
        last = (longest - 1) // C

        def transpose_segment(val):
            c, steps, outputs, carry = val
            start = c * C
            end = jnp.minimum(start + C, longest)

            def recompute(m, val):
                steps, y = val
                times = record.times(m)
                y1, F = jax.lax.cond(
                    times[1] > times[0],
                    self.step,
                    lambda _, y: (y, self.stage_vectors(y)),
                    times,
                    y,
                )
                return put(steps, m - start, jnp.stack([y, *F])), y1

            def transpose_last(val):
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
            steps, _ = jax.lax.fori_loop(jnp.where(c == last, end, start), end, recompute, val)
            val = end - 1, outputs, carry
            outputs, carry = jax.lax.while_loop(lambda val: val[0] >= start, transpose_last, val)[
                1:
            ]
            return c - 1, steps, outputs, carry

        val = last, record.rows, outputs, carry
        _, _, outputs, carry = jax.lax.while_loop(lambda val: val[0] >= 0, transpose_segment, val)
        phi = jax.tree.map(jnp.add, carry["phi"], outputs["phi"])
        return {**carry, "phi": phi, "ts": outputs["ts"]}

    def transpose_outputs(
        self,
        record: Record,
        times: Float[Array, "2"],
        step: Float[Array, "S n"],
        ct_ys: Float[Array, "T n"],
        outputs: Tree,
    ):
        """Return cotangents of a step's quantities due to outputs within it, `None` without any."""
        if self.saved_ts is None:
            return outputs, None
        ta, tb = times
        zeros = self.zero_bars(times, step)

        def is_within(j):
            t = self.saved_ts[jnp.maximum(j, 0)]
            return (j >= 0) & ((t > ta) | (ta == record.start))

        def add(val):
            j, phi, ts, bars = val
            within = is_within(j)
            y, F = step[0], step[1:]
            y1, K = self.bare_step(ta, tb, y, F)
            inputs = (self.phi, ta, tb, y, y1, K, self.saved_ts[j])
            _, transpose = jax.vjp(self.output, *inputs)
            d_phi, d_ta, d_tb, d_y, d_y1, d_K, d_t = transpose(jnp.where(within, ct_ys[j], 0.0))
            new = dict(ta=d_ta, tb=d_tb, y=d_y, y1=d_y1, K=d_K)
            bars = {key: bars[key] + new[key] for key in bars}
            phi = jax.tree.map(jnp.add, phi, d_phi)
            return jnp.where(within, j - 1, j), phi, ts.at[j].add(d_t), bars

        def any_within(val):
            return eqxi.unvmap_any(is_within(val[0]))

        val = outputs["next"], outputs["phi"], outputs["ts"], zeros
        j, phi, ts, bars = jax.lax.cond(
            any_within(val),
            lambda val: jax.lax.while_loop(any_within, add, val),
            lambda val: val,
            val,
        )
        return dict(next=j, phi=phi, ts=ts), bars

    def zero_bars(self, times: Float[Array, "2"], step: Float[Array, "S n"]):
        """Return zero cotangents of boundaries, start, end without wrappers, and increments."""
        (ta, tb), y = jnp.zeros_like(times), jnp.zeros_like(step[0])
        return dict(ta=ta, tb=tb, y=y, y1=y, K=jnp.zeros((self.stages, y.size), y.dtype))

    def transpose_bare_step(
        self, times: Float[Array, "2"], step: Float[Array, "S n"], bars: Tree | None, carry: Tree
    ):
        """Apply the adjoint Runge-Kutta recursion.

        **Returns:** the new `carry`; the cotangents of the start and the end of the step.
        """
        ta, tb = times
        y, F = step[0], list(step[1:]) if self.unroll else step[1:]
        dt = (tb - ta).astype(y.dtype)
        if bars is None:
            bars = self.zero_bars(times, step)
        y1, K = self.bare_step(ta, tb, y, F)
        _, transpose = jax.vjp(
            lambda phi, tb, y1: self.finish(phi, tb, y, y1, K)[0], self.phi, tb, y1
        )
        d_phi, d_tb, d_y1 = transpose(carry["y"])
        d_y1 = d_y1 + bars["y1"]

        def stage(k, val):
            i = self.stages - 1 - k
            d_Y, bar_y, theta, bar_a, bar_b, power = val
            # Cotangent of the increment `dt * f`.
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
            self.stage_vectors(y), bars["y"] + d_y1, carry["theta"], bars["ta"], bars["tb"] + d_tb,
            jnp.zeros_like(y),
        )  # fmt: skip
        _, bar_y, theta, bar_a, bar_b, power = self.loop(stage, val)
        bar_dt = jnp.sum(power).astype(ta.dtype)
        phi = jax.tree.map(jnp.add, carry["phi"], d_phi)
        carry = {**carry, "y": bar_y, "theta": theta, "phi": phi}
        return carry, bar_a - bar_dt, bar_b + bar_dt

    def assemble_cotangents(self, carry: Tree, ct_ts: Float[Array, " T"] | None):
        """Return the cotangents as a tree like the arguments of the loop."""
        kwargs = self.kwargs
        out = jax.tree.map(lambda x: jnp.zeros_like(x) if eqx.is_inexact_array(x) else None, kwargs)
        rest = out["terms"], out["args"], out["solver"]
        out["terms"], out["args"], out["solver"] = eqx.combine(
            (*carry["theta"], carry["phi"]), rest
        )
        if self.saved_ts is not None:
            assert ct_ts is not None
            ts = carry["ts"] + ct_ts[: len(self.saved_ts)]
            out["saveat"] = eqx.tree_at(lambda s: s.subs.ts, out["saveat"], ts)
        out["init_state"] = eqx.tree_at(lambda s: s.y, out["init_state"], self.unravel(carry["y"]))
        return carry["boundaries"].add_to(out)


def _combine(y: Vector, dt: Scalar | int, weights: Array | np.ndarray, stage_vectors: StageVectors):
    """Return `y + dt * sum(weights * vectors)`, without zero weights if `vectors` is a list."""
    if not isinstance(stage_vectors, list):
        return y + dt * (weights @ stage_vectors)
    used = [float(w) * v for w, v in zip(weights, stage_vectors, strict=False) if w != 0]
    return y + dt * sum(used) if used else y


def _set(stage_vectors: StageVectors, i: int | Count, x: Vector):
    if isinstance(stage_vectors, list):
        return [*stage_vectors[:i], x, *stage_vectors[i + 1 :]]
    return put(stage_vectors, i, x)
