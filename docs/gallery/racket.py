"""A racket flips over: rotation about the middle axis is unstable."""

import numpy as np

import rigidjax as rj
from rigidjax.viewer import box, ellipsoid

racket = rj.problems.tennis_racket(disturbance=0.05)
model = rj.NullSpace(racket.system, rotation=rj.Quaternion())
sol = rj.simulate(model, racket.state0, 1.0, ts=np.linspace(0, 1.0, 241))
frame, handle = ellipsoid((0.26, 0.34, 0.02), (0, 0.2, 0)), box((0.06, 0.6, 0.06), (0, -0.4, 0))
shown = rj.view(sol, shapes={"body": [frame, handle]})
