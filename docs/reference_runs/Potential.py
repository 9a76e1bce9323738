"""Two bodies that attract each other like planets, by a user-defined energy."""

import jax.numpy as jnp
import numpy as np

import rigidjax as rj


def energy(positions, rotations):
    return -4.0 / jnp.linalg.norm(positions[0] - positions[1])


bodies = [
    rj.Body.sphere("large", 0.15, mass=4.0, velocity=(0, -0.225, 0)),
    rj.Body.sphere("small", 0.08, mass=1.0, position=(1, 0, 0), velocity=(0, 0.9, 0)),
]
system = rj.System(bodies, rj.Potential(energy))

start, ts = system.reference_state(), np.linspace(0, 6, 241)
sol = rj.simulate(rj.NullSpace(system), start, 6.0, ts=ts)
shown = rj.view(sol)
