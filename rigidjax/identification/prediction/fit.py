"""Prediction-error fits of one set of runs."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ...persistent_jit import persistent_jit
from ..data.measurements import Runs
from ..fit.least_squares import Minimum
from ..fit.problem import FitProblem
from .kalman import FilteredRun
from .levels import NoiseLevels
from .process_noise import initial_intensity
from .rounds import (
    CONVERGED,
    MAX_ROUNDS,
    PredictionProblem,
    RoundState,
    advance_round,
    covariance_from_levels,
    filter_runs,
    start_levels,
)

# Change of the innovations when the steps are halved, in their standard deviations, below which
# the integration is accurate; and the largest number of halvings.
_ACCURATE, _HALVINGS = 1e-3, 12


def with_step(problem: PredictionProblem, step: Any) -> PredictionProblem:
    """Return the problem with steps of at most `step` s."""
    return eqx.tree_at(lambda p: p.fit.predictor.motion.step, problem, step)


filter_compiled = persistent_jit(filter_runs)
_start_levels = persistent_jit(start_levels)
level_covariance = persistent_jit(covariance_from_levels)
_advance_round = persistent_jit(advance_round)


def refine_step(
    problem: PredictionProblem, shared: Any, per_run: Any, levels: NoiseLevels
) -> tuple[PredictionProblem, bool]:
    """Return the problem with steps so short that halving them changes no innovation by more than
    a thousandth of its standard deviation, and whether they were long enough before."""
    before = filter_compiled(problem, shared, per_run, levels)
    step, change = problem.fit.predictor.motion.step, np.inf
    for number in range(_HALVINGS):
        finer = with_step(problem, 0.5 * step)
        after = filter_compiled(finer, shared, per_run, levels)
        change = np.abs(_whiten(after) - _whiten(before)).max()
        if change < _ACCURATE:
            return problem, number == 0
        problem, before, step = finer, after, 0.5 * step
    raise ValueError(
        f"Steps of {float(step):.2g} s are too long: halving them changes the innovations by "
        f"{change:.2g} standard deviations. Start from other values, or check the model."
    )


def _whiten(filtered: FilteredRun) -> np.ndarray:
    return np.einsum(
        "btij,btj->bti",
        np.asarray(filtered.gains.whitening),
        np.asarray(filtered.innovations),
    )


def fit_by_prediction(
    problem: PredictionProblem, runs: Runs
) -> tuple[PredictionProblem, FitProblem, Minimum, NoiseLevels, list[str]]:
    """Alternate between gains, noise levels and estimates until they converge.

    **Returns:** the problem with its final steps; the least-squares problem of the last round; its
    minimum; the noise levels; notes.
    """
    shared, per_run = problem.fit.start_coordinates()
    dtype = runs.ts.dtype
    given = NoiseLevels(initial_intensity(problem.noise, dtype), problem.sensor_noise)
    levels = _start_levels(problem, shared, per_run, given)
    is_fixed = problem.fit.simulation.dt is not None
    if not is_fixed:
        problem, _ = refine_step(problem, shared, per_run, levels)
    infinite = jnp.asarray(jnp.inf, dtype)
    state = RoundState(shared, per_run, levels, infinite, jnp.array(0))
    state, minimum, fit = _advance_round(problem, state)
    first = minimum.first
    while bool(minimum.converged) and int(state.number) < MAX_ROUNDS:
        if float(state.change) < CONVERGED:
            was_accurate = True
            if not is_fixed:
                problem, was_accurate = refine_step(
                    problem, state.shared, state.per_run, state.levels
                )
            if was_accurate:
                break
        state, minimum, fit = _advance_round(problem, state)
    minimum = eqx.tree_at(lambda m: m.first, minimum, first)
    notes = []
    if not float(state.change) < CONVERGED:
        minimum = eqx.tree_at(lambda m: m.converged, minimum, jnp.array(False))
        notes.append(
            f"In the last of {int(state.number)} rounds estimates and noise levels changed by "
            f"{float(state.change):.2g} (standard errors, relative change of levels)."
        )
    return problem, fit, minimum, state.levels, notes
