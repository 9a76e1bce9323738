"""Orthogonal factors of small matrices by Householder's reflections, as loops in JAX code."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def reflected(
    A: Float[Array, "m n"], pivoting: bool = False, thin: bool = False
) -> tuple[Float[Array, "m q"], Float[Array, "m n"], Int[Array, " n"]]:
    """The orthogonal factor, the upper triangle and the order of the columns.

    **Arguments:** `pivoting`: entries of the diagonal do not grow; `thin`, of more rows than
    columns, which then are those of the orthogonal factor too: it is square without.
    """
    m, n = A.shape
    thin = thin and m > n
    rows, columns = jnp.arange(m), jnp.arange(n)

    def column(k, carry):
        Q, R, order = carry
        if pivoting:
            below = jnp.where(rows[:, None] >= k, R, 0.0)
            size = jnp.where(columns >= k, jnp.sum(below * below, axis=0), -1.0)
            p = jnp.argmax(size)
            at_k, at_p = columns == k, columns == p
            x, y = R[:, k], R[:, p]
            R = jnp.where(at_k, y[:, None], jnp.where(at_p, x[:, None], R))
            order = jnp.where(at_k, order[p], jnp.where(at_p, order[k], order))
        x, diagonal = R[:, k], R[k, k]
        below = jnp.where(rows > k, x, 0.0)
        rest = below @ below
        norm = jnp.sqrt(diagonal * diagonal + rest)
        pivot = jnp.where(diagonal >= 0, -norm, norm)
        pivot = jnp.where(rest == 0, diagonal, pivot)
        # The reflection 1 - factor v v^T; none where nothing is below the diagonal.
        v = jnp.where(rows == k, diagonal - pivot, below)
        divisor = norm * (norm + jnp.abs(diagonal))
        factor = jnp.where(rest == 0, 0.0, 1.0 / jnp.where(rest == 0, 1.0, divisor))
        R = R - v[:, None] * (factor * (v @ R))
        # What is known is set, not computed.
        exact = jnp.where(rows > k, 0.0, jnp.where(rows == k, pivot, x))
        R = jnp.where(columns == k, exact[:, None], R)
        if thin:
            Q = jnp.where(columns == k, (jnp.sqrt(factor) * v)[:, None], Q)
        else:
            Q = Q - (Q @ v)[:, None] * (factor * v)
        return Q, R, order

    start = jnp.zeros_like(A) if thin else jnp.eye(m, dtype=A.dtype)
    start = start, A, jnp.arange(n, dtype=jnp.int32)
    Q, R, order = jax.lax.fori_loop(0, min(m, n), column, start)
    if not thin:
        return Q, R, order

    def earlier(k, product):
        w = Q[:, n - 1 - k]
        return product - w[:, None] * (w @ product)

    # The reflections 1 - w w^T from the last to the first.
    return jax.lax.fori_loop(0, n, earlier, jnp.eye(m, n, dtype=A.dtype)), R, order
