"""Identities of mechanics along runs of the shared systems, one compiled function for each."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import systems

import rigidjax as rj

WITH_BODIES = [name for name in systems.SYSTEMS if name not in ("free body", "top")]
LOOPS = ("four-bar", "slider-crank", "loop with every joint", "robot from a file")
TREES = [name for name in WITH_BODIES if name not in LOOPS]


@functools.cache
def quantities(name):
    """Return both sides of each identity at the saved states, and what else is compared."""
    model = systems.model(name)

    def evaluate(t, y):
        field = model.vector_field(t, y)
        nu, a = model.rates_of(y), model.forward_dynamics(t, y)
        M, h = model.mass_matrix(t, y), model.bias_forces(t, y)
        energy, rate = jax.jvp(model.energy, (t, y), (jnp.ones_like(t), field))
        other = jnp.cos(jnp.arange(model.num_rates) + t)
        tau = model.inverse_dynamics(t, y, other)
        return {
            "symmetry": (M, M.T),
            "balance": (M @ a + h, model.inverse_dynamics(t, y, a)),
            "drift": (jnp.stack(model.drift(t, y)), jnp.zeros(2)),
            "projection": (model.project(t, y), y),
            "forward of inverse": (model.forward_dynamics(t, y, tau), other),
            "still": (0.5 * nu @ M @ nu, model.kinetic_energy(t, y)),
            "least eigenvalue": jnp.linalg.eigvalsh(M)[0],
            "energy": (rate / jnp.maximum(1.0, jnp.abs(energy)), 0.0),
            "momentum": jnp.concatenate(model.momentum(t, y)),
        }

    run = systems.run(name)
    values = jax.jit(jax.vmap(evaluate))(jnp.asarray(run.ts), jnp.asarray(run.ys))
    return jax.tree.map(np.asarray, values)


def largest_error(sides):
    found, wanted = sides
    return np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max())


@pytest.mark.exhaustive(
    "slider-crank", "tree with every joint", "loop with every joint", "robot from a file",
    "ball with impacts",
)  # fmt: skip
@pytest.mark.parametrize("name", systems.SYSTEMS)
def test_identities(name):
    out = quantities(name)
    case = systems.case(name)
    assert np.all(out["least eigenvalue"] > 0)
    for key in ("symmetry", "drift", "projection"):
        assert largest_error(out[key]) < 1e-11, key
    if name in TREES:
        assert largest_error(out["balance"]) < 1e-10
        assert largest_error(out["forward of inverse"]) < 1e-8
    if "every joint" not in name and name in TREES:
        assert largest_error(out["still"]) < 1e-12
    if case.conserves:
        assert largest_error(out["energy"]) < 1e-9


def test_momentum_of_a_floating_base_is_constant():
    momentum = quantities("floating base")["momentum"]
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-7)


@pytest.mark.parametrize("name", ["double pendulum", "four-bar", "floating base"])
def test_formulations_agree_along_runs(name):
    states = systems.states(name)
    for formulation in (rj.Relative, rj.Absolute):
        other = systems.run(name, formulation=formulation).states
        # Both runs have relative and absolute tolerances of 1e-8.
        np.testing.assert_allclose(other.position, states.position, atol=2e-7)
        np.testing.assert_allclose(other.angular_velocity, states.angular_velocity, atol=2e-6)


def test_solvers_agree_along_runs():
    states = systems.states("double pendulum")
    for solver in (rj.solvers.Radau5(), rj.solvers.BDF(), rj.solvers.Seulex()):
        other = systems.run("double pendulum", solver).states
        np.testing.assert_allclose(other.position, states.position, atol=1e-6)
