"""Coverage of intervals that allow for dependence, over linearised fits of the studies.

The linearisation at the truth has residuals and estimates of any errors without a fit.
"""

import functools

import _studies as studies
import numpy as np
import pytest
import scipy.signal

import rigidjax as rj
from rigidjax.identification.statistics.covariance import Spectrum
from rigidjax.identification.statistics.estimate_covariance import (
    model_covariance,
    sandwich_covariance,
)

COUNT = 300
# One case for each kind of noise.
DEFAULT = ("free_body-first order", "double_pendulum-resonance", "double_pendulum-walk")


def filter_noise(rng, count, channels, *past):
    noise = rng.normal(size=(count + 500, channels))
    return scipy.signal.lfilter([1.0], [1.0, *past], noise, axis=0)[500:]


def draw_walk(rng, count, channels):
    steps = rng.normal(size=(count, channels)) * 1.5 / np.sqrt(count)
    return np.cumsum(steps, axis=0) + rng.normal(size=(count, channels))


NOISE = {
    "white": lambda rng, *shape: rng.normal(size=shape),
    "first order": lambda rng, *shape: filter_noise(rng, *shape, -0.9),
    "resonance": lambda rng, *shape: filter_noise(rng, *shape, -1.94 * np.cos(0.3), 0.97**2),
    "walk": draw_walk,
}
# Studies, noise, and bounds of the coverage of all parameters by the sandwich.
CASES = [
    ("double_pendulum", "white", (0.90, 0.98)),
    ("double_pendulum", "first order", (0.90, 0.98)),
    ("double_pendulum", "resonance", (0.92, 1.0)),
    ("double_pendulum", "walk", (0.90, 1.0)),
    ("free_body", "white", (0.90, 0.98)),
    ("free_body", "first order", (0.89, 0.99)),
    ("four_bar", "white", (0.90, 0.98)),
    ("four_bar", "first order", (0.87, 0.98)),
]


@functools.cache
def study_jacobian(name):
    """Derivatives of the weighted readings by the parameters, (T, C, k)."""
    study = getattr(studies, name)()
    plan = rj.sensitivity(
        study.model, study.state0, study.ts[-1], study.parameters, ts=study.ts,
        sensors=tuple(study.noise),
    )  # fmt: skip
    parts = [
        np.asarray(plan.jacobian[s.name]).reshape(len(study.ts), -1, len(plan.labels)) / noise
        for s, noise in study.noise.items()
    ]
    return np.concatenate(parts, axis=1)


@pytest.mark.exhaustive(but=DEFAULT)
@pytest.mark.parametrize(("name", "noise", "bounds"), CASES, ids=[f"{x}-{y}" for x, y, _ in CASES])
def test_intervals_under_dependence_cover_the_truth(name, noise, bounds):
    J, rng = study_jacobian(name), np.random.default_rng(3)
    count, channels, size = J.shape
    spectrum = Spectrum(J.reshape(-1, size), 1e-12, np.zeros(size), 1.0)
    Q = J @ spectrum.basis
    model = model_covariance(spectrum, np.inf)
    covered, by_model = [], []
    for _ in range(COUNT):
        error = NOISE[noise](rng, count, channels)
        projection = np.einsum("tck,tc->k", Q, error)
        residuals = error - Q @ projection
        scores = np.einsum("tck,tc->tk", Q, residuals)
        found = sandwich_covariance("hac", spectrum, [scores], float(np.sum(residuals**2)))
        change = np.abs(spectrum.basis @ projection)
        covered.append(change < found.quantile(0.95) * found.std)
        scale = np.sqrt(np.sum(residuals**2) / (count * channels - size))
        by_model.append(change < 1.96 * scale * model.std)
    coverage, plain = np.mean(covered, axis=0), np.mean(by_model, axis=0)
    text = (
        f"hac {coverage.min():.2f}-{coverage.max():.2f}, model {plain.min():.2f}-{plain.max():.2f}"
    )
    assert bounds[0] <= coverage.min() and coverage.max() <= bounds[1], text
