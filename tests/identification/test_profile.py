"""Profile likelihoods against closed forms and brute force, and intervals side by side."""

import dataclasses
import functools

import numpy as np
import pytest
import scipy.optimize
from identification import oscillator
from scipy.stats import norm

from rigidjax.identification import Huber, Orientation, Parameter, Posterior, interval_table
from rigidjax.identification.intervals.profile import acceptance, critical_root

# So much noise that the profile is not a parabola.
LOUD = 0.15
DATA = oscillator.measure(seed=1, noise=LOUD, std=LOUD)


def sum_of_squares(stiffness, damping, data=DATA, noise=LOUD):
    values = {"stiffness": stiffness, "damping": damping}
    return float(np.sum(oscillator.weighted_residuals(data, noise, **values) ** 2))


@functools.cache
def brute_force(damping):
    """Return the smallest sum of squares for a damping, over all stiffnesses."""
    return scipy.optimize.minimize_scalar(
        lambda k: sum_of_squares(k, damping), bracket=(3.5, 4.5), tol=1e-12
    ).fun


@pytest.fixture(scope="module")
def fit():
    return oscillator.fit(DATA)


def test_two_parameters_against_brute_force(fit):
    profile = fit.profile("damping")
    least = sum_of_squares(*fit.values)
    exact = [brute_force(d) - least for d in profile.grid]
    np.testing.assert_allclose(profile.statistic, exact, atol=1e-4)
    assert profile.estimate == fit.values[1] and np.all(np.diff(profile.grid) > 0)
    for end, other in zip(profile.interval, (1e-3, 2.0), strict=True):
        found = scipy.optimize.brentq(
            lambda d: brute_force(d) - least - norm.ppf(0.975) ** 2, other, fit.values[1]
        )
        assert end == pytest.approx(found, rel=1e-4)
    # Away from a parabola by a part of the width.
    low, high = profile.interval
    assert abs(low + high - 2 * fit.values[1]) > 0.005 * (high - low)
    assert profile.linearised == fit.confidence_intervals()["damping"]
    assert "interval of the profile" in repr(profile) and not profile.notes


def test_intervals_near_a_bound(rng):
    """A damping that the data would have negative: its interval begins at the bound."""
    data = oscillator.measure(seed=0, damping=0.0)
    fit = oscillator.fit(data)
    assert [b.label for b in fit.bounds] == ["damping"]
    profile = fit.profile("damping")
    squares = functools.partial(sum_of_squares, data=data, noise=oscillator.NOISE)
    low, high = profile.interval
    solution = scipy.optimize.minimize_scalar(lambda k: squares(k, high), bracket=(3.9, 4.1))
    root = np.sqrt(solution.fun - squares(*fit.values))
    assert low == 0.0
    assert root == pytest.approx(critical_root(0.95, high / fit.std["damping"], np.inf), abs=2e-3)
    # The distribution, for a true value 0.7 above the lower and 1.5 below the upper bound.
    z = rng.normal(size=200_000)
    estimate = np.clip(z, -0.7, 1.5)
    statistic = z**2 - (z - estimate) ** 2
    for threshold in (0.3, 0.9, 1.4, 2.2):
        share = np.mean(statistic < threshold**2)
        assert acceptance(threshold, 0.7, 1.5) == pytest.approx(share, abs=4e-3)
    assert critical_root(0.95, np.inf, np.inf) == pytest.approx(norm.ppf(0.975))
    assert critical_root(0.95, 0.0, np.inf) == pytest.approx(norm.ppf(0.95))


def test_invalid_arguments_raise(fit):
    with pytest.raises(ValueError, match=r"profile\(name=...\)` must be one of .*; got 'mass'"):
        fit.profile("mass")
    with pytest.raises(ValueError, match=r"profile\(level=...\)` lies between 0 and 1.*got 95"):
        fit.profile("damping", 95)
    with pytest.raises(ValueError, match=r"the data do not determine this parameter"):
        covariance = dataclasses.replace(fit.covariances["model"], matrix=np.full((2, 2), np.inf))
        dataclasses.replace(fit, covariances={"model": covariance}).profile("damping")
    optimum = fit.optimum
    robust = dataclasses.replace(optimum, search=dataclasses.replace(optimum.search, loss=Huber()))
    with pytest.raises(ValueError, match=r"for fits by least squares; got the loss Huber"):
        dataclasses.replace(fit, optimum=robust).profile("damping")
    turned = Parameter("damping", oscillator.damping_of, Orientation())
    problem = dataclasses.replace(optimum.problem, parameters=(oscillator.STIFF, turned))
    turned = dataclasses.replace(optimum, problem=problem)
    with pytest.raises(ValueError, match=r"a component of an orientation has no value"):
        dataclasses.replace(fit, optimum=turned).profile("damping")


# Intervals side by side.


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
