"""Fits of simulated data whose truth is known."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification import cases

from rigidjax.identification import Gyroscope, Measurements, Simulation, identify
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.search.evaluation import evaluate
from rigidjax.identification.search.options import prepare_runs, trial_simulation
from rigidjax.identification.search.problem import make_problem
from rigidjax.identification.starts.first_samples import start_states


@pytest.fixture(scope="module")
def problem():
    runs = stack_runs(cases.measurements(cases.NOISE, known=True))
    _, (runs,), _ = prepare_runs(cases.START, [runs])
    states = start_states(cases.START, runs, None)
    how = trial_simulation(Simulation(rtol=1e-10, atol=1e-10), runs.ts.dtype)
    return make_problem(cases.START, runs, states, cases.parameters(), how)[0]


@pytest.mark.float32
def test_noisy_data_give_the_truth_within_its_uncertainty(noisy_fit):
    error = noisy_fit.values - cases.truth()
    # The sum of squares of 12 normal numbers exceeds 32.9 once in a thousand.
    assert error @ np.linalg.solve(noisy_fit.covariance, error) < 32.9
    # 270 residuals, 12 parameters: the mean square has a standard deviation of 0.09.
    assert abs(noisy_fit.chi_square - 1) < 0.3
    assert noisy_fit.noise_is_known and noisy_fit.noise == 1
    assert abs(noisy_fit.autocorrelation["gyroscope"]) < 0.2


def test_repr_describes_the_result(noisy_fit):
    fit = noisy_fit
    assert fit.labels[:4] == ("I1", "I2", "drag", "rates[0][run0]")
    assert fit.units[0] == "kg m^2"
    assert fit.estimates["I1"] == fit.values[0] and fit.std["I1"] > 0
    np.testing.assert_allclose(fit.starts[:3], [0.016, 0.015, 4e-4], rtol=1e-12)
    np.testing.assert_array_equal(fit.model.system.inertia[:2], fit.values[:2])
    assert fit.model.system.inertia[2] == cases.INERTIA[2]
    for k, state in enumerate(fit.states):
        np.testing.assert_allclose(state.angular_velocity[0], fit.values[3 + 3 * k : 6 + 3 * k])
    assert [r["gyroscope"].shape for r in fit.residuals] == [(n, 3) for n in cases.LENGTHS]
    squares = sum(np.sum(r["gyroscope"] ** 2) for r in fit.residuals)
    np.testing.assert_allclose(fit.rms["gyroscope"], np.sqrt(squares / fit.num_residuals))
    np.testing.assert_allclose(
        [fit.rms_by_run["gyroscope"]["run1"], fit.rms_by_channel["gyroscope"]["omega2"]],
        [
            np.sqrt(np.mean(fit.residuals[1]["gyroscope"] ** 2)),
            np.sqrt(np.mean(np.concatenate([r["gyroscope"][:, 1] for r in fit.residuals]) ** 2)),
        ],
    )
    assert [t[0] for t in fit.ts] == [0.0, 0.5, 1.0]
    assert all(np.all(np.diff(cost) <= 0) for cost in fit.cost)


@eqx.filter_jit
def at(problem, x):
    """The problem evaluated at all coordinates as one vector."""
    shared, own = problem.start_coordinates()
    size = shared.shape[0]
    return evaluate(problem, x[:size], x[size:].reshape(own.shape))


def start_of(problem):
    shared, own = problem.start_coordinates()
    return jnp.concatenate([shared, own.reshape(-1)])


def test_jacobian(problem):
    """Against finite differences; block-diagonal over the runs, and zero where runs are padded."""
    x = start_of(problem)
    J = np.asarray(at(problem, x).coordinate_jacobian())
    for k in range(x.shape[0]):
        step = 1e-5 * jnp.zeros_like(x).at[k].set(1.0)
        ends = [at(problem, x + sign * step).residuals.reshape(-1) for sign in (1, -1)]
        difference = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(J[:, k], difference, atol=2e-7 * np.abs(J[:, k]).max())
    J = J.reshape(3, -1, 12)
    for run in range(3):
        others = [3 + 3 * k + i for k in range(3) if k != run for i in range(3)]
        assert np.all(J[run][:, others] == 0)
        assert np.all(np.abs(J[run][:, 3 + 3 * run : 6 + 3 * run]).max(axis=0) > 0)
    padded = J[2].reshape(max(cases.LENGTHS), 3, 12)[cases.LENGTHS[2] :]
    assert np.all(padded == 0)


def test_covariance_is_that_of_gauss_newton(noisy_fit, problem):
    """By the delta method from the coordinates of the fit, as an independent path."""
    transforms = [p.transform for p in problem.parameters]
    rates = jnp.asarray(noisy_fit.values[3:]).reshape(3, 1, 3)
    shared = [jnp.asarray(noisy_fit.model.system.inertia), jnp.asarray(noisy_fit.values[2])]
    u = [t.coordinates(leaf) for t, leaf in zip(transforms, shared, strict=False)]
    found = at(problem, jnp.concatenate([*u, rates.reshape(-1)]))
    J = np.asarray(found.coordinate_jacobian())
    in_coordinates = np.linalg.inv(J.T @ J)
    G = np.eye(12)
    G[:2, :2] = jax.jacfwd(lambda v: transforms[0].leaf(v, shared[0])[:2])(u[0])
    G[2, 2] = noisy_fit.values[2]
    expected = G @ in_coordinates @ G.T
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(noisy_fit.covariance / size, expected / size, atol=1e-5)
    np.testing.assert_allclose(np.sqrt(np.diag(noisy_fit.covariance)), list(noisy_fit.std.values()))
    np.testing.assert_allclose(noisy_fit.correlations, expected / size, atol=1e-5)


def test_unknown_noise_is_estimated(noisy_fit, fit_with_unknown_noise):
    fit = fit_with_unknown_noise
    assert not fit.noise_is_known
    np.testing.assert_allclose(fit.values, noisy_fit.values, rtol=1e-6)
    np.testing.assert_allclose(fit.noise, cases.NOISE * np.sqrt(noisy_fit.chi_square), rtol=1e-9)
    np.testing.assert_allclose(
        fit.covariance, noisy_fit.covariance * noisy_fit.chi_square, rtol=1e-4, atol=1e-14
    )


def test_scale_depends_on_the_fixed_moment(noisy_fit):
    verdict = noisy_fit.identifiability
    assert verdict.identifiable and verdict.rank == verdict.num_parameters == 12
    assert np.isfinite(verdict.condition)
    text = str(verdict)
    assert "only the ratios of I1, I2, I3 and drag: their common scale rests on I3" in text
    (sharp,) = [c for c in verdict.sharp if c.label == "I1 - I2"]
    assert str(sharp).startswith("I1 - I2 = 0.00299")
    C = noisy_fit.covariance
    np.testing.assert_allclose(sharp.std**2, C[0, 0] + C[1, 1] - 2 * C[0, 1], rtol=1e-6)
    assert sharp.std < 0.3 * noisy_fit.std["I1"]


class TestReport:
    def test_text_report(self, noisy_fit, tmp_path):
        path = tmp_path / "fit.md"
        text = noisy_fit.report(path)
        assert path.read_text() == text == noisy_fit.report()
        assert "Runs: 3; sampled values: 270; fitted parameters: 12. Result: converged" in text
        assert "| I1 | 0.0" in text and "kg m^2 |" in text
        assert "chi square per degree of freedom" in text
        assert "Strongest correlations: I1, I2: +0.9" in text
        assert "their common scale rests on I3" in text
        assert "by run run0 0.0" in text
        with pytest.raises(FileExistsError, match=r"fit\.md exists"):
            noisy_fit.report(path)
        assert noisy_fit.report(path, force=True) == text

    def test_json_report(self, noisy_fit, tmp_path):
        noisy_fit.report(tmp_path / "fit.json")
        record = json.loads((tmp_path / "fit.json").read_text())
        assert record["converged"] is True
        assert record["parameters"][0]["label"] == "I1"
        assert record["parameters"][0]["estimate"] == noisy_fit.estimates["I1"]
        np.testing.assert_array_equal(record["covariance"], noisy_fit.covariance)

    def test_invalid_arguments_raise(self, noisy_fit, tmp_path):
        with pytest.raises(ValueError, match=r"writes \.md, \.txt, \.json or \.csv"):
            noisy_fit.report(tmp_path / "fit.pdf")
        with pytest.raises(OSError, match=r"Cannot write"):
            noisy_fit.report(tmp_path / "missing" / "fit.md")
        assert list(tmp_path.iterdir()) == []


def test_misfit_is_noted():
    runs = cases.measurements(cases.NOISE)
    runs = [Measurements(r.ts, {Gyroscope(): r.values[0]}, {Gyroscope(): 0.01}) for r in runs]
    fit = identify(cases.START, runs, cases.parameters())
    assert "times as large as the noise that was given" in fit.warnings[0]
    # The worst news comes first.
    text = fit.report()
    assert text.index("times as large as the noise") < text.index("| parameter |")
