"""Librations of every size: no step fails, and energy is kept to the round-off of its terms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.solvers import EnergyMomentum, SimoWong, Variational

AMPLITUDES = np.array([0.0, 1e-12, 1e-8, 1e-6, 1e-4, 1e-2, 0.1, 0.3, 0.5, 0.7, 1.0, 1.3, 2.0, 3.0])
RATES = np.array([1e-6, 1e-4, 1e-2, 0.1, 1.0])
STAKE = 50.0  # J, what cancels in the potential near equilibrium
DT = 0.01


def well(R):
    return STAKE * (1.0 - R[2, 2]) + 30.0 * (1.0 - R[2, 2]) ** 2


BODY = rj.FixedPointBody((0.5, 0.4, 0.3), well)


def librations(solver, count, amplitudes=AMPLITUDES, rates=RATES, times=40):
    """From rest at all amplitudes, and from equilibrium at all rates: success, change and range of
    the energy at these many times."""
    model = rj.NullSpace(BODY)

    @jax.jit
    @jax.vmap
    def run(angle, rate):
        axis = 0.5 * angle
        p = jnp.stack([jnp.cos(axis), 0.8 * jnp.sin(axis), 0.6 * jnp.sin(axis), 0.0 * axis])
        state0 = rj.State(orientation=p, angular_velocity=rate * jnp.array([0.6, 0.8, 0.1]))
        sol = rj.simulate(
            model, state0, count * DT, solver=solver, dt=DT, max_steps=count + 10, throw=False,
            ts=jnp.linspace(0.0, count * DT, times + 1),
        )  # fmt: skip
        fine = (sol.result == rj.RESULTS.successful) & (sol.stats["num_steps"] == count)
        omega = sol.states.angular_velocity[:, 0]
        kinetic = jax.vmap(BODY.kinetic_energy)(omega)
        return fine, sol.energy - sol.energy[0], jnp.max(kinetic), sol.stats["num_rhs"] / count

    zeros = np.zeros_like
    return map(
        np.asarray, run(np.append(amplitudes, zeros(rates)), np.append(zeros(amplitudes), rates))
    )


def test_a_thousand_steps():
    fine, change, size, iterations = librations(EnergyMomentum(), 1000)
    assert np.all(fine)
    # A few units in the last place of what cancels, and a walk of round-off.
    allowed = 1e-11 * size + 20 * np.finfo(float).eps * STAKE
    assert np.all(np.max(np.abs(change), axis=1) < allowed), change[:, -1] / allowed
    assert np.all(iterations < 4.2)


@pytest.mark.parametrize("solver", [Variational(), SimoWong()])
def test_energy_swings_without_drift(solver):
    """The change of the energy is proportional to the square of the step."""
    fine, change, size, iterations = librations(solver, 4000, times=1000)
    assert np.all(fine)
    ends = [np.max(np.abs(part), axis=1) for part in np.array_split(change, 2, axis=1)]
    assert np.all(ends[0] < 0.05 * size + 20 * np.finfo(float).eps * STAKE)
    assert np.all(ends[1] < 1.5 * ends[0] + 20 * np.finfo(float).eps * STAKE)
    assert np.all(iterations < 4.2)


def test_round_off_does_not_drift():
    """Round-off of steps is a random walk.

    A bias of a tenth of a unit in the last place in each step would add up to 1e-12 of the energy
    in 100,000 steps.
    """
    fine, change, size, _ = librations(
        EnergyMomentum(), 100_000, np.array([0.1, 0.2, 0.3]), RATES[:0]
    )
    assert np.all(fine)
    assert np.all(np.abs(change[:, -1]) < 4e-13 * size)
