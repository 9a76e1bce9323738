"""Prediction-error fits against dense Gaussian likelihoods, and the linear motion of errors."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special
import scipy.stats

import rigidjax as rj

MASS, STIFFNESS, DAMPING, INTENSITY, NOISE = 0.5, 30.0, 0.4, 0.3, 2e-3
# A gap in the samples, and one sample that is masked.
TS = np.concatenate([np.linspace(0.0, 0.6, 31), np.linspace(0.9, 1.4, 26)])
MASKED = 7
SENSOR = rj.JointCoordinate("rail")


class Push(eqx.Module):
    """The force 2 sin(5 t), N."""

    def __call__(self, t):
        return 2 * jnp.sin(5 * t)


def oscillator():
    body = rj.Body("slide", MASS, (0.1, 0.1, 0.1))
    rail = rj.Prismatic(
        "ground", "slide", (1.0, 0.0, 0.0), name="rail", damping=DAMPING, stiffness=STIFFNESS
    )
    return rj.NullSpace(rj.System(body, [rail], [rj.Motor("rail", Push())]))


class Dense:
    """Means (T,) of the states and their covariance (2 T, 2 T), for a damping and an intensity."""

    def __init__(self, damping, intensity):
        A = np.array([[0.0, 1.0], [-STIFFNESS / MASS, -damping / MASS]])
        B = np.array([[0.0], [1 / MASS]])
        count = len(TS)
        state, effect = np.zeros((count, 2)), np.zeros((2 * count, 2 * count))
        Q = np.zeros((2 * count, 2 * count))
        forced = np.block(
            [[A, B @ [[2.0, 0.0]]], [np.zeros((2, 2)), np.array([[0.0, 5.0], [-5.0, 0.0]])]]
        )
        for j, dt in enumerate(np.diff(TS)):
            # Van Loan (1978): the covariance of the integrated noise from one exponential.
            E = scipy.linalg.expm(
                dt * np.block([[-A, intensity**2 * B @ B.T], [np.zeros((2, 2)), A.T]])
            )
            F = E[2:, 2:].T
            now, new = slice(2 * j, 2 * j + 2), slice(2 * j + 2, 2 * j + 4)
            Q[new, new] = F @ E[:2, 2:]
            effect[new] = F @ effect[now]
            effect[new, new] += np.eye(2)
            push = [np.sin(5 * TS[j]), np.cos(5 * TS[j])]
            state[j + 1] = (scipy.linalg.expm(forced * dt) @ [*state[j], *push])[:2]
        self.mean, self.covariance = state.ravel(), effect @ Q @ effect.T
        self.used = np.delete(np.arange(count), MASKED)
        rows = 2 * self.used
        self.readings = self.covariance[np.ix_(rows, rows)] + NOISE**2 * np.eye(len(rows))

    def error(self, y):
        return (y - self.mean[::2])[self.used]

    def log_likelihood(self, y):
        error = self.error(y)
        return scipy.stats.multivariate_normal(np.zeros_like(error), self.readings).logpdf(error)

    def conditional_mean(self, y):
        gain = self.covariance[:, 2 * self.used] @ np.linalg.inv(self.readings)
        return self.mean + gain @ self.error(y)


def damping_of(experiment):
    return experiment.model.system.joints[0].damping


@pytest.fixture(scope="module")
def oscillator_fit():
    """Return simulated samples and the fit of damping and intensity to them."""
    true, rng = Dense(DAMPING, INTENSITY), np.random.default_rng(0)
    covariance = true.covariance[::2, ::2] + NOISE**2 * np.eye(len(TS))
    y = true.mean[::2] + np.linalg.cholesky(covariance) @ rng.normal(size=len(TS))
    mask = np.arange(len(TS)) != MASKED
    data = rj.Measurements(TS, {SENSOR: y}, {SENSOR: NOISE}, mask={SENSOR: mask})
    model = oscillator()
    fit = rj.identify(
        model, data, rj.Parameter("c", damping_of), state0=model.system.reference_state(),
        method="prediction-error", process_noise={"rail": None},
    )  # fmt: skip
    return y, fit


def test_the_likelihood_is_that_of_the_dense_gaussian(oscillator_fit):
    """Also over the gap, in which the process noise acts for 0.3 s, and without the masked sample.

    The steps are so short that halving them changes no innovation by 1e-3 standard deviations.
    """
    y, fit = oscillator_fit
    dense = Dense(fit.estimates["c"], fit.process_noise["rail"])
    np.testing.assert_allclose(fit.log_likelihood, dense.log_likelihood(y), atol=1e-4)


def test_smoothed_states_are_conditional_means(oscillator_fit):
    y, fit = oscillator_fit
    dense = Dense(fit.estimates["c"], fit.process_noise["rail"]).conditional_mean(y)
    (states,) = fit.smoothed_states
    np.testing.assert_allclose(states.position[:, 0, 0], dense[::2], atol=1e-6)
    np.testing.assert_allclose(states.velocity[:, 0, 0], dense[1::2], atol=1e-5)


def test_the_stated_deviation_is_that_of_the_likelihood(oscillator_fit):
    """The curvature of the exact likelihood; the two differ by the random part of the curvature."""
    y, fit = oscillator_fit
    c, s, h = fit.estimates["c"], fit.process_noise["rail"], 0.05
    values = [Dense(c + k * h, s).log_likelihood(y) for k in (-1, 0, 1)]
    curvature = -(values[0] - 2 * values[1] + values[2]) / h**2
    np.testing.assert_allclose(fit.std["c"], curvature**-0.5, rtol=0.1)


def test_innovations_are_the_residuals(oscillator_fit):
    """White, of the dense variance at the end, and not finite where a sample is masked."""
    _, fit = oscillator_fit
    innovations = fit.residuals[0]["coordinate of rail"][:, 0]
    assert np.array_equal(np.flatnonzero(np.isnan(innovations)), [MASKED])
    assert fit.converged and 0.7 < fit.chi_square < 1.4
