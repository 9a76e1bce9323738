"""Prediction-error fits with errors of a logged torque, and with noise of loads on a free body."""

import diffrax
import numpy as np
import pytest
import scipy.stats

import rigidjax as rj
from rigidjax.identification import Positive, identify_batch

TS = np.linspace(0.0, 2.0, 101)
INERTIA, ERROR, NOISE = 0.05, 0.05, 2e-3
SENSOR = rj.JointCoordinate("hinge", period=np.inf)


def make_wheel(torque):
    """Return the model of a wheel with a motor whose torque (T,) is logged."""
    body = rj.Body("wheel", 1.0, (0.04, 0.04, INERTIA))
    hinge = rj.Revolute("ground", "wheel", (0, 0, 0), (0, 0, 1), name="hinge")
    law = rj.Signal(TS, torque, "hold", extrapolation="constant", name="torque")
    return rj.Relative(rj.System(body, hinge, rj.Motor("hinge", law)))


def integrate_twice(torque):
    """Return the double integral (N, T) of torques (N, T) that are held between samples."""
    h = TS[1]
    impulse = np.cumsum(torque, axis=1) * h
    integral = np.cumsum(impulse * h - torque * h**2 / 2, axis=1)
    return np.pad(integral, ((0, 0), (1, 0)))[:, :-1]


@pytest.mark.exhaustive
def test_errors_of_a_logged_torque():
    """The stated deviation holds in 100 fits, and the bias is at most a quarter of it.

    Both limits are wider by three standard deviations for 100 fits. Fits of whole runs, here in
    closed form, scatter more, and by far more than they state.
    """
    rng, count = np.random.default_rng(5), 100
    torque = np.sin(4.0 * TS) + 0.6 * np.sin(9.0 * TS + 1.0)
    logged = torque + ERROR * rng.normal(size=(count, len(TS)))
    angles = integrate_twice(torque[None]) / INERTIA + NOISE * rng.normal(size=logged.shape)
    data = [
        rj.Measurements(TS, {SENSOR: y}, {SENSOR: NOISE}, inputs={"torque": (TS, u)})
        for y, u in zip(angles, logged, strict=True)
    ]
    model = make_wheel(torque)
    inertia = rj.Parameter(
        "inertia", lambda e: e.model.system.bodies[0].inertia, Positive(which=(2,)),
        labels=("I1", "I2", "I3"),
    )  # fmt: skip
    fits = identify_batch(
        model, data, inertia, state0=model.system.reference_state(), solver=diffrax.Bosh3(),
        dt=TS[1], method="prediction-error", process_noise={"torque": ERROR},
    )  # fmt: skip
    z = (fits.values - INERTIA) / fits.std
    assert np.all(fits.converged)
    assert abs(z.mean()) < 0.25 + 3 / np.sqrt(count)
    assert abs(z.std() - 1) < 3 / np.sqrt(2 * count)
    response = integrate_twice(logged)
    plain = np.sum(response**2, axis=1) / np.sum(response * angles, axis=1)
    stated = NOISE * INERTIA**2 / np.linalg.norm(response, axis=1)
    assert plain.std() > 100 * stated.max() and plain.std() > 1.5 * fits.values.std()


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
