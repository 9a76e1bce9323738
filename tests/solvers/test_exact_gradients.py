"""Gradients through the solvers of a top's run, against 60-digit arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradients import CASES, run

from rigidjax.solvers import BDF, Odex, Radau5, Seulex

# Central differences by Taylor series in 60-digit arithmetic (benchmarks/gradients.py).
REFERENCE = np.array(
    [0.00315868297191337,
     0.0007909438479202679,
     0.21912888356997628,
     -0.7354145176103203,
     -0.15816423517939765,
     -2.6455233178628763]
)  # fmt: skip
# Tolerances at which errors of the run are well below 1e-8 of its derivatives.
SOLVERS = {
    "Radau5": (Radau5(), 1e-11), "BDF": (BDF(), 1e-12), "Odex": (Odex(), 1e-12),
    "Seulex": (Seulex(), 1e-11),
}  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SOLVERS)
def test_heavy_top_gradients_against_sixty_digits(name):
    """By moments of inertia and initial rates."""
    solver, tolerance = SOLVERS[name]
    top = CASES["heavy top, 2 s"]
    value = run(top, "null space, quaternion", solver=solver, tolerance=tolerance)
    parameters = jnp.array([*top.inertia, *top.omega])
    gradient = jax.jit(jax.jacfwd(value))(parameters)
    error = np.max(np.abs(gradient - REFERENCE)) / np.max(np.abs(REFERENCE))
    assert error < 1e-8
