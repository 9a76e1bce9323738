"""QR factors and singular values of small matrices, written in JAX.

QR factors have LAPACK's signs. Singular values come from one-sided Jacobi rotations after a QR
factorisation with column pivoting (Drmac and Veselic 2008, algorithm 1), so that small singular
values of a graded matrix are accurate relative to their own size.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...ops.householder import householder_qr
from ...primitives.expansions import expansion
from ...primitives.registry import NoRule
from .factorisations import vmap_over_stacks

# Largest number of sweeps; three to six are usual.
_SWEEPS = 30


@expansion("qr")
@vmap_over_stacks(2)
def _qr(A: Array, *, full_matrices: Any, pivoting: Any, **_: Any):
    """Return Q, R and, with `pivoting`, the order of the columns."""
    m, n = A.shape
    Q, R, order = householder_qr(A, pivoting, thin=not full_matrices)
    if not full_matrices and m > n:
        R = R[:n]
    return [Q, R, order] if pivoting else [Q, R]


@expansion("svd")
@vmap_over_stacks(2)
def _svd(A: Array, *, full_matrices: Any, compute_uv: Any, subset_by_index: Any = None, **_: Any):
    """Return the singular values in descending order, and the orthogonal factors U and V^T."""
    if subset_by_index is not None:
        raise NoRule(
            "`svd` with `subset_by_index` (kernels compute all singular values: leave it out, and "
            "take a slice of the results)"
        )
    m, n = A.shape
    if m < n:
        out = _svd(A.T, full_matrices=full_matrices, compute_uv=compute_uv)
        return [out[0], out[2].T, out[1].T] if compute_uv else out
    # The matrix is scaled, so that squares of its entries neither overflow nor underflow.
    largest = jnp.max(jnp.abs(A))
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1.0)
    Q, R, order = householder_qr(A / scale, pivoting=True, thin=not (compute_uv and full_matrices))
    left, s, W = _orthogonalise(R[:n].T)
    if not compute_uv:
        return [s * scale]
    # The columns of W = R^T V are orthogonal, and some may be zero. The Q of its QR factorisation
    # is orthogonal in any case, and equals W up to the scale and sign of the columns.
    Q_of_W, triangle, _R = householder_qr(W)
    signs = jnp.where(jnp.diagonal(triangle) < 0, -1.0, 1.0).astype(A.dtype)
    permutation = (jnp.arange(n, dtype=order.dtype)[:, None] == order[None]).astype(A.dtype)
    U = Q[:, :n] @ left
    if full_matrices and m > n:
        U = jnp.concatenate([U, Q[:, n:]], axis=1)
    return [s * scale, U, (permutation @ (Q_of_W * signs[None])).T]


def _orthogonalise(L: Array):
    """Return a rotation V, the norms of the columns of L V in descending order, and L V.

    The columns of L V are orthogonal. Each round rotates all pairs of columns at once, and the
    columns then move as in a round-robin tournament, so that every pair meets once in a sweep.
    """
    n = len(L)
    half = (n + 1) // 2
    columns = jnp.concatenate([L, jnp.eye(n, dtype=L.dtype)]).T
    columns = jnp.concatenate([columns, jnp.zeros((2 * half - n, 2 * n), L.dtype)])
    tolerance = np.sqrt(n) * float(jnp.finfo(L.dtype).eps)

    def rotate_pairs(_, carry):
        a, b, largest_cosine = carry
        x, y = a[:, :n], b[:, :n]
        norms_x, yy, xy = (jnp.sum(p * q, axis=1) for p, q in ((x, x), (y, y), (x, y)))
        norms = jnp.sqrt(norms_x) * jnp.sqrt(yy)
        cosine = jnp.abs(xy) / jnp.where(norms > 0, norms, 1.0)
        rotates = (norms > 0) & (cosine > tolerance)
        z = (yy - norms_x) / (2.0 * jnp.where(rotates, xy, 1.0))
        is_large = jnp.abs(z) > 1e9
        root = jnp.where(is_large, jnp.abs(z), jnp.sqrt(1.0 + jnp.where(is_large, 0.0, z) ** 2))
        tangent = jnp.where(z < 0, -1.0, 1.0) / (jnp.abs(z) + root)
        tangent = jnp.where(rotates, tangent, 0.0)
        c = 1.0 / jnp.sqrt(1.0 + tangent * tangent)
        s = c * tangent
        c, s = c[:, None], s[:, None]
        a, b = c * a - s * b, s * a + c * b
        if half > 1:
            a, b = (jnp.concatenate([a[:1], b[:1], a[1:-1]]), jnp.concatenate([b[1:], a[-1:]]))
        return a, b, jnp.maximum(largest_cosine, jnp.max(jnp.where(rotates, cosine, 0.0)))

    def sweep(carry):
        a, b, _, count = carry
        num_rounds = 2 * half - 1
        a, b, largest_cosine = jax.lax.fori_loop(
            0, num_rounds, rotate_pairs, (a, b, jnp.zeros((), L.dtype))
        )
        return a, b, largest_cosine, count + 1

    def continues(carry):
        return (carry[2] > tolerance) & (carry[3] < _SWEEPS)

    start = columns[:half], columns[half:], jnp.ones((), L.dtype), 0
    a, b, _, _ = jax.lax.while_loop(continues, sweep, start)
    columns = jnp.concatenate([a, b])[:n]
    lengths = jnp.sqrt(jnp.sum(columns[:, :n] ** 2, axis=1))
    order = jnp.argsort(-lengths)
    columns = columns[order]
    return columns[:, n:].T, lengths[order], columns[:, :n].T
