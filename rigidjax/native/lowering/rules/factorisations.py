"""Factorisations of small matrices, written in JAX."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ...primitives.expansions import Expansion, expansion


def vmap_over_stacks(dimensions: int):
    """Return a decorator that maps a function over leading axes by `jax.vmap`.

    **Arguments:** `dimensions`, of the first array without leading axes.
    """

    def decorate(function: Expansion) -> Expansion:
        @functools.wraps(function)
        def call_rule(*arrays, **params):
            if arrays[0].ndim == dimensions:
                return function(*arrays, **params)
            return jax.vmap(lambda *arrays_of_one: call_rule(*arrays_of_one, **params))(*arrays)

        return call_rule

    return decorate


@expansion("cholesky")
@vmap_over_stacks(2)
def _cholesky(A: Array, **_: Any):
    """Return the Cholesky factor column by column; NaN if the matrix is not positive definite."""
    n = A.shape[-1]
    rows = jnp.arange(n)

    def column(k, L):
        remainder = A[:, k] - L @ L[k]
        entries = remainder / jnp.sqrt(remainder[k])
        return L.at[:, k].set(jnp.where(rows >= k, entries, 0.0))

    L = jax.lax.fori_loop(0, n, column, jnp.zeros_like(A))
    is_positive_definite = jnp.all(jnp.diagonal(L) > 0)
    return jnp.where(is_positive_definite | (rows[:, None] < rows), L, jnp.nan)


@expansion("triangular_solve")
@vmap_over_stacks(2)
def _triangular_solve(
    A: Array,
    B: Array,
    *,
    left_side: Any,
    lower: Any,
    transpose_a: Any,
    conjugate_a: Any,
    unit_diagonal: Any,
):
    """Solve A X = B or X A = B row by row."""
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

    # Rows that are not solved yet are zero, and so do not contribute to the product.
    X = jax.lax.fori_loop(0, n, row, jnp.zeros_like(B))
    return X if left_side else X.T


@expansion("lu")
@vmap_over_stacks(2)
def _lu(A: Array, **_: Any):
    """Factorise a matrix with partial pivoting as LAPACK does: (LU, pivots, permutation)."""
    m, n = A.shape
    count = min(m, n)
    rows = jnp.arange(m)

    def column(k, carry):
        A, pivots, permutation = carry
        magnitude = jnp.where(rows >= k, jnp.abs(A[:, k]), -1.0)
        p = jnp.argmax(magnitude).astype(jnp.int32)
        A, permutation = _exchange(A, k, p), _exchange(permutation, k, p)
        # As in LAPACK, a column of zeros, whose pivot is zero, is not scaled.
        pivot = jnp.where(A[k, k] == 0, jnp.ones_like(A[k, k]), A[k, k])
        multipliers = jnp.where(rows > k, A[:, k] / pivot, 0.0)
        pivot_row = jnp.where(jnp.arange(n) > k, A[k], 0.0)
        A = A - multipliers[:, None] * pivot_row[None]
        A = A.at[:, k].set(jnp.where(rows > k, multipliers, A[:, k]))
        return A, pivots.at[k].set(p), permutation

    start = A, jnp.zeros(count, jnp.int32), jnp.arange(m, dtype=jnp.int32)
    return list(jax.lax.fori_loop(0, count, column, start))


def _exchange(x: Array, i: Array, j: Array):
    a, b = x[i], x[j]
    return x.at[i].set(b).at[j].set(a)


@expansion("lu_pivots_to_permutation")
@vmap_over_stacks(1)
def _permutation(pivots: Array, *, permutation_size: Any):
    def apply_pivot(k, permutation):
        return _exchange(permutation, k, pivots[k])

    start = jnp.arange(permutation_size, dtype=jnp.int32)
    return jax.lax.fori_loop(0, len(pivots), apply_pivot, start)


@expansion("householder_product")
@vmap_over_stacks(2)
def _householder_product(A: Array, factors: Array):
    """Return the product of reflections I - t v v^T, with v below the diagonal of each column."""
    m, n = A.shape
    rows = jnp.arange(m)

    def reflect(iteration, Q):
        k = len(factors) - 1 - iteration
        v = jnp.where(rows > k, A[:, k], jnp.where(rows == k, 1.0, 0.0))
        return Q - factors[k] * jnp.outer(v, v @ Q)

    return jax.lax.fori_loop(0, len(factors), reflect, jnp.eye(m, n, dtype=A.dtype))


@expansion("symmetric_product")
@vmap_over_stacks(2)
def _symmetric_product(A: Array, C: Array, *, alpha: Any, beta: Any):
    return alpha * A @ A.T + beta * C


@expansion("tridiagonal_solve")
@vmap_over_stacks(1)
def _tridiagonal_solve(below: Array, diagonal: Array, above: Array, B: Array, **_: Any):
    """Solve a tridiagonal system with exchanges of neighbouring rows, as LAPACK's `gtsv`."""
    zero = jnp.zeros_like(diagonal[:1])
    zero_row = jnp.zeros_like(B[0])

    def eliminate(row, next_row):
        pivot, above_entry, rhs = row
        below_entry, next_pivot, next_above, next_rhs = next_row
        swaps = jnp.abs(below_entry) > jnp.abs(pivot)
        factor = jnp.where(swaps, pivot / jnp.where(swaps, below_entry, 1), below_entry / pivot)
        eliminated_row = (
            jnp.where(swaps, below_entry, pivot),
            jnp.where(swaps, next_pivot, above_entry),
            jnp.where(swaps, next_above, 0),
            jnp.where(swaps, next_rhs, rhs),
        )
        remaining_row = (
            jnp.where(swaps, above_entry - factor * next_pivot, next_pivot - factor * above_entry),
            jnp.where(swaps, -factor * next_above, next_above),
            jnp.where(swaps, rhs - factor * next_rhs, next_rhs - factor * rhs),
        )
        return remaining_row, eliminated_row

    padded_above = jnp.concatenate([above[:-1], zero])
    first = diagonal[0], padded_above[0], B[0]
    last, rows = jax.lax.scan(eliminate, first, (below[1:], diagonal[1:], padded_above[1:], B[1:]))

    def substitute(next_xs, row):
        x, y = next_xs
        p, q, w, b = row
        new = (b - q * x - w * y) / p
        return (new, x), new

    last_x = last[2] / last[0]
    _last, X = jax.lax.scan(substitute, (last_x, zero_row), rows, reverse=True)
    return jnp.concatenate([X, last_x[None]])
