"""A coin that rolls without slipping on the ground along a curve."""

import jax.numpy as jnp
import numpy as np

import rigidjax as rj

lean, up = 0.3, jnp.array([0.0, 0.0, 1.0])


def rolls(t, poses, twists):
    (_, R), (v, omega) = poses["coin"], twists["coin"]
    down = R[2, 2] * R[:, 2] - up
    return v + jnp.cross(R @ omega, 0.3 * down / jnp.linalg.norm(down))


turn = (np.cos(np.pi / 4 - lean / 2), -np.sin(np.pi / 4 - lean / 2), 0, 0)
start = {"position": (0, 0, 0.3 * np.cos(lean)), "orientation": turn}
start |= {"velocity": (2.1, 0, 0), "angular_velocity": (0, 0, 7)}
coin = rj.Body.cylinder("coin", 0.3, 0.03, mass=1.0, **start)
system = rj.System(coin, rj.VelocityConstraint(rolls, "coin"), rj.Gravity((0, 0, -9.81)))
ts = np.linspace(0, 8, 321)
sol = rj.simulate(rj.NullSpace(system), system.reference_state(), 8.0, ts=ts)
shown = rj.view(sol)
