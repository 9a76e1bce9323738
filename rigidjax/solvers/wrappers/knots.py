r"""Steps that end where a `Signal` is not smooth.

`KnotController` cuts the steps of another controller at the samples of signals, and
`FrozenSignals` replaces each signal by its polynomial within the step. Every step therefore has
a smooth right-hand side with the correct one-sided values at jumps, and the table of a signal is
searched once per step, by bisection, also if several laws are entries of it.

Derivatives with respect to the delay of a signal are exact because the ends of steps move with the
delay: a later jump changes the solution by the difference of the rates on both sides, which is the
effect of moving the end of one step and the start of the next one. Other ends of steps keep their
distance from the sample before.
"""

from collections.abc import Callable
from typing import ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ...annotations import (
    Args,
    Count,
    Jump,
    Number,
    Scalar,
    StepSizeResult,
    T,
    Terms,
    Time,
    Vector,
    Y,
)
from ...signals.shared_tables import freeze_signals, table_signals
from ...signals.signal import SignalClock, signals_of, with_signals
from ..base.hooked import AbstractHook, End, Start, innermost_solver
from ..base.step_results import RESULTS
from ..dae.base import AbstractDAESolver

# Distance, in units of round-off, of coinciding samples of signals with different delays, so that
# each sample is the end of a step.
_DELAY_SPACING = 4
# The error of a step that was cut to a smaller fraction does not determine the next step.
_SHORT_FRACTION = 0.5
# Distance between a sample and the end of a fixed step, relative to its length, that is round-off.
_END_TOLERANCE = 1e-6

# Result of `FrozenSignals` for a run that leaves the table of a signal or steps across a jump.
# diffrax has no result with this meaning, and none of its solvers returns this one.
SIGNAL_NOT_FROZEN = RESULTS.conlim


def separate_delays(model: T, t0: Time, t1: Time) -> T:
    """Return the model with delays and clocks that differ by more than round-off.

    Two simultaneous jumps that move with different parameters are then the ends of two steps.
    """
    jumping = [signal for signal in signals_of(model) if signal.jumps]
    count = sum(len(s.clocks) if s.clocks else s.delay is not None for s in jumping)
    if count < 2:
        return model
    counter = iter(range(count))
    ulp = jnp.finfo(jnp.result_type(t0)).eps * jnp.maximum(jnp.abs(t0), jnp.abs(t1))

    def shift_clock(clock):
        rate = 1.0 if clock.rate is None else clock.rate
        shift = clock.shift - _DELAY_SPACING * next(counter) * ulp * rate
        return SignalClock(clock.rate, shift)

    def shift_delay(signal):
        if signal.jumps and signal.clocks:
            return signal.replace(clocks=tuple(map(shift_clock, signal.clocks)))
        if signal.delay is None or not signal.jumps:
            return signal
        delay = signal.delay + _DELAY_SPACING * next(counter) * ulp
        return eqx.tree_at(lambda s: s.delay, signal, delay)

    return with_signals(model, shift_delay)


class Knots(eqx.Module):
    """Times at which steps end, `period * ts + delay`.

    **Arguments:** `ts`, increasing; `delay`, s, and `period`, a scalar of either sign, `None` for 0
    and 1.
    """

    ts: Float[Array, " K"]
    delay: Scalar | None
    period: Scalar | None = None

    @property
    def times(self) -> Float[Array, " K"]:
        """Times of all samples, (K,) s, in any order."""
        return self._time(self.ts)

    @property
    def parameters(self) -> list[Scalar]:
        """Parameters that move the times."""
        return [value for value in (self.delay, self.period) if value is not None]

    def time_of(self, index: Count) -> Scalar:
        """Return the time of a sample, s, infinite after the last sample."""
        t = jnp.where(index > len(self.ts) - 1, jnp.inf, self._sample(index))
        return (
            self._time(t)
            if self.period is None
            else jnp.where(jnp.isfinite(t), self._time(t), jnp.inf)
        )

    def derivatives(self, index: Count) -> Vector:
        """Return the derivatives of the time of a sample with respect to the parameters."""
        by_delay = [] if self.delay is None else [jnp.ones_like(self.delay)]
        by_period = [] if self.period is None else [self._sample(index)]
        return jnp.stack([*by_delay, *by_period])

    def _sample(self, index: Count) -> Scalar:
        last = len(self.ts) - 1
        index = jnp.clip(index, 0, last) if self.period is not None else jnp.minimum(index, last)
        if self.period is not None:
            index = jnp.where(self.period < 0, last - index, index)
        return jax.lax.stop_gradient(self.ts)[index]

    def _time(self, t: Array) -> Array:
        t = t if self.period is None else self.period * t
        return t if self.delay is None else t + self.delay


