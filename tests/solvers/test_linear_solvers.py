"""Linear systems of the implicit solvers by solvers of lineax."""

import diffrax
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest
from solvers import cases

from rigidjax.solvers import BDF, Inverse, Radau1, Radau5, Radau9, Seulex
from rigidjax.solvers.base.linear import factorise, solve


def dae_run(solver):
    """A pendulum of index 2."""
    y0 = jnp.asarray(cases.PENDULUM_START)
    return cases.solve(solver, cases.pendulum(2), y0, 0.5, 1e-6, 1e-6)


def test_linear_solvers_give_equal_runs():
    """A factorisation of another kind takes the same steps, with real and complex matrices."""
    expected, evaluations = dae_run(Radau5())
    run, count = dae_run(Radau5(linear_solver=lx.QR()))
    assert run.result == diffrax.RESULTS.successful
    assert run.stats["num_steps"] == expected.stats["num_steps"]
    assert count == evaluations
    np.testing.assert_allclose(run.ys[-1], expected.ys[-1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [float, complex])
def test_qr_does_not_modify_its_input(dtype, rng):
    """`lineax.QR` has a replacement without LAPACK's `dormqr`; its derivatives are transposed."""
    A, b, c = (rng.normal(size=s) for s in ((4, 4), 4, 4))
    if dtype is complex:
        A = A + 1j * rng.normal(size=A.shape)

    def solve_by_qr(A, b):
        return solve(lx.QR(), factorise(lx.QR(), A), b)

    b = jnp.asarray(b, A.dtype)
    x, pull = jax.vjp(jax.jit(solve_by_qr), jnp.asarray(A), b)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-12)
    found = pull(jnp.asarray(c, A.dtype))
    expected = jax.vjp(jnp.linalg.solve, jnp.asarray(A), b)[1](jnp.asarray(c, A.dtype))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)
    assert "ormqr" not in jax.jit(solve_by_qr).lower(A, b).as_text()


class Damped(lx.AbstractLinearSolver):
    """A part of the solution."""

    part: float

    def init(self, operator, options):
        return operator.as_matrix()

    def compute(self, state, vector, options):
        return self.part * jnp.linalg.solve(state, vector), lx.RESULTS.successful, {}

    def transpose(self, state, options):
        return state.T, {}

    def conj(self, state, options):
        return jnp.conj(state), {}

    def assume_full_rank(self):
        return True


def test_given_linear_solver_is_used():
    """Newton increments of 7 parts in 10 converge, at a rate of 0.3."""
    _, evaluations = dae_run(BDF())
    run, count = dae_run(BDF(linear_solver=Damped(0.7)))
    assert run.result == diffrax.RESULTS.successful
    assert int(count) > 1.2 * int(evaluations)


def test_inverse_is_a_solver_of_lineax():
    """Real and complex systems, transposed ones, pytrees, derivatives."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4))
    b = rng.normal(size=4) + 0j

    def solve(A, b, solver):
        return lx.linear_solve(lx.MatrixLinearOperator(A), b, solver).value

    for matrix, vector in ((A, b), (A.real, b.real), (A.T, b)):
        matrix, vector = jnp.asarray(matrix), jnp.asarray(vector)
        got, expected = (solve(matrix, vector, s) for s in (Inverse(), lx.LU()))
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    real, vector = jnp.asarray(A.real), jnp.asarray(b.real)
    first, second = (
        jax.grad(lambda A, b, s=s: jnp.sum(jnp.sin(solve(A, b, s))), (0, 1))(real, vector)
        for s in (Inverse(), lx.LU())
    )
    np.testing.assert_allclose(first[0], second[0], rtol=1e-10)
    np.testing.assert_allclose(first[1], second[1], rtol=1e-10)
    operator = lx.FunctionLinearOperator(
        lambda x: {"u": 2.0 * x["u"] + x["v"], "v": x["u"][:1] - x["v"]},
        jax.eval_shape(lambda: {"u": jnp.zeros(1), "v": jnp.zeros(1)}),
    )
    x = lx.linear_solve(operator, {"u": jnp.ones(1), "v": 2 * jnp.ones(1)}, Inverse()).value
    np.testing.assert_allclose((x["u"], x["v"]), ([1.0], [-1.0]), rtol=1e-14)
    with pytest.raises(ValueError, match=r"`Inverse` solves systems with a square matrix; got .*2"):
        solve(jnp.ones((3, 2)), jnp.ones(3), Inverse())


def test_derivatives_by_the_matrix():
    """A solution for a given factorisation has the derivatives of the solution for the matrix."""
    A, b = jnp.array([[2.0, 1.0], [0.5, 3.0]]), jnp.array([1.0, -1.0])

    def first(s, A):
        return solve(s, factorise(s, A), b)[0]

    for derivative in (jax.grad, jax.jacfwd):
        got, expected = (derivative(lambda A, s=s: first(s, A))(A) for s in (lx.LU(), Inverse()))
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_unsupported_linear_solvers_raise():
    """Solvers for special matrices, and objects that are no solvers."""
    for special in (lx.Diagonal(), lx.Cholesky(), lx.Tridiagonal()):
        name = type(special).__name__
        for method in (Radau1, Radau5, Radau9, BDF, Seulex):
            owner = method.__name__
            message = rf"`{owner}\(linear_solver=...\)` must solve .* any square .*got `{name}`"
            with pytest.raises(ValueError, match=message):
                method(linear_solver=special)
    with pytest.raises(TypeError, match=r"`BDF\(linear_solver=...\)` takes a solver of lineax"):
        BDF(linear_solver=lx.LU)
