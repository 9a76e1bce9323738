"""A double pendulum of two boxes, released from the side."""

import numpy as np

import rigidjax as rj

upper = rj.Body.box("upper", (1.0, 0.12, 0.06), mass=1.0, position=(0.5, 0, 0))
lower = rj.Body.box("lower", (0.8, 0.10, 0.06), mass=0.7, position=(1.4, 0.07, 0))
system = rj.System(
    upper,
    lower,
    rj.Revolute("ground", "upper", (0, 0, 0), axis=(0, 1, 0)),
    rj.Revolute("upper", "lower", (1, 0.035, 0), axis=(0, 1, 0)),
    rj.Gravity((0, 0, -9.81)),
)
model = rj.NullSpace(system)
sol = rj.simulate(model, system.reference_state(), 6.0, ts=np.linspace(0, 6, 241))
shown = rj.view(sol)