def knots_of_signals(model: PyTree) -> tuple[Knots, ...]:
    """Return the times of a run at which the calls of signals reach samples."""
    knots = []
    for signal in table_signals(model):
        if signal.call_times == "run":
            knots.append(Knots(signal.ts, signal.delay))
        for clock in signal.clocks:
            delay = (0.0 if signal.delay is None else signal.delay) - clock.shift
            if clock.rate is None:
                knots.append(Knots(signal.ts, delay))
                continue
            # A clock that stands still never reaches a sample.
            moves = clock.rate != 0
            period = jnp.where(moves, 1.0 / jnp.where(moves, clock.rate, 1.0), 0.0)
            knots.append(Knots(signal.ts, jnp.where(moves, period * delay, jnp.inf), period))
    return tuple(knots)


class KnotController(diffrax.AbstractAdaptiveStepSizeController):
    """A controller that cuts the steps of another one at the samples of signals.

    The step after a cut step has the length that was planned for the cut one. The state consists of
    the state of the other controller, the number of passed samples of each signal, the planned
    length of the step, and the index of the signal at which it is cut (-1 for none).

    **Arguments:** `controller`, an adaptive controller; `knots`, the sample times of each signal.
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

    def wrap(self, direction: int | Array | np.ndarray) -> "KnotController":
        """Wrap the other controller; knots are for runs forward in time, as in `simulate`."""
        return eqx.tree_at(lambda c: c.controller, self, self.controller.wrap(direction))

    def init(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: Y,
        dt0: Time | None,
        args: Args,
        func: Callable[..., Y],
        error_order: Number | None,
    ) -> tuple[Time, PyTree]:
        """Return the first step of the other controller, cut at the next sample."""
        end, inner = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        passed = tuple(jnp.sum(k.times <= t0) for k in self.knots)
        length = jax.lax.stop_gradient(end - t0)
        end, cut = self.cut_step(t0, length, passed)
        return end, (inner, passed, length, cut)

    def adapt_step_size(
        self,
        t0: Time,
        t1: Time,
        y0: Y,
        y1_candidate: Y,
        args: Args,
        y_error: Y | None,
        error_order: Number,
        controller_state: PyTree[Array],
    ) -> StepSizeResult[PyTree]:
        """Choose the step by the other controller and cut it at the next sample."""
        inner, passed, planned, cut = controller_state
        keep, start, end, jump, new, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, inner
        )
        short = keep & (cut >= 0) & (t1 - t0 < _SHORT_FRACTION * planned)
        inner = jax.tree.map(lambda a, b: jnp.where(short, a, b), inner, new)
        length = jax.lax.stop_gradient(jnp.where(short, planned, end - start))
        passed = tuple(
            i + (k.time_of(i) <= start).astype(i.dtype)
            for k, i in zip(self.knots, passed, strict=True)
        )
        end, cut = self.cut_step(start, length, passed)
        return keep, start, end, jump, (inner, passed, length, cut), result

    def boundary_motion(self, controller_state: PyTree, before: Vector) -> Vector:
        """Return the derivatives of the planned end of a step from those of its start.

        **Arguments:** `before`, derivatives of the start, the last entries with respect to the
        parameters of the knots.
        """
        _, passed, _, cut = controller_state
        after = jnp.where(cut >= 0, jnp.zeros_like(before), before)
        first = before.shape[0] - sum(len(k.parameters) for k in self.knots)
        for j, (knots, i) in enumerate(zip(self.knots, passed, strict=True)):
            if knots.parameters:
                last = first + len(knots.parameters)
                of_cut = jnp.zeros_like(before).at[first:last].set(knots.derivatives(i))
                after, first = jnp.where(cut == j, of_cut, after), last
        return after

    def cut_step(self, start: Time, length: Time, passed: tuple[Count, ...]):
        """Return the end of a step of this length, and the index of the signal that cuts it."""
        end, cut = start + length, jnp.array(-1)
        for j, (knots, i) in enumerate(zip(self.knots, passed, strict=True)):
            knot = knots.time_of(i)
            earlier = knot < end
            end, cut = jnp.where(earlier, knot, end), jnp.where(earlier, j, cut)
        return end, cut


def find_knot_controller(controller: PyTree) -> KnotController | None:
    """Return the `KnotController` among nested controllers, `None` if there is none."""
    while controller is not None and type(controller) is not KnotController:
        controller = getattr(controller, "controller", None)
    return controller


def knot_parameters(controller: PyTree) -> list[Scalar]:
    """Return the parameters of knots from a tree with the structure of nested controllers."""
    knot_controller = find_knot_controller(controller)
    return (
        [] if knot_controller is None else [p for k in knot_controller.knots for p in k.parameters]
    )


class FrozenSignals(AbstractHook):
    """A hook that replaces signals by their polynomials within each step.

    **Arguments:** `jumps`, whether any signal has jumps; `fixed`, whether steps are fixed, so that
    they may contain samples, but no jumps.
    """

    jumps: bool = eqx.field(static=True)
    fixed: bool = eqx.field(static=True)
    changes_field: ClassVar[bool] = True

    @property
    def restarts(self) -> bool:
        return self.jumps

    def before(self, start: Start, flag: None) -> Start:
        """Return the start with polynomials instead of signals."""
        terms, t0, t1 = start.terms, start.t0, start.t1
        jump = self._jumps_at_start(start.solver, terms, t0, t1, start.made_jump)
        return start._replace(terms=self.frozen_terms(terms, t0, t1), made_jump=jump)

    def after(self, start: Start, end: End) -> tuple[End, None]:
        """Fail if the step leaves the table of a signal or crosses a jump."""
        if end.result is None:
            return end, None
        t0, t1, bad = start.t0, start.t1, jnp.array(False)
        for signal in table_signals(start.terms):
            bad = bad | signal.step_exceeds_table(t0, t1, ends_at_samples=not self.fixed)
            if self.fixed and signal.jumps:
                margin = _END_TOLERANCE * (t1 - t0)
                bad = bad | signal.jumps_between(t0 + margin, t1 - margin)
        failed = RESULTS.where(bad, SIGNAL_NOT_FROZEN, end.result)
        result = RESULTS.where(diffrax.is_successful(end.result), failed, end.result)
        return end._replace(result=result), None

    def frozen_terms(self, terms: Terms, t0: Time, t1: Time) -> Terms:
        """Return the terms of a step with signals replaced by polynomials."""
        if not self.fixed:
            return freeze_signals(terms, t0, end=t1)
        # The ends of fixed steps differ from samples by round-off in either direction.
        return freeze_signals(terms, 0.5 * (t0 + t1), lambda signal: signal.jumps)

    def _jumps_at_start(
        self, solver: diffrax.AbstractSolver, terms: Terms, t0: Time, t1: Time, made_jump: Jump
    ):
        """Return whether the right-hand side jumps at the start of a step."""
        if not self.jumps:
            return made_jump
        if not isinstance(innermost_solver(solver), AbstractDAESolver):
            return True  # No evaluation is reused, so that evaluations can be counted.
        jumps = jnp.array(False)
        for signal in table_signals(terms):
            if signal.clocks and signal.jumps:
                margin = _END_TOLERANCE * (t1 - t0)
                jumps = jumps | signal.jumps_between(t0 - margin, t0 + margin)
            elif signal.jumps:
                knot = signal.locate(0.5 * (t0 + t1)).knot
                jumps = jumps | (
                    jnp.abs(knot - t0) <= (_END_TOLERANCE * (t1 - t0) if self.fixed else 0.0)
                )
        # For multistep methods a Python `True` is the small change of a projection.
        return jumps if made_jump is True else made_jump | jumps
