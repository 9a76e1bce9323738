"""Profile likelihoods against closed forms and brute force."""

import dataclasses
import functools

import numpy as np
import pytest
import scipy.optimize
from identification import oscillator
from scipy.stats import norm

from rigidjax.identification import Huber, Orientation, Parameter
from rigidjax.identification.intervals.profile import acceptance, critical_root

# So much noise that the profile is not a parabola.
LOUD = 0.15
DATA = oscillator.measure(seed=1, noise=LOUD, std=LOUD)


def sum_of_squares(stiffness, damping, data=DATA, noise=LOUD):
    r = [
        (oscillator.closed_form(v, stiffness, damping) - np.asarray(run.values[0])) / noise
        for v, run in zip(oscillator.RATES, data, strict=True)
    ]
    return float(np.sum(np.square(r)))


@functools.cache
def brute_force(damping):
    """Return the smallest sum of squares for a damping, over all stiffnesses."""
    return scipy.optimize.minimize_scalar(
        lambda k: sum_of_squares(k, damping), bracket=(3.5, 4.5), tol=1e-12
    ).fun


@pytest.fixture(scope="module")
def fit():
    return oscillator.fit(DATA)


def test_one_parameter_against_its_closed_form():
    fit = oscillator.fit(DATA, (oscillator.STIFF,))
    profile = fit.profile("stiffness", level=0.9)
    least = sum_of_squares(fit.values[0], oscillator.DAMPING)
    exact = [sum_of_squares(k, oscillator.DAMPING) - least for k in profile.grid]
    np.testing.assert_allclose(profile.statistic, exact, atol=1e-4)
    np.testing.assert_allclose(
        [sum_of_squares(k, oscillator.DAMPING) - least for k in profile.interval],
        norm.ppf(0.95) ** 2,
        atol=1e-3,
    )
    # Away from a parabola by a part of the width.
    low, high = profile.interval
    assert abs(low + high - 2 * fit.values[0]) > 0.005 * (high - low)
    assert profile.linearised == fit.confidence_intervals(0.9)["stiffness"]


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
