"""Comparison of models against least squares by SciPy on the closed form."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize
from identification import oscillator
from scipy.stats import chi2, multivariate_normal

import rigidjax as rj
from rigidjax.identification import GaussianProcess, Huber
from rigidjax.identification.comparison.chi_bar_square import (
    chi_bar_square_tail,
    chi_bar_square_weights,
    orthant_probability,
)

DATA = oscillator.measure(seed=4, damping=0.0)
MODELS = {
    "free": (oscillator.STIFF,),
    "damped": (oscillator.STIFF, oscillator.DAMPED),
    "rest": (oscillator.STIFF, oscillator.RESTED),
}


@pytest.fixture(scope="module")
def fits():
    return {name: oscillator.fit(DATA, ps, damping=0.0) for name, ps in MODELS.items()}


def solve_by_scipy(name, runs):
    """Return the deviance of these runs at the estimates, and a function for those of others."""
    keys = {
        "free": ["stiffness"],
        "damped": ["stiffness", "damping"],
        "rest": ["stiffness", "rest"],
    }
    lower = [0.0 if key == "damping" else -np.inf for key in keys[name]]

    def residuals(x, runs):
        values = {"damping": 0.0, **dict(zip(keys[name], x, strict=True))}
        parts = [
            (oscillator.closed_form(oscillator.RATES[b], **values) - DATA[b].values[0])
            for b in runs
        ]
        return np.concatenate(parts) / oscillator.NOISE

    x0 = [4.0] + [1e-3] * (len(keys[name]) - 1)
    found = scipy.optimize.least_squares(
        lambda x: residuals(x, runs), x0, bounds=(lower, np.inf), xtol=1e-14, ftol=1e-14
    )

    def deviance(runs):
        r = residuals(found.x, runs)
        return r @ r + r.size * np.log(2 * np.pi * oscillator.NOISE**2)

    return deviance


def test_criteria_and_predictions_of_runs_left_out(fits):
    """Errors of integration are up to 1e-8, and change a deviance by 1e-6 for each sample."""
    comparison = rj.compare_models(fits, folds=3)
    num_samples = 3 * oscillator.TS.size
    for k, name in enumerate(MODELS):
        deviance = solve_by_scipy(name, [0, 1, 2])([0, 1, 2])
        count = len(MODELS[name])
        found = comparison.likelihoods[k]
        assert found.deviance == pytest.approx(deviance, abs=1e-3)
        assert found.aic == pytest.approx(deviance + 2 * count, abs=1e-3)
        correction = 2 * count * (count + 1) / (num_samples - count - 1)
        assert found.aicc == pytest.approx(deviance + 2 * count + correction, abs=1e-3)
        assert found.bic == pytest.approx(deviance + count * np.log(num_samples), abs=1e-3)
        left_out = [
            solve_by_scipy(name, [b for b in range(3) if b != out])([out]) for out in range(3)
        ]
        np.testing.assert_allclose(comparison.predicted[k], left_out, atol=1e-3)
    criterion = np.array([x.aicc for x in comparison.likelihoods])
    odds = np.exp(-0.5 * (criterion - criterion[0]))
    np.testing.assert_allclose(comparison.odds, odds / odds.sum())


def test_estimated_noise_is_a_parameter(fits):
    """The most likely variance is the mean square of the residuals."""
    unknown = oscillator.measure(seed=4, damping=0.0, noise=None)
    fit = oscillator.fit(unknown, MODELS["free"], damping=0.0)
    comparison = rj.compare_models({"estimated": fit, "given": fits["free"]}, folds=3)
    r = np.concatenate([run["coordinate of hinge"][:, 0] for run in fit.residuals])
    deviance = r.size * (np.log(2 * np.pi * np.mean(r**2)) + 1)
    assert comparison.likelihoods[0].deviance == pytest.approx(deviance, abs=1e-6)
    assert [x.num_parameters for x in comparison.likelihoods] == [2, 1]
    # Without the last run, of the residuals of the others.
    weighted = solve_by_scipy("free", [0, 1])
    constant = oscillator.TS.size * np.log(2 * np.pi * oscillator.NOISE**2)
    squares = [weighted([b]) - constant for b in range(3)]
    variance = (squares[0] + squares[1]) / (2 * oscillator.TS.size)
    expected = squares[2] / variance + constant + oscillator.TS.size * np.log(variance)
    assert comparison.predicted[0, 2] == pytest.approx(expected, abs=1e-3)


@pytest.mark.exhaustive
def test_likelihood_of_a_noise_model():
    """The density of the residuals is normal, with the covariance of the process and the noise."""
    process = GaussianProcess(0.01, 0.4)
    fit = oscillator.fit(DATA, MODELS["free"], damping=0.0, noise=process)
    lag = np.abs(oscillator.TS[:, None] - oscillator.TS)
    covariance = 0.01**2 * np.exp(-lag / 0.4) + oscillator.NOISE**2 * np.eye(len(lag))
    density = multivariate_normal(np.zeros(len(lag)), covariance)
    expected = -2 * sum(density.logpdf(run["coordinate of hinge"][:, 0]) for run in fit.residuals)
    comparison = rj.compare_models([fit, fit], folds=0)
    assert comparison.likelihoods[0].deviance == pytest.approx(expected, abs=1e-3)


@pytest.mark.exhaustive
def test_runs_left_out_with_parameters_per_run():
    """The bias of the encoder is fitted to the run that is left out, the stiffness is not."""
    bias = rj.Parameter("bias", lambda e: e.sensors[0].bias, per_run=True, unit="rad")
    data = oscillator.measure(seed=4, damping=0.0)
    fit = oscillator.fit(data, (oscillator.STIFF, bias), damping=0.0)
    found = rj.compare_models([fit, fit], folds=3).predicted[0]

    def residuals(stiffness, b):
        angle = oscillator.closed_form(oscillator.RATES[b], stiffness, 0.0)
        r = (angle - np.asarray(DATA[b].values[0])) / oscillator.NOISE
        return r - r.mean()

    constant = oscillator.TS.size * np.log(2 * np.pi * oscillator.NOISE**2)
    for out in range(3):
        others = [b for b in range(3) if b != out]
        solution = scipy.optimize.least_squares(
            lambda x, bs=others: np.concatenate([residuals(x, b) for b in bs]), [4.0], xtol=1e-14
        )
        expected = np.sum(residuals(solution.x, out) ** 2) + constant
        assert found[out] == pytest.approx(expected, abs=1e-3)


def test_nested_models_and_a_parameter_on_its_bound(fits):
    """Without damping the larger model has its bound, and half of the statistics are zero."""
    comparison = rj.compare_models(list(fits.values()), list(fits), folds=0)
    ratios = {ratio.larger: ratio for ratio in comparison.ratios}
    assert set(ratios) == {"damped", "rest"} and comparison.predicted.size == 0
    assert ratios["damped"].weights == (0.5, 0.5) and ratios["damped"].interior == 0
    assert ratios["rest"].weights == (1.0,) and ratios["rest"].interior == 1
    for larger, factor in (("damped", 0.5), ("rest", 1.0)):
        statistic = solve_by_scipy("free", [0, 1, 2])([0, 1, 2])
        statistic -= solve_by_scipy(larger, [0, 1, 2])([0, 1, 2])
        assert statistic > 0.1  # The seed is one for which the damping is not on its bound.
        assert ratios[larger].p_value == pytest.approx(factor * chi2.sf(statistic, 1), rel=1e-3)
    assert comparison.best == "free"
    assert "does not reject 'free' within 'damped'" in comparison.sentence
    text = comparison.to_markdown()
    assert "0.5 chi2(0) + 0.5 chi2(1)" in text and comparison.sentence in repr(comparison)


def test_a_wrong_model_is_rejected(fits):
    data = oscillator.measure(seed=4, damping=0.3)
    wrong, right = (oscillator.fit(data, MODELS[name], damping=0.0) for name in ("free", "damped"))
    comparison = rj.compare_models({"free": wrong, "damped": right})
    assert comparison.best == "damped" and comparison.ratios[0].p_value < 1e-12
    assert "rejects 'free' within 'damped' (p < 1e-15)" in comparison.sentence
    assert "predicted better than by 'free'" in comparison.sentence
    assert any("residuals of 'free' are not independent" in note for note in comparison.notes)


def test_weights_against_projections(rng):
    """Projections on the orthant in the metric of the covariance, by non-negative squares."""
    root = np.array([[1.0, 0, 0], [0.7, 0.6, 0], [-0.4, 0.5, 0.8]])
    covariance = root @ root.T
    factor = np.linalg.inv(root)
    counts = [
        np.count_nonzero(scipy.optimize.nnls(factor, z)[0]) for z in rng.normal(size=(4000, 3))
    ]
    expected = np.bincount(counts, minlength=4) / 4000
    np.testing.assert_allclose(chi_bar_square_weights(covariance), expected, atol=0.025)
    assert chi_bar_square_weights(np.zeros((0, 0))) == [1.0]
    # Independent variables, and the integration in four dimensions.
    np.testing.assert_allclose(chi_bar_square_weights(np.eye(3)) * 8, [1, 3, 3, 1])
    assert orthant_probability(np.eye(4)) == pytest.approx(1 / 16, abs=1e-4)
    assert chi_bar_square_tail(2.7, np.array([0.5, 0.5])) == pytest.approx(0.5 * chi2.sf(2.7, 1))
    assert chi_bar_square_tail(0.0, np.array([0.5, 0.5])) == 1.0


def test_invalid_arguments_raise(fits):
    free = fits["free"]
    with pytest.raises(TypeError, match=r"`compare_models\(fits=...\)` takes results.*got str"):
        rj.compare_models([free, "free"])  # pyright: ignore
    with pytest.raises(ValueError, match=r"takes two or more fits; got 1"):
        rj.compare_models([free])
    with pytest.raises(ValueError, match=r"names=...\)` must be 2 different names; got \('a', 'a'"):
        rj.compare_models([free, free], ("a", "a"))
    with pytest.raises(ValueError, match=r"folds=...\)` must be 0 or a number .* above 1; got 1"):
        rj.compare_models([free, free], folds=1)
    other = oscillator.fit(oscillator.measure(seed=5, damping=0.0), MODELS["free"], damping=0.0)
    with pytest.raises(ValueError, match=r"fit 2 differs from the first one in the samples of the"):
        rj.compare_models([free, other])
    optimum = free.optimum
    robust = dataclasses.replace(optimum, search=dataclasses.replace(optimum.search, loss=Huber()))
    with pytest.raises(ValueError, match=r"loss Huber has no likelihood"):
        rj.compare_models([dataclasses.replace(free, optimum=robust)] * 2)
    short = dataclasses.replace(optimum.runs, lengths=(31, 31, 20))
    short = dataclasses.replace(free, optimum=dataclasses.replace(optimum, runs=short))
    with pytest.raises(ValueError, match=r"differs from the first one in the numbers of samples"):
        rj.compare_models([free, short])
    with pytest.raises(ValueError, match=r"takes converged fits; fit 2 ended with: no optimum"):
        rj.compare_models([free, dataclasses.replace(free, result="no optimum")])
