"""Bodies, potentials and runs that the tests of the conserving schemes share."""

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


def tethered_pair(damping=0.0, gravity=False):
    """Two bodies on a stiff spring off their centres, and a bushing; tumbling through space."""
    a = rj.Body(
        "a", 1.0, (0.4, 0.5, 0.6), velocity=(0.3, 0.1, 0.0), angular_velocity=(1.0, 2.0, -1.0)
    )
    b = rj.Body(
        "b", 2.0, [[0.9, 0.1, 0.0], [0.1, 0.8, 0.05], [0.0, 0.05, 1.0]],
        (1.5, 0.2, 0.1), (0.8, 0.0, 0.6, 0.0), (0.0, -0.4, 0.2), (-0.5, 0.3, 1.2),
    )  # fmt: skip
    forces = [
        rj.Spring("a", "b", (0.2, 0.1, 0.0), (1.2, 0.0, 0.1), 40.0, damping, 0.5),
        rj.Bushing("a", "b", (0.7, 0.0, 0.0), (5.0, 6.0, 7.0, 1.0, 2.0, 3.0), damping),
    ]
    if gravity:
        forces.append(rj.Gravity((0.3, 0.0, -9.81)))
    return rj.System([a, b], forces=forces)


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


def matrices(state):
    """Rotation matrices of the first body along a run."""
    return np.asarray(jax.vmap(rj.Quaternion().to_matrix)(state.orientation[:, 0]))
