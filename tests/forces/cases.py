"""Bodies, forces with known potentials, and wrenches as arrays."""

import jax
import jax.numpy as jnp
import numpy as np
from formulations import cases

import rigidjax as rj
from rigidjax.forces import Kinematics
from rigidjax.rotations import euler_map

WEIGHT, POINT = np.array([0.3, -0.2, -9.81]), np.array([0.3, -0.7, 0.5])
FORCE, MOMENT = np.array([1.5, -0.4, 2.0]), np.array([0.6, 1.1, -0.8])
BODIES = (rj.Body("one", 2.0, (0.5, 0.42, 0.3)), rj.Body("two", 3.0, cases.TENSOR))
T = jnp.array(0.7)


def gravity_energy(x, R):
    return -jnp.dot(WEIGHT, 2.0 * x[0] + 3.0 * x[1])


def force_energy(x, R):
    return -jnp.dot(FORCE, x[1] + R[1] @ POINT)


def spring_energy(x, R):
    """A spring between points of the bodies, and something of both attitudes."""
    stretch = x[0] + R[0] @ POINT - x[1]
    return 2.0 * jnp.sum(stretch * stretch) + jnp.sum(R[0] * R[1]) + R[1, 2, 1] ** 3


GRAVITY, PUSH = rj.Gravity(WEIGHT), rj.PointForce("two", POINT, FORCE)
SPRING = rj.Potential(spring_energy)


def states(count: int = 32) -> rj.State:
    system = rj.System(BODIES)
    return cases.random_states(np.random.default_rng(29), system, count)


def kinematics(state: rj.State) -> Kinematics:
    """Return poses and twists in the form that forces receive."""
    rotations = jax.vmap(euler_map)(state.orientation)
    return Kinematics(state.position, rotations, state.velocity, state.angular_velocity)


def wrench(forces, state: rj.State, t=T) -> tuple[jax.Array, jax.Array]:
    """Forces and moments of both bodies, shape (2, 3), zero where there are none."""
    found = rj.System(BODIES, forces=forces).wrenches(t, kinematics(state))
    return found[:, :3], found[:, 3:]


def virial(forces, state: rj.State, t=T) -> jax.Array:
    """Virials of both bodies, shape (2, 3, 3)."""
    return rj.System(BODIES, forces=forces).virials(t, kinematics(state))


def worst(errors) -> float:
    """Largest error of all states and quantities."""
    return max(float(jnp.max(value)) for value in jax.tree.leaves(errors))
