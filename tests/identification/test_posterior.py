"""The density of posterior samples against the closed form of an oscillator."""

import dataclasses
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification import oscillator

from rigidjax.identification import Posterior
from rigidjax.identification.intervals.posterior import BoundChart, make_log_posterior

# So much noise that the damping may be zero.
LOUD = 0.3
DATA = oscillator.measure(seed=2, damping=0.1, noise=LOUD, std=LOUD)


def log_density(stiffness, damping, noise_is_known):
    """Return the logarithm of the density, up to a constant."""
    values = {"stiffness": stiffness, "damping": damping}
    r = oscillator.weighted_residuals(DATA, LOUD, **values)
    return -0.5 * (r @ r if noise_is_known else r.size * np.log(r @ r))


@pytest.fixture(scope="module")
def fit():
    return oscillator.fit(DATA)


@pytest.mark.parametrize("noise_is_known", [True, False])
def test_density_and_gradient(fit, noise_is_known):
    """The density by z is that of the components times the derivative of the components."""
    if not noise_is_known:
        runs = dataclasses.replace(fit.optimum.runs, has_noise=(False,))
        fit = dataclasses.replace(fit, optimum=dataclasses.replace(fit.optimum, runs=runs))
    posterior = make_log_posterior(fit.optimum, 1.0)
    evaluate = eqx.filter_jit(lambda z, posterior: jax.value_and_grad(posterior)(z))
    rows = []
    for z in ([0.0, 0.0], [0.7, -1.2], [-0.5, 0.9]):
        z = jnp.asarray(z)
        value, gradient = evaluate(z, posterior)
        plain = eqx.filter_jit(lambda z, posterior: posterior.without_derivatives(z))(z, posterior)
        assert float(plain) == pytest.approx(float(value), abs=1e-5)  # Other steps.
        for k in range(2):
            step = jnp.zeros(2).at[k].set(1e-4)
            ends = evaluate(z + step, posterior)[0] - evaluate(z - step, posterior)[0]
            assert float(gradient[k]) == pytest.approx(float(ends) / 2e-4, rel=1e-5, abs=1e-5)
        components = posterior.components(z)
        derivative = jax.jacfwd(posterior.components)(z)
        exact = np.log(np.linalg.det(derivative)) + log_density(*components, noise_is_known)
        rows.append(value - exact)
    np.testing.assert_allclose(rows, rows[0], atol=1e-3)


def test_charts_of_bounds():
    infinity = np.inf
    chart = BoundChart(
        jnp.array([-1.0, 0.5, -infinity, -infinity]), jnp.array([2.0, infinity, 3.0, infinity])
    )
    u = jnp.array([0.3, 4.0, -2.0, 0.7])
    x = chart.inverse(u)
    np.testing.assert_allclose(chart.coordinates(x), u, rtol=1e-12)
    jacobian = jax.jacfwd(chart.coordinates)(x)
    np.testing.assert_allclose(chart.slope(x), np.abs(np.diag(jacobian)), rtol=1e-12)
    far = chart.coordinates(jnp.array([40.0, -40.0, -40.0, 5.0]))
    np.testing.assert_allclose(far, [2.0, 0.5, 3.0, 5.0])


def test_warnings_name_samples_that_are_not_to_be_trusted():
    posterior = Posterior(
        labels=("a", "b"),
        units=("", ""),
        samples=np.random.default_rng(0).normal(size=(2, 10, 2)),
        r_hat={"a": 1.3, "b": 1.0},
        effective_samples={"a": 7.0, "b": 20.0},
        divergences=3,
        acceptance=0.5,
        evaluations=100,
        bounds={},
    )
    text = " ".join(posterior.warnings)
    assert "have not mixed in ['a'] (R-hat up to 1.3)" in text
    assert "only 7 effective samples" in text and "3 trajectories diverged" in text
    np.testing.assert_allclose(posterior.covariance, np.cov(posterior.flat.T))
    with pytest.raises(ValueError, match=r"intervals\(level=...\)` lies between 0 and 1.*got 95"):
        posterior.intervals(95)


def test_invalid_arguments_raise(fit, monkeypatch):
    key = jax.random.key(0)
    with pytest.raises(ValueError, match=r"posterior\(chains=...\)` must be at least 2; got 1"):
        fit.posterior(key, chains=1)
    verdict = dataclasses.replace(fit.identifiability, identifiable=False)
    with pytest.raises(ValueError, match=r"the data do not determine all parameters"):
        dataclasses.replace(fit, identifiability=verdict).posterior(key)
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ModuleNotFoundError, match="Posterior samples need blackjax: pip install"):
        fit.posterior(key)


@pytest.mark.parametrize("least", [0.2, 2.0], ids=["proposals", "No-U-Turn"])
def test_samples_against_integration_on_a_grid(fit, least, monkeypatch):
    pytest.importorskip("blackjax")
    monkeypatch.setattr("rigidjax.identification.intervals.posterior._EFFECTIVE", least)
    posterior = fit.posterior(jax.random.key(3), samples=400, warmup=200)
    axes = np.linspace(2.0, 7.0, 81), np.linspace(0.0, 1.2, 81)
    grid = np.array([[log_density(k, d, True) for d in axes[1]] for k in axes[0]])
    density = np.exp(grid - grid.max())
    density /= density.sum()
    for k, label in enumerate(("stiffness", "damping")):
        marginal = density.sum(axis=1 - k)
        mean = axes[k] @ marginal
        std = np.sqrt((axes[k] - mean) ** 2 @ marginal)
        error = std / np.sqrt(posterior.effective_samples[label])
        assert posterior.mean[label] == pytest.approx(mean, abs=4 * error)
        assert posterior.std[label] == pytest.approx(std, abs=4 * error)
    assert (posterior.evaluations == 4 * 600) == (least < 1)
    assert np.all(posterior.samples[..., 1] > 0) and "4 chains of 400" in repr(posterior)
