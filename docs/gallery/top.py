"""A fast symmetric top under gravity: precession and nutation."""

import numpy as np

import rigidjax as rj

top = rj.problems.symmetric_top()
model = rj.NullSpace(top.system, rotation=rj.EulerAngles("ZXZ"))
sol = rj.simulate(model, top.state0, top.t1, ts=np.linspace(0, top.t1, 241))
shown = rj.view(sol)
