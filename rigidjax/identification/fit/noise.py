"""Estimation of unknown noise from the residuals, sensor by sensor."""

from collections.abc import Sequence

import equinox as eqx
import numpy as np

from ...formulations import AbstractFormulation
from ..data.measurements import Runs
from .least_squares import Minimum, Search, minimise
from .losses import AbstractLoss, Squares
from .problem import FitProblem

# Relative change of the noise estimates below which they have converged.
_SETTLED = 1e-3
_MAX_ROUNDS = 20
# Initial guess of the noise if there are priors, relative to the spread of the samples.
_SMALL = 1e-2
# Median of the absolute value of a standard normal variable.
_MEDIAN = 0.6744897501960817


def guess_noise(runs: Runs, priors: bool = False) -> Runs:
    """Return the runs with weights from the spread of each sensor's samples.

    **Arguments:** `priors`, whether priors are weighed against the noise. With a guess as large as
    the motion they would dominate the data; from a small guess the noise grows to the residuals.
    """
    factors = []
    for values, weights in zip(runs.values, runs.weights, strict=True):
        counts = np.asarray(weights).max(axis=-1) > 0
        samples = np.asarray(values)[counts].reshape(int(counts.sum()), -1)
        spread = float(np.sqrt(np.mean(np.var(samples, axis=0))))
        factors.append((spread if spread > 0 else 1.0) * (_SMALL if priors else 1.0))
    return rescale_weights(runs, factors)


def rescale_weights(runs: Runs, noise: Sequence[float]) -> Runs:
    """Return the runs with weights divided by the `noise` of each sensor."""
    weights = tuple(w / s for w, s in zip(runs.weights, noise, strict=True))
    return eqx.tree_at(lambda r: r.weights, runs, weights)


def alternate_fit_and_noise(
    problem: FitProblem, runs: Runs, search: Search, num_parameters: int
) -> tuple[FitProblem, Runs, Minimum, str]:
    """Alternate between fitting and estimating the noise of each sensor until it converges.

    The runs start with the weights of `guess_noise`. The variance of each sensor is that of its
    residuals, corrected for the number of parameters in proportion to its samples; with a robust
    loss it follows from the median of the absolute residuals.

    **Returns:** problem and runs with the final weights, the minimum, and why the noise did not
    converge, `""` if it did.
    **Source:** Bard, Nonlinear Parameter Estimation (1974), section 4-9, with the determinant of a
    diagonal covariance.
    """
    minimum = minimise(problem, search)
    first = minimum.first
    next_search, noise = search.with_full_horizons(), np.ones(len(runs.sensors))
    for _ in range(_MAX_ROUNDS):
        noise = _estimate_noise(runs, minimum, search.loss, num_parameters)
        if not bool(minimum.converged):
            return problem, runs, minimum, "an intermediate fit did not converge"
        if not np.all(noise > 0):
            return problem, runs, minimum, "residuals of a sensor are zero"
        if np.all(np.abs(noise - 1) < _SETTLED):
            return problem, runs, eqx.tree_at(lambda m: m.first, minimum, first), ""
        runs = rescale_weights(runs, noise.tolist())
        problem = _replace_weights(problem, runs).with_starts(minimum.leaves)
        minimum = minimise(problem, next_search)
    change = float(np.abs(noise - 1).max())
    reason = f"it still changed by {100 * change:.2g} % after {_MAX_ROUNDS} rounds"
    return problem, runs, minimum, reason


def _replace_weights(problem: FitProblem, runs: Runs) -> FitProblem:
    return eqx.tree_at(lambda p: p.runs.weights, problem, runs.weights)


def _estimate_noise(
    runs: Runs, minimum: Minimum, loss: AbstractLoss, num_parameters: int
) -> np.ndarray:
    """Return the standard deviation of each sensor's weighted residuals; 1 for right weights."""
    share = num_parameters / max(runs.num_samples, 1)
    noise = []
    for _, weights, residuals in runs.by_sensor(minimum.last.residuals):
        r = residuals[weights > 0]
        if isinstance(loss, Squares):
            noise.append(np.sqrt(np.mean(r**2) / max(1 - share, 1e-9)))
        else:
            noise.append(np.median(np.abs(r)) / _MEDIAN / np.sqrt(max(1 - share, 1e-9)))
    return np.asarray(noise)


def noise_from_weights(runs: Runs) -> dict[str, float]:
    """Return the noise of each sensor, from weights that are equal within a sensor."""
    return {
        sensor.name: 1.0 / float(np.asarray(w).max())
        for sensor, w in zip(runs.sensors, runs.weights, strict=True)
    }


def describe_noise(
    runs: Runs, noise: dict[str, float], reason: str, model: AbstractFormulation
) -> str:
    """Return a note on the estimated noise, with the reason if it did not converge."""
    estimates = ", ".join(f"{s.name} {noise[s.name]:.4g} {s.unit_in(model)}" for s in runs.sensors)
    if not reason:
        return f"The noise was estimated from the residuals: {estimates}."
    return (
        f"The noise of the sensors did not settle (last: {estimates}): {reason}. With "
        "`Measurements(noise=...)` it is not estimated."
    )
