"""A swing-up: the force on a cart that raises its pole, optimised with derivatives of the run."""

import jax.numpy as jnp
import numpy as np
import optimistix as optx

import rigidjax as rj

cart = rj.Body.box("cart", (0.4, 0.2, 0.15), mass=1.0)
pole = rj.Body.rod("pole", 0.8, 0.02, mass=0.3, position=(0, 0, -0.4))
rail = rj.Prismatic("ground", "cart", axis=(1, 0, 0), name="rail")
joints = [rail, rj.Revolute("cart", "pole", (0, 0, 0), axis=(0, 1, 0), name="hinge")]


def run(x, ts):
    force = rj.Motor("rail", rj.FourierSeries(np.pi / 2.5, sine=x))
    system = rj.System(cart, pole, joints, force, rj.Gravity((0, 0, -9.81)))
    return rj.simulate(rj.NullSpace(system), system.reference_state(), 2.5, ts=ts)


def miss(x, _):
    end = run(x, jnp.array([2.5])).states
    upright = end.position[0, 1] - end.position[0, 0] - jnp.array([0.0, 0.0, 0.4])
    return jnp.concatenate([upright, end.velocity[0].ravel(), end.position[0, 0], 0.003 * x])


found = optx.least_squares(
    miss, optx.LevenbergMarquardt(1e-6, 1e-6), jnp.full(6, 5.0), max_steps=300
)
sol = run(found.value, jnp.linspace(0, 2.5, 151))
shown = rj.view(sol)
