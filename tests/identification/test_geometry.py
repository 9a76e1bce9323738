"""Geometry fitted from a fixed start: the start state follows it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import rigidjax as rj
from rigidjax.identification import Measurements, Parameter, Unconstrained, identify
from rigidjax.identification.experiment.parameters import Experiment, apply_starts
from rigidjax.rotations import so3

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


def crank_drive(length, form=rj.NullSpace):
    """A crank that is prescribed, and a rod that swings on its end."""
    crank = rj.Body("crank", 1.0, (0.01, 0.01, 0.01), (0.1, 0, 0))
    bob = rj.Body("bob", MASS, (1e-3, INERTIA, INERTIA), (0.2 + length, 0, 0))
    motion = lambda t: 0.5 + 0.8 * jnp.sin(3 * t)  # noqa: E731
    joints = [
        rj.Revolute("ground", "crank", (0, 0, 0), axis=(0, 1, 0), name="drive", motion=motion),
        rj.Revolute("crank", "bob", (0.2, 0, 0), axis=(0, 1, 0), name="h"),
    ]
    return form(rj.System([crank, bob], joints, rj.Gravity((0, 0, -GRAVITY))))


def crank_angles(length):
    """By SciPy: the equation of a rod on a point that moves on a circle."""

    def slope(t, y):
        a, da, dda = 0.5 + 0.8 * np.sin(3 * t), 2.4 * np.cos(3 * t), -7.2 * np.sin(3 * t)
        whole = a + y[0]
        # Velocity of the point, right and down, for angles that rotate downwards.
        right = 0.2 * (-np.sin(a) * dda - np.cos(a) * da**2)
        down = 0.2 * (np.cos(a) * dda - np.sin(a) * da**2)
        moment = MASS * length * ((GRAVITY - down) * np.cos(whole) + right * np.sin(whole))
        return [y[1], moment / (INERTIA + MASS * length**2) - dda]

    return solve_ivp(slope, (0, 1), [0.0, 0.0], t_eval=TS, rtol=1e-11, atol=1e-12).y[0]


@pytest.mark.parametrize("form", [rj.NullSpace, rj.JointStart])
@pytest.mark.exhaustive
def test_geometry_with_a_prescribed_joint_is_fitted(form):
    """The length of a rod on a driven crank."""
    length = Parameter("x", lambda e: e.model.system.bodies[1].position, Unconstrained(which=(0,)))
    found = fit(crank_drive(0.3, form), crank_angles(0.4), length)
    np.testing.assert_allclose(found.values, 0.6, rtol=1e-5)


def four_bar(coupler):
    """Crank 0.2 m, coupler, rocker 0.5 m on a ground of 0.6 m; the reference has the crank up."""
    box = (1e-3, 0.01, 0.01)
    A, D = np.array([0.0, 0, 0.2]), np.array([0.6, 0.0, 0.0])
    # The end of the coupler, at its distance from A, and 0.5 m from D.
    d = D - A
    r = np.linalg.norm(d)
    along = (coupler**2 - 0.5**2 + r**2) / (2 * r)
    up = np.array([-d[2], 0, d[0]]) / r
    B = A + along * d / r + np.sqrt(coupler**2 - along**2) * up
    bodies = [
        rj.Body("crank", 1.0, box, A / 2),
        rj.Body("coupler", 1.0, box, (A + B) / 2),
        rj.Body("rocker", 1.0, box, (B + D) / 2),
    ]
    y = (0, 1, 0)
    joints = [
        rj.Revolute("ground", "crank", (0, 0, 0), axis=y, name="h"),
        rj.Revolute("crank", "coupler", A, axis=y, name="a"),
        rj.Revolute("coupler", "rocker", B, axis=y, name="b"),
        rj.Revolute("ground", "rocker", D, axis=y, name="d"),
    ]
    return rj.NullSpace(rj.System(bodies, joints, rj.Gravity((0, 0, -GRAVITY))))


@pytest.mark.exhaustive
def test_geometry_of_a_closed_loop_is_fitted():
    """The pivot of the rocker moves on the ground: every start is closed there again."""
    model = four_bar(0.5)
    where = lambda e: e.model.system.joints[3].point  # noqa: E731
    state = rj.jointed_state(model.system, {"h": 0.3})
    experiment = apply_starts([Parameter("pivot", where)], Experiment(model, state, (HINGE,)))
    rocker = model.system.bodies[2].position

    @jax.jit
    def start(x):
        point = jnp.stack([x, 0 * x, 0 * x])
        moved = eqx.tree_at(where, experiment, point)
        found, closed = moved.start_at(jnp.zeros(()))
        # The pivot on the rocker, whose axes are those of space in the reference configuration.
        pivot = found.position[2] + so3.rotate(found.orientation[2], point - rocker)
        return pivot, (closed, moved.model, found)

    for x in (0.6, 0.62):
        pivot, (closed, moved, found) = start(x)
        np.testing.assert_allclose(pivot, [x, 0, 0], atol=1e-12)
        assert bool(closed)
        moved.encode(found)  # All joints allow it.
    assert np.abs(found.orientation - state.orientation).max() > 1e-4
    slope = jax.jvp(lambda x: start(x)[0], (0.6,), (1.0,))[1]
    np.testing.assert_allclose(slope, [1, 0, 0], atol=1e-12)
