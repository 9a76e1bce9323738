"""Elimination of the equations that declare one unknown the rate of another."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solvers import cases

import rigidjax as rj
from rigidjax.solvers import MassMatrixTerm, Radau5, dae_term
from rigidjax.solvers.base.rate_elimination import CondensedInverse, checked_rates, solve_stages

PAIRS = {
    "none left": ((0, 1), (1, 2), (2, 3)),
    "one level": ((0, 3), (1, 4), (2, 5)),
    "two levels": ((0, 3), (1, 4), (3, 6), (4, 7)),
    "two of one": ((0, 6), (1, 6), (3, 6), (5, 1)),
}


@pytest.mark.parametrize(
    ("case", "dtype"), [("one level", complex), ("two levels", float), ("two of one", float)]
)
def test_eliminated_solve_equals_full_solve(case, dtype):
    """The solution does not depend on the order of the unknowns and of the entries of rows."""
    pairs = checked_rates(PAIRS[case])
    n = 9
    rng = np.random.default_rng(3)
    A, b = rng.normal(size=(n, n)), rng.normal(size=(2, n))
    if dtype is complex:
        A, b = A + 1j * rng.normal(size=(n, n)), b + 1j * rng.normal(size=(2, n))
    for i, j in pairs:
        keep = A[i, i], A[i, j]
        A[i] = 0.0
        A[i, i], A[i, j] = keep
    found = jax.jit(lambda A, b: jax.vmap(CondensedInverse(A, pairs).solve)(b))(A, b)
    accuracy = 1e-11 if jax.config.jax_enable_x64 else 1e-3
    np.testing.assert_allclose(found, np.linalg.solve(A, b.T).T, rtol=0, atol=accuracy)


@pytest.mark.parametrize(("case", "stages"), [("none left", 1), ("one level", 3)])
def test_eliminated_stages_equal_full_stages(case, stages):
    """Several stages at once, each with its own Jacobian."""
    pairs = checked_rates(PAIRS[case])
    s, n = stages, 4 if case == "none left" else 9
    rng = np.random.default_rng(5)
    A, M, K = rng.normal(size=(s, s)), rng.normal(size=(n, n)), rng.normal(size=(s, n, n))
    for i, j in pairs:
        M[i], K[:, i] = np.eye(n)[i], -np.eye(n)[j]
    J = np.einsum("ac,ij->aicj", A, M) + np.einsum("ac,aij->aicj", np.eye(s), K)
    z = rng.normal(size=(s, n))
    b = np.einsum("aicj,cj->ai", J, z)
    solved = jax.jit(lambda J, b: solve_stages(J, b, pairs))
    found = solved(J, b)
    np.testing.assert_allclose(found, z, rtol=0, atol=1e-9)
    # Replaces a step without solution.
    unit = np.eye(s * n).reshape(s, n, s, n)
    assert np.all(np.isfinite(solved(unit, np.zeros((s, n)))))


def oscillator(rates=((0, 1),)):
    return MassMatrixTerm(
        lambda t, y, args: jnp.stack([y[1], -args * y[0]]), np.eye(2), rates=rates
    )


def test_derivative_and_direction():
    """Backwards in time, and by a parameter, against the closed solution."""
    solver = Radau5()

    def end(stiffness):
        return diffrax.diffeqsolve(
            oscillator(), solver, 0.0, -1.5, None, jnp.array([1.0, 0.0]), stiffness, max_steps=4096,
            stepsize_controller=solver.controller(1e-9, 1e-9, cases.optx.rms_norm),
            adjoint=diffrax.ForwardMode(),
        ).ys[-1, 0]  # fmt: skip

    value, slope = jax.jvp(end, (4.0,), (1.0,))
    np.testing.assert_allclose(value, np.cos(3.0), atol=1e-8)
    np.testing.assert_allclose(slope, -np.sin(3.0) * 1.5 / 4.0, atol=1e-8)


@pytest.mark.parametrize("index", [1, 2, 3])
def test_formulations_declare_rate_pairs(index):
    """Positions and velocities of absolute coordinates, but not if multipliers correct them."""
    system = rj.problems.chain(2).system
    model = rj.Absolute(system, index=index)
    n = model.layout.num_positions
    assert dae_term(model).rates == tuple((i, n + i) for i in range(n))
    assert dae_term(rj.Absolute(system, index=2, stabilized=True)).rates == ()


def test_invalid_pairs_raise():
    """Pairs that do not exist, and equations that do not match their declaration."""

    def begin(rates):
        cases.solve(Radau5(), oscillator(rates), jnp.array([1.0, 0.0]), 1.0, 1e-6, 1e-6, args=4.0)

    for wrong in (3, ((0, 1, 1),), ((0.5, 1.0),), ((-1, 0),)):
        with pytest.raises(ValueError, match=r"takes pairs \(i, j\)"):
            oscillator(wrong)
    with pytest.raises(ValueError, match="two rates"):
        oscillator(((0, 1), (0, 2)))
    with pytest.raises(ValueError, match="cycle"):
        oscillator(((0, 1), (1, 0)))
    with pytest.raises(ValueError, match="must have unknowns from 0 to 1; got 2"):
        begin(((0, 2),))
    with pytest.raises(RuntimeError, match=r"equation number 1 is not y_1' = y_0"):
        begin(((1, 0),))
