"""Prediction-error fits of many data sets at once."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from ...native import map_with_lane_compaction
from ..data.measurements import Runs
from ..search.batch_search import Summarise, replace_data
from ..search.least_squares import Search
from ..search.problem import FitProblem
from .fit import make_prediction_problem, refine_step
from .process_noise import initial_intensity
from .rounds import (
    CONVERGED,
    MAX_ROUNDS,
    NoiseLevels,
    PredictionProblem,
    RoundState,
    advance_round,
    covariance_from_levels,
    filter_runs,
    start_levels,
)


class _SetState(NamedTuple):
    """Rounds of one data set, and the summary of the last one."""

    rounds: RoundState
    summary: dict[str, Any]


class SetFit(eqx.Module):
    """Prediction-error fits of data sets that share a problem.

    `problem` of the first set; `summarise`, a function of a minimum. A data set is a pair of start
    values of the shared parameters and `RunData`.
    """

    problem: PredictionProblem
    summarise: Summarise = eqx.field(static=True)

    def fit_one(self, set_data: Any) -> dict[str, Array]:
        """Fit one data set."""
        start = self._start(set_data, self._empty_summary(set_data))
        state = jax.lax.while_loop(
            self._continues, lambda state: self._advance(set_data, state), start
        )
        return self._finish(set_data, state)

    def fit_all(self, stacked: Any, size: int) -> dict[str, Array]:
        """Fit data sets with a leading axis, `size` of them at a time."""
        # Outside the mapped start, which is traced several times: a round takes long to trace.
        summary = self._empty_summary(jax.tree.map(lambda x: x[0], stacked))
        start = lambda set_data: self._start(set_data, summary)  # noqa: E731
        return map_with_lane_compaction(
            stacked,
            start,
            self._continues,
            lambda set_data, state, _: self._advance(set_data, state),
            self._finish,
            size,
        )

    def fit_sets(self, stacked: Any, size: int) -> dict[str, np.ndarray]:
        """Fit data sets with a leading axis, `size` of them at a time, compiled."""
        return jax.tree.map(np.asarray, eqx.filter_jit(self.fit_all)(stacked, size))

    def process_noise(self, outputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return standard deviations (N,) of the process noise of all data sets by name."""
        intensity, sources = outputs["process_noise"], enumerate(self.problem.noise.sources)
        return {source.label: intensity[:, k] / source.factor for k, source in sources}

    def _problem_of(self, set_data: Any) -> PredictionProblem:
        fit = replace_data(self.problem.fit, set_data)
        return eqx.tree_at(lambda p: p.fit, self.problem, fit)

    def _start(self, set_data: Any, summary: dict[str, Array]) -> _SetState:
        problem = self._problem_of(set_data)
        shared, per_run = problem.fit.start_coordinates()
        levels = start_levels(problem, shared, per_run, given_levels(problem))
        infinite = jnp.full((), jnp.inf, levels.process.dtype)
        return _SetState(RoundState(shared, per_run, levels, infinite, jnp.array(0)), summary)

    def _empty_summary(self, set_data: Any) -> dict[str, Array]:
        """Return zeros of the shapes of a summary, the same for all data sets."""
        start = self._start(set_data, {})
        minimum = eqx.filter_eval_shape(advance_round, self._problem_of(set_data), start.rounds)[1]
        summary = jax.eval_shape(self.summarise, minimum)
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), summary)

    def _continues(self, state: _SetState) -> Bool[Array, ""]:
        # Rounds that are not finite end at once.
        change, number = state.rounds.change, state.rounds.number
        return (number == 0) | ((change >= CONVERGED) & (number < MAX_ROUNDS))

    def _advance(self, set_data: Any, state: _SetState) -> _SetState:
        rounds, minimum, _ = advance_round(self._problem_of(set_data), state.rounds)
        rounds = rounds._replace(change=jnp.where(minimum.converged, rounds.change, jnp.nan))
        summary = self.summarise(minimum)
        summary["iterations"] = summary["iterations"] + state.summary["iterations"]
        return _SetState(rounds, summary)

    def _finish(self, set_data: Any, state: _SetState) -> dict[str, Any]:
        rounds, summary = state.rounds, dict(state.summary)
        settled = rounds.change < CONVERGED
        problem = self._problem_of(set_data)
        if any(problem.is_estimated):
            at = rounds.shared, rounds.per_run, rounds.levels
            added = covariance_from_levels(problem, *at, filter_runs(problem, *at))
            chains = jax.vmap(
                lambda own, run: problem.fit.component_derivatives(rounds.shared, own, run)
            )
            shared_chain, own_chains = chains(rounds.per_run, problem.fit.runs)
            chain = jax.scipy.linalg.block_diag(shared_chain[0], *own_chains)
            summary["covariance"] = summary["covariance"] + chain @ added @ chain.T
        return {
            **summary,
            "converged": summary["converged"] & settled,
            "process_noise": rounds.levels.process,
        }


def given_levels(problem: PredictionProblem) -> NoiseLevels:
    """Return the noise levels that are given, NaN for those to be estimated."""
    dtype = problem.fit.runs.ts.dtype
    count = len(problem.fit.runs.weights)
    return NoiseLevels(initial_intensity(problem.noise, dtype), jnp.ones(count, dtype))


def make_set_fit(
    problem: FitProblem,
    runs: Runs,
    search: Search,
    process_noise: Mapping[str, Any],
    summarise: Summarise,
) -> SetFit:
    """Return the fits of data sets, with steps that are accurate at the start of the first set.

    **Arguments:** `problem` and `runs` of the first set; `summarise`, a function of a minimum;
    others as in `make_prediction_problem`.
    """
    predicted = make_prediction_problem(problem, runs, search, process_noise)
    if problem.simulation.dt is None:
        shared, per_run = problem.start_coordinates()
        given = given_levels(predicted)
        levels = start_levels(predicted, shared, per_run, given)
        predicted, _ = refine_step(predicted, shared, per_run, levels)
    return SetFit(predicted, summarise)
