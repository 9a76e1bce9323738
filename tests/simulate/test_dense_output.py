"""Dense output without saved times, joined to the projected ends of the steps."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj


def test_dense_output_without_saved_times():
    problem = rj.problems.tennis_racket(disturbance=0.1)
    solution = rj.simulate(
        rj.NullSpace(problem.system),
        problem.state0,
        0.3,
        solver=diffrax.Dopri5(),
        rtol=1e-9,
        atol=1e-9,
        saveat=diffrax.SaveAt(dense=True),
        max_steps=512,
    )
    ts = jnp.linspace(0.0, 0.3, 23)
    states = jax.vmap(solution.evaluate)(ts)
    exact = problem.reference(ts)
    # Dopri5 interpolates with order 4: a few digits less than the steps.
    np.testing.assert_allclose(states.angular_velocity, exact.angular_velocity, atol=1e-5)
    with pytest.raises(ValueError, match="No samples were saved"):
        _ = solution.states
