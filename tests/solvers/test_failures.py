"""Results of solvers that cannot continue, and errors of invalid arguments."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest
from solvers import cases

import rigidjax as rj
from rigidjax.solvers import BDF, ImplicitTerm, MassMatrixTerm, Odex, Radau5, Seulex

RESULTS = diffrax.RESULTS


def run(solver, term, y0, t1=1.0, **kwargs):
    return cases.solve(solver, term, jnp.asarray(y0), t1, 1e-6, 1e-6, **kwargs)[0]


def blow_up(t, y, args):
    return y * y


@pytest.mark.parametrize("solver", [Radau5(), BDF(), Odex()], ids=lambda s: type(s).__name__)
def test_end_of_existence_is_reported(solver):
    """y' = y^2 from 1 ends at t = 1: the step shrinks to round-off and the run ends."""
    solution = run(solver, diffrax.ODETerm(blow_up), [1.0], 2.0)
    assert solution.result in (
        RESULTS.dt_min_reached, RESULTS.nonlinear_divergence, RESULTS.nonfinite
    )  # fmt: skip
    assert solution.stats["num_steps"] < 2000


def failing_residual(t, y, args):
    """Depending on `args`: 0 = 0, the root of a negative number, or 0 = y^2 + 1 from t = 0 on."""
    nothing, root, square = args
    bad = jnp.sqrt(jnp.where(root > 0, -1.0 - y[1] ** 2, 1.0))
    none = y[1] ** 2 + jnp.where(t > 0, 1.0, -0.25)
    return jnp.stack([y[1], nothing * (y[0] - y[0]) + root * bad + square * none])


def test_failures_have_names():
    """A singular Newton matrix, a residual that is not finite, no solution of the stages."""
    term = MassMatrixTerm(failing_residual, np.diag([1.0, 0.0]))
    outcomes = (RESULTS.singular, RESULTS.nonfinite, RESULTS.nonlinear_divergence)
    for which, outcome in zip(np.eye(3), outcomes, strict=True):
        assert run(Radau5(), term, [1.0, 0.5], args=jnp.asarray(which)).result == outcome


def test_failed_fixed_step_ends_the_run():
    """A fixed step cannot be shortened: the first failure ends the run."""
    solver = cases.with_tolerance(Radau5(), 1e-8)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(blow_up), solver, 0.0, 10.0, 0.9, jnp.array([1.0]), throw=False,
        max_steps=100,
    )  # fmt: skip
    assert solution.result == RESULTS.nonlinear_divergence
    assert solution.stats["num_steps"] == 1


def integrate(solver, term, y0):
    controller = solver.controller(1e-6, 1e-6, optx.rms_norm)
    diffrax.diffeqsolve(term, solver, 0.0, 1.0, 0.1, y0, stepsize_controller=controller)


def test_invalid_arguments_raise():
    """Every error names the argument, what came, and what to do."""
    y, eye = jnp.ones(2), np.eye(2)

    def f(t, y, args):
        return -y

    with pytest.raises(ValueError, match=r"matrix of shape \(2, 2\).*got shape \(3, 3\)"):
        integrate(Radau5(), MassMatrixTerm(f, np.eye(3)), y)
    with pytest.raises(ValueError, match=r"jacobian=...\)` must give a matrix.*got shape \(2,\)"):
        integrate(Radau5(), MassMatrixTerm(f, eye, jacobian=lambda t, y, args: y), y)
    with pytest.raises(ValueError, match=r"has 3 entries for 2 unknowns"):
        integrate(Radau5(), MassMatrixTerm(f, eye, (1, 2, 2)), y)
    with pytest.raises(ValueError, match=r"`Seulex` .* of index up to 1; got .*3"):
        integrate(Seulex(), MassMatrixTerm(f, eye, (1, 3)), y)
    with pytest.raises(ValueError, match=r"holds a differentiation index other than 0 to 3"):
        MassMatrixTerm(f, eye, (1, 4))
    with pytest.raises(ValueError, match=r"max_order=...\)` must be 1 to 5; got 6"):
        BDF(max_order=6)
    with pytest.raises(TypeError, match=r"`Odex` integrates ordinary differential equations"):
        integrate(Odex(), MassMatrixTerm(f, eye), y)
    with pytest.raises(TypeError, match=r"`Seulex` takes .* with a constant matrix"):
        integrate(Seulex(), ImplicitTerm(lambda t, y, rate, args: rate + y), y)
    with pytest.raises(TypeError, match=r"takes a `diffrax.ODETerm`, a `MassMatrixTerm`"):
        integrate(Radau5(), diffrax.ControlTerm(lambda t, y, args: y, lambda t0, t1: t1 - t0), y)
    with pytest.raises(TypeError, match="integrates real unknowns; got complex128"):
        Radau5().init(diffrax.ODETerm(f), 0.0, 1.0, y.astype(complex), None)
    with pytest.raises(ValueError, match="needs a solver that estimates its error"):
        diffrax.diffeqsolve(
            diffrax.ODETerm(f), diffrax.Euler(), 0.0, 1.0, 0.1, y,
            stepsize_controller=Radau5().controller(1e-6, 1e-6, optx.rms_norm),
        )  # fmt: skip


def test_closure_of_a_mass_matrix_term():
    """`AnyMode` raises if it cannot detect a parameter; diffrax's adjoint supports it."""
    solver = Radau5()

    def end(mu, adjoint):
        term = MassMatrixTerm(lambda t, y, args: -mu * y, np.eye(1))
        return diffrax.diffeqsolve(
            term, solver, 0.0, 1.0, 0.1, jnp.ones(1), adjoint=adjoint, max_steps=100,
            stepsize_controller=solver.controller(1e-9, 1e-9, optx.rms_norm),
        ).ys[-1, 0]  # fmt: skip

    with pytest.raises(ValueError, match="cannot see what the functions of a model, a `MassM"):
        jax.jvp(lambda mu: end(mu, rj.AnyMode()), (2.0,), (1.0,))
    _, tangent = jax.jvp(lambda mu: end(mu, diffrax.ForwardMode()), (2.0,), (1.0,))
    assert abs(tangent + np.exp(-2.0)) < 1e-8
