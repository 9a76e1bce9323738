"""An arm that a PI controller turns at a constant rate, although gravity disturbs it."""

import numpy as np

import rigidjax as rj

arm = rj.Body.box("arm", (0.8, 0.08, 0.06), mass=2.0, position=(0.4, 0, 0))
hinge = rj.Revolute("ground", "arm", (0, 0, 0), axis=(0, -1, 0), name="hinge")
motor = rj.PIController("hinge", 2.0, proportional=20.0, integral=80.0)
system = rj.System(arm, hinge, motor, rj.Gravity((0, 0, -9.81)))

start, ts = system.reference_state(), np.linspace(0, 6, 241)
sol = rj.simulate(rj.Relative(system), start, 6.0, ts=ts)
shown = rj.view(sol)
