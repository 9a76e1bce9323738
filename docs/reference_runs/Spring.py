"""A ball on a spring, released from the side: it swings and bounces."""

import numpy as np

import rigidjax as rj

ball = rj.Body.sphere("ball", 0.1, mass=1.0, position=(0.6, 0, -0.8))
spring = rj.Spring(
    "ground", "ball", (0, 0, 0), (0.6, 0, -0.8), stiffness=40.0, damping=0.1, length=0.8
)
system = rj.System(ball, spring, rj.Gravity((0, 0, -9.81)))

start, ts = system.reference_state(), np.linspace(0, 6, 241)
sol = rj.simulate(rj.NullSpace(system), start, 6.0, ts=ts)
shown = rj.view(sol)
