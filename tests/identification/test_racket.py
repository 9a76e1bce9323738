"""The measured racket: the known optimum, from the pendulum values."""

import pathlib

import numpy as np
import pytest

import rigidjax as rj
from rigidjax.cli import demo as command
from rigidjax.cli.demo import racket_case


@pytest.mark.exhaustive
def test_optimum_from_the_pendulum_values():
    case = racket_case()
    fit = rj.identify(case.model, case.measurements, case.parameters)
    assert fit.converged
    np.testing.assert_allclose(fit.rms["gyroscope"], 0.45839, atol=5e-6)
    np.testing.assert_allclose(fit.estimates["I1"], 18.85e-3, atol=5e-6)
    np.testing.assert_allclose(fit.estimates["I2"], 17.53e-3, atol=5e-6)
    np.testing.assert_allclose(fit.estimates["c"], 8.571e-6, atol=5e-10)
    std = dict(zip(fit.labels, fit.covariances["model"].std, strict=True))
    np.testing.assert_allclose([std["I1"], std["I2"]], 0.55e-3, atol=5e-6)
    # Residuals are not white, so that the intervals are wider, and the report says so first.
    assert fit.method == "hac" and fit.std["I1"] > 2 * std["I1"]
    assert fit.report().startswith("**Warning: the intervals may")
    np.testing.assert_allclose(fit.correlation("I1", "I2"), 0.9999, atol=5e-5)
    assert fit.num_residuals == 409 * 3 and len(fit.labels) == 3 + 15
    assert sum(fit.iterations) < 60 and fit.failed_evaluations == 0
    # The pendulum values are moved to a body that exists.
    (note,) = fit.notes
    assert "violates the triangle inequality" in note and "nearest physical inertia" in note
    np.testing.assert_allclose(fit.starts[:2], [20.425e-3, 19.075e-3], atol=1e-6)
    assert fit.identifiability.identifiable
    assert "their common scale rests on I3" in str(fit.identifiability)
    (sharp,) = [c for c in fit.identifiability.sharp if c.label == "I1 - I2"]
    np.testing.assert_allclose(sharp.value, 1.325e-3, atol=2e-6)
    assert sharp.std < 0.025e-3


def test_missing_data_file_raises(monkeypatch, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*flips\.csv"):
        command.racket_case(tmp_path / "flips.csv")
    monkeypatch.setattr(command, "_DATA_FILE", pathlib.Path("datasets", "nowhere", "flips.csv"))
    with pytest.raises(FileNotFoundError, match=r"not part of an installed package.*`--data FILE`"):
        command.racket_case()
