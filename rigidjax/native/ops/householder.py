"""Householder QR factorisation of small matrices, as loops in JAX code."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def householder_qr(
    A: Float[Array, "m n"], pivoting: bool = False, thin: bool = False
) -> tuple[Float[Array, "m q"], Float[Array, "m n"], Int[Array, " n"]]:
    """Return Q, R and the column order with `A[:, order] == Q @ R`.

    Columns are scaled before their entries are squared, as in LAPACK, so that no square overflows
    or underflows.

    **Arguments:** `A`, shape (m, n); `pivoting`, whether columns are exchanged so that the diagonal
    of R does not grow; `thin`, whether Q has shape (m, n) instead of (m, m) if m > n.
    """
    m, n = A.shape
    thin = thin and m > n
    rows, columns = jnp.arange(m), jnp.arange(n)

    def column(k, carry):
        Q, R, order = carry
        if pivoting:
            below = jnp.where(rows[:, None] >= k, R, 0.0)
            below = below * _scale(jnp.max(jnp.abs(jnp.where((columns >= k)[None], below, 0.0))))
            size = jnp.where(columns >= k, jnp.sum(below * below, axis=0), -1.0)
            p = jnp.argmax(size)
            at_k, at_p = columns == k, columns == p
            x, y = R[:, k], R[:, p]
            R = jnp.where(at_k[None], y[:, None], jnp.where(at_p[None], x[:, None], R))
            order = jnp.where(at_k, order[p], jnp.where(at_p, order[k], order))
        x = R[:, k]
        largest = jnp.max(jnp.where(rows > k, jnp.abs(x), 0.0))
        is_zero = largest == 0
        scale = _scale(jnp.maximum(largest, jnp.abs(x[k])))
        scaled = x * scale
        diagonal, below = scaled[k], jnp.where(rows > k, scaled, 0.0)
        norm = jnp.sqrt(diagonal * diagonal + below @ below)
        pivot = jnp.where(diagonal >= 0, -norm, norm)
        # The reflection is 1 - w w^T. With |w| = sqrt(2) its product with R overflows or underflows
        # no earlier than R itself. If all entries below the diagonal are zero, w is zero.
        v = jnp.where(rows == k, diagonal - pivot, below)
        divisor = norm * (norm + jnp.abs(diagonal))
        w = v * jnp.where(is_zero, 0.0, 1.0 / jnp.sqrt(jnp.where(is_zero, 1.0, divisor)))
        R = R - w[:, None] * (w @ R)[None]
        # The column of R is set instead of computed, so that entries below the diagonal are exact.
        pivot = jnp.where(is_zero, x[k], pivot / scale)
        exact = jnp.where(rows > k, 0.0, jnp.where(rows == k, pivot, x))
        R = jnp.where((columns == k)[None], exact[:, None], R)
        if thin:
            Q = jnp.where((columns == k)[None], w[:, None], Q)
        else:
            Q = Q - (Q @ w)[:, None] * w[None]
        return Q, R, order

    start = jnp.zeros_like(A) if thin else jnp.eye(m, dtype=A.dtype)
    start = start, A, jnp.arange(n, dtype=jnp.int32)
    Q, R, order = jax.lax.fori_loop(0, min(m, n), column, start)
    if not thin:
        return Q, R, order

    def apply_reflection(k, product):
        w = Q[:, n - 1 - k]
        return product - w[:, None] * (w @ product)[None]

    # The thin Q is the product of all reflections, applied from the last to the first.
    return jax.lax.fori_loop(0, n, apply_reflection, jnp.eye(m, n, dtype=A.dtype)), R, order


def _scale(largest: Float[Array, ""]) -> Float[Array, ""]:
    """Return a factor that scales entries of magnitude up to `largest` to at most 16.

    The factor is a normal number for every `largest`, whereas 1 / `largest` overflows or is flushed
    to zero at the ends of the range.
    """
    return 16.0 / jnp.maximum(largest, 16.0 * jnp.finfo(largest.dtype).tiny)
