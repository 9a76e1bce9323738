"""Parameters from simulated readings of joints, accelerometers and markers."""

import jax.numpy as jnp

import rigidjax as rj

LENGTH, MASS, STIFFNESS, TORQUE = 0.7, 1.3, 2.5, 0.9


def pendulum(mass=MASS, stiffness=STIFFNESS, torque=TORQUE):
    body = rj.Body("bob", mass, (0.02, 0.05, 0.06), (LENGTH, 0.0, 0.0))
    hinge = rj.Revolute("ground", "bob", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="hinge")
    forces = [
        rj.Gravity((0.0, -9.81, 0.0)),
        rj.TorsionSpring("hinge", stiffness),
        rj.Motor("hinge", torque),
    ]
    return rj.NullSpace(rj.System(body, [hinge], forces))


def test_initial_state_is_not_changed():
    state = pendulum().system.reference_state()
    for sensor in (rj.JointCoordinate("hinge"), rj.Position("bob")):
        assert sensor.start(pendulum(), state, jnp.ones(sensor.value_shape)) is state
