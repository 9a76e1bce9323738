"""Sensors that are not ideal: bias, scale, misalignment, delay."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.rotations import so3

INERTIA = (2.0, 3.0, 4.0)
BIAS, SCALE, TURN, DELAY = (0.03, -0.02, 0.01), (1.02, 0.97, 1.01), (0.02, -0.03, 0.01), 0.013
NOISE = 1e-4
TS = np.linspace(0.0, 4.0, 81)


def torque(t, R, omega):
    """A known moment, which makes all of it observable."""
    return jnp.stack([jnp.sin(2.0 * t), 1.5 * jnp.cos(3.0 * t), -1.0 + jnp.sin(t)])


MODEL = rj.NullSpace(rj.FixedPointBody(INERTIA, moment=torque))
EARLY = rj.State(angular_velocity=(0.5, -0.8, 1.0))
PARAMETERS = (
    rj.Parameter("bias", lambda e: e.sensors[0].bias, unit="rad/s"),
    rj.Parameter("scale", lambda e: e.sensors[0].scale),
    rj.Parameter("misalignment", lambda e: e.sensors[0].misalignment, unit="rad"),
    rj.Parameter("delay", lambda e: e.sensors[0].delay, unit="s"),
)


@pytest.fixture(scope="module")
def start():
    """The state at t = 0 of a motion that is known since one delay before."""
    run = rj.simulate(MODEL, EARLY, 0.0, t0=-DELAY, rtol=1e-12, atol=1e-12)
    return jax.tree.map(lambda leaf: leaf[-1], run.states)


@pytest.fixture(scope="module")
def exact():
    """Readings by their definition, from a run at the shifted times."""
    run = rj.simulate(MODEL, EARLY, 4.0 - DELAY, t0=-DELAY, ts=TS - DELAY, rtol=1e-11, atol=1e-11)
    omega = np.asarray(run.states.angular_velocity[:, 0])
    C = np.asarray(rj.Quaternion().to_matrix(so3.exp_quaternion(jnp.array(TURN)))).T
    return SCALE * (omega @ C.T) + np.array(BIAS)


def test_delayed_reading_from_a_single_state():
    """The motion is continued backwards to round-off over a delay of 0.2 rad."""
    run = rj.simulate(MODEL, EARLY, 1.0, ts=[0.8, 1.0], rtol=1e-12, atol=1e-12)
    sensor = rj.Delayed(rj.Gyroscope(), 0.2)
    found = sensor.predict(MODEL, run.ts[-1], run.ys[-1])
    np.testing.assert_allclose(found, run.states.angular_velocity[0, 0], atol=1e-11)
    late = rj.Delayed(rj.Gyroscope(bias=BIAS, scale=SCALE, misalignment=TURN), DELAY)
    same = rj.Gyroscope(bias=BIAS, scale=SCALE, misalignment=TURN, delay=DELAY)
    found, expected = (s.predict(MODEL, run.ts[-1], run.ys[-1]) for s in (late, same))
    np.testing.assert_array_equal(found, expected)
    assert late.name == "delayed gyroscope" and late.channels == same.channels


ROTOR = 1e-3, 0.1  # kg m^2, N m s: the rate follows the torque within 10 ms.
TORQUE = (0.2, -0.1)  # N m, from 0 s and from 0.25 s


def rotor_rate(t, start=0.5):
    """Rate and acceleration in closed form, continued to before the start."""
    decay, final = ROTOR[1] / ROTOR[0], np.array(TORQUE) / ROTOR[1]
    first = final[0] + (start - final[0]) * np.exp(-decay * np.minimum(t, 0.25))
    second = final[1] + (first - final[1]) * np.exp(-decay * np.maximum(t - 0.25, 0.0))
    rate = np.where(t < 0.25, first, second)
    return rate, decay * (np.where(t < 0.25, *final) - rate)


def test_run_with_a_delay():
    """A late rate of a stiff rotor whose torque jumps, with derivatives by delay and clock skew.

    Samples lie before the start of the run, at its jump and at equal times of several sensors.
    """
    body = rj.Body("rotor", 0.1, (ROTOR[0],) * 3)
    hinge = rj.Revolute("ground", "rotor", (0, 0, 0), (0, 0, 1), name="hinge", damping=ROTOR[1])
    motor = rj.Motor("hinge", rj.Signal([0.0, 0.25, 1.0], (*TORQUE, TORQUE[1]), "hold"))
    model = rj.NullSpace(rj.System(body, hinge, motor))
    ts, delay = np.array([0.0, 0.01, 0.02, 0.1, 0.26, 0.27, 0.28, 0.5]), 0.02
    late = rj.Delayed(rj.JointRate("hinge"), delay, skew=-2e4)
    result = rj.sensitivity(
        model,
        rj.jointed_state(model.system, {}, {"hinge": 0.5}),
        ts[-1],
        [
            rj.Parameter(name)
            for name in ("delayed rate of hinge.delay", "delayed rate of hinge.skew")
        ],
        ts=ts,
        sensors=(late, rj.JointRate("hinge")),
        rtol=1e-9,
        atol=1e-9,
    )
    rate, acceleration = rotor_rate(1.02 * ts - delay)
    found = result.readings[late.name]
    # Before the start the motion grows by e^2 within the polynomial.
    np.testing.assert_allclose(found[:2], rate[:2], rtol=3e-5)
    np.testing.assert_allclose(found[2:], rate[2:], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(result.readings["rate of hinge"], rotor_rate(ts)[0], atol=1e-6)
    derivatives = result.jacobian[late.name].T
    np.testing.assert_allclose(derivatives[0], -acceleration, rtol=3e-4, atol=2e-4)
    np.testing.assert_allclose(derivatives[1], 1e-6 * ts * derivatives[0], rtol=1e-7)
    assert not np.any(result.jacobian["rate of hinge"])


def test_fit_of_sensor_errors(start, exact):
    """All ten numbers of the sensor are found within three standard deviations."""
    noisy = exact + NOISE * np.random.default_rng(0).standard_normal(exact.shape)
    sensor = rj.Gyroscope(delay=0.0)
    measured = rj.Measurements(TS, {sensor: noisy}, {sensor: NOISE})
    fit = rj.identify(MODEL, measured, PARAMETERS, state0=start)
    true = np.concatenate([BIAS, SCALE, TURN, [DELAY]])
    std = np.array(list(fit.std.values()))
    assert fit.identifiability.identifiable and fit.chi_square < 1.3
    assert np.all(np.abs(fit.values - true) < 3.5 * std)
    assert np.all(std < 1e-3)
    assert np.allclose(fit.sensors[0].bias, fit.values[:3])


def test_initial_state_from_a_reading():
    """The start state undoes what the sensor does."""
    ideal = EARLY.angular_velocity[0]
    sensor = rj.Gyroscope(bias=BIAS, scale=SCALE, misalignment=TURN)
    y = MODEL.encode(EARLY)
    found = sensor.start(MODEL, rj.State(), sensor.predict(MODEL, jnp.array(0.0), y))
    assert np.allclose(found.angular_velocity[0], ideal, atol=1e-14)


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match=r"Gyroscope\(scale=...\)` must not be zero"):
        rj.Gyroscope(scale=(1.0, 0.0, 1.0))
    with pytest.raises(TypeError, match=r"Delayed\(sensor, delay\)` takes a sensor; got 3"):
        rj.Delayed(3, 0.1)  # pyright: ignore[reportArgumentType]
