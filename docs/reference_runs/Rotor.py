"""A drone whose four rotors lift it and turn it about its own axis."""

import numpy as np

import rigidjax as rj

hull = rj.Body.box("drone", (0.5, 0.5, 0.06), mass=1.0)
rotors = []
for k, (x, y) in enumerate([(0.25, 0.25), (-0.25, 0.25), (-0.25, -0.25), (0.25, -0.25)]):
    spin = ("clockwise", "counter-clockwise")[k % 2]
    speed = 500.0 + 10.0 * (-1) ** k
    command = rj.Signal(np.array([0.0, 1.0, 6.0]), np.array([speed, 500.0, 495.0]), "hold")
    rotors.append(
        rj.Rotor(
            "drone", command, 1e-5, 2e-7, time_constant=0.05, spin=spin, at=(x, y, 0), initial=speed
        )
    )
system = rj.System(hull, rotors, rj.Gravity((0, 0, -9.81)))

start, ts = system.reference_state(), np.linspace(0, 6, 241)
sol = rj.simulate(rj.NullSpace(system), start, 6.0, ts=ts)
shown = rj.view(sol)
