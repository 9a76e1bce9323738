"""Prediction-error fits with errors of a logged torque, and with noise of loads on a free body."""

import diffrax
import numpy as np
import scipy.stats

import rigidjax as rj


def test_forces_and_torques_on_a_free_body():
    """Estimate, deviation and likelihood are those of the dense Gaussian of all samples.

    A sphere that starts from rest: the readings are integrals of the noise, each axis by itself.
    """
    ts, rng = np.linspace(0.0, 1.0, 21), np.random.default_rng(3)
    mass, inertia, push, intensity, noise = 2.0, 0.1, 0.5, (0.05, 2e-3), (1e-3, 2e-3)
    body = rj.Body("sphere", mass, (inertia,) * 3)
    model = rj.Relative(rj.System(body, [], rj.PointForce("sphere", force=(push, 0.0, 0.0))))
    early, late = np.minimum.outer(ts, ts), np.maximum.outer(ts, ts)

    def covariances(mass):
        """Return covariances (21, 21) of a coordinate and of an angular velocity."""
        a, b = intensity[0] / mass, intensity[1] / inertia
        position = a**2 * early**2 * (3 * late - early) / 6 + noise[0] ** 2 * np.eye(21)
        return position, b**2 * early + noise[1] ** 2 * np.eye(21)

    x, omega = (np.linalg.cholesky(c) @ rng.normal(size=(21, 3)) for c in covariances(mass))
    x[:, 0] += push * ts**2 / (2 * mass)
    sensors = rj.Position(), rj.Gyroscope()
    data = rj.Measurements(
        ts, dict(zip(sensors, (x, omega), strict=True)), dict(zip(sensors, noise, strict=True))
    )
    parameter = rj.Parameter("mass", lambda e: e.model.system.bodies[0].mass)
    fit = rj.identify(
        model, data, parameter, state0=model.system.reference_state(), solver=diffrax.Bosh3(),
        method="prediction-error", process_noise={"sphere": intensity}, dt=ts[1],
    )  # fmt: skip
    estimate, effect = fit.estimates["mass"], push * ts**2 / 2
    position, rate = covariances(estimate)
    weighted = np.linalg.solve(position, effect)
    std = estimate**2 / np.sqrt(weighted @ effect)
    # Fits end where the estimate changes by less than 1e-3 standard errors.
    best = (weighted @ effect) / (weighted @ x[:, 0])
    np.testing.assert_allclose(estimate, best, atol=1e-3 * std)
    np.testing.assert_allclose(fit.std["mass"], std, rtol=1e-3)
    x[:, 0] -= effect / estimate
    exact = sum(
        scipy.stats.multivariate_normal(np.zeros(21), covariance).logpdf(readings.T).sum()
        for covariance, readings in ((position, x), (rate, omega))
    )
    np.testing.assert_allclose(fit.log_likelihood, exact, atol=1e-4)


def test_gauss_markov_disturbance_by_a_lagged_motor():
    """The likelihood equals that of the dense Gaussian of all samples."""
    ts, rng = np.linspace(0.0, 1.0, 31), np.random.default_rng(5)
    mass, lag, intensity, noise = 0.5, 0.2, 0.3, 2e-3
    rail = rj.Prismatic("ground", "slide", (1.0, 0.0, 0.0), name="rail")
    gust = rj.LaggedMotor("rail", rj.Input("gust"), lag)
    push = rj.Motor("rail", 0.4)
    model = rj.Relative(rj.System(rj.Body("slide", mass, (0.1,) * 3), rail, gust, push))
    # Responses of the position to independent impulses 1 ms apart, and to the constant force.
    early = 1e-3 * (np.arange(1000) + 0.5)
    age = np.maximum(ts[:, None] - early, 0.0)
    response = (age - lag * (1 - np.exp(-age / lag))) * intensity * np.sqrt(1e-3)
    unit, effect = response @ response.T, 0.4 * ts**2 / 2
    identity = noise**2 * np.eye(31)
    y = effect / mass + np.linalg.cholesky(unit / mass**2 + identity) @ rng.normal(size=31)
    sensor = rj.JointCoordinate("rail")
    fit = rj.identify(
        model, rj.Measurements(ts, {sensor: y}, {sensor: noise}), rj.Parameter("slide.mass"),
        state0=model.system.reference_state(), method="prediction-error",
        process_noise={"gust": intensity},
    )  # fmt: skip
    found = fit.estimates["slide.mass"]
    dense = scipy.stats.multivariate_normal(effect / found, unit / found**2 + identity)
    np.testing.assert_allclose(fit.log_likelihood, dense.logpdf(y), atol=1e-3)
