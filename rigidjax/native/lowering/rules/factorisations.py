"""Factorisations of small matrices, as loops in JAX code."""

import functools

import jax
import jax.numpy as jnp

from ..expansions import Expansion, expansion


def vmap_over_stacks(dimensions: int):
    """The same of stacks, by `jax.vmap`; `dimensions` of the first array of a single one."""

    def of(function: Expansion) -> Expansion:
        @functools.wraps(function)
        def mapped(*arrays, **params):
            if arrays[0].ndim == dimensions:
                return function(*arrays, **params)
            return jax.vmap(lambda *one: mapped(*one, **params))(*arrays)

        return mapped

    return of


@expansion("cholesky")
@vmap_over_stacks(2)
def _cholesky(A, **_):
    """Lower triangular factor, column by column; all NaN if the matrix is not positive definite."""
    n = A.shape[-1]
    rows = jnp.arange(n)

    def column(k, L):
        rest = A[:, k] - L @ L[k]
        entries = rest / jnp.sqrt(rest[k])
        return L.at[:, k].set(jnp.where(rows >= k, entries, 0.0))

    L = jax.lax.fori_loop(0, n, column, jnp.zeros_like(A))
    valid = jnp.all(jnp.diagonal(L) > 0)
    return jnp.where(valid | (rows[:, None] < rows), L, jnp.nan)


@expansion("triangular_solve")
@vmap_over_stacks(2)
def _triangular_solve(A, B, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """Solution of A X = B or X A = B, row by row."""
    A = A.conj() if conjugate_a else A
    if not left_side:
        A, B = A.T, B.T
        lower = not lower
    if transpose_a:
        A, lower = A.T, not lower
    n = A.shape[-1]

    def row(i, X):
        k = i if lower else n - 1 - i
        rest = B[k] - A[k] @ X
        return X.at[k].set(rest if unit_diagonal else rest / A[k, k])

    # Rows that are not solved yet are zero, and so take no part in the product.
    X = jax.lax.fori_loop(0, n, row, jnp.zeros_like(B))
    return X if left_side else X.T


@expansion("lu")
@vmap_over_stacks(2)
def _lu(A, **_):
    """Factors of a matrix whose rows are exchanged: (LU, pivots, permutation), as LAPACK's."""
    m, n = A.shape
    count = min(m, n)
    rows = jnp.arange(m)

    def column(k, carry):
        A, pivots, order = carry
        size = jnp.where(rows >= k, jnp.abs(A[:, k]), -1.0)
        p = jnp.argmax(size).astype(jnp.int32)
        A, order = _exchanged(A, k, p), _exchanged(order, k, p)
        # A pivot of zero leaves its column as it is, as in LAPACK: zeros, as it is the largest.
        pivot = jnp.where(A[k, k] == 0, jnp.ones_like(A[k, k]), A[k, k])
        factors = jnp.where(rows > k, A[:, k] / pivot, 0.0)
        right = jnp.where(jnp.arange(n) > k, A[k], 0.0)
        A = A - factors[:, None] * right[None]
        A = A.at[:, k].set(jnp.where(rows > k, factors, A[:, k]))
        return A, pivots.at[k].set(p), order

    start = A, jnp.zeros(count, jnp.int32), jnp.arange(m, dtype=jnp.int32)
    return list(jax.lax.fori_loop(0, count, column, start))


def _exchanged(x, i, j):
    a, b = x[i], x[j]
    return x.at[i].set(b).at[j].set(a)


@expansion("lu_pivots_to_permutation")
@vmap_over_stacks(1)
def _permutation(pivots, *, permutation_size):
    def exchange(k, order):
        return _exchanged(order, k, pivots[k])

    start = jnp.arange(permutation_size, dtype=jnp.int32)
    return jax.lax.fori_loop(0, len(pivots), exchange, start)


@expansion("householder_product")
@vmap_over_stacks(2)
def _householder_product(A, factors):
    """The product of reflections I - t v v^T, one for each column below the diagonal."""
    m, n = A.shape
    rows = jnp.arange(m)

    def reflect(turn, Q):
        k = len(factors) - 1 - turn
        v = jnp.where(rows > k, A[:, k], jnp.where(rows == k, 1.0, 0.0))
        return Q - factors[k] * jnp.outer(v, v @ Q)

    return jax.lax.fori_loop(0, len(factors), reflect, jnp.eye(m, n, dtype=A.dtype))


@expansion("symmetric_product")
@vmap_over_stacks(2)
def _symmetric_product(A, C, *, alpha, beta):
    return alpha * A @ A.T + beta * C


@expansion("tridiagonal_solve")
@vmap_over_stacks(1)
def _tridiagonal_solve(below, diagonal, above, B, **_):
    """By elimination with exchanges of neighbouring rows, as LAPACK's `gtsv`."""
    zero = jnp.zeros_like(diagonal[:1])
    none = jnp.zeros_like(B[0])

    def eliminate(row, following):
        p, q, b = row
        left, d, u, c = following
        swaps = jnp.abs(left) > jnp.abs(p)
        factor = jnp.where(swaps, p / jnp.where(swaps, left, 1), left / p)
        kept = (
            jnp.where(swaps, left, p), jnp.where(swaps, d, q), jnp.where(swaps, u, 0),
            jnp.where(swaps, c, b),
        )  # fmt: skip
        rest = (
            jnp.where(swaps, q - factor * d, d - factor * q),
            jnp.where(swaps, -factor * u, u),
            jnp.where(swaps, b - factor * c, c - factor * b),
        )
        return rest, kept

    ends = jnp.concatenate([above[:-1], zero])
    first = diagonal[0], ends[0], B[0]
    last, rows = jax.lax.scan(eliminate, first, (below[1:], diagonal[1:], ends[1:], B[1:]))

    def substitute(after, row):
        x, y = after
        p, q, w, b = row
        new = (b - q * x - w * y) / p
        return (new, x), new

    bottom = last[2] / last[0]
    _, X = jax.lax.scan(substitute, (bottom, none), rows, reverse=True)
    return jnp.concatenate([X, bottom[None]])
