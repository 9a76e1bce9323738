"""Eigenvalues and eigenvectors of small symmetric matrices, as loops in JAX code."""

import jax
import jax.numpy as jnp

from ..expansions import expansion
from .factorisations import vmap_over_stacks

# Sweeps of rotations after which the iteration ends in any case; five to eight are usual.
_SWEEPS = 30


@expansion("eigh")
@vmap_over_stacks(2)
def _eigh(A, *, lower, subset_by_index=None, **_):
    """Eigenvectors and eigenvalues, these in ascending order, by Jacobi's rotations."""
    n = len(A)
    A = jnp.tril(A) + jnp.tril(A, -1).T if lower else jnp.triu(A) + jnp.triu(A, 1).T
    # Products of entries are taken: they must neither overflow nor vanish.
    largest = jnp.max(jnp.abs(A), initial=0.0)
    is_finite = jnp.isfinite(largest)
    unit = jnp.where((largest > 0) & is_finite, largest, 1.0)
    values, vectors = (jnp.where(is_finite, x, jnp.nan) for x in _diagonal(A / unit))
    order = jnp.argsort(values)[slice(*(subset_by_index or (0, n)))]
    return [vectors[:, order], values[order] * unit]


def _diagonal(A):
    """The diagonal of V^T A V, and the rotation V.

    In every round all pairs of neighbours turn at once, k with k + half; then rows and columns move
    on as the players of a tournament do, so that all meet all in a sweep.
    """
    n = len(A)
    half = (n + 1) // 2
    rest = 2 * half - n
    A = jnp.pad(A, ((0, rest), (0, rest)))
    tolerance = float(jnp.finfo(A.dtype).eps)

    def turned(x, c, s):
        """Rows, each with the one that it meets."""
        a, b = x[:half], x[half:]
        a, b = c * a - s * b, s * a + c * b
        if half > 1:
            a, b = (
                jnp.concatenate([a[:1], b[:1], a[1:-1]]),
                jnp.concatenate([b[1:], a[-1:]]),
            )
        return jnp.concatenate([a, b])

    def meeting(_, carry):
        A, V, worst = carry
        diagonal, both = jnp.diagonal(A), jnp.diagonal(A, half)
        x, y = diagonal[:half], diagonal[half:]
        turns = jnp.abs(both) > tolerance * jnp.sqrt(jnp.abs(x)) * jnp.sqrt(jnp.abs(y))
        turns = turns & (jnp.abs(both) > 0.1 * tolerance * tolerance)
        z = (y - x) / (2.0 * jnp.where(turns, both, 1.0))
        far = jnp.abs(z) > 1e9
        root = jnp.where(far, jnp.abs(z), jnp.sqrt(1.0 + jnp.where(far, 0.0, z) ** 2))
        tangent = jnp.where(z < 0, -1.0, 1.0) / (jnp.abs(z) + root)
        tangent = jnp.where(turns, tangent, 0.0)
        c = 1.0 / jnp.sqrt(1.0 + tangent * tangent)
        s = c * tangent
        c, s = c[:, None], s[:, None]
        A = turned(turned(A, c, s).T, c, s)
        worst = jnp.maximum(worst, jnp.max(jnp.where(turns, jnp.abs(both), 0.0)))
        return A, turned(V, c, s), worst

    def sweep(carry):
        A, V, _, count = carry
        rounds = 2 * half - 1
        A, V, worst = jax.lax.fori_loop(0, rounds, meeting, (A, V, jnp.zeros((), A.dtype)))
        return A, V, worst, count + 1

    def again(carry):
        return (carry[2] > 2 * n * tolerance) & (carry[3] < _SWEEPS)

    start = A, jnp.eye(2 * half, dtype=A.dtype), jnp.ones((), A.dtype), 0
    A, V, _, _ = jax.lax.while_loop(again, sweep, start)
    return jnp.diagonal(A)[:n], V[:n, :n].T
