"""An ensemble: a throw with twelve slightly different spins."""

import jax
import jax.numpy as jnp

import rigidjax as rj

brick = rj.Body.box("brick", (0.24, 0.12, 0.06), mass=2.0)
model = rj.NullSpace(rj.System(brick, rj.Gravity((0, 0, -9.81))))


def thrown(spin):
    omega = jnp.stack([0.02 * spin, spin, 0.0 * spin])
    state = rj.State(velocity=(0.6, 0, 6.0), angular_velocity=omega)
    return rj.simulate(model, state, 1.2, ts=jnp.linspace(0, 1.2, 121))


sol = jax.vmap(thrown)(jnp.linspace(9.0, 11.0, 12))
shown = rj.view(sol)
