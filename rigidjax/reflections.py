"""Orthogonal factors of small matrices by Householder's reflections, as loops in JAX code."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def reflected(
    A: Float[Array, "m n"], pivoting: bool = False
) -> tuple[Float[Array, "m m"], Float[Array, "m n"], Int[Array, " n"]]:
    """The orthogonal factor, the upper triangle and the order of the columns.

    With `pivoting` the entries of the diagonal do not grow.
    """
    m, n = A.shape
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
        Q = Q - (Q @ v)[:, None] * (factor * v)
        return Q, R, order

    start = jnp.eye(m, dtype=A.dtype), A, jnp.arange(n, dtype=jnp.int32)
    return jax.lax.fori_loop(0, min(m, n), column, start)
