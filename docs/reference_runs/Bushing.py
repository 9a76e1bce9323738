"""A machine on an elastic mount after an impact: it oscillates and comes to rest."""

import numpy as np

import rigidjax as rj

machine = rj.Body.box(
    "machine", (0.4, 0.3, 0.2), mass=5.0, velocity=(1.2, 0, 0), angular_velocity=(0, 0, 6)
)
stiffness, damping = (600, 600, 1500, 20, 20, 10), (6, 6, 15, 0.2, 0.2, 0.1)
mount = rj.Bushing("ground", "machine", (0, 0, -0.1), stiffness, damping)
system = rj.System(machine, mount, rj.Gravity((0, 0, -9.81)))

start, ts = system.reference_state(), np.linspace(0, 4, 161)
sol = rj.simulate(rj.NullSpace(system), start, 4.0, ts=ts)
shown = rj.view(sol)
