"""Elimination in a loop, as kernels have it, and LAPACK: the same values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rigidjax.mechanics.dynamics import mass_matrix
from rigidjax.native.ops import linalg


def matrices(n, dtype=float):
    """A general matrix whose first pivot is zero, and a positive definite one."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n)).astype(dtype)
    if np.iscomplexobj(A):
        A = A + 1j * rng.normal(size=(n, n))
    if n > 1:
        A[0, 0] = 0.0
    return jnp.asarray(A), jnp.asarray((A @ A.conj().T).real + np.eye(n))


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_gauss_jordan_against_numpy(n, dtype):
    A, _ = matrices(n, dtype)
    X = jax.jit(linalg.gauss_jordan)(A)
    np.testing.assert_allclose(X @ A, np.eye(n), atol=1e-13 * np.linalg.cond(A))


def test_singular_matrices():
    A = jnp.array([[1.0, 2.0], [2.0, 4.0]])
    assert not np.all(np.isfinite(linalg.gauss_jordan(A)))
    assert not np.all(np.isfinite(linalg.inverse(A)))


@pytest.mark.parametrize("n", [1, 3, 9])
def test_positive_definite_solves(n):
    _, H = matrices(n)
    b = jnp.arange(1.0, n + 1.0)
    W = jax.jit(mass_matrix._cholesky_inverse_in_loop)(H)
    np.testing.assert_allclose(W, mass_matrix._cholesky_inverse(H), atol=1e-13)
    x = jax.jit(mass_matrix._solve_in_loop)(H, b)
    np.testing.assert_allclose(x, mass_matrix._cholesky_solve(H, b), atol=1e-12)


@pytest.mark.parametrize("n", [1, 3, 9])
def test_indefinite_matrices_give_nan(n):
    H = matrices(n)[1].at[n - 1, n - 1].set(-1.0)
    assert np.all(np.isnan(mass_matrix._cholesky_inverse_in_loop(H)))
    assert np.all(np.isnan(mass_matrix._solve_in_loop(H, jnp.ones(n))))


def test_batches_and_derivatives():
    A, H = matrices(3)
    stack = jnp.stack([A, A + 1.0, 2.0 * A])
    np.testing.assert_allclose(jax.vmap(linalg.inverse)(stack), np.linalg.inv(stack), rtol=1e-11)
    _, change = jax.jvp(linalg.inverse, (A,), (H,))
    step = 1e-6
    ends = [linalg.inverse(A + sign * step * H) for sign in (1, -1)]
    np.testing.assert_allclose(change, (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_second_derivatives_through_rematerialisation():
    """`jax.lax.scan` and `jax.checkpoint` lose rules of `jax.custom_jvp`, but not of primitives.

    Reverse mode inside forward and reverse mode, and batches, are compared with LAPACK's
    derivatives in JAX.
    """
    A, H = matrices(3)
    A, b = A + 2.0 * jnp.eye(3), jnp.arange(1.0, 4.0)

    def chain_solves(solve, root, inverse):
        def value(x):
            def turn(v, _):
                S = H + jnp.outer(x, x) + jnp.diag(v * v)
                W = root(S)
                return solve(S, v + W @ x) + inverse(A + jnp.outer(x, v)) @ b, None

            return jnp.sum(jax.lax.scan(jax.checkpoint(turn), x, None, length=2)[0] ** 2)

        return value

    ours = chain_solves(mass_matrix.solve, mass_matrix.inverse_root, linalg.inverse)
    of_jax = chain_solves(
        jnp.linalg.solve, lambda S: jnp.linalg.inv(jnp.linalg.cholesky(S)), jnp.linalg.inv
    )
    points = jnp.array([[0.3, -0.2, 0.5], [0.1, 0.4, -0.3]])
    for order in (lambda f: jax.jacfwd(jax.grad(f)), lambda f: jax.jacrev(jax.grad(f))):
        actual, expected = (jax.jit(jax.vmap(order(f)))(points) for f in (ours, of_jax))
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)


def test_solves_are_linear_in_the_right_hand_side():
    _, H = matrices(3)
    b = jnp.arange(1.0, 4.0)
    (x,) = jax.linear_transpose(lambda b: mass_matrix.solve(H, b), b)(b)
    np.testing.assert_allclose(H @ x, b, atol=1e-12)
    with pytest.raises(NotImplementedError, match="linear in the right-hand side alone"):
        jax.linear_transpose(lambda H: mass_matrix.solve(H, b), H)(b)
