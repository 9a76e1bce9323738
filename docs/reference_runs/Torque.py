"""A satellite spun up by a moment about a body axis, slightly off its principal axis."""

import numpy as np

import rigidjax as rj

inertia = [[3.0, 0.0, 0.1], [0.0, 2.5, 0.0], [0.1, 0.0, 4.0]]
satellite = rj.Body("satellite", 40.0, inertia)
system = rj.System(satellite, rj.Torque("satellite", (0, 0, 1.5), frame="body"))

start, ts = system.reference_state(), np.linspace(0, 12, 241)
sol = rj.simulate(rj.NullSpace(system), start, 12.0, ts=ts)
shown = rj.view(sol)
