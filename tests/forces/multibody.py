"""Bodies in general poses, wrenches as arrays, and powers."""

import jax
import jax.numpy as jnp
import numpy as np
from forces import cases as forces
from formulations import cases

import rigidjax as rj
from rigidjax.rotations import euler_map, so3

# Reference poses: neither at the origin nor along the axes of space.
BODIES = (
    rj.Body("one", 2.0, (0.5, 0.42, 0.3), (0.4, -0.3, 0.8), (0.8, 0.36, -0.48, 0.0)),
    rj.Body("two", 3.0, cases.TENSOR, (-0.2, 0.5, 0.1), (0.48, 0.6, 0.0, 0.64)),
)
POINT, OTHER = np.array([0.3, -0.7, 0.5]), np.array([-0.4, 0.2, 0.6])
T = forces.T
ENDS = (("one", "two"), ("ground", "two"), ("one", "ground"))


def states(count: int = 16, angle: float = 1.4) -> rj.State:
    """Random states; rotation angles between the bodies stay below 2 `angle` < pi."""
    rng = np.random.default_rng(31)
    found = cases.random_states(rng, rj.System(BODIES), count, angle)
    reference = rj.System(BODIES).reference_state().orientation
    turned = jax.vmap(jax.vmap(so3.multiply), (0, None))(found.orientation, reference)
    parts = (found.position, turned, found.velocity, found.angular_velocity)
    return jax.vmap(rj.State)(*parts)


def first(states: rj.State) -> rj.State:
    return jax.tree.map(lambda x: x[0], states)


def pose(state: rj.State):
    return state.position, jax.vmap(euler_map)(state.orientation)


def turning(state: rj.State):
    """Rates of the rotation matrices."""
    return pose(state)[1] @ jax.vmap(so3.skew)(state.angular_velocity)


def kinematics(state: rj.State, x, R) -> rj.forces.Kinematics:
    return rj.forces.Kinematics(x, R, state.velocity, state.angular_velocity)


def energy(force, state: rj.State):
    """The potential energy as a function of positions and rotations."""
    system = rj.System(BODIES, forces=force)
    return lambda x, R: system.potential_energy(T, kinematics(state, x, R))


def wrench(force, state: rj.State, bodies=BODIES) -> tuple[jax.Array, jax.Array]:
    """Forces and moments of the bodies, zero where there are none."""
    found = rj.System(bodies, forces=force).wrenches(T, kinematics(state, *pose(state)))
    return found[:, :3], found[:, 3:]


def power(force, state: rj.State) -> jax.Array:
    load, moment = wrench(force, state)
    return jnp.sum(load * state.velocity) + jnp.sum(moment * state.angular_velocity)


def along(function, state: rj.State):
    """Value and time derivative of a function of the poses."""
    return jax.jvp(function, pose(state), (state.velocity, turning(state)))


def energy_error(force, state: rj.State) -> jax.Array:
    """Error of the power against the loss of potential energy."""
    return cases.error(power(force, state), -along(energy(force, state), state)[1])


def virial(force, state: rj.State) -> jax.Array:
    return rj.System(BODIES, forces=force).virials(T, kinematics(state, *pose(state)))


def worst(errors) -> float:
    """Largest error of what `errors(state)` gives over all states, compiled."""
    return forces.worst(jax.jit(jax.vmap(errors))(states()))
