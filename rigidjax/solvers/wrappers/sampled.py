"""Steps of runs with sampled controllers, which change their values at the start of steps.

A run takes the first sample at its start. Every later sample belongs to the one step that contains
its time, a little later than the sample so that round-off in the ends of steps does not matter:
however often a run is interrupted, each sample is taken once.
"""

from typing import ClassVar

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Count, Flag, Scalar, Time, Y
from ...formulations import AbstractFormulation
from ...formulations.binding import sample_controllers
from ...formulations.charts import Unknowns
from ...signals.controllers import sampled_sources
from ..base.hooked import AbstractHook, End, Start, innermost_solver
from ..base.step_results import RESULTS
from ..dae.base import AbstractDAESolver
from .knots import SIGNAL_NOT_FROZEN
from .perturbed import map_probe

# Distance of a step's ends from a sample that is round-off: for steps of a fixed length relative to
# the period, for others, which end at samples, in units of the last place of the time.
_TOLERANCE = 1e-7
_ROUND_OFF = 16
# Distance of a saved time from a sample, relative to the period, that is round-off.
_SAVED = 1e-9


class SampledStart(AbstractHook):
    """A hook that evaluates sampled controllers at the start of the steps that start at samples.

    Values at the end of a step are those in use until then, also where a sample lies there.

    **Arguments:** `model`, the formulation, with its sources; `start`, s, the time of the first
    samples; `has_fixed_steps`, whether steps may end beside them.
    """

    model: AbstractFormulation
    start: Scalar
    has_fixed_steps: bool = eqx.field(static=True)
    keeps_stages: ClassVar[bool] = False
    changes_field: ClassVar[bool] = True

    @property
    def restarts(self) -> bool:
        return True

    def first(self, t0: Time, t1: Time, y0: Y) -> Y:
        return self.sample(t0, t1, y0)[0]

    def before(self, start: Start, flag: None) -> Start:
        """Evaluate the controllers that sample at the start of the step."""
        t0, t1, made_jump = start.t0, start.t1, start.made_jump
        (y, is_sample), memory = map_probe(
            start.memory, (self, t0, t1), lambda parts, y: parts[0].sample(*parts[1:], y), start.y
        )
        if not isinstance(innermost_solver(start.solver), AbstractDAESolver):
            jump = True  # No evaluation is reused, so that evaluations can be counted.
        else:
            # For multistep methods a Python `True` is the small change of a projection.
            jump = is_sample if made_jump is True else made_jump | is_sample
        return start._replace(y=y, memory=memory, made_jump=jump)

    def after(self, start: Start, end: End) -> tuple[End, None]:
        """Fail if a sample lies within the step."""
        if end.result is None:
            return end, None
        skipped = jnp.array(False)
        for _, source in sampled_sources(self.model.multibody.sources).values():
            first, last = ((t - self.start) / source.period for t in (start.t0, start.t1))
            skipped |= jnp.floor(first + _TOLERANCE) + 1 < last - _TOLERANCE
        failed = RESULTS.where(skipped, SIGNAL_NOT_FROZEN, end.result)
        result = RESULTS.where(diffrax.is_successful(end.result), failed, end.result)
        return end._replace(result=result), None

    def sample(self, t0: Time, t1: Time, y: Y) -> tuple[Y, Flag]:
        """Return the unknowns after the samples of a step, and whether there are any."""
        due = {}
        for name, (_, source) in sampled_sources(self.model.multibody.sources).items():
            index, time = nearest_sample(t0, self.start, source.period)
            shift = _ROUND_OFF * jnp.finfo(jnp.result_type(time)).eps * jnp.abs(time)
            if self.has_fixed_steps:
                shift = _TOLERANCE * source.period
            due[name] = (index > 0) & (t0 <= time + shift) & (time + shift < t1)
        y = sample_controllers(self.model, jnp.asarray(t0), y, due)
        return y, jnp.any(jnp.stack(list(due.values())))


def take_first_samples(model: AbstractFormulation, t0: Time, y: Unknowns) -> Unknowns:
    """Return the unknowns at the start of a run after the first samples of its controllers."""
    due = dict.fromkeys(sampled_sources(model.multibody.sources), True)
    return sample_controllers(model, jnp.asarray(t0), y, due) if due else y


def nearest_sample(t: Time, start: Time, period: float) -> tuple[Count, Scalar]:
    """Return the index and the time, s, of the sample next to a time."""
    index = jnp.maximum(jnp.round((t - start) / period), 0.0)
    return index, jnp.asarray(start + period * index)


def samples_at(model: AbstractFormulation, start: Time, t: Time) -> dict[str, Flag]:
    """Return whether a saved time is that of a later sample than the first, for each input."""
    due = {}
    for name, (_, source) in sampled_sources(model.multibody.sources).items():
        index, time = nearest_sample(t, start, source.period)
        due[name] = (index > 0) & (jnp.abs(t - time) <= _saved_tolerance(time, source.period))
    return due


def before_samples(
    model: AbstractFormulation, start: Time, ts: Float[Array, " T"], has_fixed_steps: bool
) -> Float[Array, " T"]:
    """Return saved times, those of samples so little earlier that they show the state before."""
    for _, source in sampled_sources(model.multibody.sources).values():
        index, time = nearest_sample(ts, start, source.period)
        tolerance = _saved_tolerance(time, source.period)
        back = tolerance if has_fixed_steps else _ROUND_OFF * jnp.finfo(ts.dtype).eps * jnp.abs(ts)
        at_sample = (index > 0) & (jnp.abs(ts - time) <= tolerance)
        ts = jnp.where(at_sample, jnp.minimum(ts, time - back), ts)
    return ts


def _saved_tolerance(time: Scalar, period: float) -> Scalar:
    eps = jnp.finfo(jnp.result_type(time)).eps
    return _SAVED * period + 2 * _ROUND_OFF * eps * jnp.abs(time)


def sample_times(model: AbstractFormulation, t0: Time, counts: dict[str, int]) -> list[Array]:
    """Return the times of the samples of each controller between start and end of a run, s."""
    sources = sampled_sources(model.multibody.sources)
    return [
        jnp.asarray(t0) + sources[name][1].period * jnp.arange(1, count)
        for name, count in counts.items()
        if count > 1
    ]
