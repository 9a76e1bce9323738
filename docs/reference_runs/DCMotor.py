"""An arm that a direct-current motor lifts through a gear, against its back-EMF."""

import numpy as np

import rigidjax as rj

arm = rj.Body.box("arm", (0.8, 0.08, 0.06), mass=2.0, position=(0.4, 0, 0))
hinge = rj.Revolute("ground", "arm", (0, 0, 0), axis=(0, -1, 0), name="hinge", damping=0.5)
motor = rj.DCMotor("hinge", 12.0, resistance=1.0, inductance=0.01, torque_constant=0.02, gear=60.0)
system = rj.System(arm, hinge, motor, rj.Gravity((0, 0, -9.81)))

start, ts = system.reference_state(), np.linspace(0, 6, 241)
sol = rj.simulate(rj.Relative(system), start, 6.0, ts=ts)
shown = rj.view(sol)
