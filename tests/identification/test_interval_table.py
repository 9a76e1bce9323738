"""Intervals side by side, and the choice of the one to trust."""

import dataclasses

import numpy as np
import pytest
from identification import oscillator

from rigidjax.identification import Posterior, interval_table


@pytest.fixture(scope="module")
def fit():
    return oscillator.fit(oscillator.measure(seed=1, noise=0.15, std=0.15))


def draws(fit, shift, effective=1000.0):
    rng = np.random.default_rng(1)
    noise = np.array(list(fit.std.values())) * rng.normal(size=(4, 2000, 2))
    return Posterior(
        labels=fit.labels,
        units=fit.units,
        samples=fit.values + shift + noise,
        r_hat=dict.fromkeys(fit.labels, 1.0),
        effective_samples=dict.fromkeys(fit.labels, effective),
        divergences=0,
        acceptance=0.8,
        evaluations=1,
        bounds={},
    )


def test_dependent_residuals_need_a_sandwich(fit):
    """Residuals that alternate slowly: the fit of another model to the same data."""
    wave = {"coordinate of hinge": np.sin(np.arange(31) / 3)[:, None]}
    dependent = dataclasses.replace(fit, residuals=(wave,) * 3, innovations=(wave,) * 3)
    posterior = draws(fit, 0.0)
    table = interval_table(dependent, posterior=posterior)
    assert set(table.trusted.values()) == {"sandwich (hac)"}
    assert "the residuals are not white, and it allows for their dependence" in table.reason
    only = dataclasses.replace(dependent, covariances={"model": fit.covariances["model"]})
    table = interval_table(only, posterior=posterior)
    assert set(table.trusted.values()) == {"linearised"}
    assert 'none of these allows for their dependence; fit with covariance="sandwich"' in (
        table.reason
    )


def test_results_of_other_fits_raise(fit):
    other = dataclasses.replace(draws(fit, 0.0), labels=("a", "b"))
    with pytest.raises(ValueError, match=r"interval_table\(posterior=...\)` must be of the same"):
        interval_table(fit, posterior=other)
    with pytest.raises(ValueError, match=r"at the level 0.95; got one of 'damping' at 0.9"):
        interval_table(fit, profiles=[fit.profile("damping", 0.9)])
