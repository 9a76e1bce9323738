"""Statistics without storage: against statistics of all values, for any partition."""

import functools

import numpy as np
import pytest

from rigidjax.ensembles import Histogram, Moments, Quantiles

SPLITS = [[1000], [1, 999], [400, 0, 350, 250]]


@pytest.fixture
def values(rng):
    """Large means against small spreads, both signs, zeros."""
    columns = 1e6 + rng.normal(size=1000), rng.normal(size=1000) ** 3, rng.poisson(1.0, 1000)
    return np.stack(columns, axis=1)


def gather_parts(statistic, values, split):
    parts = np.split(values, np.cumsum(split)[:-1])
    return statistic.result(functools.reduce(statistic.merged, map(statistic.of, parts)))


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_moments_merge_to_round_off(values, split):
    found = gather_parts(Moments(), values, split)
    assert found["count"] == 1000
    assert np.allclose(found["mean"], values.mean(axis=0), rtol=1e-14)
    assert np.allclose(found["covariance"], np.cov(values.T), rtol=1e-9, atol=1e-9)
    assert np.allclose(found["std"], values.std(axis=0, ddof=1), rtol=1e-9)
    assert np.array_equal(found["min"], values.min(axis=0))
    assert np.array_equal(found["max"], values.max(axis=0))


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_histograms_merge_exactly(values, split):
    found = gather_parts(Histogram(-2.0, 3.0, 20), values[:, 1:], split)
    for k in (0, 1):
        column = values[:, 1 + k]
        assert np.array_equal(found["counts"][k], np.histogram(column, found["edges"])[0])
        assert found["below"][k] == np.sum(column < -2) and found["above"][k] == np.sum(column > 3)


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_quantiles_have_the_stated_accuracy(values, split):
    at = (0.0, 0.01, 0.3, 0.5, 0.9, 1.0)
    found = gather_parts(Quantiles(at, accuracy=1e-3), values, split)
    # The sketch has whole members: as NumPy does with this method.
    expected = np.quantile(values, at, axis=0, method="lower").T
    assert np.all(np.abs(found["quantiles"] - expected) <= 1.001e-3 * np.abs(expected))


@pytest.mark.parametrize("statistic", [Moments(), Histogram(0, 1, 4), Quantiles()])
def test_failed_members_are_excluded(values, statistic):
    """They are left out, and all of them may be."""
    spoiled = np.concatenate([values, np.full((7, 3), np.nan)])
    found, expected = (statistic.result(statistic.of(v)) for v in (spoiled, values))
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    nothing = statistic.of(np.full((3, 3), np.nan))
    both = statistic.result(statistic.merged(nothing, statistic.of(values)))
    assert all(np.allclose(both[name], expected[name], rtol=1e-12) for name in expected)
    statistic.result(nothing)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Histogram(1.0, 0.0), "low < high"),
        (lambda: Histogram(0.0, 1.0, 0), "positive"),
        (lambda: Quantiles((1.5,)), "probabilities"),
        (lambda: Quantiles(accuracy=0.0), "between 0 and 1"),
    ],
)
def test_invalid_input_raises(make, message):
    with pytest.raises(ValueError, match=message):
        make()
