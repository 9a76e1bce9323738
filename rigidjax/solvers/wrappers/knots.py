r"""Steps that end where a `Signal` is not smooth.

`KnotController` cuts the steps of another controller there, and `SignalFrozenStep` hands every step
the one polynomial that a signal is within it. So a step sees a smooth right-hand side, values on
both sides of a jump are the right ones, and a table is searched once a step, by bisection.

Derivatives by the delay of a signal are exact because the ends of steps move with it: what a jump
that comes later changes is the difference of the rates on both sides, which is what the moving end
of one step and start of the next one make of it. Other ends of steps keep their distance from the
sample before.
"""

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ...annotations import (
    Count,
    History,
    InterpolationClass,
    Number,
    ReplayResult,
    Scalar,
    StepResult,
    StepSizeResult,
    T,
    Terms,
    Time,
    Vector,
)
from ...signals.signal import Signal, signals_of, with_signals
from ..dae.base import AbstractDAESolver
from ..step_results import RESULTS
from .after_step import AbstractDelegating

# Of equal samples with delays of their own each one is the end of a step: so many units of
# round-off apart.
_APART = 4
# A step that was cut to less than this part says little of the error of a whole one.
_PART = 0.5
# Samples that are so near to the end of a fixed step, relative to its length, are at its end.
_AT_END = 1e-6

# What `SignalFrozenStep` returns for a run that leaves a table, or steps across a jump: diffrax
# has no result of such a meaning, and none of its solvers returns this one.
SIGNAL_NOT_FROZEN = RESULTS.conlim


def separated(model: T, t0: Time, t1: Time) -> T:
    """The model with delays that differ by more than round-off.

    Two jumps at one time, of which each moves with a delay of its own, are two ends of steps.
    """
    delayed = [s for s in signals_of(model) if s.delay is not None and s.jumps]
    if len(delayed) < 2:
        return model
    numbers = iter(range(len(delayed)))
    ulp = jnp.finfo(jnp.result_type(t0)).eps * jnp.maximum(jnp.abs(t0), jnp.abs(t1))

    def shifted(signal):
        if signal.delay is None or not signal.jumps:
            return signal
        delay = signal.delay + _APART * next(numbers) * ulp
        return eqx.tree_at(lambda s: s.delay, signal, delay)

    return with_signals(model, shifted)


class Knots(eqx.Module):
    """Times of the samples of a signal, without what it is there."""

    ts: Float[Array, " K"]
    delay: Scalar | None

    @property
    def times(self) -> Float[Array, " K"]:
        """Times of all samples, (K,) s."""
        return self.ts if self.delay is None else self.ts + self.delay

    def at(self, index: Count) -> Scalar:
        """The time of a sample, s; infinite behind the last one."""
        last = len(self.ts) - 1
        ts = jax.lax.stop_gradient(self.ts)
        t = jnp.where(index > last, jnp.inf, ts[jnp.minimum(index, last)])
        return t if self.delay is None else t + self.delay


class KnotController(diffrax.AbstractAdaptiveStepSizeController):
    """Cuts the steps of another controller at the samples of signals.

    A step that follows on a cut one is as long as that was planned. The state is that of the other
    controller; for each signal the number of samples that were passed; the planned length of the
    step; and which signal it is cut at, if any.

    **Arguments:** `controller`, an adaptive one; `knots`, of every signal.
    """

    controller: diffrax.AbstractAdaptiveStepSizeController
    knots: tuple[Knots, ...]

    @property
    def rtol(self) -> Number:
        return self.controller.rtol

    @property
    def atol(self) -> Number:
        return self.controller.atol

    @property
    def norm(self) -> Callable[[PyTree], Number]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.controller.norm

    @property
    def num_delays(self) -> int:
        """How many signals have a delay."""
        return sum(k.delay is not None for k in self.knots)

    def wrap(self, direction) -> "KnotController":
        """Forward in time alone, as `simulate` runs."""
        return eqx.tree_at(lambda c: c.controller, self, self.controller.wrap(direction))

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order) -> tuple[Time, PyTree]:
        """First step of the other controller, cut."""
        end, inner = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        passed = tuple(jnp.sum(k.times <= t0) for k in self.knots)
        length = jax.lax.stop_gradient(end - t0)
        end, cut = self._cut(t0, length, passed)
        return end, (inner, passed, length, cut)

    def adapt_step_size(
        self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
    ) -> StepSizeResult[PyTree]:
        """As the other controller, cut."""
        inner, passed, planned, cut = controller_state
        keep, start, end, jump, new, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, inner
        )
        short = keep & (cut >= 0) & (t1 - t0 < _PART * planned)
        inner = jax.tree.map(lambda a, b: jnp.where(short, a, b), inner, new)
        length = jax.lax.stop_gradient(jnp.where(short, planned, end - start))
        passed = tuple(
            i + (k.at(i) <= start).astype(i.dtype) for k, i in zip(self.knots, passed, strict=True)
        )
        end, cut = self._cut(start, length, passed)
        return keep, start, end, jump, (inner, passed, length, cut), result

    def motion(self, controller_state: PyTree, before: Vector) -> Vector:
        """How the planned end of a step moves with the delays, from how its start does.

        **Arguments:** `before`, a vector whose last entries are those of the delays.
        """
        *_, cut = controller_state
        of_delay, size = -jnp.ones(len(self.knots), int), before.shape[0] - self.num_delays
        for j, knots in enumerate(self.knots):
            if knots.delay is not None:
                of_delay, size = of_delay.at[j].set(size), size + 1
        place = of_delay[jnp.maximum(cut, 0)]
        moved = (jnp.arange(before.shape[0]) == place).astype(before.dtype)
        return jnp.where(cut >= 0, moved, before)

    def _cut(self, start, length, passed):
        """End of a step of this length from `start`, and the number of the signal it is cut at."""
        end, cut = start + length, jnp.array(-1)
        for j, (knots, i) in enumerate(zip(self.knots, passed, strict=True)):
            knot = knots.at(i)
            earlier = knot < end
            end, cut = jnp.where(earlier, knot, end), jnp.where(earlier, j, cut)
        return end, cut


