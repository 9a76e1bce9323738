"""Parameters of a joint and of sensors from simulated measurements of all kinds."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification import Measurements, Parameter, Positive, identify

LENGTH, MASS, STIFFNESS, TORQUE = 0.7, 1.3, 2.5, 0.9
MARKER = (0.1, 0.05, 0.0)
BIAS = (0.2, -0.1, 0.05)
TS = np.linspace(0.0, 1.5, 31)


def mass_of(experiment):
    return experiment.model.system.bodies[0].mass


def inertia_of(experiment):
    return experiment.model.system.bodies[0].inertia


def stiffness_of(experiment):
    return experiment.model.system.forces[1].stiffness


def torque_of(experiment):
    return experiment.model.system.forces[2].torque


def marker_of(experiment):
    return experiment.sensors[2].point


def bias_of(experiment):
    return experiment.sensors[1].bias


def pendulum(mass=MASS, stiffness=STIFFNESS, torque=TORQUE):
    body = rj.Body("bob", mass, (0.02, 0.05, 0.06), (LENGTH, 0.0, 0.0))
    hinge = rj.Revolute("ground", "bob", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="hinge")
    forces = [
        rj.Gravity((0.0, -9.81, 0.0)),
        rj.TorsionSpring("hinge", stiffness),
        rj.Motor("hinge", torque),
    ]
    return rj.NullSpace(rj.System(body, [hinge], forces))


def sensors(bias=BIAS, marker=MARKER):
    return (
        rj.JointCoordinate("hinge"),
        rj.Accelerometer("bob", (0.1, 0.0, 0.0), bias=bias),
        rj.Position("bob", marker),
        rj.JointTorque("hinge"),
        rj.ReactionForce("hinge"),
        rj.JointRate("hinge"),
    )


@pytest.fixture(scope="module")
def data():
    """What the sensors read along an exact run."""
    model = pendulum()
    state = model.system.reference_state()
    solution = rj.simulate(
        model, state, TS[-1], ts=TS, solver=diffrax.Dopri5(), rtol=1e-11, atol=1e-11
    )
    read = lambda t, y: tuple(s.predict(model, t, y) for s in sensors())  # noqa: E731
    return jax.jit(jax.vmap(read))(solution.ts, solution.ys)


def test_parameters_are_recovered(data):
    """The motion tells the stiffness, the torque sensor the torque, the reaction the mass, marker
    and bias their own sensors."""
    unknown = sensors((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    run = Measurements(TS, dict(zip(unknown, data, strict=True)), {s: 0.01 for s in unknown})
    fit = identify(
        pendulum(1.0, 2.0, 1.2),
        run,
        [
            Parameter("mass", mass_of, Positive(), unit="kg"),
            Parameter("stiffness", stiffness_of, Positive(), unit="N m/rad"),
            Parameter("torque", torque_of, unit="N m"),
            Parameter("marker", marker_of, unit="m"),
            Parameter("bias", bias_of, unit="m/s^2"),
        ],
        horizons=(1.0,),
    )
    assert fit.converged and fit.identifiability.identifiable
    truth = np.array([MASS, STIFFNESS, TORQUE, *MARKER, *BIAS])
    # As accurate as the simulation in the fit, at its tolerance of 1e-8.
    np.testing.assert_allclose(fit.values, truth, rtol=2e-6, atol=2e-7)
    np.testing.assert_allclose(fit.sensors[1].bias, BIAS, atol=2e-7)
    assert max(fit.rms.values()) < 1e-6


def test_start_state_is_left_alone():
    model = pendulum()
    state = model.system.reference_state()
    for sensor in sensors():
        assert sensor.start(model, state, jnp.ones(sensor.value_shape)) is state
