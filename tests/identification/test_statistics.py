"""Intervals and tests of residuals, against SciPy."""

import dataclasses

import numpy as np
import pytest
import scipy.signal
import scipy.stats
from identification import cases

import rigidjax as rj
from rigidjax.identification import predictions
from rigidjax.identification.statistics.whiteness import ljung_box, successive_correlation


def test_ljung_box_of_one_run_is_the_published_statistic(rng):
    e = scipy.signal.lfilter([1.0], [1.0, -0.3], rng.normal(size=200))
    n = len(e)
    r = np.correlate(e, e, "full")[n : n + 7] / (e @ e)
    q = n * (n + 2) * np.sum(r**2 / (n - np.arange(1, 8)))
    found = ljung_box([e], lags=7)
    np.testing.assert_allclose(found.statistic, q, rtol=1e-12)
    np.testing.assert_allclose(found.p_value, scipy.stats.chi2.sf(q, 7), rtol=1e-10)
    assert (found.lags, found.num_samples) == (7, 200) and found.p_value < 0.01


def test_ljung_box_of_white_runs_with_gaps_is_uniform(rng):
    """Short runs with gaps: the p-value is below 5 % in 5 % of the cases, its mean is 1/2."""
    values = []
    for _ in range(2000):
        runs = [rng.normal(size=k) for k in (30, 12, 4)]
        runs[0][5:9] = np.nan
        values.append(ljung_box(runs).p_value)
    # The standard deviations of mean and frequency over 2000 cases are 0.0065 and 0.005; chi-square
    # itself is approximate for 40 samples.
    assert abs(np.mean(values) - 0.5) < 0.03
    assert abs(np.mean(np.array(values) < 0.05) - 0.05) < 0.02


def test_ljung_box_without_enough_residuals():
    assert ljung_box([np.ones(4)]) is None
    assert ljung_box([np.zeros(100)]) is None
    assert ljung_box([np.full(100, np.nan)]) is None
    with pytest.raises(ValueError, match=r"must be 1 or more; got 0"):
        ljung_box([np.ones(10)], lags=0)


def test_successive_correlation_skips_gaps():
    r = np.array([1.0, np.nan, -1.0, np.nan, 1.0, np.nan, -1.0])
    assert successive_correlation([r[:, None]]) == -1.0
    assert successive_correlation([np.zeros((3, 1))]) == 0.0


def test_confidence_intervals(noisy_fit, fit_with_unknown_noise):
    fits = noisy_fit, fit_with_unknown_noise
    for fit, quantile in zip(fits, (scipy.stats.norm.ppf, None), strict=True):
        freedom = fit.num_residuals - len(fit.labels)
        assert fit.degrees_of_freedom == freedom
        quantile = quantile or (lambda p, f=freedom: scipy.stats.t.ppf(p, f))
        for level in (0.5, 0.95):
            factor = quantile(0.5 + level / 2)
            for label, (low, high) in fit.confidence_intervals(level).items():
                centre, half = fit.estimates[label], factor * fit.std[label]
                np.testing.assert_allclose([low, high], [centre - half, centre + half], rtol=1e-9)
    for level in (0, 1, 95):
        with pytest.raises(ValueError, match=r"between 0 and 1, such as 0.95 for 95 %; got"):
            fits[0].confidence_intervals(level)
    nothing = dataclasses.replace(fits[1].covariances["model"], freedom=np.zeros(len(fit.labels)))
    exhausted = dataclasses.replace(fits[1], covariances={"model": nothing}, method="model")
    assert np.isinf(list(exhausted.confidence_intervals().values())).all()
    assert "not determined" in exhausted.report()


def test_report_names_non_white_residuals(fit_with_unknown_noise):
    fit = fit_with_unknown_noise
    wave = [{"gyroscope": np.sin(0.3 * np.arange(n))[:, None] * np.ones(3)} for n in cases.LENGTHS]
    text = dataclasses.replace(fit, innovations=tuple(wave)).report()
    assert "not white in omega1, omega2, omega3" in text
    short = [{"gyroscope": np.ones((1, 3))}] * 3
    assert "too few residuals" in dataclasses.replace(fit, innovations=tuple(short)).report()


def test_page_and_dataset_with_undetermined_parameters(fit_with_unknown_noise, tmp_path):
    """Infinite intervals are reported; an existing page is not overwritten."""
    fit, data = fit_with_unknown_noise, cases.measurements(cases.NOISE)
    covariance = fit.covariance.copy()
    covariance[0, 0] = np.inf
    unknown = dataclasses.replace(fit.covariances["model"], matrix=covariance)
    fit = dataclasses.replace(
        fit, covariances={"model": unknown}, method="model", notes=("<moved>",)
    )
    assert str(fit).startswith("Warning: ") and "do not determine I1" in str(fit.verdict)
    predicted = [
        {"gyroscope": np.asarray(run.values[0]) + r["gyroscope"]}
        for run, r in zip(data, fit.residuals, strict=True)
    ]
    path = tmp_path / "fit.html"
    rj.plotting.write_fit_page(fit, data, predicted, path, title="Not determined")
    page = path.read_text()
    assert "<td>inf</td><td>not determined</td>" in page and "<li>&lt;moved&gt;</li>" in page
    with pytest.raises(FileExistsError, match=r"fit.html exists"):
        rj.plotting.write_fit_page(fit, data, predicted, path)
    rj.io.save(rj.io.fit_to_dataset(fit, data, predicted), tmp_path / "fit.nc")
    found = rj.io.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(found["interval"][0], [-np.inf, np.inf])
    assert list(found.run.values) == ["run0", "run1", "run2"]
    assert np.isnan(found["gyroscope_measured"][2, cases.LENGTHS[2] :]).all()
    assert "gyroscope_noise" not in found


def test_predictions_belong_to_the_fitted_runs(noisy_fit):
    with pytest.raises(ValueError, match=r"take the runs of the fit, \('run0', 'run1', 'run2'\)"):
        predictions(noisy_fit, cases.measurements()[:2])
