"""The nearest state that joints allow, and an error where there is none."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import rigidjax as rj
from rigidjax.rotations.so3 import exp_quaternion


@pytest.fixture(scope="module")
def crank():
    """A crank of 1 m and a rod of 1.5 m to a slider that is driven away at 1 m/s, from 2.5 m."""
    bodies = [
        rj.Body("crank", 1.0, (0.1, 0.1, 0.1), (0.5, 0.0, 0.0)),
        rj.Body("rod", 1.0, (0.1, 0.1, 0.1), (1.75, 0.0, 0.0)),
        rj.Body("slider", 1.0, (0.1, 0.1, 0.1), (2.5, 0.0, 0.0)),
    ]
    joints = [
        rj.Revolute("ground", "crank", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
        rj.Revolute("crank", "rod", (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
        rj.Revolute("rod", "slider", (2.5, 0.0, 0.0), (0.0, 0.0, 1.0)),
        rj.Prismatic("ground", "slider", (1.0, 0.0, 0.0), motion=lambda t: t),
    ]
    return rj.System(bodies, joints)


def bend_joint(system):
    """A guess with the joint between crank and rod off the line."""
    state = system.reference_state()
    return eqx.tree_at(lambda s: s.position, state, state.position + jnp.array([[0.0, 0.1, 0.0]]))


def test_unreachable_states_raise(crank):
    with pytest.raises(ValueError, match="cannot be closed from these positions"):
        rj.consistent_state(crank, bend_joint(crank), 0.5)


def test_invalid_arguments_raise(crank):
    with pytest.raises(TypeError, match="`consistent_state` takes a `System`; got NullSpace"):
        rj.consistent_state(rj.NullSpace(crank))
    with pytest.raises(ValueError, match="has 3 bodies, the state has 1. Give `State` one row"):
        rj.consistent_state(crank, rj.State())


def test_nearest_position_of_a_pendulum():
    """Against the least of the distance over all angles."""
    mass, moment, arm = 2.0, 0.3, np.array([0.7, 0.2])
    place, angle = np.array([1.1, -0.2]), 0.9
    body = rj.Body("bob", mass, (0.2, 0.25, moment), (*arm, 0.0))
    system = rj.System([body], [rj.Revolute("ground", "bob", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))])
    guess = rj.State(
        jnp.array([[*place, 0.0]]), exp_quaternion(jnp.array([0.0, 0.0, angle]))[None],
        jnp.zeros((1, 3)), jnp.zeros((1, 3)),
    )  # fmt: skip

    def distance(phi):
        c, s = np.cos(phi), np.sin(phi)
        shift = place - np.array([c * arm[0] - s * arm[1], s * arm[0] + c * arm[1]])
        return mass * shift @ shift + moment * (phi - angle) ** 2

    best = scipy.optimize.minimize_scalar(distance, (0.0, 0.5), tol=1e-12).x
    found = rj.consistent_state(system, guess).orientation[0]
    # Inertias are made regular by a millionth of their trace.
    np.testing.assert_allclose(2 * np.arctan2(found[3], found[0]), best, atol=3e-6)
