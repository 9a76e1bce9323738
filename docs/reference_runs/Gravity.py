"""A thrown brick: its centre of mass follows a parabola, and it tumbles as if there were no gravity."""

import numpy as np

import rigidjax as rj

brick = rj.Body.box(
    "brick", (0.24, 0.12, 0.06), mass=2.0, velocity=(1, 0, 5), angular_velocity=(0.1, 8, 0)
)
system = rj.System(brick, rj.Gravity((0, 0, -9.81)))
start, ts = system.reference_state(), np.linspace(0, 1, 101)
sol = rj.simulate(rj.NullSpace(system), start, 1.0, ts=ts)
shown = rj.view(sol)
