"""Bootstrap against linearised intervals, and resampled residuals against their theory."""

import dataclasses

import jax
import numpy as np
import pytest
from identification import oscillator
from scipy.spatial.transform import Rotation
from scipy.stats import norm

import rigidjax as rj
from rigidjax.identification import GaussianProcess, Measurements, bootstrap
from rigidjax.identification.intervals.resampling import (
    block_length,
    draw_residuals,
    filter_back,
    readings_with_residuals,
)
from rigidjax.identification.noise.whitening import make_whitening, sample_gaps
from rigidjax.sensors.base import AbstractReading

LOUD, COUNT = 0.05, 600


@pytest.fixture(scope="module")
def fit():
    return oscillator.fit(oscillator.measure(seed=1, noise=LOUD, std=LOUD))


@pytest.mark.parametrize("kind", ["parametric", "residual"])
@pytest.mark.exhaustive("parametric")
@pytest.mark.exhaustive
def test_refits_scatter_as_the_linearisation_says(fit, kind):
    """Standard deviations of N refits are known to 1/sqrt(2 N), 3 % here.

    Drawn residuals have the scatter of the residuals instead of the given noise.
    """
    result = bootstrap(fit, COUNT, jax.random.key(0), kind)
    scatter = np.sqrt(fit.chi_square) if kind == "residual" else 1.0
    expected = scatter * np.array(list(fit.std.values()))
    assert result.values.shape == (COUNT, 2) and result.num_failed == 0
    np.testing.assert_allclose(list(result.std.values()), expected, rtol=0.12)
    correlation = result.covariance[0, 1] / np.sqrt(np.prod(np.diag(result.covariance)))
    assert correlation == pytest.approx(fit.correlations[0, 1], abs=0.15)
    for label, (low, high) in result.intervals(0.9).items():
        half = scatter * norm.ppf(0.95) * fit.std[label]
        value = fit.estimates[label]
        assert (low, high) == pytest.approx((value - half, value + half), abs=0.25 * half)
    assert max(abs(x) for x in result.bias.values()) < 0.2 * max(expected)
    assert f"Bootstrap({kind}, {COUNT} refits" in repr(result)


def test_equal_runs_have_no_scatter():
    run = oscillator.measure(seed=1, noise=LOUD, std=LOUD, rates=(2.0,))[0]
    readings = {oscillator.ANGLE: run.values[0]}
    equal = [Measurements(run.ts, readings, {oscillator.ANGLE: LOUD}) for _ in range(3)]
    fit = oscillator.fit(equal, rates=(2.0, 2.0, 2.0))
    result = bootstrap(fit, 4, jax.random.key(0), "runs")
    np.testing.assert_allclose(result.values, np.tile(fit.values, (4, 1)), rtol=1e-6)


def test_blocks_keep_the_dependence_of_residuals(rng):
    """The mean of an autoregressive process scatters (1 + r)/(1 - r) times as much."""
    r, count = 0.8, 6000
    noise = rng.normal(size=count)
    series = np.zeros(count)
    for t in range(1, count):
        series[t] = r * series[t - 1] + np.sqrt(1 - r**2) * noise[t]
    series = series.reshape(2, -1, 1)
    weights = np.ones(series.shape)
    length = block_length(weights, series)
    expected = (np.sqrt(6) * r / (1 - r**2)) ** (2 / 3) * count ** (1 / 3)
    assert length == pytest.approx(expected, rel=0.1)
    for size, factor in ((length, (1 + r) / (1 - r)), (1, 1.0)):
        means = draw_residuals(rng, 600, weights, series, size).mean(axis=(1, 2, 3))
        assert count * means.var() == pytest.approx(factor * series.var(), rel=0.25)
    assert block_length(weights, rng.normal(size=series.shape)) <= 3


def test_drawn_residuals_respect_gaps(rng):
    weights = np.ones((2, 8, 2))
    weights[1, 5:] = 0  # A shorter run.
    weights[0, 3, 1] = 0  # A gap of one channel.
    r = np.where(weights > 0, rng.normal(size=weights.shape) + 5, 0.0)
    drawn = draw_residuals(rng, 50, weights, r, 3)
    assert np.all((drawn != 0) == (weights > 0))
    mean = r.sum(axis=(0, 1)) / weights.sum(axis=(0, 1))
    for c in range(2):
        pool = (r - mean)[..., c][weights[..., c] > 0]
        assert np.isin(drawn[..., c][:, weights[..., c] > 0], pool).all()


