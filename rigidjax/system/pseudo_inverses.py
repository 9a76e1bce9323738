r"""Pseudo-inverses and null spaces of the constraints of loops, which may be redundant.

Loops that share no joint have rows and columns of their own: each is decomposed by itself.
Derivatives are products of matrices, at constant rank; for batches see `rigidjax.linalg`.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..linalg import one_by_one
from ..native.alternatives import alternatives
from ..reflections import reflected
from ..sums import small_product
from .inverses import inverse_root

# Singular values below this part of the largest one are taken for zero (or below ten units of
# round-off, which is more in single precision). Where a mechanism comes through a position with
# more freedom (a parallelogram in line), directions of constraints that close to it are noise: the
# motion is carried across by its velocity. In a measure in which singular values there are 1.5
# times these (10 and 40 parallelograms; 2.5 times for 2), energy changes at a tolerance of 1e-9,
# for 40 parallelograms over 3 s, by 3.5e-6 J at 1e-5 (810 rejected steps) and 9.6e-8 J at 3e-5
# (437); for 10 over 10 s by 2.9e-7, 2.2e-7, 2.3e-7 J at 1e-5, 3e-5, 6e-5; for 2 over 10 s by
# 1.0e-1 J at 1e-7, 1.5e-5 at 1e-6, 1.7e-7 at 1e-5, 9.8e-7 at 1e-4.
CUTOFF = 2e-5


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Parts of a matrix with rows and columns of their own, outside of which it is zero.

    **Attributes:** `parts`, rows and columns of each.
    """

    parts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    @classmethod
    def of(cls, touched: Iterable[tuple[Iterable[int], Iterable[int]]]) -> "Blocks":
        """Parts of a matrix of which some rows are zero but in some columns, for each of them."""
        parts: list[tuple[set[int], set[int]]] = []
        for rows, columns in touched:
            joined = set(rows), set(columns)
            apart = []
            for part in parts:
                if part[1] & joined[1]:
                    joined = joined[0] | part[0], joined[1] | part[1]
                else:
                    apart.append(part)
            parts = [*apart, joined]
        return cls(tuple((tuple(sorted(r)), tuple(sorted(c))) for r, c in parts if r and c))

    def stacks(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows (k, m) and columns (k, n) of the parts of each shape."""
        of: dict[tuple[int, int], list[Any]] = {}
        for rows, columns in self.parts:
            of.setdefault((len(rows), len(columns)), []).append((rows, columns))
        return [
            (np.array([rows for rows, _ in parts]), np.array([columns for _, columns in parts]))
            for parts in of.values()
        ]


def _each(function: Callable[..., Any], stack: Array, otherwise: Callable[..., Any]):
    """`function` of each matrix in kernels, where loops cost nothing; by XLA `otherwise`."""

    def alone(function):
        return jax.tree.map(lambda x: x[None], function(stack[0]))

    if len(stack) == 1:
        return alternatives(lambda: alone(function), lambda: alone(otherwise))
    return alternatives(lambda: jax.lax.map(function, stack), lambda: jax.vmap(otherwise)(stack))


def _by_singular_values(A, cutoff):
    m, n = A.shape
    if m > 1.5 * n:
        # Many redundant constraints: the singular values of a smaller triangle.
        Q, R = jnp.linalg.qr(A)
        return _by_singular_values(R, cutoff) @ Q.T
    U, s, Vt = jnp.linalg.svd(A, full_matrices=False)
    inverse, _ = _inverted(s, cutoff)
    return (Vt.T * inverse) @ U.T


def _inverted(s, cutoff):
    """Inverses of singular values, zero for those that are taken for zero, and which are not."""
    keep = s > _relative(cutoff, s.dtype) * jnp.max(s, initial=0.0)
    return jnp.where(keep, 1.0 / jnp.where(keep, s, 1.0), 0.0), keep


def _relative(cutoff, dtype):
    return max(cutoff, 10 * float(np.finfo(dtype).eps))


_at_cutoff = functools.cache(lambda cutoff: one_by_one(lambda A: _by_singular_values(A, cutoff)))


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def pseudo_inverse(
    A: Float[Array, "m n"], cutoff: float = CUTOFF, blocks: Blocks | None = None
) -> Float[Array, "n m"]:
    r"""The Moore-Penrose inverse $A^+$, shape (n, m).

    Singular values below `cutoff` (static) of the largest one, or ten units of round-off, are zero:
    rows and columns must be of similar size. Its derivative is that at constant rank (Golub and
    Pereyra 1973, theorem 4.3), which needs no derivatives of singular vectors.

    **Arguments:** `blocks` (static), outside of which `A` is zero; each has a largest singular
    value of its own.
    """
    if not A.size:
        return A.T

    def in_kernels(A):
        return _orthogonal_decomposition(A, cutoff)[0]

    if blocks is None:
        return alternatives(lambda: in_kernels(A), lambda: _at_cutoff(cutoff)(A))
    P = jnp.zeros_like(A.T)
    for rows, columns in blocks.stacks():
        part = A[rows[:, :, None], columns[:, None]]
        inverses = _each(in_kernels, part, _at_cutoff(cutoff))
        P = P.at[columns[:, :, None], rows[:, None]].set(inverses)
    return P


@pseudo_inverse.defjvp
def _pseudo_inverse_jvp(cutoff, blocks, primals, tangents):
    (A,), (dA,) = primals, tangents
    P = pseudo_inverse(A, cutoff, blocks)
    return P, _change_of_pseudo_inverse(A, P, dA)


def _change_of_pseudo_inverse(A, P, dA):
    change = -P @ dA @ P
    # What the change of the row and the column space adds.
    change = change + P @ P.T @ (dA.T - dA.T @ A @ P)
    return change + (dA.T - P @ A @ dA.T) @ P.T @ P


def _null_space(J):
    """$J^+$, orthogonal rows, and which of them span the row space of `J`: singular vectors."""
    m, n = J.shape
    if m > 1.5 * n:
        Q, R = jnp.linalg.qr(J)
        P, rows, fixed = _null_space(R)
        return P @ Q.T, rows, fixed
    U, s, Vt = jnp.linalg.svd(J, full_matrices=m < n)
    inverse, keep = _inverted(s, CUTOFF)
    P = (Vt[: len(s)].T * inverse) @ U.T
    return P, Vt, jnp.concatenate([keep, jnp.zeros(n - len(s), bool)])


_by_lapack = one_by_one(_null_space)


def _by_reflections(J):
    """The same without singular values, in fewer and shorter loops."""
    P, Q, keep = _orthogonal_decomposition(J, CUTOFF)
    return P, Q.T, jnp.concatenate([keep, jnp.zeros(len(Q) - len(keep), bool)])


def _orthogonal_decomposition(A, cutoff):
    r"""$A^+$, orthogonal columns, and which of them span the row space of `A`: a complete
    orthogonal decomposition.

    What the cut-off leaves out, of size $\epsilon$ (loops that are not quite closed), turns the row
    space that remains by $\epsilon$ away from that of the largest singular values, to a place that
    depends on the order of the rows. Turned back, to first order, it differs by $\epsilon^2$.

    **Source:** Golub and Van Loan, Matrix Computations, 4th edition, 5.4; Stewart, Perturbation
    bounds for the QR and singular subspaces.
    """
    k = min(A.shape)
    Q, R, order = reflected(A.T, pivoting=True)
    sizes = jnp.abs(jnp.diagonal(R))
    keep = sizes > _relative(cutoff, A.dtype) * sizes[0]
    # A with its rows in that order is M Q^T; columns of M that are taken for zero come last.
    Z, T, _ = reflected(jnp.where(keep, R[:k].T, 0.0))
    T = T[:k] + jnp.diag(jnp.where(keep, 0.0, 1.0))
    X = jax.lax.linalg.triangular_solve(T, Z[:, :k].T, left_side=True)
    X = jnp.where(keep[:, None], X, 0.0)
    # R R^T couples what is kept and what is left out by the rows of R in both.
    turn = jnp.where(keep[:, None], 0.0, R[:k]) @ X.T
    spanned = Q[:, :k] + Q[:, :k] @ (turn - turn.T)
    Q = jnp.concatenate([spanned, Q[:, k:]], axis=1)
    # Not by sorting, which kernels do of few entries alone.
    place = jnp.zeros_like(order).at[order].set(jnp.arange(len(order), dtype=order.dtype))
    return (spanned @ X)[:, place], Q, keep


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def constrained_inverses(
    J: Float[Array, "m n"], H: Float[Array, "n n"], blocks: Blocks | None = None
) -> tuple[Float[Array, "n m"], Float[Array, "n n"]]:
    r"""$J^+$ and $X = N (N^T H N)^{-1} N^T$, where the columns of $N$ span the null space of $J$.

    The solution of $H x + J^T \lambda = f$, $J x = c$ is $x = J^+ c + X (f - H J^+ c)$. Which
    constraints are independent is decided by $J$ alone, whose rows and columns must be of similar
    size, and not by $H$, which has to be positive definite in the null space only (NaN elsewhere).
    Derivatives are those at constant rank.

    **Arguments:** `blocks` (static), outside of which `J` is zero, as in `pseudo_inverse`.
    """
    if not J.size:
        return J.T, _inverse_of(H)
    if blocks is None:
        P, rows, fixed = alternatives(lambda: _by_reflections(J), lambda: _by_lapack(J))
        return P, _in_motions(rows, fixed, H)
    n = len(H)
    P, rows, fixed = jnp.zeros_like(J.T), jnp.eye(n, dtype=J.dtype), jnp.zeros(n, bool)
    for of_part, columns in blocks.stacks():
        part = J[of_part[:, :, None], columns[:, None]]
        inverses, own_rows, own_fixed = _each(_by_reflections, part, _by_lapack)
        P = P.at[columns[:, :, None], of_part[:, None]].set(inverses)
        rows = rows.at[columns[:, :, None], columns[:, None]].set(own_rows)
        fixed = fixed.at[columns].set(own_fixed)
    return P, _in_motions(rows, fixed, H)


def _in_motions(rows, fixed, H):
    """The inverse of `H` in the rows that are not `fixed`.

    Those that are become zeros, and ones in the matrix that is factorised, so that nothing of their
    size comes into it.
    """
    free = jnp.where(fixed[:, None], 0.0, rows)
    K = small_product(small_product(free, H), free.T)
    Y = small_product(inverse_root(K + jnp.diag(fixed.astype(H.dtype))), free)
    return small_product(Y.T, Y)


def _inverse_of(H):
    W = inverse_root(H)
    return small_product(W.T, W)


@constrained_inverses.defjvp
def _constrained_inverses_jvp(blocks, primals, tangents):
    (J, H), (dJ, dH) = primals, tangents
    P, X = constrained_inverses(J, H, blocks)
    # The null space turns by dN = -P dJ N.
    turned = P @ (dJ @ X)
    turned = turned - X @ (H @ turned)
    dX = -X @ dH @ X - turned - turned.T
    return (P, X), (_change_of_pseudo_inverse(J, P, dJ), dX)
