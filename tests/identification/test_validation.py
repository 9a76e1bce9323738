"""Predictions of held-out runs against the closed form of an oscillator."""

import numpy as np
import pytest
import scipy.optimize
from identification import oscillator

import rigidjax as rj
from rigidjax.identification import IdentificationError, Measurements

NAME = "coordinate of hinge"
RATES = (1.7, -0.8)


@pytest.fixture(scope="module")
def fit():
    return oscillator.fit(oscillator.measure(seed=4))


def test_prediction_from_given_and_from_fitted_starts(fit):
    """Starts that are wrong by 5 % of the rate are found by least squares on the closed form."""
    held_out = oscillator.measure(seed=7, rates=RATES)
    wrong = [1.05 * v for v in RATES]
    result = fit.validate(held_out, [oscillator.start(v) for v in wrong])
    stiffness, damping = fit.values
    squares, fitted_squares = 0.0, 0.0
    for b, v in enumerate(wrong):
        samples = np.asarray(held_out[b].values[0])
        predicted = oscillator.closed_form(v, stiffness, damping) - samples
        np.testing.assert_allclose(result.residuals[b][NAME][:, 0], predicted, atol=1e-6)
        squares += predicted @ predicted

        def residuals(x, samples=samples):
            moved = oscillator.closed_form(x[1], stiffness, damping, -x[0])
            return x[0] + moved - samples

        r = scipy.optimize.least_squares(residuals, [0.0, v], xtol=1e-14).fun
        np.testing.assert_allclose(result.residuals_fitted_start[b][NAME][:, 0], r, atol=1e-6)
        fitted_squares += r @ r
    count, noise = 2 * oscillator.TS.size, oscillator.NOISE
    assert result.chi_square == pytest.approx(squares / noise**2 / count, rel=1e-4)
    assert result.chi_square_fitted_start == pytest.approx(
        fitted_squares / noise**2 / (count - 4), rel=1e-4
    )
    (sensor,) = result.sensors
    values = np.array([run.values[0] for run in held_out])
    constant = np.sqrt(np.mean((values - values.mean(axis=1, keepdims=True)) ** 2))
    assert sensor.constant == pytest.approx(constant)
    assert sensor.predicted == pytest.approx(np.sqrt(squares / count), rel=1e-4)
    assert sensor.noise == pytest.approx(noise)
    assert result.sentence.startswith("The starts, not the model, limit the prediction: from")
    assert len(result.start_labels) == 4 and "run0" in result.start_labels[0]
    assert result.sentence in result.to_markdown() and result.sentence in repr(result)


def test_verdicts_on_right_and_wrong_models(fit):
    states = [oscillator.start(v) for v in RATES]
    right = fit.validate(oscillator.measure(seed=7, rates=RATES, noise=None), states)
    assert right.sentence.startswith("The model predicts the held-out runs to within their noise")
    other = fit.validate(oscillator.measure(seed=7, damping=0.6, rates=RATES), states)
    assert other.sentence.startswith("The model lacks something that the held-out runs show")
    noise = 0.2 * np.random.default_rng(0).normal(size=(2, oscillator.TS.size))
    still = [
        Measurements(oscillator.TS, {oscillator.ANGLE: x}, {oscillator.ANGLE: 0.01}) for x in noise
    ]
    assert "no better than a constant" in fit.validate(still, states).sentence


def test_invalid_runs_raise(fit):
    ts = oscillator.TS
    other = Measurements(ts, {rj.JointRate("hinge"): 0 * ts})
    with pytest.raises(ValueError, match=r"held_out=...\)` takes runs with the sensors of the fit"):
        fit.validate(other)
    with pytest.raises(IdentificationError, match=r"cannot simulate the held-out run 'run0': "):
        fast = [oscillator.start(v) for v in (1e200, 1e200)]
        fit.validate(oscillator.measure(rates=RATES), fast)
