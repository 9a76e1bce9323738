"""Derivatives of the conserving schemes: forward, reverse, finite differences, second order."""

import diffrax
import jax
import numpy as np
import pytest
from solvers.conserving import models

import rigidjax as rj
from rigidjax.solvers import EnergyMomentum, ModelTerm


@pytest.mark.exhaustive
def test_plain_diffrax():
    """`diffrax.diffeqsolve` makes the same steps; backwards it undoes them, by symmetry."""
    body, state0 = models.quartic_body()
    model = rj.NullSpace(body)
    y0 = model.encode(state0)

    def solve(y, t0, t1, dt):
        return diffrax.diffeqsolve(
            ModelTerm(model), EnergyMomentum(), t0, t1, dt, y, max_steps=100
        ).ys[-1]

    end = solve(y0, 0.0, 1.0, 0.05)
    ours = models.run(model, state0, 0.05, 20, EnergyMomentum(), 1)
    assert np.max(np.abs(end - ours.ys[-1])) < 1e-13
    assert np.max(np.abs(solve(end, 1.0, 0.0, -0.05) - y0)) < 1e-12


def test_counts_and_dense_output():
    """Newton iterations are counted; between steps the error is that of a cubic polynomial."""
    model = rj.NullSpace(models.FREE.system)
    sol = rj.simulate(
        model, models.FREE.state0, 0.5, solver=EnergyMomentum(), dt=0.01,
        saveat=diffrax.SaveAt(dense=True, t1=True),
    )  # fmt: skip
    assert 50 * 2 <= sol.stats["num_rhs"] <= 50 * 6
    fine = models.run(model, models.FREE.state0, 0.01, 50, EnergyMomentum())
    assert np.max(np.abs(sol.evaluate(0.3).orientation - fine.states.orientation[30])) < 1e-12
    between = sol.evaluate(0.305)
    assert abs(np.linalg.norm(between.orientation) - 1) < 1e-12
    mean = 0.5 * (fine.ys[30] + fine.ys[31])
    assert np.max(np.abs(between.orientation[0] - mean[:4])) < 5e-3
    # The value at the end of a step, with the rate of the motion by time.
    _, rate = jax.jvp(lambda t: sol.interpolation.evaluate(t), (0.3,), (1.0,))
    assert np.allclose(rate, model.vector_field(0.3, fine.ys[30]), rtol=1e-9, atol=1e-9)
