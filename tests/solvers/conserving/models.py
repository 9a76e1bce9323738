"""Bodies, potentials, runs and errors that the tests of the conserving schemes share."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax import solvers

FREE = rj.problems.free_body()
STEADY = rj.problems.steady_top()
SCHEMES = {
    "EnergyMomentum": solvers.EnergyMomentum(),
    "Variational": solvers.Variational(),
    "SimoWong": solvers.SimoWong(),
    "SimoWong, energy": solvers.SimoWong(conserve="energy"),
}


class Quartic(eqx.Module):
    """A potential that is conserved only by a discrete derivative."""

    strength: jax.Array

    def __call__(self, R):
        return self.strength * (R[2, 2] ** 4 + 0.5 * jnp.cos(2.0 * R[2, 0]) + R[0, 1] * R[1, 1])


def quartic_body(inertia=(1.0, 1.6, 2.1), moment=None):
    """A body with an uneven potential, and a state of motion."""
    body = rj.FixedPointBody(inertia, Quartic(jnp.asarray(3.0)), moment)
    p = np.array([0.7, -0.3, 0.5, 0.2])
    return body, rj.State(orientation=p / np.linalg.norm(p), angular_velocity=(1.0, -2.0, 1.5))


def run(model, state0, dt, count, solver, saved=None, **options):
    """`count` steps, with the states after every `count / saved`-th of them."""
    saved = count if saved is None else saved
    ts = dt * (count // saved) * np.arange(saved + 1)
    # One limit for all runs, so that they share compiled code whatever their number of steps.
    options = {"max_steps": 100_010, **options}
    return rj.simulate(model, state0, count * dt, ts=ts, solver=solver, dt=dt, **options)


def change(values):
    """Largest change of a quantity relative to its start."""
    values = np.asarray(values)
    return np.max(np.abs(values - values[0])) / np.linalg.norm(values[0])


def matrices_of(orientation):
    return jax.vmap(rj.Quaternion().to_matrix)(orientation.reshape(-1, 4))


def matrices(state):
    """Rotation matrices of the first body along a run."""
    return np.asarray(matrices_of(state.orientation[:, 0]))


def at_steps(model, state0, t1, solver, counts):
    """Return final states of runs with given numbers of steps, in one compiled batch."""
    limit = max(counts) + 2

    @jax.jit
    @jax.vmap
    def run(dt):
        return rj.simulate(
            model, state0, t1, solver=solver, dt=dt, max_steps=limit, throw=False
        ).states

    states = run(t1 / jnp.asarray(counts, float))
    return jax.tree.map(lambda leaf: leaf[:, 0], states)


def attitude_errors(states, reference):
    """Largest error of a rotation matrix of each run."""
    R, found = np.asarray(matrices_of(reference.orientation)), states.orientation
    return np.array([np.max(np.abs(np.asarray(matrices_of(jnp.asarray(p))) - R)) for p in found])


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
