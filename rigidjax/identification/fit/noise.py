"""Noise that was not given, estimated from the residuals sensor by sensor."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np

from ..data.measurements import Runs
from .least_squares import Minimum, Search, minimise
from .losses import AbstractLoss, Squares
from .problem import Problem

# The noise of each sensor is known when it changes by less than this part of itself.
_SETTLED = 1e-3
_MAX_ROUNDS = 20
# First guess of the noise where there are priors, as a part of what is measured.
_SMALL = 1e-2
# Median of the absolute value of a normal variable.
_MEDIAN = 0.6744897501960817


def first_guess(runs: Runs, priors: bool = False) -> Runs:
    """Weights from the spread of what each sensor measured: units become comparable.

    **Arguments:** `priors`, whether some are weighed against the noise. A guess of it that is as
    large as the motion would make them stronger than the data and lead away from these; from a
    small one the noise grows to what the residuals are.
    """
    factors = []
    for values, weights in zip(runs.values, runs.weights, strict=True):
        of_sample = np.asarray(weights).max(axis=-1) > 0
        samples = np.asarray(values)[of_sample].reshape(int(of_sample.sum()), -1)
        spread = float(np.sqrt(np.mean(np.var(samples, axis=0))))
        factors.append((spread if spread > 0 else 1.0) * (_SMALL if priors else 1.0))
    return scaled(runs, factors)


def scaled(runs: Runs, noise: Sequence[float]) -> Runs:
    """Runs whose weights are divided by the `noise` of each sensor."""
    weights = tuple(w / s for w, s in zip(runs.weights, noise, strict=True))
    return eqx.tree_at(lambda r: r.weights, runs, weights)


def alternate_fit_and_noise(
    problem: Problem, runs: Runs, search: Search, num_parameters: int
) -> tuple[Problem, Runs, Minimum, str]:
    r"""Fit and estimate the noise of each sensor in turn until it settles.

    The first weights are those of `first_guess`.

    Alternating least squares for the variance of each sensor, corrected for the parameters in
    proportion to the samples; with a robust loss from the median of the absolute residuals.

    **Returns:** problem and runs with the weights that were found, the minimum, and why the noise
    did not settle, `""` if it did.
    **Source:** Bard, Nonlinear Parameter Estimation (1974), section 4-9, with the determinant of a
    diagonal covariance.
    """
    minimum = minimise(problem, search)
    first = minimum.first
    again, noise = search.repeated(), np.ones(len(runs.sensors))
    for _ in range(_MAX_ROUNDS):
        noise = _noise_of(runs, minimum, search.loss, num_parameters)
        if not bool(minimum.converged):
            return problem, runs, minimum, "a fit on the way did not converge"
        if not np.all(noise > 0):
            return problem, runs, minimum, "residuals of a sensor are zero"
        if np.all(np.abs(noise - 1) < _SETTLED):
            return problem, runs, eqx.tree_at(lambda m: m.first, minimum, first), ""
        runs = scaled(runs, noise.tolist())
        problem = _weighted(problem, runs).starting(minimum.leaves)
        minimum = minimise(problem, again)
    change = float(np.abs(noise - 1).max())
    why = f"it still changed by {100 * change:.2g} % after {_MAX_ROUNDS} rounds"
    return problem, runs, minimum, why


def _weighted(problem, runs):
    return eqx.tree_at(lambda p: p.runs.weights, problem, runs.weights)


def _noise_of(runs: Runs, minimum: Minimum, loss: AbstractLoss, num_parameters: int) -> np.ndarray:
    """Size of the weighted residuals of each sensor, 1 if the weights are right."""
    share = num_parameters / max(runs.num_samples, 1)
    out = []
    for _, weights, residuals in runs.by_sensor(minimum.last.residuals):
        r = residuals[weights > 0]
        if isinstance(loss, Squares):
            out.append(np.sqrt(np.mean(r**2) / max(1 - share, 1e-9)))
        else:
            out.append(np.median(np.abs(r)) / _MEDIAN / np.sqrt(max(1 - share, 1e-9)))
    return np.asarray(out)


def noise_of_sensors(runs: Runs) -> dict[str, float]:
    """Noise of each sensor, from weights that are equal within a sensor."""
    return {
        sensor.name: 1.0 / float(np.asarray(w).max())
        for sensor, w in zip(runs.sensors, runs.weights, strict=True)
    }


def noise_note(runs: Runs, noise: dict[str, float], why: str, model: Any) -> str:
    """What was estimated, in words, and why it did not settle if that is so."""
    found = ", ".join(f"{s.name} {noise[s.name]:.4g} {s.unit_in(model)}" for s in runs.sensors)
    if not why:
        return f"The noise was estimated from the residuals: {found}."
    return (
        f"The noise of the sensors did not settle (last: {found}): {why}. With "
        "`Measurements(noise=...)` it need not be estimated."
    )
