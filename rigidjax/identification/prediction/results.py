"""Assembly of a `Fit` from a prediction-error problem at its optimum."""

import dataclasses
from typing import Any

import jax
import numpy as np

from ...persistent_jit import persistent_jit
from ...state import State
from ..component_table import ComponentTable
from ..data.measurements import Runs, rescale_weights
from ..fit.dependent_noise import FittedNoise
from ..fit.from_minimum import make_fit
from ..fit.least_squares import Minimum
from ..fit.options import check_start
from ..fit.result import Fit
from .fit import filter_compiled, fit_by_prediction, level_covariance
from .kalman import FilteredRun, smooth_run
from .predictor import start_of_run
from .rounds import PredictionProblem


def make_prediction_fit(
    problem: PredictionProblem,
    runs: Runs,
    table: ComponentTable,
    notes: list[str],
    covariance: Any = None,
) -> Fit:
    """Return the `Fit` of a prediction-error problem.

    **Arguments:** as of `make_fit`.

    **Errors:** `IdentificationError` and `ValueError` for runs that fail at the start values and
    parameters without effect.
    """
    given = runs.has_noise
    problem, fit_problem, minimum, levels, new_notes = fit_by_prediction(problem, runs)
    runs = rescale_weights(runs, np.asarray(levels.sensors).tolist())
    check_start(fit_problem, runs, table, minimum.first)
    triples = zip(runs.sensors, np.asarray(levels.sensors).tolist(), given, strict=True)
    white = {sensor.name: noise for sensor, noise, known in triples if not known}
    # Their noise is that of the filter, of which the weighted innovations have variance one.
    runs = dataclasses.replace(runs, has_noise=(True,) * len(given))
    if any(problem.noise.is_estimated):
        estimates = problem.noise.describe(np.asarray(levels.process))
        new_notes.append(
            f"The process noise was estimated: {estimates}. The standard deviations of the "
            "parameters include its uncertainty."
        )
    added = None
    if any(problem.is_estimated):
        added = np.asarray(level_covariance(problem, minimum.shared, minimum.per_run, levels))
    fitted = FittedNoise(fit_problem, runs, minimum, white, {}, [], added)
    notes = [*notes, *new_notes]
    fit = make_fit(fit_problem, runs, table, minimum, notes, problem.search, fitted, covariance)
    filtered = filter_compiled(problem, minimum.shared, minimum.per_run, levels)
    return dataclasses.replace(
        fit,
        noise_is_known=all(given),
        residuals=_innovations_by_sensor(filtered, runs),
        process_noise=problem.noise.values(np.asarray(levels.process)),
        smoothed_states=_smoothed_states(problem, minimum, filtered, runs),
        log_likelihood=_log_likelihood(filtered, runs),
    )


def _log_likelihood(filtered: FilteredRun, runs: Runs) -> float:
    """Return the logarithm of the likelihood of all samples, in the units of their sensors."""
    weights = np.concatenate([np.asarray(w).ravel() for w in runs.weights])
    used = weights[weights > 0]
    constant = np.sum(np.log(used)) - 0.5 * used.size * np.log(2 * np.pi)
    return float(np.sum(np.asarray(filtered.log_likelihood)) + constant)


def _innovations_by_sensor(filtered: FilteredRun, runs: Runs) -> tuple[dict[str, np.ndarray], ...]:
    """Return the innovations of each run by sensor, in its unit; NaN where a sample is masked."""
    innovations, begin = [{} for _ in runs.lengths], 0
    scaled = np.asarray(filtered.innovations)
    for sensor, weights in zip(runs.sensors, map(np.asarray, runs.weights), strict=True):
        end = begin + weights.shape[-1]
        used = weights > 0
        plain = np.where(used, scaled[..., begin:end] / np.where(used, weights, 1.0), np.nan)
        for b, length in enumerate(runs.lengths):
            innovations[b][sensor.name] = plain[b, :length]
        begin = end
    return tuple(innovations)


@persistent_jit
def _smooth_runs(
    problem: PredictionProblem, shared: Any, per_run: Any, filtered: FilteredRun
) -> State:
    fit, motion = problem.fit, problem.fit.predictor.motion

    def smooth_one(per_run, run, filtered):
        experiment = fit.experiment(fit.run_leaves(shared, per_run, run), run)
        model, _, _ = start_of_run(experiment, run.ts[0])
        changes, _ = smooth_run(filtered)

        def state_at(t, y, xi):
            return model.decode(t, motion.shift(model, t, y, xi))

        return jax.vmap(state_at)(run.ts, filtered.unknowns, changes)

    return jax.vmap(smooth_one)(per_run, fit.runs, filtered)


def _smoothed_states(
    problem: PredictionProblem, minimum: Minimum, filtered: FilteredRun, runs: Runs
) -> tuple[State, ...]:
    """Return the smoothed states of every run at its samples."""
    states = _smooth_runs(problem, minimum.shared, minimum.per_run, filtered)
    return tuple(
        jax.tree.map(lambda x, b=b, n=n: np.asarray(x[b, :n]), states)
        for b, n in enumerate(runs.lengths)
    )
