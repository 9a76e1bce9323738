"""Intervals hold under dependent noise that is modelled."""

import numpy as np
import pytest
from identification.coverage.studies import double_pendulum, four_bar, free_body
from identification.test_noise_models import autoregressive_noise

from rigidjax.identification import identify_batch


def walk(shape, rng, step=0.1):
    """White noise of unit variance on a random walk whose steps are a tenth as large."""
    return rng.normal(size=shape) + np.cumsum(step * rng.normal(size=shape), axis=0)


CASES = {
    "pendulum-ar1": (double_pendulum, "ar1", lambda s, rng: autoregressive_noise([0.9], s, rng)),
    "four-bar-ar2": (four_bar, "ar2", lambda s, rng: autoregressive_noise([1.6, -0.9], s, rng)),
    "body-walk": (free_body, "random-walk", walk),
    "body-ar1": (free_body, "ar1", lambda s, rng: autoregressive_noise([0.9], s, rng)),
    "pendulum-ar2": (
        double_pendulum, "ar(p)", lambda s, rng: autoregressive_noise([1.6, -0.9], s, rng),
    ),
}  # fmt: skip


def find_covered(case, count):
    """Return which 95 % intervals contain the truth, by fit and parameter."""
    build, noise, errors = CASES[case]
    study, rng = build(), np.random.default_rng(11)
    exact = study.readings()
    data = [study.measure(exact, lambda s, shape: errors(shape, rng)) for _ in range(count)]
    fits = identify_batch(
        study.model, data, study.parameters, state0=study.state0, noise=noise, horizons=(1.0,)
    )
    assert fits.converged.all()
    return np.abs(fits.values - study.true) < 1.96 * fits.std


# With a coverage of 95 %, less than 88 % of 100 intervals contain the truth once in 300 times.
@pytest.mark.parametrize("case", ["body-walk", "body-ar1"])
def test_intervals_hold(case):
    assert 0.88 < find_covered(case, 100).mean()


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES)
def test_intervals_hold_in_a_thousand_fits(case):
    coverage = find_covered(case, 1000).mean(axis=0)
    assert np.all((coverage > 0.92) & (coverage < 0.98)), coverage
