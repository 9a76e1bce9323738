"""Derivatives through the steps of the Lie-group methods: both modes, against differences."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax import problems
from rigidjax.solvers import GeneralizedAlpha, MuntheKaas

WEIGHTS = jnp.array([0.3, -0.7, 1.1, 0.4])


def _top(solver, steps=1000, make=rj.NullSpace):
    """A number from the final attitude of the heavy top, of its inertia and start."""

    def final(parameters):
        system = problems.heavy_top().system
        system = eqx.tree_at(lambda s: s.inertia, system, parameters[:3])
        p = jnp.concatenate([jnp.array([0.9]), parameters[3:6]])
        state0 = rj.State(None, p / jnp.sqrt(p @ p), None, parameters[6:9])
        states = rj.simulate(
            make(system), state0, 1.0, solver=solver, dt=1.0 / steps, max_steps=steps + 2
        ).states
        return WEIGHTS @ states.orientation[0, 0]

    return final, jnp.array([50.0, 42.0, 10.0, 0.2, -0.1, 0.3, 0.5, -0.3, 20.0])


def _chain(solver, steps):
    """Return a scalar of two rods on ball joints, for gravity and a mass; index 3, or null
    space.
    """
    problem = problems.chain(2)
    make = rj.NullSpace if isinstance(solver, MuntheKaas) else lambda s: rj.Absolute(s, index=3)

    def final(parameters):
        system = eqx.tree_at(
            lambda s: (s.forces[0].vector, s.bodies[1].mass), problem.system,
            (parameters[:3], parameters[3]),
        )  # fmt: skip
        states = rj.simulate(
            make(system), problem.state0, 0.2, solver=solver, dt=0.2 / steps, max_steps=steps + 2
        ).states
        return WEIGHTS @ states.orientation[0, 1]

    return final, jnp.array([1.0, 2.0, -9.81, 1.5])


def differences(final, x, size):
    """Central differences of order 6, one component after another."""
    value = jax.jit(jax.vmap(final))
    nodes, weights = np.array([-3, -2, -1, 1, 2, 3]), np.array([-1, 9, -45, 45, -9, 1]) / 60
    h = size * np.maximum(np.abs(x), 1.0)
    points = x + (nodes[None, :, None] * np.diag(h)[:, None, :]).reshape(-1, x.size)
    values = np.asarray(value(points)).reshape(x.size, -1)
    return values @ weights / h


CASES = {
    "MuntheKaas": (lambda: _top(MuntheKaas(diffrax.Dopri5())), 2e-3),
    "GeneralizedAlpha, top": (
        lambda: _top(GeneralizedAlpha(), 100, lambda s: rj.Absolute(s, index=3)), 2e-3,
    ),
    "GeneralizedAlpha, joints": (lambda: _chain(GeneralizedAlpha(), 20), 2e-2),
}  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_first_derivatives(name):
    """Forward = reverse = differences."""
    make, size = CASES[name]
    final, x = make()
    forward = jax.jit(jax.jacfwd(final))(x)
    reverse = jax.jit(jax.grad(final))(x)
    scale = float(jnp.max(jnp.abs(forward)))
    np.testing.assert_allclose(reverse, forward, atol=1e-10 * scale, rtol=1e-10)
    np.testing.assert_allclose(forward, differences(final, x, size), atol=1e-8 * scale)
