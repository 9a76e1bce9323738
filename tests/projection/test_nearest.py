"""The nearest state that joints allow, and its derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import rigidjax as rj
from rigidjax.rotations.so3 import exp_quaternion

AXIS = (0.0, 0.0, 1.0)


def flat(state):
    return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(state)])


def test_nearest_position_of_a_pendulum():
    """Against the least of the distance over all angles."""
    mass, moment, arm = 2.0, 0.3, np.array([0.7, 0.2])
    place, angle = np.array([1.1, -0.2]), 0.9
    body = rj.Body("bob", mass, (0.2, 0.25, moment), (*arm, 0.0))
    system = rj.System([body], [rj.Revolute("ground", "bob", (0.0, 0.0, 0.0), AXIS)])
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


def rod_and_plane(parameters):
    """A body in a plane, held by a rod: a loop whose rod, mass, plane, guess and time vary."""
    rod, mass, tilt, shift, rate, t = parameters
    body = rj.Body("plate", 1.0 + mass, (0.2, 0.3, 0.4), (0.5, 0.1, 0.0))
    normal = jnp.stack([tilt, 0.5 * tilt, jnp.ones_like(tilt)])
    joints = [
        rj.Planar("ground", "plate", (0.5, 0.1, 0.0), normal),
        rj.Distance("ground", "plate", (0.0, 0.0, 0.0), jnp.stack([0.4 + rod, 0.3, 0.0])),
        rj.Revolute("plate", "wheel", (0.6, 0.1, 0.0), normal, motion=_Sweep(rate)),
    ]
    wheel = rj.Body("wheel", 0.5, (0.1, 0.1, 0.1), (0.6, 0.1, 0.0))
    system = rj.System([body, wheel], joints)
    reference = system.reference_state()
    offset = jnp.array([[0.1, -0.05, 0.2], [0.0, 0.1, 0.05]])
    guess = rj.State(
        reference.position + (1.0 + shift) * offset,
        jax.vmap(exp_quaternion)((0.3 + shift) * jnp.array([[1.0, -0.5, 0.4], [0.2, 0.1, -0.3]])),
        jnp.array([[0.3, 0.1, -0.2], [0.0, 0.2, 0.1]]) * (1.0 + shift),
        jnp.array([[0.1, 0.2, 0.3], [-0.1, 0.0, 0.4]]),
    )
    return flat(rj.consistent_state(system, guess, t))


class _Sweep(eqx.Module):
    rate: jax.Array

    def __call__(self, t):
        return 0.2 + self.rate * t


@pytest.fixture(scope="module")
def derivatives():
    h = 1e-5
    at = jnp.array([0.05, 0.2, 0.1, 0.1, 0.7, 0.3])

    @jax.jit
    def evaluate(at):
        ends = jnp.concatenate([at + h * jnp.eye(6), at - h * jnp.eye(6)])
        values = jax.vmap(rod_and_plane)(ends)
        differences = (values[:6] - values[6:]) / (2 * h)
        return jax.jacfwd(rod_and_plane)(at), jax.jacrev(rod_and_plane)(at), differences.T

    return evaluate(at)
