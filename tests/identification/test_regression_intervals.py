"""Intervals of regressions: under dependence, with tests of the residuals and a verdict."""

import dataclasses
import json

import numpy as np
import pytest
import scipy.signal
import scipy.stats
from identification.arms import PLANTED, arm_data

from rigidjax import identification as ident

NOISE = 0.3


@pytest.fixture(scope="module")
def exact():
    """Exact data, and the true base parameters."""
    data = arm_data(0.0, 400)
    base = ident.regress(data, noise=[1.0, 1.0]).base
    return data, base.combinations @ PLANTED


def fits(exact, noise, **options):
    """Regressions of data with this noise, (N, T, f)."""
    data, _ = exact
    return [
        ident.regress(dataclasses.replace(data, torques=data.torques + NOISE * e), **options)
        for e in noise
    ]


def coverage(exact, regressions):
    intervals = np.array([r.confidence_intervals() for r in regressions])
    return np.mean((intervals[..., 0] < exact[1]) & (exact[1] < intervals[..., 1]), axis=0)


def test_white_noise_gives_no_warning(exact, rng):
    """About 1 % of right regressions are doubted, and intervals are those of the model.

    Means over twelve correlated estimates have a standard deviation of 0.01.
    """
    found = fits(exact, rng.normal(size=(100, *exact[0].torques.shape)))
    assert sum(r.verdict.is_warning for r in found) <= 3
    assert 0.92 < coverage(exact, found).mean() < 0.98
    right = next(r for r in found if not r.verdict.is_warning)
    assert right.method == "model" and right.warnings == () and not right.noise_is_known
    np.testing.assert_allclose(right.noise, NOISE, rtol=0.15)
    assert right.report().startswith("**The intervals may be used: residuals are white")
    std = np.sqrt(np.diag(np.linalg.inv(np.einsum("tfi,tfj->ij", *2 * [weigh_columns(right)]))))
    np.testing.assert_allclose(right.std, std, rtol=1e-7)
    quantile = scipy.stats.t.ppf(0.975, 800 - right.base.rank)
    np.testing.assert_allclose(
        right.confidence_intervals()[:, 1] - right.values, quantile * std, rtol=1e-6
    )


def weigh_columns(regression):
    return regression.data.matrix[:, :, regression.base.chosen] / regression.noise[:, None]


def test_intervals_hold_under_dependence(exact, rng):
    """Torques with errors that forget 10 % of their past per sample."""
    white = rng.normal(size=(60, *exact[0].torques.shape))
    noise = scipy.signal.lfilter([np.sqrt(0.19)], [1.0, -0.9], white, axis=1)
    found = fits(exact, noise)
    assert all(r.method == "hac" for r in found)
    assert sum(r.verdict.use == "with caution" for r in found) >= 57
    assert 0.91 < coverage(exact, found).mean() < 0.98
    model = fits(exact, noise[:20], covariance="model")
    assert coverage(exact, model).mean() < 0.8
    assert all(r.verdict.use == "no" for r in model)
    assert "The standard deviations assume independent residuals; those that" in model[0].report()


def test_negative_friction_and_different_halves_are_named(exact, rng):
    data, _ = exact
    noise = NOISE * rng.normal(size=data.torques.shape)
    column = data.labels.index("elbow.viscous")
    less = data.torques - 1.0 * data.matrix[:, :, column] + noise
    found = ident.regress(dataclasses.replace(data, torques=less))
    assert found.verdict.use == "no" and "elbow.viscous is negative by" in str(found.verdict)
    assert "cannot be negative" in found.warnings[0]
    half = np.arange(len(less)) < 200
    changed = data.torques + 2.0 * half[:, None] * data.matrix[:, :, column] + noise
    found = ident.regress(dataclasses.replace(data, torques=changed))
    assert "parts of the data give different" in str(found.verdict)
    assert any("elbow.viscous by" in text for text in found.warnings)


def test_reports_are_written(exact, rng, tmp_path):
    (found,) = fits(exact, rng.normal(size=(1, *exact[0].torques.shape)))
    record = json.loads(found.report(tmp_path / "arm.json"))
    assert record["verdict"]["first_line"] == str(found.verdict)
    assert record["std"]["model"] == found.covariances["model"].std.tolist()
    assert found.report(tmp_path / "arm.md") == (tmp_path / "arm.md").read_text()
    with pytest.raises(FileExistsError, match="arm.md exists"):
        found.report(tmp_path / "arm.md")
    with pytest.raises(ValueError, match=r"writes .md, .txt, .json or .csv; got .*arm.pdf"):
        found.report(tmp_path / "arm.pdf")


def test_unknown_covariances_raise(exact):
    with pytest.raises(ValueError, match=r"`regress\(covariance=...\)` must be .* got 'robust'"):
        ident.regress(exact[0], covariance="robust")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="needs several runs, and the data are one"):
        ident.regress(exact[0], covariance="cluster")
