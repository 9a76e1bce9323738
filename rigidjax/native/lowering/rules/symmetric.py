"""Eigenvalues and eigenvectors of small symmetric matrices, written in JAX."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ...primitives.expansions import expansion
from .factorisations import vmap_over_stacks

# Largest number of sweeps; five to eight are usual.
_SWEEPS = 30


@expansion("eigh")
@vmap_over_stacks(2)
def _eigh(A: Array, *, lower: Any, subset_by_index: Any = None, **_: Any):
    """Return eigenvectors and ascending eigenvalues, by Jacobi rotations."""
    n = len(A)
    A = jnp.tril(A) + jnp.tril(A, -1).T if lower else jnp.triu(A) + jnp.triu(A, 1).T
    # The matrix is scaled, so that products of its entries neither overflow nor underflow.
    largest = jnp.max(jnp.abs(A), initial=0.0)
    is_finite = jnp.isfinite(largest)
    scale = jnp.where((largest > 0) & is_finite, largest, 1.0)
    values, vectors = (jnp.where(is_finite, x, jnp.nan) for x in _diagonalise(A / scale))
    order = jnp.argsort(values)[slice(*(subset_by_index or (0, n)))]
    return [vectors[:, order], values[order] * scale]


def _diagonalise(A: Array):
    """Return the diagonal of V^T A V, and the rotation V.

    Each round rotates all pairs k, k + half at once. Rows and columns then move as in a round-robin
    tournament, so that every pair meets once in a sweep.
    """
    n = len(A)
    half = (n + 1) // 2
    padding = 2 * half - n
    A = jnp.pad(A, ((0, padding), (0, padding)))
    tolerance = float(jnp.finfo(A.dtype).eps)

    def rotate_rows(x, c, s):
        """Rotate each pair of rows, and move rows to their next pairs."""
        a, b = x[:half], x[half:]
        a, b = c * a - s * b, s * a + c * b
        if half > 1:
            a, b = (jnp.concatenate([a[:1], b[:1], a[1:-1]]), jnp.concatenate([b[1:], a[-1:]]))
        return jnp.concatenate([a, b])

    def rotate_pairs(_, carry):
        A, V, largest_entry = carry
        diagonal, off_diagonal = jnp.diagonal(A), jnp.diagonal(A, half)
        x, y = diagonal[:half], diagonal[half:]
        rotates = jnp.abs(off_diagonal) > tolerance * jnp.sqrt(jnp.abs(x)) * jnp.sqrt(jnp.abs(y))
        rotates = rotates & (jnp.abs(off_diagonal) > 0.1 * tolerance * tolerance)
        z = (y - x) / (2.0 * jnp.where(rotates, off_diagonal, 1.0))
        is_large = jnp.abs(z) > 1e9
        root = jnp.where(is_large, jnp.abs(z), jnp.sqrt(1.0 + jnp.where(is_large, 0.0, z) ** 2))
        tangent = jnp.where(z < 0, -1.0, 1.0) / (jnp.abs(z) + root)
        tangent = jnp.where(rotates, tangent, 0.0)
        c = 1.0 / jnp.sqrt(1.0 + tangent * tangent)
        s = c * tangent
        c, s = c[:, None], s[:, None]
        A = rotate_rows(rotate_rows(A, c, s).T, c, s)
        largest_entry = jnp.maximum(
            largest_entry, jnp.max(jnp.where(rotates, jnp.abs(off_diagonal), 0.0))
        )
        return A, rotate_rows(V, c, s), largest_entry

    def sweep(carry):
        A, V, _, count = carry
        num_rounds = 2 * half - 1
        A, V, largest_entry = jax.lax.fori_loop(
            0, num_rounds, rotate_pairs, (A, V, jnp.zeros((), A.dtype))
        )
        return A, V, largest_entry, count + 1

    def continues(carry):
        return (carry[2] > 2 * n * tolerance) & (carry[3] < _SWEEPS)

    start = A, jnp.eye(2 * half, dtype=A.dtype), jnp.ones((), A.dtype), 0
    A, V, _, _ = jax.lax.while_loop(continues, sweep, start)
    return jnp.diagonal(A)[:n], V[:n, :n].T
