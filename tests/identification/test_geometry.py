"""Geometry fitted from a fixed start: the start state follows it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from identification.pendulum import ENCODER, angles, pendulum

import rigidjax as rj
from rigidjax.identification import Measurements, Parameter, Unconstrained, identify
from rigidjax.identification.experiment.parameters import Experiment, apply_starts

TS = np.linspace(0.0, 1.0, 21)


def position_of(experiment):
    return experiment.model.system.bodies[0].position


def test_joint_point_is_fitted():
    """The hinge is 0.1 m nearer to the centre of mass than in the model."""
    point = Parameter("point", lambda e: e.model.system.joints[0].point, Unconstrained(which=(0,)))
    data = Measurements(TS, {ENCODER: angles(TS, x=0.3)}, {ENCODER: 1e-3})
    found = identify(pendulum(0.4), data, point)
    np.testing.assert_allclose(found.values, 0.1, rtol=1e-5)


def test_derivatives_of_the_initial_state_by_geometry():
    """Against central differences, by the centre of mass, in forward and reverse mode."""
    model = pendulum(0.4, 0.1)
    state = rj.jointed_state(model.system, {"hinge": 0.6}, {"hinge": 1.5})
    parameter = [Parameter("com", position_of)]
    experiment = apply_starts(parameter, Experiment(model, state, (ENCODER,)))

    @jax.jit
    def parts(position):
        moved = eqx.tree_at(position_of, experiment, position)
        found, _ = moved.start_at(jnp.zeros(()))
        return jnp.concatenate([found.position[0], found.velocity[0], found.orientation[0]])

    x = jnp.array([0.4, 0.0, 0.1])
    forward, reverse = jax.jacfwd(parts)(x), jax.jacrev(parts)(x)
    h = 1e-6
    numeric = np.stack([(parts(x + h * e) - parts(x - h * e)) / (2 * h) for e in np.eye(3)], 1)
    np.testing.assert_allclose(forward, reverse, atol=1e-14)
    np.testing.assert_allclose(forward, numeric, atol=1e-8)
