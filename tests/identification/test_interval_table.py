"""Intervals side by side, and the choice of the one to trust."""

import dataclasses

import numpy as np
import pytest
from identification import oscillator

from rigidjax.identification import Bootstrap, Posterior, interval_table


@pytest.fixture(scope="module")
def fit():
    return oscillator.fit(oscillator.measure(seed=1, noise=0.15, std=0.15))


def refits(fit, kind):
    rng = np.random.default_rng(0)
    return Bootstrap(
        kind=kind,
        labels=fit.labels,
        units=fit.units,
        estimates=fit.values,
        values=fit.values + 0.01 * rng.normal(size=(50, 2)),
        num_failed=0,
        block_lengths={},
    )


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


@pytest.mark.exhaustive
def test_exact_intervals_are_trusted_where_they_differ(fit):
    shift = np.array([0.0, 1.0]) * list(fit.std.values())
    posterior = draws(fit, shift)
    table = interval_table(fit, bootstrap=refits(fit, "residual"), posterior=posterior)
    assert table.trusted == {"stiffness": "linearised", "damping": "posterior"}
    assert table.intervals["posterior"] == posterior.intervals()
    assert table.intervals["linearised"] == fit.confidence_intervals()
    heading, *rows = table.rows()
    assert heading[:3] == ("parameter", "estimate", "linearised") and heading[-1] == "unit"
    assert rows[1][heading.index("posterior")].endswith("*")
    assert "use those with a star: the residuals are white" in repr(table)
    assert table.to_markdown().startswith("| parameter | estimate | linearised |")
    # Samples that have not mixed are shown, and not trusted.
    few = interval_table(fit, posterior=draws(fit, shift, effective=20.0))
    assert set(few.trusted.values()) == {"linearised"}
    profile = fit.profile("damping")
    table = interval_table(fit, profiles=[profile], posterior=posterior)
    assert table.intervals["profile"] == {"damping": profile.interval}


def test_dependent_residuals_need_blocks_or_a_sandwich(fit):
    """Residuals that alternate slowly: the fit of another model to the same data."""
    wave = {"coordinate of hinge": np.sin(np.arange(31) / 3)[:, None]}
    dependent = dataclasses.replace(fit, residuals=(wave,) * 3, innovations=(wave,) * 3)
    blocks = refits(fit, "block")
    table = interval_table(dependent, bootstrap=blocks, posterior=draws(fit, 0.0))
    assert set(table.trusted.values()) == {"bootstrap (block)"}
    assert "the residuals are not white, and it allows for their dependence" in table.reason
    alone = interval_table(dependent, bootstrap=refits(fit, "parametric"))
    assert set(alone.trusted.values()) == {"sandwich (hac)"}
    only = dataclasses.replace(dependent, covariances={"model": fit.covariances["model"]})
    alone = interval_table(only, bootstrap=refits(fit, "parametric"))
    assert set(alone.trusted.values()) == {"linearised"}
    assert 'none of these allows for their dependence; fit with covariance="sandwich"' in (
        alone.reason
    )


def test_results_of_other_fits_raise(fit):
    other = dataclasses.replace(refits(fit, "block"), labels=("a", "b"))
    with pytest.raises(ValueError, match=r"interval_table\(bootstrap=...\)` must be of the same"):
        interval_table(fit, bootstrap=other)
    with pytest.raises(ValueError, match=r"at the level 0.95; got one of 'damping' at 0.9"):
        interval_table(fit, profiles=[fit.profile("damping", 0.9)])
