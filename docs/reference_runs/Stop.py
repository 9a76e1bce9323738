"""A pendulum that rebounds from the stops of its hinge."""

import numpy as np

import rigidjax as rj

rod = rj.Body.box("rod", (0.8, 0.06, 0.05), mass=1.0, position=(0.4, 0, 0))
hinge = rj.Revolute(
    "ground", "rod", (0, 0, 0), axis=(0, 1, 0), name="hinge",
    limits=(-0.1, 2.0), stop=rj.Stop(stiffness=400.0, dissipation=0.1, width=0.01),
)  # fmt: skip
system = rj.System(rod, hinge, rj.Gravity((0, 0, -9.81)))

start, ts = system.reference_state(), np.linspace(0, 8, 321)
sol = rj.simulate(rj.NullSpace(system), start, 8.0, ts=ts)
shown = rj.view(sol)
