"""Runs with closed forms, their derivatives with respect to forces, batches of forces."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from forces.cases import states, wrench
from formulations import cases

import rigidjax as rj


class Law(eqx.Module):
    """A law with parameters, of time or of time, attitude and rate."""

    gain: jax.Array

    def __call__(self, t, R=None, omega=None):
        value = self.gain * jnp.sin(t)
        return value if omega is None else value - self.gain[0] ** 2 * omega + R[0]


class Well(eqx.Module):
    """A potential with parameters."""

    depth: jax.Array

    def __call__(self, x, R):
        return self.depth * jnp.sum((x[0] - x[1]) ** 2) ** 2 + self.depth**2 * R[0, 0, 1]


def all_forces(rng):
    gain = lambda: jnp.asarray(rng.normal(size=3))  # noqa: E731
    return (
        rj.Gravity(gain()),
        rj.PointForce("one", gain(), gain()),
        rj.PointForce("two", gain(), Law(gain()), "body"),
        rj.Torque("one", gain(), "space"),
        rj.Torque("two", Law(gain())),
        rj.Potential(Well(jnp.array(0.4))),
    )


def test_derivatives_with_respect_to_every_parameter():
    """Modules keep their parameters as leaves; forward, reverse and finite differences agree."""
    rng = np.random.default_rng(37)
    forces, direction = all_forces(rng), all_forces(rng)
    state = jax.tree.map(lambda x: x[0], states(1))
    value = lambda forces: jnp.stack(wrench(forces, state))  # noqa: E731
    assert len(jax.tree.leaves(forces)) == 8
    _, slope = jax.jvp(value, (forces,), (direction,))
    h = 1e-5
    moved = [jax.tree.map(lambda x, d, s=s: x + s * h * d, forces, direction) for s in (1, -1)]
    difference = (value(moved[0]) - value(moved[1])) / (2 * h)
    # Third derivatives are zero: products of two parameters. Round-off of 1e-16 * 10 / h remains.
    assert cases.error(slope, difference) < 1e-9
    weights = jnp.asarray(rng.normal(size=slope.shape))
    (gradient,) = jax.vjp(value, forces)[1](weights)
    pairs = zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True)
    backward = sum(jnp.sum(g * d) for g, d in pairs)
    assert cases.error(backward, jnp.sum(weights * slope)) < 1e-13
    assert all(float(jnp.max(jnp.abs(g))) > 1e-3 for g in jax.tree.leaves(gradient))


def test_batches_of_forces():
    """`vmap` over the parameters of all forces and the state at once, compiled."""
    rng = np.random.default_rng(41)
    forces = [all_forces(rng) for _ in range(4)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *forces)
    batch = states(4)
    found = jax.jit(jax.vmap(wrench))(stacked, batch)
    for i in range(4):
        alone = wrench(forces[i], jax.tree.map(lambda x, i=i: x[i], batch))
        assert cases.error(jnp.stack(found)[:, i], jnp.stack(alone)) < 1e-14
