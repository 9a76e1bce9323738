"""A lid opened by 1.5 rad: a spring on its hinge shuts it, and a damper brings it to rest."""

import numpy as np

import rigidjax as rj

lid = rj.Body.box("lid", (0.6, 0.4, 0.03), mass=2.0, position=(0.3, 0, 0))
hinge = rj.Revolute("ground", "lid", (0, 0, 0), axis=(0, -1, 0), name="hinge")
spring = rj.TorsionSpring(hinge, stiffness=10.0, damping=0.5)
system = rj.System(lid, hinge, spring)
start, ts = rj.jointed_state(system, {"hinge": 1.5}), np.linspace(0, 4, 161)
sol = rj.simulate(rj.NullSpace(system), start, 4.0, ts=ts)
shown = rj.view(sol)
