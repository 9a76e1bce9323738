"""QR factors and singular values of small matrices, as loops in JAX code.

Householder's reflections with LAPACK's signs; singular values by Jacobi's rotations from one side,
after a QR factorisation with exchanged columns (Drmac and Veselic 2008, algorithm 1): small
singular values of a graded matrix come out with the accuracy of their own size.
"""

import jax
import jax.numpy as jnp
import numpy as np

from ...ops.householder import householder_qr
from ..expansions import expansion
from ..registry import NoRule
from .factorisations import vmap_over_stacks

# Sweeps of rotations after which the iteration ends in any case; three to six are usual.
_SWEEPS = 30


@expansion("qr")
@vmap_over_stacks(2)
def _qr(A, *, full_matrices, pivoting, **_):
    """Q, R and, with `pivoting`, the order of the columns."""
    m, n = A.shape
    Q, R, order = householder_qr(A, pivoting, thin=not full_matrices)
    if not full_matrices and m > n:
        R = R[:n]
    return [Q, R, order] if pivoting else [Q, R]


@expansion("svd")
@vmap_over_stacks(2)
def _svd(A, *, full_matrices, compute_uv, subset_by_index=None, **_):
    """Singular values from the largest on, and the orthogonal factors U and V^T."""
    if subset_by_index is not None:
        raise NoRule(
            "`svd` with `subset_by_index` (kernels compute all singular values: leave it out, and "
            "take a slice of the results)"
        )
    m, n = A.shape
    if m < n:
        out = _svd(A.T, full_matrices=full_matrices, compute_uv=compute_uv)
        return [out[0], out[2].T, out[1].T] if compute_uv else out
    # Squares of entries are taken: they must neither overflow nor vanish.
    largest = jnp.max(jnp.abs(A))
    unit = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1.0)
    Q, R, order = householder_qr(A / unit, pivoting=True, thin=not (compute_uv and full_matrices))
    turned, s, W = _rotated(R[:n].T)
    if not compute_uv:
        return [s * unit]
    # R^T V = W with orthogonal columns, some of them perhaps zero: W is a diagonal times what its
    # own reflections make, which are orthogonal in any case.
    basis, triangle, _ = householder_qr(W)
    signs = jnp.where(jnp.diagonal(triangle) < 0, -1.0, 1.0).astype(A.dtype)
    place = (jnp.arange(n, dtype=order.dtype)[:, None] == order[None]).astype(A.dtype)
    U = Q[:, :n] @ turned
    if full_matrices and m > n:
        U = jnp.concatenate([U, Q[:, n:]], axis=1)
    return [s * unit, U, (place @ (basis * signs[None])).T]


def _rotated(L):
    """A rotation V, the lengths of the columns of L V in descending order, and L V itself.

    The columns of L V are orthogonal. In every round all pairs of neighbours turn at once; then the
    columns move on as the players of a tournament do, so that all meet all in a sweep.
    """
    n = len(L)
    half = (n + 1) // 2
    columns = jnp.concatenate([L, jnp.eye(n, dtype=L.dtype)]).T
    columns = jnp.concatenate([columns, jnp.zeros((2 * half - n, 2 * n), L.dtype)])
    tolerance = np.sqrt(n) * float(jnp.finfo(L.dtype).eps)

    def meeting(_, carry):
        a, b, worst = carry
        x, y = a[:, :n], b[:, :n]
        xx, yy, xy = (jnp.sum(p * q, axis=1) for p, q in ((x, x), (y, y), (x, y)))
        size = jnp.sqrt(xx) * jnp.sqrt(yy)
        cosine = jnp.abs(xy) / jnp.where(size > 0, size, 1.0)
        turns = (size > 0) & (cosine > tolerance)
        z = (yy - xx) / (2.0 * jnp.where(turns, xy, 1.0))
        far = jnp.abs(z) > 1e9
        root = jnp.where(far, jnp.abs(z), jnp.sqrt(1.0 + jnp.where(far, 0.0, z) ** 2))
        tangent = jnp.where(z < 0, -1.0, 1.0) / (jnp.abs(z) + root)
        tangent = jnp.where(turns, tangent, 0.0)
        c = 1.0 / jnp.sqrt(1.0 + tangent * tangent)
        s = c * tangent
        c, s = c[:, None], s[:, None]
        a, b = c * a - s * b, s * a + c * b
        if half > 1:
            a, b = (
                jnp.concatenate([a[:1], b[:1], a[1:-1]]),
                jnp.concatenate([b[1:], a[-1:]]),
            )
        return a, b, jnp.maximum(worst, jnp.max(jnp.where(turns, cosine, 0.0)))

    def sweep(carry):
        a, b, _, count = carry
        rounds = 2 * half - 1
        a, b, worst = jax.lax.fori_loop(0, rounds, meeting, (a, b, jnp.zeros((), L.dtype)))
        return a, b, worst, count + 1

    def again(carry):
        return (carry[2] > tolerance) & (carry[3] < _SWEEPS)

    start = columns[:half], columns[half:], jnp.ones((), L.dtype), 0
    a, b, _, _ = jax.lax.while_loop(again, sweep, start)
    columns = jnp.concatenate([a, b])[:n]
    lengths = jnp.sqrt(jnp.sum(columns[:, :n] ** 2, axis=1))
    order = jnp.argsort(-lengths)
    columns = columns[order]
    return columns[:, n:].T, lengths[order], columns[:, :n].T
