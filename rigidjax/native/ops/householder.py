"""Orthogonal factors of small matrices by Householder's reflections, as loops in JAX code."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def householder_qr(
    A: Float[Array, "m n"], pivoting: bool = False, thin: bool = False
) -> tuple[Float[Array, "m q"], Float[Array, "m n"], Int[Array, " n"]]:
    """The orthogonal factor, the upper triangle and the order of the columns.

    **Arguments:** `pivoting`: entries of the diagonal do not grow; `thin`, of more rows than
    columns, which then are those of the orthogonal factor too: it is square without.

    Columns are scaled before their entries are squared, as LAPACK does, so that no square overflows
    or underflows.
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
        # The reflection 1 - w w^T, where w has the length sqrt(2), so that products with R neither
        # overflow nor underflow earlier than R does; none where the column ends at the diagonal.
        v = jnp.where(rows == k, diagonal - pivot, below)
        divisor = norm * (norm + jnp.abs(diagonal))
        w = v * jnp.where(is_zero, 0.0, 1.0 / jnp.sqrt(jnp.where(is_zero, 1.0, divisor)))
        R = R - w[:, None] * (w @ R)[None]
        # The column of R is set, not computed: it has no rounding errors below the diagonal.
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

    def earlier(k, product):
        w = Q[:, n - 1 - k]
        return product - w[:, None] * (w @ product)[None]

    # The reflections 1 - w w^T from the last to the first.
    return jax.lax.fori_loop(0, n, earlier, jnp.eye(m, n, dtype=A.dtype)), R, order


def _scale(largest: Float[Array, ""]) -> Float[Array, ""]:
    """Factor that brings entries up to `largest` in size to at most 16.

    The factor is a normal number for every `largest`: 1 / `largest` would overflow or be flushed to
    zero at the ends of the range.
    """
    return 16.0 / jnp.maximum(largest, 16.0 * jnp.finfo(largest.dtype).tiny)