def knots_of(controller: PyTree) -> KnotController | None:
    """The `KnotController` among nested controllers, `None` without one."""
    while controller is not None and type(controller) is not KnotController:
        controller = getattr(controller, "controller", None)
    return controller


def delays_of(controller: PyTree) -> list[Scalar]:
    """What `KnotController.motion` refers to, in a tree like nested controllers."""
    found = knots_of(controller)
    return [] if found is None else [k.delay for k in found.knots if k.delay is not None]


def pinned(terms: Terms, t: Time, only_jumps: bool = False) -> Terms:
    """The terms with each signal replaced by what it is from `t` until its next sample."""

    def piece(signal: Signal):
        return signal if only_jumps and not signal.jumps else signal.piece(t)

    return with_signals(terms, piece)


class SignalFrozenStep(AbstractDelegating):
    """Every step with the polynomials that signals are within it.

    **Arguments:** `solver`, any diffrax solver; `jumps`, whether any signal has jumps; `fixed`,
    whether steps have a length of their own. They may then have samples inside, but no jumps.
    """

    solver: diffrax.AbstractSolver
    jumps: bool = eqx.field(static=True)
    fixed: bool = eqx.field(static=True)

    @property
    def interpolation_cls(self) -> InterpolationClass:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.solver.interpolation_cls

    def init(self, terms, t0, t1, y0, args) -> PyTree[Array]:
        return self.solver.init(terms, t0, t1, y0, args)

    def history(self, solver_state) -> History:
        return self.inner.history(solver_state)

    def step_record(self, before, after) -> PyTree[Array]:
        return self.inner.step_record(before, after)

    def replay(self, terms, t0, t1, y0, args, history, step_record, made_jump) -> ReplayResult:
        jump = self._jump(terms, t0, t1, made_jump)
        return self.inner.replay(
            self.terms_of(terms, t0, t1), t0, t1, y0, args, history, step_record, jump
        )

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump) -> StepResult[PyTree]:
        """One step with polynomials for signals."""
        jump = self._jump(terms, t0, t1, made_jump)
        y1, error, dense_info, state, result = self.solver.step(
            self.terms_of(terms, t0, t1), t0, t1, y0, args, solver_state, jump
        )
        bad = jnp.array(False)
        for signal in signals_of(terms):
            bad = bad | signal.step_exceeds_table(t0, t1, ends_at_samples=not self.fixed)
            if self.fixed and signal.jumps:
                margin = _AT_END * (t1 - t0)
                inside = signal.locate(t0 + margin).passed != signal.locate(t1 - margin).passed
                bad = bad | inside
        failed = RESULTS.where(bad, SIGNAL_NOT_FROZEN, result)
        result = RESULTS.where(diffrax.is_successful(result), failed, result)
        return y1, error, dense_info, state, result

    def terms_of(self, terms: Terms, t0: Time, t1: Time) -> Terms:
        """The terms of a step."""
        # Ends of fixed steps meet samples up to round-off, on either side of them.
        return pinned(terms, 0.5 * (t0 + t1) if self.fixed else t0, only_jumps=self.fixed)

    def _jump(self, terms, t0, t1, made_jump):
        """Whether the right-hand side jumps where a step starts."""
        if not self.jumps:
            return made_jump
        if not isinstance(_innermost(self.solver), AbstractDAESolver):
            return True  # Nothing is kept from step to step, so that evaluations can be counted.
        at = jnp.array(False)
        for signal in signals_of(terms):
            if signal.jumps:
                knot = signal.locate(0.5 * (t0 + t1)).knot
                at = at | (jnp.abs(knot - t0) <= (_AT_END * (t1 - t0) if self.fixed else 0.0))
        # To methods with a history, `True` is the small change of a projection.
        return at if made_jump is True else made_jump | at


def _innermost(solver):
    while isinstance(solver, diffrax.AbstractWrappedSolver):
        solver = solver.solver
    return solver
