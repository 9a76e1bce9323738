"""Parameters from simulated readings of joints, accelerometers and markers."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification.cases import inertia_of

import rigidjax as rj
from rigidjax.identification import Measurements, Parameter, PrincipalInertia, identify

LENGTH, MASS, STIFFNESS, TORQUE = 0.7, 1.3, 2.5, 0.9
MARKER = (0.1, 0.05, 0.0)
BIAS = (0.2, -0.1, 0.05)
TS = np.linspace(0.0, 1.5, 31)


def bias_of(experiment):
    return experiment.sensors[0].bias


def marker_of(experiment):
    return experiment.sensors[1].point


def pendulum(mass=MASS, stiffness=STIFFNESS, torque=TORQUE):
    body = rj.Body("bob", mass, (0.02, 0.05, 0.06), (LENGTH, 0.0, 0.0))
    hinge = rj.Revolute("ground", "bob", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="hinge")
    forces = [
        rj.Gravity((0.0, -9.81, 0.0)),
        rj.TorsionSpring("hinge", stiffness),
        rj.Motor("hinge", torque),
    ]
    return rj.NullSpace(rj.System(body, [hinge], forces))


def exact(model, state, sensors):
    """Return the readings of the sensors along an exact run."""
    solution = rj.simulate(
        model, state, TS[-1], ts=TS, solver=diffrax.Dopri5(), rtol=1e-11, atol=1e-11
    )

    def read(t, y):
        return tuple(s.predict(model, t, y) for s in sensors)

    return jax.jit(jax.vmap(read))(solution.ts, solution.ys)


@pytest.mark.exhaustive
def test_fit_from_accelerometer_and_marker():
    """Both sensors observe a top: moments, bias and the position of the marker are fitted."""
    potential = rj.GravityPotential((0.1, -0.05, 0.4), (0.0, 0.0, -9.81))
    start = rj.NullSpace(rj.FixedPointBody((0.5, 0.45, 0.2), potential))
    truth = rj.NullSpace(rj.FixedPointBody((0.5, 0.4, 0.25), potential))
    state = rj.State(angular_velocity=(1.0, -2.0, 3.0))
    point = (0.2, 0.1, -0.1)
    true = (rj.Accelerometer(None, point, bias=BIAS), rj.Position(None, MARKER))
    unknown = (rj.Accelerometer(None, point), rj.Position())
    data = exact(truth, state, true)
    run = Measurements(TS, dict(zip(unknown, data, strict=True)), {s: 0.01 for s in unknown})
    parameters = [
        Parameter("inertia", inertia_of, PrincipalInertia(), unit="kg m^2"),
        Parameter("bias", bias_of, unit="m/s^2"),
        Parameter("marker", marker_of, unit="m"),
    ]
    fit = identify(start, run, parameters, state0=state)
    assert fit.converged and fit.identifiability.identifiable
    expected = [0.5, 0.4, 0.25, *BIAS, *MARKER]
    np.testing.assert_allclose(fit.values, expected, rtol=5e-6, atol=5e-7)
    np.testing.assert_array_equal(fit.sensors[0].bias, fit.values[3:6])


def test_initial_state_is_not_changed():
    state = pendulum().system.reference_state()
    for sensor in (rj.JointCoordinate("hinge"), rj.Position("bob")):
        assert sensor.start(pendulum(), state, jnp.ones(sensor.value_shape)) is state
