"""A flyball governor: its spring balances its weights."""

import numpy as np

import rigidjax as rj

problem = rj.problems.flyball_governor()
model = rj.NullSpace(problem.system)
end = problem.t1
sol = rj.simulate(model, problem.state0, end, ts=np.linspace(0, end, 241), rtol=1e-7, atol=1e-7)
shown = rj.view(sol)
