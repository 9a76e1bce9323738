"""A ball that slides in a bowl, z = (x² + 2 y²) / 2, by a user-defined constraint."""

import numpy as np

import rigidjax as rj


def on_bowl(t, poses):
    (x, y, z), _ = poses["ball"]
    return z - (x**2 + 2 * y**2) / 2


ball = rj.Body.sphere("ball", 0.08, mass=1.0, position=(1, 0, 0.5), velocity=(0, 1.2, 0))
system = rj.System(ball, rj.Constraint(on_bowl, "ball"), rj.Gravity((0, 0, -9.81)))

start, ts = system.reference_state(), np.linspace(0, 8, 321)
sol = rj.simulate(rj.NullSpace(system), start, 8.0, ts=ts)
shown = rj.view(sol)
