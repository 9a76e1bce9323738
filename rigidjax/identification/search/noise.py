"""Estimation of unknown noise from the residuals, alternating with the fit."""

from collections.abc import Mapping, Sequence

import equinox as eqx
import numpy as np

from ...formulations import AbstractFormulation
from ..data.measurements import Runs, rescale_weights
from ..noise.models import AbstractNoise
from .dependent_noise import MAX_ROUNDS, FittedNoise, alternate, fit_dependent_noise, white_noise
from .least_squares import Minimum, Search, minimise
from .losses import AbstractLoss, Squares
from .problem import FitProblem

# Third differences of white noise of unit variance have the variance 1 + 9 + 9 + 1.
_GAIN = 20.0
_FEWEST = 10


# Relative change of the standard deviations below which white noise has converged.
_CONVERGED = 1e-3
# Initial guess of the noise if there are priors, relative to the spread of the samples.
_SMALL = 1e-2
# Largest white noise, in multiples of the noise that successive samples show.
_LARGEST = 10.0
# Median of the absolute value of a standard normal variable.
_MEDIAN = 0.6744897501960817


def difference_noise(ts: np.ndarray, values: np.ndarray, weights: np.ndarray) -> float:
    """Return the standard deviation of white noise with the third differences of the samples.

    Motion adds to the differences, so that white noise cannot be much larger than this value. The
    result is infinite if there are few equidistant samples, and for values such as orientations,
    which have no channels.

    **Arguments:** `ts` (B, T); `values` (B, T, ...); `weights` (B, T, C), zero without a sample.
    **Source:** Gasser, Sroka, Jennen-Steinmetz, Biometrika 73 (1986) 625, with third differences.
    """
    flat = values.reshape(*values.shape[:2], -1)
    if flat.shape != weights.shape:
        return np.inf
    total, count = 0.0, 0
    for b in range(len(ts)):
        for c in range(flat.shape[2]):
            used = weights[b, :, c] > 0
            steps, third = np.diff(ts[b][used]), np.diff(flat[b, used, c], 3)
            if len(third) == 0:
                continue
            near = np.lib.stride_tricks.sliding_window_view(steps, 3)
            equidistant = np.ptp(near, axis=1) < 0.1 * near.mean(axis=1)
            total += float(np.sum(third[equidistant] ** 2))
            count += int(equidistant.sum())
    if count < _FEWEST or total == 0:
        return np.inf
    return float(np.sqrt(total / count / _GAIN))


def guess_noise(runs: Runs, priors: bool = False) -> Runs:
    """Return the runs with weights from the spread of the samples of sensors without given noise.

    **Arguments:** `priors`, whether priors are weighed against the noise. With a guess as large as
    the motion they would dominate the data; from a small guess the noise grows to the residuals.
    """
    if runs.noise_is_known:
        return runs
    factors = []
    for values, weights, known in zip(runs.values, runs.weights, runs.has_noise, strict=True):
        counts = np.asarray(weights).max(axis=-1) > 0
        samples = np.asarray(values)[counts].reshape(int(counts.sum()), -1)
        spread = float(np.sqrt(np.mean(np.var(samples, axis=0))))
        guess = (spread if spread > 0 else 1.0) * (_SMALL if priors else 1.0)
        factors.append(1.0 if known else guess)
    return rescale_weights(runs, factors)


def fit_with_noise(
    problem: FitProblem,
    runs: Runs,
    search: Search,
    num_parameters: int,
    models: Sequence[AbstractNoise | str | None],
    noise_is_usable: bool,
) -> FittedNoise:
    """Minimise, and estimate the unknown noise.

    **Arguments:** `models`, see `noise_models`; `noise_is_usable`, whether white noise is known as
    far as a fit needs it.
    """
    if any(model is not None for model in models):
        return fit_dependent_noise(problem, runs, search, models)
    if noise_is_usable:
        return FittedNoise(problem, runs, minimise(problem, search), {}, {}, [])
    return _fit_white(problem, runs, search, num_parameters)


def _fit_white(problem: FitProblem, runs: Runs, search: Search, num_parameters: int) -> FittedNoise:
    """Alternate between fitting and estimating the white noise of each sensor.

    The runs start with the weights of `guess_noise`. The variance of each sensor is that of its
    residuals, corrected for the number of parameters in proportion to its samples; with a robust
    loss it follows from the median of the absolute residuals. It is limited to a multiple of the
    noise that successive samples show, so that a model that does not fit is not taken for noise.

    **Source:** Bard, Nonlinear Parameter Estimation (1974), section 4-9, with the determinant of a
    diagonal covariance.
    """
    limits = [
        _LARGEST * difference_noise(*map(np.asarray, (runs.ts, values, weights)))
        for values, weights in zip(runs.values, runs.weights, strict=True)
    ]
    change = 0.0

    def update(problem: FitProblem, minimum: Minimum) -> FitProblem | str:
        nonlocal runs, change
        noise = _estimate_white(runs, minimum, search.loss, num_parameters, limits)
        change = float(np.abs(noise - 1).max())
        if not np.all(noise > 0):
            return "residuals of a sensor are zero"
        if change < _CONVERGED:
            return ""
        runs = rescale_weights(runs, noise.tolist())
        problem = eqx.tree_at(lambda p: p.runs.weights, problem, runs.weights)
        return problem.with_starts(minimum.leaves)

    problem, minimum, reason = alternate(problem, search, update)
    if reason is None:
        reason = f"it still changed by {100 * change:.2g} % after {MAX_ROUNDS} rounds"
    white = white_noise(runs, [not known for known in runs.has_noise])
    notes = [_describe_white(runs, white, reason, problem.model)]
    return FittedNoise(problem, runs, minimum, white, {}, notes)


def _estimate_white(
    runs: Runs, minimum: Minimum, loss: AbstractLoss, num_parameters: int, limits: Sequence[float]
) -> np.ndarray:
    """Return the standard deviation of each sensor's weighted residuals; 1 for right weights.

    **Arguments:** `limits` of the noise, in the sensors' units.
    """
    share = num_parameters / max(runs.num_samples, 1)
    noise = []
    by_sensor = runs.by_sensor(minimum.last.residuals)
    for (_, weights, residuals), known, limit in zip(
        by_sensor, runs.has_noise, limits, strict=True
    ):
        r = residuals[weights > 0]
        if known:
            noise.append(1.0)
        elif isinstance(loss, Squares):
            noise.append(np.sqrt(np.mean(r**2) / max(1 - share, 1e-9)))
        else:
            noise.append(np.median(np.abs(r)) / _MEDIAN / np.sqrt(max(1 - share, 1e-9)))
        if not known:
            noise[-1] = min(noise[-1], limit * weights.max())
    return np.asarray(noise)


def _describe_white(
    runs: Runs, noise: Mapping[str, float], reason: str, model: AbstractFormulation
) -> str:
    """Return a note on the estimated noise, with the reason if it did not converge."""
    units = {s.name: s.unit_in(model) for s in runs.sensors}
    estimates = ", ".join(f"{name} {value:.4g} {units[name]}" for name, value in noise.items())
    if not reason:
        return f"The noise was estimated from the residuals: {estimates}."
    return (
        f"The estimate of the sensors' noise did not converge (last: {estimates}): {reason}. Give "
        "the noise with `Measurements(noise=...)` if it is known."
    )
