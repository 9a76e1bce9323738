"""A raft with a thruster off its centre, which rotates with it."""

import numpy as np

import rigidjax as rj

raft = rj.Body.box("raft", (0.6, 0.4, 0.1), mass=20.0)
thruster = rj.PointForce("raft", (-0.3, 0.04, 0), (6.0, 0, 0), frame="body")
system = rj.System(raft, thruster)

start, ts = system.reference_state(), np.linspace(0, 12, 241)
sol = rj.simulate(rj.NullSpace(system), start, 12.0, ts=ts)
shown = rj.view(sol)
