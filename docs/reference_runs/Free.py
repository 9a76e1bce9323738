"""A floating satellite with an arm: as the arm moves, the hull rotates against it."""

import jax.numpy as jnp
import numpy as np

import rigidjax as rj

hull = rj.Body.box("hull", (0.6, 0.5, 0.4), mass=20.0)
arm = rj.Body.box("arm", (0.8, 0.08, 0.08), mass=4.0, position=(0.7, 0, 0))
joints = [rj.Free("hull"), rj.Revolute("hull", "arm", (0.3, 0, 0), axis=(0, 0, 1), name="shoulder")]


def torque(t, angle, rate):
    return 20.0 * (1.5 * jnp.sin(t) - angle) - 8.0 * rate


system = rj.System(hull, arm, joints, rj.Motor("shoulder", torque))

start, ts = system.reference_state(), np.linspace(0, 12, 241)
sol = rj.simulate(rj.NullSpace(system), start, 12.0, ts=ts)
shown = rj.view(sol)
