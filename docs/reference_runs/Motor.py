"""An arm that a motor with a spring and a damper moves to a set point."""

import jax.numpy as jnp
import numpy as np

import rigidjax as rj

arm = rj.Body.box("arm", (0.8, 0.08, 0.06), mass=2.0, position=(0.4, 0, 0))
hinge = rj.Revolute("ground", "arm", (0, 0, 0), axis=(0, -1, 0), name="hinge")


def torque(t, angle, rate):
    return 60.0 * (jnp.sin(2.0 * t) - angle) - 6.0 * rate


system = rj.System(arm, hinge, rj.Motor("hinge", torque), rj.Gravity((0, 0, -9.81)))

start, ts = system.reference_state(), np.linspace(0, 6, 241)
sol = rj.simulate(rj.NullSpace(system), start, 6.0, ts=ts)
shown = rj.view(sol)
