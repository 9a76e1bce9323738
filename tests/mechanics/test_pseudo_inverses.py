"""The pseudo-inverse and its derivatives, also of matrices without full rank."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations.cases import error, round_off

import rigidjax as rj
from rigidjax.mechanics.dynamics.pseudo_inverse import Blocks, ConstrainedEquations, pseudo_inverse

CASES = {"tall": (5, 3, 3), "square": (4, 4, 4), "redundant": (5, 4, 2)}


def factors(name, rng):
    """Matrices whose product has the shape and the rank of the case."""
    m, n, rank = CASES[name]
    # Near to matrices with orthogonal columns: well conditioned.
    shapes = ((m, rank), (rank, n))
    return tuple(jnp.asarray(0.2 * rng.normal(size=s) + np.eye(*s)) for s in shapes)


@pytest.mark.parametrize("name", CASES)
def test_value_and_derivatives_at_constant_rank(name, rng):
    at, along = factors(name, rng), factors(name, rng)
    weights = jnp.asarray(rng.normal(size=(CASES[name][1], CASES[name][0])))

    def value(s):
        B, C = (a + s * d for a, d in zip(at, along, strict=True))
        return jnp.sum(weights * pseudo_inverse(B @ C))

    both = jax.jit(lambda s: (value(s), jax.jacfwd(value)(s), jax.grad(value)(s)))
    wanted = np.linalg.pinv(at[0] @ at[1])
    assert error(pseudo_inverse(at[0] @ at[1]), wanted) < round_off(1000)
    h = 1e-3
    # Central differences of order 4.
    outside = [both(k * h)[0] for k in (-2.0, -1.0, 1.0, 2.0)]
    slope = (outside[0] - 8 * outside[1] + 8 * outside[2] - outside[3]) / (12 * h)
    _, forward, reverse = both(0.0)
    assert error(forward, reverse) < round_off(1000)
    assert error(forward, slope) < 1e-8


def inverses(J, H, blocks=None):
    """J^+, and the inverse of H in the motions that J leaves free."""
    equations, (m, n) = ConstrainedEquations(J, H, blocks), J.shape
    columns = jax.vmap(lambda f: equations.solve(f, jnp.zeros(m))[0])(jnp.eye(n))
    return equations.inverse, columns.T


@pytest.mark.parametrize("name", CASES)
def test_kernels_decompose_without_singular_values(name, rng):
    """The pseudo-inverse and what masses do in the motions left free: those of LAPACK."""
    B, C = factors(name, rng)
    n = CASES[name][1]
    root = rng.normal(size=(n, n))
    J, H = B @ C, jnp.asarray(root @ root.T + np.eye(n))
    kernel = rj.native.jit(lambda J, H: (*inverses(J, H), pseudo_inverse(J)))
    assert kernel.why_not(J, H) == []
    P, X, alone = jax.jit(kernel)(J, H)
    for value in (P, alone):
        assert error(value, np.linalg.pinv(J)) < round_off(1000)
    assert error(X, inverses(J, H)[1]) < round_off(1000)


def test_kernels_truncate_as_lapack_does(rng):
    """Nearly redundant constraints, such as slightly open loops, agree to second order.

    A plain decomposition depends on the order of the constraints to first order, by 1e-7 here.
    """
    B, C = factors("redundant", rng)
    size, n = 1e-7, C.shape[1]
    H = jnp.asarray(np.diag(1.0 + np.arange(n)))
    J = B @ C + size * rng.normal(size=(len(B), n))
    exact = jax.jit(inverses)(J, H)
    kernel = jax.jit(rj.native.jit(inverses))(J, H)
    for actual, expected in zip(kernel, exact, strict=True):
        assert error(actual, expected) < 100 * size**2


def test_matrices_of_zeros_and_without_rows():
    for A in (jnp.zeros((3, 2)), jnp.zeros((0, 4))):
        assert pseudo_inverse(A).shape == A.shape[::-1]
        change = jax.jvp(pseudo_inverse, (A,), (jnp.ones_like(A),))[1]
        assert np.array_equal(change, jnp.zeros(A.shape[::-1]))
        H = jnp.diag(jnp.arange(1.0, A.shape[1] + 1.0))
        P, X = inverses(A, H)
        assert np.array_equal(P, jnp.zeros(A.shape[::-1]))
        assert error(X, jnp.linalg.inv(H)) < round_off(10)


def test_second_derivative_of_a_scalar():
    # 1/a has the second derivative 2/a^3.
    second = jax.grad(jax.grad(lambda a: pseudo_inverse(a[None, None])[0, 0]))(jnp.array(2.0))
    assert error(second, 0.25) < round_off(10)


def test_more_constraints_than_kernels_support(rng):
    J = jnp.asarray(rng.normal(size=(66, 68)))
    found = rj.native.jit(pseudo_inverse)(J)
    np.testing.assert_allclose(found, np.linalg.pinv(J), atol=1e-10)


def test_blocks_with_a_common_column_are_merged():
    touched = [((0,), (0, 1)), ((1,), (4,)), ((2,), (2, 3)), ((3,), (1, 2))]
    assert Blocks.from_rows(touched).parts == (((1,), (4,)), ((0, 2, 3), (0, 1, 2, 3)))


@pytest.mark.parametrize("bad", [-np.inf, np.nan])
def test_a_matrix_that_is_not_finite_gives_nan(rng, bad):
    """LAPACK's iteration does not end for this matrix."""
    A = jnp.asarray(rng.normal(size=(4, 4))).at[2, 0].set(bad).at[1, 2].set(2.7e154)
    assert np.isnan(pseudo_inverse(A)).all() and np.isnan(jax.vmap(pseudo_inverse)(A[None])).all()
