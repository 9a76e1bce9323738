"""Factorisations in kernels against NumPy: random, deficient, graded, zero matrices."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg

from rigidjax import native
from rigidjax.mechanics.dynamics import mass_matrix
from rigidjax.native.ops import linalg

EPS = float(np.finfo(np.float64).eps)
SHAPES = [(2, 3), (4, 4), (9, 6)]


def matrices(m, n):
    """Return stacked matrices of one shape: all difficult kinds, and a regular one."""
    rng = np.random.default_rng(20260101)
    A = rng.normal(size=(m, n))
    rank = max(1, min(m, n) // 2)
    return np.stack(
        [
            A,
            rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)),
            np.zeros((m, n)),
            3.0 * np.eye(m, n),
            np.logspace(-12, 3, m)[:, None] * A,
            A * np.logspace(3, -12, n),
            1e-200 * A,
        ]
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_singular_values(shape):
    m, n = shape
    stack = matrices(m, n)
    kernel = native.jit(lambda A: jnp.linalg.svd(A, full_matrices=True))
    U, s, Vt = (np.asarray(x) for x in jax.vmap(kernel)(jnp.asarray(stack)))
    size = np.maximum(np.abs(stack).max((1, 2)), 1e-300)
    # Some rounding errors for each of at most 20 rows and columns.
    bound = 10 * max(m, n) * EPS
    expected = np.linalg.svd(stack, compute_uv=False)
    assert (np.abs(s - expected).max(1) <= bound * size).all()
    assert (np.diff(s, axis=1) <= 0).all()
    middle = np.zeros((len(s), m, n))
    middle[:, range(len(s[0])), range(len(s[0]))] = s
    assert (np.abs(U @ middle @ Vt - stack).max((1, 2)) <= bound * size).all()
    for Q in (U, Vt):
        error = Q @ Q.swapaxes(1, 2) - np.eye(Q.shape[1])
        assert np.abs(error).max() <= bound
    alone = native.jit(lambda A: jnp.linalg.svd(A, compute_uv=False))(jnp.asarray(stack[0]))
    np.testing.assert_allclose(alone, expected[0], rtol=bound, atol=bound * size[0])


def test_small_singular_values_are_relatively_accurate():
    """For columns of very different size all singular values agree with mpmath to 1e-13."""
    n = 6
    rows = 1.0 / (1.0 + np.arange(n)[:, None] + np.arange(n))
    A = (rows + 2.0 * np.eye(n)) * np.logspace(0, -30, n)
    with mpmath.workdps(80):
        exact = mpmath.svd_r(mpmath.matrix(A.tolist()), compute_uv=False)
        expected = sorted((float(x) for x in exact), reverse=True)
    s = native.jit(lambda A: jnp.linalg.svd(A, compute_uv=False))(jnp.asarray(A))
    np.testing.assert_allclose(s, expected, rtol=1e-13)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_qr_factors(shape):
    m, n = shape
    stack = matrices(m, n)
    full = native.jit(lambda A: jnp.linalg.qr(A, mode="complete"))
    pivoted = native.jit(lambda A: jax.scipy.linalg.qr(A, mode="economic", pivoting=True))
    bound = 10 * max(m, n) * EPS
    size = np.maximum(np.abs(stack).max((1, 2)), 1e-300)
    Q, R = (np.asarray(x) for x in jax.vmap(full)(jnp.asarray(stack[:6])))
    assert (np.abs(Q @ R - stack[:6]).max((1, 2)) <= bound * size[:6]).all()
    assert np.abs(Q @ Q.swapaxes(1, 2) - np.eye(m)).max() <= bound
    assert (np.tril(R, -1) == 0).all()
    for actual, expected in zip((Q[0], R[0]), scipy.linalg.qr(stack[0]), strict=True):
        np.testing.assert_allclose(actual, expected, atol=bound * max(size[0], 1.0))
    Q, R, order = (np.asarray(x) for x in jax.vmap(pivoted)(jnp.asarray(stack[:6])))
    for k in range(6):
        assert np.abs(Q[k] @ R[k] - stack[k][:, order[k]]).max() <= bound * size[k]
        diagonal = np.abs(np.diagonal(R[k]))
        assert (np.diff(diagonal) <= bound * size[k]).all()


def scaled_matrices(dtype):
    """Return a matrix times factors whose squares over- or underflow, also by rows and by
    columns.
    """
    A = np.random.default_rng(20260101).normal(size=(4, 3))
    small, large = (1e-200, 1e200) if dtype == np.float64 else (1e-24, 1e24)
    columns, rows = np.array([small, 1.0, large]), np.array([[1.0], [small], [small], [small]])
    root = np.sqrt(small * large) * np.array([small**0.75, large**0.75])
    stack = [small * A, large * A, A * columns, A * columns[::-1], rows * A, rows * np.triu(A)]
    return np.stack([*stack, *(x * A for x in root)]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=lambda t: t.__name__)
@pytest.mark.parametrize("pivoting", [False, True])
def test_qr_of_matrices_whose_squares_overflow_or_underflow(dtype, pivoting):
    """Each column of Q R has the relative accuracy of LAPACK, and R has the signs of LAPACK."""
    stack, bound = scaled_matrices(dtype), 100 * np.finfo(dtype).eps

    def function(A):
        return jax.scipy.linalg.qr(A, pivoting=pivoting)

    results = [np.asarray(x) for x in jax.vmap(native.jit(function))(jnp.asarray(stack))]
    for A, Q, R, *order in zip(stack.astype(float), *results, strict=True):
        A = A[:, order[0]] if pivoting else A
        size = np.abs(A).max(0)
        np.testing.assert_allclose(Q.astype(float) @ (R / size), A / size, atol=bound)
        np.testing.assert_allclose(Q.T @ Q, np.eye(4), atol=bound)
        expected = scipy.linalg.qr(A)[1]
        np.testing.assert_allclose(R / size, expected / size, atol=bound)
        if pivoting:
            diagonal = np.abs(np.diagonal(R)).astype(float)
            assert (diagonal[1:] <= (1 + bound) * diagonal[:-1]).all()


def test_tall_matrices():
    """Time and memory of the factors are proportional to the number of their entries."""
    A = np.random.default_rng(20260101).normal(size=(20_000, 3))
    A[:, 2] = A[:, 0]
    Q, R = map(np.asarray, native.jit(jnp.linalg.qr)(jnp.asarray(A)))
    assert Q.shape == A.shape and R.shape == (3, 3)
    np.testing.assert_allclose(Q @ R, A, atol=1e-13)
    np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-13)
    assert (np.tril(R, -1) == 0).all()


def test_derivatives_of_factors():
    """Derivatives are those of JAX, applied before the kernel is emitted."""
    A = jnp.asarray(np.random.default_rng(20260101).normal(size=(4, 3)))

    def function(A):
        U, s, Vt = jnp.linalg.svd(A, full_matrices=False)
        Q, R = jnp.linalg.qr(A)
        return (U * s**2) @ Vt + Q @ R.T @ R.T

    actual = jax.jacfwd(native.jit(function))(A)
    np.testing.assert_allclose(actual, jax.jacfwd(function)(A), atol=1e-12)


Z = jnp.array([[4.0 + 1.0j, 1.0, -0.5j], [0.2, 3.0 - 2.0j, 0.7j], [-1.0, 0.4j, 5.0]])


def test_unsupported_complex_operations():
    (reason,) = native.jit(jnp.sort).why_not(Z)
    assert "`sort` of type complex128" in reason


def test_subset_of_singular_values():
    """The message names the form of the primitive that has no rule."""

    def largest(A):
        return jax.lax.linalg.svd(A, full_matrices=False, compute_uv=False, subset_by_index=(0, 1))

    (reason,) = native.jit(largest).why_not(jnp.eye(3))
    assert "`subset_by_index` (kernels compute all singular values: leave it out" in reason
    with pytest.raises(NotImplementedError, match="no rule for `svd` with `subset_by_index`"):
        native.jit(largest)(jnp.eye(3))


@pytest.mark.parametrize("n", [4, 14])
def test_eigenvalues(n):
    """Symmetric matrices, given by one of their triangles."""
    stack = matrices(n, n)
    stack += stack.swapaxes(1, 2)
    w, V = jax.vmap(native.jit(lambda A: jnp.linalg.eigh(A, UPLO="U")))(jnp.asarray(stack))
    size = np.maximum(np.abs(stack).max((1, 2)), 1e-300)
    bound = 10 * n * EPS
    assert (np.abs(w - np.linalg.eigvalsh(stack)).max(1) <= bound * size).all()
    V = np.asarray(V)
    product = V * np.asarray(w)[:, None] @ V.swapaxes(1, 2)
    assert (np.abs(product - stack).max((1, 2)) <= bound * size).all()
    assert np.abs(V @ V.swapaxes(1, 2) - np.eye(n)).max() <= bound


@pytest.mark.parametrize("n", [3, 7])
def test_roots_and_band_matrices(n):
    """Cholesky factors in registers and in memory, NaN where there is none.

    Also rows of a tridiagonal matrix that have to be exchanged, and Q of LAPACK's reflections.
    """
    rng = np.random.default_rng(20260101)
    A, b = rng.normal(size=(5, n, n)), jnp.asarray(rng.normal(size=(5, 3, n)))
    H = A @ A.swapaxes(1, 2) + np.eye(n)
    H[3, 1, 1] = -1.0

    def function(H, A, b):
        solve = jax.lax.linalg.tridiagonal_solve
        reflections = jax.lax.linalg.householder_product(A, 0.1 * b[0])
        return jnp.linalg.cholesky(H), solve(b[0], 1e-9 * b[1], b[2], A), reflections

    kernel, args = native.jit(function), (jnp.asarray(H), jnp.asarray(A), b)
    found, expected = jax.vmap(kernel)(*args), jax.vmap(function)(*args)
    for own, alone, wanted in zip(found, kernel(*(x[0] for x in args)), expected, strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(alone, own[0], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n", [6, 9])
def test_positive_definite(n):
    """Matrices in registers and in memory, of sizes that are a multiple of four columns or not.

    A lane whose matrix is not positive definite is NaN, others are not affected.
    """
    rng = np.random.default_rng(20260101)
    A = rng.normal(size=(7, n, n))
    H = A @ A.transpose(0, 2, 1) + np.eye(n)
    H[3] *= -1.0
    b = rng.normal(size=(7, n))
    kernel = native.jit(lambda H, b: (mass_matrix.solve(H, b), mass_matrix.inverse_root(H)))
    x, W = (np.asarray(y) for y in jax.vmap(kernel)(jnp.asarray(H), jnp.asarray(b)))
    assert np.isnan(x[3]).all()
    assert np.isnan(W[3]).all()
    good = np.arange(7) != 3
    # A condition number of a few hundred.
    bound = 1000 * n * EPS
    np.testing.assert_allclose((H[good] @ x[good][..., None])[..., 0], b[good], atol=bound)
    np.testing.assert_array_equal(W[good], np.tril(W[good]))
    np.testing.assert_allclose(
        (W @ H @ W.transpose(0, 2, 1))[good], np.eye(n)[None].repeat(6, 0), atol=bound
    )
    alone = kernel(jnp.asarray(H[0]), jnp.asarray(b[0]))
    np.testing.assert_allclose(alone[0], x[0], rtol=bound)
    np.testing.assert_allclose(alone[1], W[0], rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", [float, complex, int], ids=lambda t: t.__name__)
def test_products_with_long_sums(dtype):
    """Several sums at a time, and the remaining ones; one column, and one row."""
    rng = np.random.default_rng(1)

    def numbers(*shape):
        x = rng.integers(-9, 9, shape) + (
            1j * rng.integers(-9, 9, shape) if dtype is complex else 0
        )
        return jnp.asarray(x, dtype)

    A, B, C, x = numbers(3, 20, 40), numbers(40, 19), numbers(3, 40, 8), numbers(40)

    def function(A, B, C, x):
        return (
            A @ B,
            A @ C,
            A @ x,
            x @ B,
            B.T @ x,
            jnp.einsum("kij,kjl->il", A, C),
            A[0] @ C[0, :, :3],
        )

    kernel = native.jit(function)
    assert kernel.why_not(A, B, C, x) == []  # pyright: ignore[reportFunctionMemberAccess]
    expected = function(*map(np.asarray, (A, B, C, x)))
    for found, wanted in zip(kernel(A, B, C, x), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    batch = jax.vmap(kernel, (0, None, None, None))(jnp.stack([A, -A]), B, C, x)
    np.testing.assert_array_equal(batch[1][1], -np.asarray(expected[1]))


def test_arrays_written_at_run_time():
    """Many and large slices, some out of bounds, combined with existing values."""

    def function(k, a):
        large, rows = jnp.zeros((30, 70)), jnp.arange(40) + k
        return (
            large.at[k].set(a[0]),
            large.at[k + 29].set(a[0], mode="drop"),
            large.at[rows].add(a, mode="drop"),
            large.at[rows, 3].max(a[:, 1], mode="clip"),
        )

    a = jnp.sin(jnp.arange(40.0 * 70)).reshape(40, 70)
    kernel = native.jit(function)
    batch = jax.vmap(kernel, (0, None))(jnp.array([0, 2, 5]), a)
    for n, k in enumerate((0, 2, 5)):
        for found, member, wanted in zip(kernel(k, a), batch, function(k, a), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-15)
            np.testing.assert_allclose(member[n], wanted, rtol=1e-15)


@pytest.mark.parametrize("dtype", [float, complex], ids=lambda t: t.__name__)
def test_elimination_in_memory(dtype):
    """Each lane has its own pivots; results of a singular or undefined lane are not finite."""
    n, rng = 9, np.random.default_rng(20260101)
    A = rng.normal(size=(7, n, n)).astype(dtype)
    if dtype is complex:
        A += 1j * rng.normal(size=A.shape)
    A[1] = np.eye(n)[rng.permutation(n)]
    A[3] = np.ones((n, n))
    A[5, 2, 4] = np.nan
    b = rng.normal(size=(7, n)).astype(dtype)
    kernel = native.jit(
        lambda A, b: (
            linalg.inverse(A),
            jnp.linalg.solve(A, b),
            jax.lax.linalg.lu(A),
            jnp.linalg.solve(A.T, A),
        )
    )
    inverse, x, (LU, pivots, order), ratio = jax.vmap(kernel)(jnp.asarray(A), jnp.asarray(b))
    good = np.array([0, 1, 2, 4, 6])
    for bad in (3, 5):
        assert not np.isfinite(inverse[bad]).all()
        assert not np.isfinite(x[bad]).all()
    # Condition numbers of up to a few hundred.
    bound = 1000 * n * EPS
    np.testing.assert_allclose((inverse @ A)[good], np.eye(n)[None].repeat(5, 0), atol=bound)
    np.testing.assert_allclose((A @ x[..., None])[good, :, 0], b[good], atol=bound)
    np.testing.assert_allclose((A.swapaxes(1, 2) @ ratio)[good], A[good], atol=bound)
    for k in good:
        expected, exchanged = scipy.linalg.lu_factor(A[k])
        np.testing.assert_allclose(LU[k], expected, atol=bound)
        np.testing.assert_array_equal(pivots[k], exchanged)
        product = (np.tril(LU[k], -1) + np.eye(n)) @ np.triu(LU[k])
        np.testing.assert_allclose(product, A[k][order[k]], atol=bound)
    alone = kernel(jnp.asarray(A[2]), jnp.asarray(b[2]))
    for one, many in zip(
        jax.tree.leaves(alone), (inverse, x, LU, pivots, order, ratio), strict=True
    ):
        np.testing.assert_allclose(one, many[2], rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", [float, complex], ids=lambda t: t.__name__)
@pytest.mark.parametrize("n", [4, 7])
def test_lu_of_singular_matrices(n, dtype):
    """A pivot of zero leaves zeros below it, as in LAPACK: P L U is the matrix."""
    rng = np.random.default_rng(20260101)
    integers = rng.integers(-3, 4, (5, n, n)).astype(dtype)
    if dtype is complex:
        integers += 1j * rng.integers(-3, 4, integers.shape)
    zero_column, zero_row, twice, low = integers[:4]
    zero_column[:, 0], zero_row[1], twice[:, -1] = 0.0, 0.0, twice[:, 0]
    stack = [np.zeros((n, n)), np.ones((n, n)), zero_column, zero_row, twice, np.tril(low, -1)]
    stack = np.stack([*stack, np.triu(low, 1), integers[4]])
    kernel = native.jit(jax.lax.linalg.lu)
    LU, pivots, order = (np.asarray(x) for x in jax.vmap(kernel)(jnp.asarray(stack)))
    for A, both, exchanged, rows in zip(stack, LU, pivots, order, strict=True):
        product = (np.tril(both, -1) + np.eye(n)) @ np.triu(both)
        np.testing.assert_allclose(product, A[rows], atol=100 * EPS)
        assert (np.abs(np.tril(both, -1)) <= np.sqrt(2) + EPS).all()
        assert (exchanged >= np.arange(n)).all()
    of_ones = np.zeros((n, n))
    of_ones[0] = of_ones[:, 0] = 1.0
    np.testing.assert_array_equal(LU[:2], [np.zeros((n, n)), of_ones])


@pytest.mark.parametrize("dtype", [float, complex], ids=lambda t: t.__name__)
def test_triangular_systems_in_memory(dtype):
    """Systems from both sides, transposed, conjugate, stacked; one and several right-hand sides."""
    rng = np.random.default_rng(20260101)
    A, B, b = (rng.normal(size=s).astype(dtype) for s in ((2, 7, 7), (2, 7, 18), (2, 1, 7)))
    A += 3.0 * np.eye(7)
    if dtype is complex:
        A, B = A + 1j * A.swapaxes(1, 2), B * (1.0 + 2.0j)

    def function(A, B, b):
        solve = jax.lax.linalg.triangular_solve
        return (
            solve(A, B, left_side=True, lower=True, unit_diagonal=True),
            solve(A, B, left_side=True, transpose_a=True, conjugate_a=dtype is complex),
            solve(A, b, lower=True),
            solve(A, b, transpose_a=True),
        )

    arrays = jnp.asarray(A), jnp.asarray(B), jnp.asarray(b)
    kernel, bound = native.jit(function), 1000 * EPS
    assert kernel.why_not(*arrays) == []  # pyright: ignore[reportFunctionMemberAccess]
    expected = function(*arrays)
    for found, wanted in zip(kernel(*arrays), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound)
    for found, wanted in zip(jax.vmap(kernel)(*arrays), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_eigenvalues_of_a_matrix_that_is_not_finite(value):
    A = np.diag([1.0, 2.0, 3.0])
    A[1, 0] = A[0, 1] = value
    for result in native.jit(jnp.linalg.eigh)(jnp.asarray(A)):
        assert np.isnan(result).all()