def test_readings_have_the_drawn_residuals(rng):
    r, drawn = rng.normal(size=(2, 3, 3)), rng.normal(size=(4, 2, 3, 3))
    sensor = rj.Gyroscope()
    values = rng.normal(size=(2, 3, 3))
    predicted = values + r
    found = readings_with_residuals(sensor, values, r, drawn)
    np.testing.assert_allclose(predicted - found, drawn)
    attitude = rj.Attitude()
    q = Rotation.random(6, rng=rng)
    values = q.as_quat(scalar_first=True).reshape(2, 3, 4)
    predicted = (q * Rotation.from_rotvec(r.reshape(-1, 3))).as_quat(scalar_first=True)
    found = readings_with_residuals(attitude, values, r, drawn)
    residual = jax.vmap(attitude.residual)
    for k in range(4):
        np.testing.assert_allclose(
            residual(predicted, found[k].reshape(-1, 4)), drawn[k].reshape(-1, 3), atol=1e-12
        )


def test_innovations_are_filtered_back(rng):
    """The filter of a noise model, applied to residuals with given innovations, returns them."""
    gaps = sample_gaps("", np.arange(40.0)[None], np.ones((1, 40, 2)), False, False)
    whitening = jax.vmap(lambda g: make_whitening(GaussianProcess(2.0, 5.0), g))(gaps)
    innovations = rng.normal(size=(3, 1, 40, 2))
    residuals = filter_back(whitening, innovations)
    for k in range(3):
        back = jax.vmap(lambda w, rows: w(rows))(whitening, residuals[k][..., None])[..., 0]
        np.testing.assert_allclose(back, innovations[k], atol=1e-10)


class _Odd(AbstractReading):
    channels = ("a",)
    unit = ""
    value_shape = (2,)
    name = "odd sensor"

    def check(self, model):
        """Accept every model."""

    def predict(self, model, t, y):
        return y[:2]


def test_invalid_arguments_raise(fit):
    key = jax.random.key(0)
    with pytest.raises(TypeError, match=r"bootstrap\(fit=...\)` takes a result .*; got str"):
        bootstrap("fit", 10, key)  # pyright: ignore
    with pytest.raises(ValueError, match=r"takes a converged fit; it ended with: no optimum"):
        bootstrap(dataclasses.replace(fit, result="no optimum"), 10, key)
    with pytest.raises(ValueError, match=r"kind=...\)` must be one of .*; got 'jackknife'"):
        bootstrap(fit, 10, key, "jackknife")  # pyright: ignore
    with pytest.raises(ValueError, match=r"bootstrap\(count=...\)` must be at least 2; got 1"):
        bootstrap(fit, 1, key)
    with pytest.raises(
        ValueError, match=r"block=...\)` is a number of samples .*; got 5 for kind="
    ):
        bootstrap(fit, 10, key, block=5)
    one = dataclasses.replace(fit, run_names=("1",))
    with pytest.raises(ValueError, match=r"draws from several runs; the fit has one"):
        bootstrap(one, 10, key, "runs")
    with pytest.raises(ValueError, match=r"cannot add noise to readings of the odd sensor"):
        readings_with_residuals(
            _Odd(), np.zeros((1, 1, 2)), np.zeros((1, 1, 1)), np.zeros((1,) * 4)
        )
    result = bootstrap(fit, 2, key, "block", block=4)
    assert result.block_lengths == {"coordinate of hinge": 4}
    with pytest.raises(ValueError, match=r"intervals\(level=...\)` lies between 0 and 1.*got 95"):
        result.intervals(95)
    optimum = fit.optimum
    short = dataclasses.replace(optimum.search, max_iterations=4, tolerance=np.asarray(1e-30))
    stalled = dataclasses.replace(fit, optimum=dataclasses.replace(optimum, search=short))
    with pytest.raises(RuntimeError, match=r"`bootstrap`: of 2 refits only 0 converged"):
        bootstrap(stalled, 2, key)
