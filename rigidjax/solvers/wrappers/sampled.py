"""Steps of runs with sampled controllers, which change their values at the start of steps."""

import diffrax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ...annotations import (
    Args,
    Flag,
    History,
    InterpolationClass,
    Jump,
    ReplayResult,
    Scalar,
    StepResult,
    Terms,
    Time,
    Y,
)
from ...formulations import AbstractFormulation
from ...formulations.binding import sample_controllers
from ...signals.controllers import sampled_sources
from ..dae.base import AbstractDAESolver
from ..step_results import RESULTS
from .after_step import AbstractDelegating, innermost_solver
from .knots import SIGNAL_NOT_FROZEN
from .probe_state import map_probe

# Distance of a step's ends from a sample, relative to the period, that is round-off.
_TOLERANCE = 1e-7


class SampledStep(AbstractDelegating):
    """A wrapper that evaluates sampled controllers at the start of the steps that start at samples.

    Values at the end of a step are those in use until then, also where a sample lies there.

    **Arguments:** `solver`, any diffrax solver; `model`, the formulation, with its sources;
    `start`, s, the time of the first samples.
    """

    solver: diffrax.AbstractSolver
    model: AbstractFormulation
    start: Scalar

    @property
    def interpolation_cls(self) -> InterpolationClass:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.solver.interpolation_cls

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args) -> PyTree[Array]:
        return self.solver.init(terms, t0, t1, self.sample(t0, y0)[0], args)

    def history(self, solver_state: PyTree[Array]) -> History:
        return self.inner.history(solver_state)

    def step_record(self, before: PyTree[Array], after: PyTree[Array]) -> PyTree[Array]:
        return self.inner.step_record(before, after)

    def replay(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: Y,
        args: Args,
        history: History,
        step_record: PyTree[Array],
        made_jump: Jump,
    ) -> ReplayResult:
        y0, is_sample = self.sample(t0, y0)
        jump = self._jump(made_jump, is_sample)
        return self.inner.replay(terms, t0, t1, y0, args, history, step_record, jump)

    def step(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: Y,
        args: Args,
        solver_state: PyTree[Array],
        made_jump: Jump,
    ) -> StepResult[PyTree]:
        """Evaluate controllers that sample at `t0`, and make a step."""
        solver_state = map_probe(
            solver_state, (self, t0), lambda parts, y: parts[0].sample(parts[1], y)[0], y0
        )
        y0, is_sample = self.sample(t0, y0)
        y1, error, dense_info, state, result = self.solver.step(
            terms, t0, t1, y0, args, solver_state, self._jump(made_jump, is_sample)
        )
        skipped = jnp.array(False)
        for _, source in sampled_sources(self.model.multibody.sources).values():
            first, last = ((t - self.start) / source.period for t in (t0, t1))
            skipped |= jnp.floor(first + _TOLERANCE) + 1 < last - _TOLERANCE
        failed = RESULTS.where(skipped, SIGNAL_NOT_FROZEN, result)
        result = RESULTS.where(diffrax.is_successful(result), failed, result)
        return y1, error, dense_info, state, result

    def _jump(self, made_jump: Jump, is_sample: Flag) -> Jump:
        """Return whether the right-hand side jumps at the start of a step."""
        if not isinstance(innermost_solver(self.solver), AbstractDAESolver):
            return True  # No evaluation is reused, so that evaluations can be counted.
        # For multistep methods a Python `True` is the small change of a projection.
        return is_sample if made_jump is True else made_jump | is_sample

    def sample(self, t: Time, y: Y) -> tuple[Y, Flag]:
        """Return the unknowns after the samples at `t`, and whether there are any."""
        y, due = update_at_samples(self.model, self.start, t, y)
        return y, due


def update_at_samples(model: AbstractFormulation, start: Scalar, t: Time, y: Y) -> tuple[Y, Flag]:
    """Return the unknowns in which controllers that sample at `t` have new values, and whether
    any does."""
    due = {}
    for name, (_, source) in sampled_sources(model.multibody.sources).items():
        count = (t - start) / source.period
        due[name] = jnp.abs(count - jnp.round(count)) <= _TOLERANCE
    y = sample_controllers(model, jnp.asarray(t), y, due)
    return y, jnp.any(jnp.stack(list(due.values())))


def sample_times(model: AbstractFormulation, t0: Time, counts: dict[str, int]) -> list[Array]:
    """Return the times of the samples of each controller between start and end of a run, s."""
    sources = sampled_sources(model.multibody.sources)
    return [
        jnp.asarray(t0) + sources[name][1].period * jnp.arange(1, count)
        for name, count in counts.items()
        if count > 1
    ]
