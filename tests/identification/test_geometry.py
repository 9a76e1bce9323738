"""Geometry fitted from a fixed start: the start state follows it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import rigidjax as rj
from rigidjax.identification import Measurements, Parameter, Unconstrained, identify
from rigidjax.identification.experiment.parameters import Experiment, apply_starts

MASS, INERTIA, GRAVITY = 1.3, 0.05, 9.81
TS = np.linspace(0.0, 1.0, 21)
HINGE = rj.JointCoordinate("h")


def pendulum(x=0.3, z=0.0, point=(0.0, 0.0, 0.0), form=rj.NullSpace):
    """A rod whose centre of mass is at (x, 0, z) from its hinge, in the reference configuration."""
    rod = rj.Body("rod", MASS, (1e-3, INERTIA, INERTIA), (x, 0, z))
    hinge = rj.Revolute("ground", "rod", point, axis=(0, 1, 0), name="h")
    return form(rj.System(rod, hinge, rj.Gravity((0, 0, -GRAVITY))))


def angles(x, z, start):
    """By SciPy, of a pendulum with its centre of mass at (x, 0, z) from the hinge."""

    def slope(t, y):
        c, s = np.cos(y[0]), np.sin(y[0])
        moment = MASS * GRAVITY * (x * c + z * s)
        return [y[1], moment / (INERTIA + MASS * (x * x + z * z))]

    return solve_ivp(slope, (0, 1), start, t_eval=TS, rtol=1e-11, atol=1e-12).y[0]


def position_of(experiment):
    return experiment.model.system.bodies[0].position


def fit(model, values, parameters, sensor=HINGE, **options):
    return identify(
        model, Measurements(TS, {sensor: values}, {sensor: 1e-3}), parameters, **options
    )


def test_joint_point_is_fitted():
    """The hinge is 0.1 m nearer to the centre of mass than in the model."""
    point = Parameter("point", lambda e: e.model.system.joints[0].point, Unconstrained(which=(0,)))
    found = fit(pendulum(0.4), angles(0.3, 0.0, [0.0, 0.0]), point)
    np.testing.assert_allclose(found.values, 0.1, rtol=1e-5)


def test_derivatives_of_the_initial_state_by_geometry():
    """Against central differences, by the centre of mass, in forward and reverse mode."""
    model = pendulum(0.4, 0.1)
    state = rj.jointed_state(model.system, {"h": 0.6}, {"h": 1.5})
    parameter = [Parameter("com", position_of)]
    experiment = apply_starts(parameter, Experiment(model, state, (HINGE,)))

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
