"""A pendulum of two arms, its first hinge driven by a periodic torque of three harmonics."""

import numpy as np

import rigidjax as rj

torque = rj.FourierSeries(frequency=2.0, sine=(3.0, -1.5, 0.8), cosine=(0.0, 1.0, -0.5))
upper = rj.Body.box("upper", (0.06, 0.06, 0.5), mass=1.0, position=(0, 0, -0.25))
lower = rj.Body.box("lower", (0.05, 0.05, 0.4), mass=0.6, position=(0, 0, -0.7))
hinges = [
    rj.Revolute("ground", "upper", (0, 0, 0), axis=(0, 1, 0), name="shoulder", damping=0.1),
    rj.Revolute("upper", "lower", (0, 0, -0.5), axis=(0, 1, 0), name="elbow", damping=0.02),
]
system = rj.System(upper, lower, hinges, rj.Motor("shoulder", torque), rj.Gravity((0, 0, -9.81)))
start, ts = system.reference_state(), np.linspace(0, 8, 321)
sol = rj.simulate(rj.NullSpace(system), start, 8.0, ts=ts)
shown = rj.view(sol, quantities={"torque (N m)": [torque(t) for t in ts]})
