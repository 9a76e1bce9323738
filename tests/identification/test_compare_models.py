"""Comparison of models against least squares by SciPy on the closed form."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize
from identification import oscillator
from scipy.stats import chi2

import rigidjax as rj
from rigidjax.identification import Huber

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
    keys = [parameter.name for parameter in MODELS[name]]
    lower = [0.0 if key == "damping" else -np.inf for key in keys]

    def residuals(x, runs):
        values = {"damping": 0.0, **dict(zip(keys, x, strict=True))}
        rates, data = [oscillator.RATES[b] for b in runs], [DATA[b] for b in runs]
        return oscillator.weighted_residuals(data, oscillator.NOISE, rates, **values)

    x0 = [4.0] + [1e-3] * (len(keys) - 1)
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


def test_likelihood_ratios_of_nested_models(fits):
    nested = [("free", "damped"), ("free", "rest")]
    comparison = rj.compare_models(list(fits.values()), list(fits), nested=nested, folds=0)
    assert [(r.smaller, r.larger) for r in comparison.ratios] == nested
    assert comparison.predicted.size == 0
    for ratio in comparison.ratios:
        statistic = solve_by_scipy("free", [0, 1, 2])([0, 1, 2])
        statistic -= solve_by_scipy(ratio.larger, [0, 1, 2])([0, 1, 2])
        assert statistic > 0.1 and ratio.freedom == 1
        assert ratio.p_value == pytest.approx(chi2.sf(statistic, 1), rel=1e-3)
    assert comparison.best == "free"
    assert "does not reject 'free' within 'damped'" in comparison.sentence
    text = comparison.to_markdown()
    assert "| free in rest |" in text and comparison.sentence in repr(comparison)
    assert rj.compare_models(fits, folds=0).ratios == ()


def test_bounds_limit_the_likelihood_ratio(fits):
    """The damping of `free` is on the bound of `damped`, the rest angle has no bound."""
    comparison = rj.compare_models(fits, nested=[("free", "damped"), ("free", "rest")], folds=0)
    (note,) = comparison.notes
    assert "'damped' has bounds of ['damping']. If 'free' is on such a bound, the p-value" in note
    assert note in comparison.to_markdown() and note in repr(comparison)
    # Data that would have the damping negative.
    data = oscillator.measure(seed=0, damping=0.0)
    both = (*MODELS["damped"], oscillator.RESTED)
    pair = {
        "damped": oscillator.fit(data, MODELS["damped"], damping=0.0),
        "both": oscillator.fit(data, both, damping=0.0),
    }
    assert [b.label for b in pair["both"].bounds] == ["damping"]
    notes = rj.compare_models(pair, nested=[("damped", "both")], folds=0).notes
    assert notes == ("'both' has ['damping'] on a bound; the p-value of 'damped' is approximate.",)


def test_a_wrong_model_is_rejected():
    data = oscillator.measure(seed=4, damping=0.3)
    wrong, right = (oscillator.fit(data, MODELS[name], damping=0.0) for name in ("free", "damped"))
    models = {"free": wrong, "damped": right}
    comparison = rj.compare_models(models, nested=[("free", "damped")])
    assert comparison.best == "damped" and comparison.ratios[0].p_value < 1e-12
    assert "rejects 'free' within 'damped' (p < 1e-15)" in comparison.sentence
    assert "predicted better than by 'free'" in comparison.sentence
    assert any("residuals of 'free' are not independent" in note for note in comparison.notes)


def test_pairs_that_are_not_nested_raise(fits):
    def compare(*nested, **changes):
        return rj.compare_models({**fits, **changes}, nested=nested, folds=0)

    with pytest.raises(ValueError, match=r"takes pairs of names.*'rest'\); got \('free', 'other'"):
        compare(("free", "other"))
    with pytest.raises(ValueError, match=r"takes pairs of names.*; got 'free'"):
        compare("free", "rest")
    with pytest.raises(ValueError, match=r"'free' contains 'rest' only if it has more parameters"):
        compare(("rest", "free"))
    verdict = dataclasses.replace(fits["rest"].identifiability, identifiable=False)
    rest = dataclasses.replace(fits["rest"], identifiability=verdict)
    with pytest.raises(ValueError, match=r"do not determine all parameters of 'rest', so that"):
        compare(("free", "rest"), rest=rest)
    unknown = oscillator.measure(seed=4, damping=0.0, noise=None)
    rest = oscillator.fit(unknown, MODELS["rest"], damping=0.0)
    with pytest.raises(ValueError, match=r"'free' and 'rest' differ in the noise that they"):
        compare(("free", "rest"), rest=rest)
    # A larger model that ended in a local minimum.
    deviant = oscillator.fit(DATA, MODELS["rest"], damping=0.05)
    notes = compare(("free", "rest"), rest=deviant).notes
    assert any("'rest' fits worse than 'free': it does not contain it" in note for note in notes)


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
