"""Bricard's mechanism: six hinges that move although their count predicts a rigid structure."""

import numpy as np

import rigidjax as rj

problem = rj.problems.bricard()
model = rj.NullSpace(problem.system)
end = problem.t1
sol = rj.simulate(model, problem.state0, end, ts=np.linspace(0, end, 241), rtol=1e-7, atol=1e-7)
shown = rj.view(sol)
