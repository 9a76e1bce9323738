"""Andrews' squeezing mechanism: seven bodies in a twentieth of a second."""

import numpy as np

import rigidjax as rj

problem = rj.problems.andrews()
model = rj.NullSpace(problem.system)
sol = rj.simulate(model, problem.state0, 0.05, ts=np.linspace(0, 0.05, 241), rtol=1e-8, atol=1e-8)
shown = rj.view(sol)
