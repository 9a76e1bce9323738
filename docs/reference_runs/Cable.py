"""Two weights on a cable over two pulleys; the lighter one swings."""

import numpy as np

import rigidjax as rj

heavy = rj.Body.sphere("heavy", 0.16, mass=2.0, position=(-0.6, 0, -0.9))
light = rj.Body.sphere("light", 0.12, mass=1.0, position=(1.2, 0, -0.6))
pulleys = [("ground", (-0.6, 0, 0)), ("ground", (0.6, 0, 0))]
points = [("heavy", None), *pulleys, ("light", None)]
cable = rj.Cable(points, stiffness=4000.0, damping=40.0)
guide = rj.Prismatic("ground", "heavy", axis=(0, 0, 1), point=heavy.position)
system = rj.System(heavy, light, guide, cable, rj.Gravity((0, 0, -9.81)))

start, ts = system.reference_state(), np.linspace(0, 3.2, 161)
sol = rj.simulate(rj.NullSpace(system), start, 3.2, ts=ts)
shown = rj.view(sol)
