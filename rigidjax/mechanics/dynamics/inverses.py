"""Inverses of positive definite matrices, as multibody systems need them.

Derivatives are products of matrices; for batches see `rigidjax.native.ops.linalg`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import ad
from jaxtyping import Array, Float

from ...small_arrays import lapack_primitive


def _cholesky_inverse(H: Float[Array, "n n"]):
    """Invert the Cholesky factor by LAPACK."""
    root = jax.lax.linalg.cholesky(H, symmetrize_input=False)
    unit = jnp.eye(H.shape[0], dtype=H.dtype)
    return jax.lax.linalg.triangular_solve(root, unit, left_side=True, lower=True)


def _cholesky_inverse_in_loop(H: Float[Array, "n n"]):
    """Invert the Cholesky factor by elimination below the diagonal, beside the unit matrix."""
    n = len(H)
    index = jnp.arange(n)

    def column(k, A):
        row = jax.lax.dynamic_slice_in_dim(A, k, 1)[0]
        below = jax.lax.dynamic_slice_in_dim(A, k, 1, axis=1)[:, 0]
        return A - jnp.where(index > k, below / row[k], 0.0)[:, None] * row[None]

    A = jax.lax.fori_loop(0, n, column, jnp.concatenate([H, jnp.eye(n, dtype=H.dtype)], axis=1))
    pivots = jnp.diagonal(A)
    root = A[:, n:] / jnp.sqrt(pivots)[:, None]
    return jnp.where(jnp.all(pivots > 0), root, jnp.nan)


def _solve_in_loop(H: Float[Array, "n n"], b: Float[Array, " n"]):
    """Solve by elimination above and below the diagonal."""
    n = len(H)
    index = jnp.arange(n)

    def column(k, A):
        row = jax.lax.dynamic_slice_in_dim(A, k, 1)[0]
        row = row / jnp.where(row[k] > 0, row[k], jnp.nan)
        rest = A - jax.lax.dynamic_slice_in_dim(A, k, 1, axis=1) * row[None]
        return jnp.where((index == k)[:, None], row[None], rest)

    A = jnp.concatenate([H, b[:, None]], axis=1)
    return jax.lax.fori_loop(0, n, column, A)[:, n]


def _inverse_root_jvp(primals: tuple, tangents: tuple):
    W, (dH,) = _inverse_root(*primals), tangents
    inner = W @ dH @ W.T
    half = jnp.tril(inner) - 0.5 * jnp.diag(jnp.diagonal(inner))
    return W, -half @ W


_inverse_root = lapack_primitive(
    "inverse_root", _cholesky_inverse, _cholesky_inverse_in_loop, _inverse_root_jvp
)


def inverse_root(H: Float[Array, "n n"]) -> Float[Array, "n n"]:
    r"""Return the lower triangular $W = L^{-1}$ of a positive definite $H = L L^T$.

    $H^{-1} = W^T W$. NaN if `H` is not positive definite.
    """
    return _inverse_root(H) if H.size else H


def _cholesky_solve(H: Float[Array, "n n"], b: Float[Array, " n"]):
    root = jax.lax.linalg.cholesky(H, symmetrize_input=False)
    z = jax.lax.linalg.triangular_solve(root, b[:, None], left_side=True, lower=True)
    x = jax.lax.linalg.triangular_solve(root, z, left_side=True, lower=True, transpose_a=True)
    return x[:, 0]


def _solve_jvp(primals: tuple, tangents: tuple):
    (H, b), (dH, db) = primals, tangents
    x, W = _solve(H, b), inverse_root(H)
    rest = 0.0 if isinstance(dH, ad.Zero) else -dH @ x
    rest = rest if isinstance(db, ad.Zero) else db + rest
    return x, W.T @ (W @ rest)


def _solve_transpose(cotangent: Any, H: Float[Array, "n n"], b: Float[Array, " n"]):
    if ad.is_undefined_primal(H):
        raise NotImplementedError("`solve` is linear in the right-hand side alone.")
    return [None, None if isinstance(cotangent, ad.Zero) else _solve(H, cotangent)]


_solve = lapack_primitive(
    "positive_solve", _cholesky_solve, _solve_in_loop, _solve_jvp, _solve_transpose
)


def solve(H: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    r"""Return $H^{-1} b$ for a positive definite `H`; NaN if it is not."""
    return _solve(H, b) if H.size else b
