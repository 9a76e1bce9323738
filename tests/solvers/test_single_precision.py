"""The solvers of this package in single precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.solvers import BDF, Radau5

# Lang's heavy top after 2 s: body rates by Dopri8 at 1e-12 in double precision.
RATES = np.array([0.35312733678, -0.76054425583, 19.99576581193])


@pytest.mark.float32
@pytest.mark.parametrize("solver", [Radau5, BDF], ids=lambda s: s.__name__)
def test_single_precision_error_at_the_end(solver):
    """The error is within ten tolerances, and single precision is preserved."""
    problem = rj.problems.heavy_top()
    model, start = jax.tree.map(
        lambda x: x.astype(jnp.float32), (rj.NullSpace(problem.system), problem.state0)
    )
    run = rj.simulate(model, start, 2.0, solver=solver(), rtol=1e-4, atol=1e-4)
    assert run.ys.dtype == jnp.float32
    assert np.max(np.abs(np.asarray(run.states.angular_velocity[-1, 0]) - RATES)) < 1e-3
