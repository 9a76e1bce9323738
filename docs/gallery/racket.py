"""A racket flips over: rotation about the middle axis is unstable."""

import numpy as np

import rigidjax as rj

racket = rj.problems.tennis_racket(disturbance=0.05)
model = rj.NullSpace(racket.system, rotation=rj.Quaternion())
sol = rj.simulate(model, racket.state0, 1.0, ts=np.linspace(0, 1.0, 241))
shown = rj.view(sol)
