"""Differential-algebraic equations of index 1 to 3."""

import _ivp as ivp
import diffrax
import jax.numpy as jnp
import numpy as np
import pytest
from solvers import cases

from rigidjax.solvers import BDF, MassMatrixTerm, Odex, Radau5
from rigidjax.solvers.dae.bdf.multistep import estimate_start_rate
from rigidjax.solvers.dae.equations import build_equations


@pytest.mark.parametrize(
    "solver,term",
    [(BDF(), cases.robertson_dae()), (Radau5(), cases.robertson_implicit())],
    ids=["BDF", "Radau5-implicit"],
)
def test_robertson_against_reference(solver, term):
    """Index 1, as a mass matrix and as F(t, y, y') = 0: the mass is conserved exactly."""
    y0 = jnp.array([1.0, 0.0, 0.0])
    solution, _ = cases.solve(solver, term, y0, 1e4, 1e-6, 1e-10)
    assert solution.result == diffrax.RESULTS.successful
    end = solution.ys[-1]
    assert abs(float(jnp.sum(end)) - 1.0) < 1e-9
    error = np.abs(end - cases.ROBERTSON_END) / (1e-10 + 1e-6 * cases.ROBERTSON_END)
    assert np.max(error) < (3.0 if isinstance(solver, Radau5) else 20.0)


def test_state_dependent_mass():
    r"""$M(y)\,\dot y = f$ makes the steps of $\dot y = M^{-1} f$."""

    def mass(t, y, args):
        return jnp.array([[2.0 + jnp.cos(y[0]), y[1]], [0.0, 1.0 + t]])

    def f(t, y, args):
        return jnp.stack([y[1], -args * jnp.sin(y[0])])

    def explicit(t, y, args):
        return jnp.linalg.solve(mass(t, y, args), f(t, y, args))

    y0, args = jnp.array([1.0, 0.3]), 3.0
    reference, _ = cases.solve(Odex(), diffrax.ODETerm(explicit), y0, 4.0, 1e-9, 1e-9, args=args)
    for solver in (Radau5(), BDF()):
        term = MassMatrixTerm(f, mass)
        solution, _ = cases.solve(solver, term, y0, 4.0, 1e-9, 1e-9, args=args)
        assert np.max(np.abs(solution.ys[-1] - reference.ys[-1])) < 3e-7


@pytest.mark.parametrize("angle", [0.4, 1.3])
def test_first_rate_of_a_multiplier_at_index_3(angle):
    """The rate is zero; round-off over the square of the first step of 1e-7 s is 0.02.

    Over the square of a shorter step it would be large enough to reject every step, and derivatives
    would be those of singular matrices.
    """
    h, (sine, cosine) = 1e-7, (np.sin(angle), np.cos(angle))
    y = jnp.array([sine, -cosine, 0.0, 0.0, ivp.GRAVITY * cosine / 2.0])
    y = y.at[:2].mul(1.0 + 4e-16)  # As far off the circle as round-off leaves it.
    problem = build_equations(cases.pendulum(3), jnp.array(0.0), y, None)
    rate = estimate_start_rate(problem, jnp.array(0.0), jnp.array(h), y, (1, 1, 2, 2, 3))
    np.testing.assert_allclose(rate[2], -ivp.GRAVITY * cosine * sine, atol=0.1)
    assert abs(h * rate[4]) < 0.2
