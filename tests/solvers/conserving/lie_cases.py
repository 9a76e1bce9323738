"""Short ways to run Lie-group methods at several steps at once, and their errors."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj


def matrices(orientation):
    return jax.vmap(rj.Quaternion().to_matrix)(orientation.reshape(-1, 4))


def at_steps(model, state0, t1, solver, counts, projection=True):
    """Return final states of runs with given numbers of steps, in one compiled batch."""
    limit = max(counts) + 2

    @jax.jit
    @jax.vmap
    def run(dt):
        return rj.simulate(
            model, state0, t1, solver=solver, dt=dt, max_steps=limit, throw=False,
            projection=projection,
        ).states  # fmt: skip

    states = run(t1 / jnp.asarray(counts, float))
    return jax.tree.map(lambda leaf: leaf[:, 0], states)


def attitude_errors(states, reference):
    """Largest error of a rotation matrix of each run."""
    R, found = np.asarray(matrices(reference.orientation)), states.orientation
    return np.array([np.max(np.abs(np.asarray(matrices(jnp.asarray(p))) - R)) for p in found])


def state_errors(states, reference):
    """Largest error of a rotation matrix, a position or a velocity of each run."""
    R = attitude_errors(states, reference)
    others = [
        jnp.max(jnp.abs(getattr(states, name) - getattr(reference, name)[None]), axis=(1, 2))
        for name in ("position", "velocity", "angular_velocity")
    ]
    return np.maximum(R, np.max(np.array(others), axis=0))


def slope(counts, errors):
    """Return the slope of the error against the step, over all runs."""
    return -np.polyfit(np.log(counts), np.log(errors), 1)[0]


def accurate(model, state0, t1):
    """End of a run at tight tolerances, with a method of another kind."""
    states = rj.simulate(model, state0, t1, solver=diffrax.Dopri8(), rtol=1e-13, atol=1e-13).states
    return jax.tree.map(lambda leaf: leaf[0], states)
