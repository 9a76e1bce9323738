"""Coverage of prediction-error fits under torque noise that is not logged."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification.coverage.studies import double_pendulum

import rigidjax as rj
from rigidjax.identification import identify_batch

TORQUE_NOISE = 0.02


def simulate_noisy(study, count):
    """Return readings (N, T, 2) of the encoders, with noise in the torques of both motors.

    A torque keeps an independent error of 0.02 N m for the 10 ms between two samples.
    """
    ts = jnp.asarray(study.ts)

    def readings(key):
        torques, encoders = jax.random.split(key)
        errors = TORQUE_NOISE * jax.random.normal(torques, (len(ts), 2))
        system, motors = study.model.system, []
        for k, joint in enumerate(system.joints):
            law = rj.Signal(ts, errors[:, k], "hold", extrapolation="constant")
            motors.append(rj.Motor(joint.name, law))
        model = rj.NullSpace(rj.System(system.bodies, system.joints, (*system.forces, *motors)))
        run = rj.simulate(
            model, study.state0, ts[-1], ts=ts, solver=diffrax.Dopri5(), dt=study.ts[1]
        )
        exact = jax.vmap(
            lambda t, y: jnp.stack([s.predict(model, t, y).reshape(()) for s in study.noise])
        )(run.ts, run.ys)
        noise = jnp.asarray(list(study.noise.values()))
        return exact + noise * jax.random.normal(encoders, exact.shape)

    keys = jax.random.split(jax.random.key(7), count)
    return np.asarray(eqx.filter_jit(jax.vmap(readings))(keys))


@pytest.mark.parametrize("count", [100, pytest.param(1000, id="thousand")])
@pytest.mark.exhaustive("thousand")
def test_intervals_hold_under_torque_noise(count):
    """The bias is at most a quarter of a standard error, and the coverage 92 to 98 %.

    The intensity of the torque noise is given. For 100 fits the limits are wider by three standard
    deviations of the count.
    """
    study = double_pendulum()
    data = [
        rj.Measurements(study.ts, {s: run[:, k] for k, s in enumerate(study.noise)}, study.noise)
        for run in simulate_noisy(study, count)
    ]
    # White noise has this intensity at the period of the samples.
    intensity = TORQUE_NOISE * np.sqrt(study.ts[1])
    noise = {joint.name: intensity for joint in study.model.system.joints}
    fits = identify_batch(
        study.model, data, study.parameters, state0=study.state0, method="prediction-error",
        process_noise=noise, dt=study.ts[1],
    )  # fmt: skip
    z = (fits.values - study.true) / fits.std
    covered = np.mean(np.abs(z) < 1.96, axis=0)
    assert np.all(fits.converged)
    slack = 3 / np.sqrt(count)
    assert np.all(np.abs(z.mean(axis=0)) < 0.25 + (slack if count < 1000 else 0))
    spread = slack * np.sqrt(0.95 * 0.05) if count < 1000 else 0
    assert np.all((covered > 0.92 - spread) & (covered < 0.98 + spread))
