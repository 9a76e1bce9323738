"""Covariances under dependence, against closed forms, direct sums and simulation."""

import numpy as np
import pytest
import scipy.signal
import scipy.stats

from rigidjax.identification.statistics.sandwich import (
    ScoreCovariance,
    cluster_covariance,
    fit_autoregression,
    hac_covariance,
    quadratic_spectral,
)
from rigidjax.identification.statistics.whiteness import runs_test


def autoregression(rng, coefficients, *shape, start=300):
    """A stationary series of unit innovations along the last axis."""
    noise = rng.normal(size=(*shape[:-1], shape[-1] + start))
    return scipy.signal.lfilter([1.0], [1.0, *(-np.asarray(coefficients))], noise)[..., start:]


@pytest.mark.parametrize("coefficients", [(), (0.9,), (-0.5,), (1.85, -0.9409)])
def test_long_run_variance_is_that_of_the_autoregression(rng, coefficients):
    """The variance of a mean of n is 1 / (1 - sum a)^2 / n in the limit, here of 50,000."""
    x = autoregression(rng, coefficients, 50_000)
    found = hac_covariance([x[:, None]])
    exact = len(x) / (1 - sum(coefficients)) ** 2
    # Four standard deviations of the estimate, by the degrees of freedom that it states.
    assert abs(found.matrix[0, 0] / exact - 1) < 4 * np.sqrt(2 / found.freedom[0])
    assert found.freedom[0] > 300


def test_windowed_sum_is_that_over_all_pairs_of_samples(rng):
    runs = [rng.normal(size=(n, 3)) for n in (17, 9, 1)]
    mean = np.concatenate(runs).mean(axis=0)
    direct = np.zeros((3, 3))
    for run in runs:
        lags = np.arange(len(run))[:, None] - np.arange(len(run))
        direct += (run - mean).T @ quadratic_spectral(lags / 2.5) @ (run - mean)
    found = hac_covariance(runs, orders=0, bandwidth=2.5)
    np.testing.assert_allclose(found.matrix, direct, rtol=1e-10)
    # The window as in Andrews, away from zero.
    z = 1.2 * np.pi * 0.7
    exact = 25 / (12 * np.pi**2 * 0.49) * (np.sin(z) / z - np.cos(z))
    np.testing.assert_allclose(quadratic_spectral(np.array([0.7])), exact, rtol=1e-12)
    np.testing.assert_allclose(quadratic_spectral(np.array([0.0, 2.65e-3, 2.66e-3])), 1, atol=1e-4)


def test_autoregressions_are_found(rng):
    coefficients = (1.85, -0.9409)
    series = [autoregression(rng, coefficients, n) for n in (3000, 500, 2)]
    np.testing.assert_allclose(fit_autoregression(series, 8), coefficients, atol=0.03)
    # Schwarz's criterion selects order zero for nearly all series of white noise.
    white = [fit_autoregression([x], 7).size for x in rng.normal(size=(300, 400))]
    assert np.mean(np.array(white) > 0) < 0.06
    assert fit_autoregression([np.zeros(50)], 3).size == 0


def test_clusters_are_the_scatter_of_sums(rng):
    """Readings that share an error per run: the mean of m runs of n has its variance over m."""
    m, n = 4000, 5
    runs = [np.tile(rng.normal(), (n, 1)) + 0.5 * rng.normal(size=(n, 1)) for _ in range(m)]
    found = cluster_covariance(runs)
    exact = m * (n**2 + 0.25 * n)
    assert abs(found.matrix[0, 0] / exact - 1) < 4 * np.sqrt(2 / m)
    np.testing.assert_array_equal(found.freedom, [m - 1])
    sums = np.array([run.sum() for run in runs])
    np.testing.assert_allclose(found.matrix[0, 0], m * np.var(sums, ddof=1), rtol=1e-12)
    with pytest.raises(ValueError, match=r"by run needs two runs or more; got 1. Use \"hac\""):
        cluster_covariance(runs[:1])


def test_freedom_of_combinations_is_a_weighted_mean():
    found = ScoreCovariance(np.diag([1.0, 3.0]), np.array([4.0, 6.0]))
    combinations = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(
        found.freedom_along(combinations), [4.0, 4 / (1 / 4 + 3 / 6), np.inf]
    )


def test_runs_of_signs_are_counted_as_published(rng):
    """By hand: 12 positive and 8 negative signs in 4 runs of signs, mean 10.6."""
    signs = np.repeat([1.0, -1.0, 1.0, -1.0], [6, 4, 6, 4])
    variance = 2 * 12 * 8 * (2 * 12 * 8 - 20) / (20**2 * 19)
    exact = 2 * scipy.stats.norm.sf((10.6 - 4) / np.sqrt(variance))
    np.testing.assert_allclose(runs_test([signs * rng.uniform(1, 9, 20)]), exact, rtol=1e-10)
    with_gaps = np.insert(signs, [3, 9], [np.nan, 0.0])
    np.testing.assert_allclose(runs_test([with_gaps]), exact, rtol=1e-10)
    assert runs_test([signs[:19]]) is None and runs_test([np.ones(50)]) is None
    values = [runs_test([x, y]) for x, y in rng.normal(size=(1000, 2, 60))]
    assert abs(np.mean(np.array(values) < 0.05) - 0.05) < 0.02
