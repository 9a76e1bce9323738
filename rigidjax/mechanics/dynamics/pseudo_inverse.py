"""Pseudo-inverses and null spaces of loop constraints, which may be redundant.

Loops that share no joint have separate rows and columns: each is decomposed by itself. Derivatives
are products of matrices, at constant rank.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Matrix, Vector
from ...native import variants
from ...small_arrays import householder_qr, sequential_vmap_on_cpu
from .mass_matrix import inverse_root

# Singular values below this part of the largest one count as zero (or below ten units of round-off,
# which is more in single precision). Where a mechanism passes a position with more freedom (a
# parallelogram in line), the directions of the constraints near it are noise, and the velocity
# carries the motion across. A chain of parallelograms conserves its energy best near this value.
CUTOFF = 2e-5


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Diagonal blocks of a matrix that is zero outside of them.

    **Attributes:** `parts`, rows and columns of each block.
    """

    parts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    @classmethod
    def from_rows(cls, touched: Iterable[tuple[Iterable[int], Iterable[int]]]) -> "Blocks":
        """Return blocks from groups of rows and the columns in which they are not zero."""
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
        """Return rows (k, m) and columns (k, n) of all blocks of each shape."""
        shapes: dict[tuple[int, int], list[Any]] = {}
        for rows, columns in self.parts:
            shapes.setdefault((len(rows), len(columns)), []).append((rows, columns))
        return [
            (np.array([rows for rows, _ in parts]), np.array([columns for _, columns in parts]))
            for parts in shapes.values()
        ]


def _map_matrices(function: Callable[..., Any], stack: Array, otherwise: Callable[..., Any]):
    """Apply a function to each matrix of a stack.

    **Arguments:** `otherwise`, the function to use where loops have an overhead.
    """

    def of_single(function):
        return jax.tree.map(lambda x: x[None], function(stack[0]))

    if len(stack) == 1:
        return variants(
            sequential=lambda: of_single(function), batched=lambda: of_single(otherwise)
        )
    return variants(
        sequential=lambda: jax.lax.map(function, stack), batched=lambda: jax.vmap(otherwise)(stack)
    )


def _by_singular_values(A: Float[Array, "m n"], cutoff: float):
    """Compute the pseudo-inverse by a singular value decomposition."""
    m, n = A.shape
    if m > 1.5 * n:
        # Many redundant constraints: decompose the smaller triangular factor.
        Q, R = jnp.linalg.qr(A)
        return _by_singular_values(R, cutoff) @ Q.T
    U, s, Vt = jnp.linalg.svd(A, full_matrices=False)
    inverse, _ = _invert_singular_values(s, cutoff)
    return (Vt.T * inverse[None]) @ U.T


def _invert_singular_values(s: Float[Array, " k"], cutoff: float):
    """Invert singular values; zero below the cut-off. Also return which are above it."""
    keep = s > _relative_cutoff(cutoff, s.dtype) * jnp.max(s, initial=0.0)
    return jnp.where(keep, 1.0 / jnp.where(keep, s, 1.0), 0.0), keep


def _relative_cutoff(cutoff: float, dtype: Any):
    return max(cutoff, 10 * float(np.finfo(dtype).eps))


_at_cutoff = functools.cache(
    lambda cutoff: sequential_vmap_on_cpu(lambda A: _by_singular_values(A, cutoff))
)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def pseudo_inverse(
    A: Float[Array, "m n"], cutoff: float = CUTOFF, blocks: Blocks | None = None
) -> Float[Array, "n m"]:
    """Return the Moore-Penrose inverse $A^+$, shape (n, m).

    Singular values below `cutoff` (static) of the largest one, or ten units of round-off, count as
    zero: rows and columns must be of similar size. The derivative holds at constant rank (Golub and
    Pereyra 1973, theorem 4.3) and needs no derivatives of singular vectors.

    **Arguments:** `blocks` (static), outside of which `A` is zero; the cut-off of each block is
    relative to its own largest singular value.
    """
    if not A.size:
        return A.T

    def by_householder(A):
        return _orthogonal_decomposition(A, cutoff)[0]

    if blocks is None:
        return variants(sequential=lambda: by_householder(A), batched=lambda: _at_cutoff(cutoff)(A))
    P = jnp.zeros_like(A.T)
    for rows, columns in blocks.stacks():
        part = A[rows[:, :, None], columns[:, None]]
        inverses = _map_matrices(by_householder, part, _at_cutoff(cutoff))
        P = P.at[columns[:, :, None], rows[:, None]].set(inverses, unique_indices=True)
    return P


@pseudo_inverse.defjvp
def _pseudo_inverse_jvp(cutoff: float, blocks: Blocks | None, primals: tuple, tangents: tuple):
    (A,), (dA,) = primals, tangents
    P = pseudo_inverse(A, cutoff, blocks)
    return P, _pseudo_inverse_tangent(A, P, dA)


def _pseudo_inverse_tangent(
    A: Float[Array, "m n"], P: Float[Array, "n m"], dA: Float[Array, "m n"]
):
    change = -P @ dA @ P
    # Contributions of the change of the row space and the column space.
    change = change + P @ P.T @ (dA.T - dA.T @ A @ P)
    return change + (dA.T - P @ A @ dA.T) @ P.T @ P


def _decompose_by_svd(J: Float[Array, "m n"]):
    """Return $J^+$, right singular vectors as rows, and which of them span the row space."""
    m, n = J.shape
    if m > 1.5 * n:
        Q, R = jnp.linalg.qr(J)
        P, rows, fixed = _decompose_by_svd(R)
        return P @ Q.T, rows, fixed
    U, s, Vt = jnp.linalg.svd(J, full_matrices=m < n)
    inverse, keep = _invert_singular_values(s, CUTOFF)
    P = (Vt[: len(s)].T * inverse[None]) @ U.T
    return P, Vt, jnp.concatenate([keep, jnp.zeros(n - len(s), bool)])


_decompose_by_lapack = sequential_vmap_on_cpu(_decompose_by_svd)


def _decompose_by_householder(J: Float[Array, "m n"]):
    """Decompose like `_decompose_by_svd`, without singular values, in fewer and shorter loops."""
    P, Q, keep = _orthogonal_decomposition(J, CUTOFF)
    return P, Q.T, jnp.concatenate([keep, jnp.zeros(len(Q) - len(keep), bool)])


def _orthogonal_decomposition(A: Float[Array, "m n"], cutoff: float):
    r"""Return $A^+$, orthogonal columns, and which of them span the row space of `A`.

    A complete orthogonal decomposition. The part below the cut-off, of size $\epsilon$ (loops that
    are not quite closed), rotates the remaining row space by $\epsilon$ away from that of the
    largest singular values, in a direction that depends on the order of the rows. After a
    first-order correction the difference is $\epsilon^2$.

    **Source:** Golub and Van Loan, Matrix Computations, 4th edition, 5.4; Stewart, Perturbation
    bounds for the QR and singular subspaces.
    """
    k = min(A.shape)
    Q, R, order = householder_qr(A.T, pivoting=True)
    sizes = jnp.abs(jnp.diagonal(R))
    keep = sizes > _relative_cutoff(cutoff, A.dtype) * sizes[0]
    # A with its rows in that order is M Q^T; columns of M that count as zero come last.
    Z, T, _ = householder_qr(jnp.where(keep[None], R[:k].T, 0.0))
    T = T[:k] + jnp.diag(jnp.where(keep, 0.0, 1.0))
    X = jax.lax.linalg.triangular_solve(T, Z[:, :k].T, left_side=True)
    X = jnp.where(keep[:, None], X, 0.0)
    # R R^T couples the directions that are kept and those that are left out.
    turn = jnp.where(keep[:, None], 0.0, R[:k]) @ X.T
    spanned = Q[:, :k] + Q[:, :k] @ (turn - turn.T)
    Q = jnp.concatenate([spanned, Q[:, k:]], axis=1)
    # Without sorting, which compiled runs support for few entries only.
    inverse_order = jnp.zeros_like(order).at[order].set(jnp.arange(len(order), dtype=order.dtype))
    return (spanned @ X)[:, inverse_order], Q, keep


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _decompose(J: Float[Array, "m n"], blocks: Blocks | None):
    """Return $J^+$, orthogonal matrices that separate row space and null space, and a mask.

    The matrix of each block rotates its columns: directions in the row space come first and are set
    to zero. The mask marks these directions.

    The matrices are not unique. Their derivatives rotate the motions in the null space with `J`, no
    farther than needed. They matter where a solution is transposed, for reverse mode, and
    differentiated again: the custom rule of `_solve_constrained` does not apply there.
    """
    if blocks is None:
        P, rows, fixed = variants(
            sequential=lambda: _decompose_by_householder(J), batched=lambda: _decompose_by_lapack(J)
        )
        return P, [jnp.where(fixed[:, None], 0.0, rows)], fixed.astype(J.dtype)
    P, motions, fixed = jnp.zeros_like(J.T), [], jnp.zeros(J.shape[1], J.dtype)
    for rows_of_parts, columns in blocks.stacks():
        part = J[rows_of_parts[:, :, None], columns[:, None]]
        inverses, rows, part_fixed = _map_matrices(
            _decompose_by_householder, part, _decompose_by_lapack
        )
        P = P.at[columns[:, :, None], rows_of_parts[:, None]].set(inverses, unique_indices=True)
        motions.append(jnp.where(part_fixed[:, :, None], 0.0, rows))
        fixed = fixed.at[columns].set(part_fixed.astype(J.dtype), unique_indices=True)
    return P, motions, fixed


@_decompose.defjvp
def _decomposed_jvp(blocks: Blocks | None, primals: tuple, tangents: tuple):
    (J,), (dJ,) = primals, tangents
    P, motions, fixed = _decompose(J, blocks)
    change = _pseudo_inverse_tangent(J, P, dJ)
    turn = -(dJ.T @ P.T)
    if blocks is None:
        rotated = [motions[0] @ turn]
    else:
        columns = [columns for _, columns in blocks.stacks()]
        rotated = [
            motion @ turn[c[:, :, None], c[:, None]]
            for motion, c in zip(motions, columns, strict=True)
        ]
    return (P, motions, fixed), (change, rotated, jnp.zeros_like(fixed))


class ConstrainedEquations(eqx.Module):
    r"""Factored equations $H x + J^T \lambda = f$, $J x = c$, for several right-hand sides.

    $J$ alone, whose rows and columns must be of similar size, decides which constraints are
    independent. $H$ has to be positive definite only on the motions that the constraints leave free
    (NaN otherwise). Where no $x$ satisfies all constraints, $J x$ is as near to $c$ as possible;
    $\lambda$ has the least norm.

    **Arguments:** `J`, (m, n); `H`, (n, n); `blocks` (static), outside of which `J` is zero, as in
    `pseudo_inverse`.
    """

    J: Float[Array, "m n"]
    H: Matrix
    inverse: Float[Array, "n m"]  # $J^+$
    motions: list[Float[Array, "*k p p"]]  # of the blocks, see `_decompose`
    root: Matrix  # Cholesky factor of the inverse of `H` on the motions
    blocks: Blocks | None = eqx.field(static=True)

    def __init__(self, J: Float[Array, "m n"], H: Matrix, blocks: Blocks | None = None):
        self.J, self.H, self.blocks = J, H, blocks
        if J.size:
            self.inverse, self.motions, fixed = _decompose(J, blocks)
        else:
            self.blocks = Blocks(())
            self.inverse, self.motions, fixed = J.T, [], jnp.zeros(len(H), H.dtype)
        K = _rotate_rows(self.blocks, self.motions, H)
        K = _rotate_rows(self.blocks, self.motions, K.T)
        # Fixed directions have ones on the diagonal, so that `H` there does not enter the factor.
        self.root = inverse_root(K + jnp.diag(fixed))

    def solve(self, f: Vector, c: Float[Array, " m"]) -> tuple[Vector, Float[Array, " m"]]:
        r"""Return $x$ and $\lambda$; derivatives, at constant rank, cost one more solution."""
        return _solve_constrained(
            self.blocks, self.J, self.H, self.inverse, self.motions, self.root, f, c
        )


def _rotate_rows(blocks: Blocks | None, matrices: list[Array], A: Float[Array, "m n"]):
    """Multiply the rows of `A` that belong to each block by the matrix of the block."""
    if blocks is None:
        return matrices[0] @ A
    for motion, (_, columns) in zip(matrices, blocks.stacks(), strict=True):
        rotated = jnp.einsum("kij,kj...->ki...", motion, A[columns])
        A = A.at[columns].set(rotated, unique_indices=True)
    return A


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solve_constrained(
    blocks: Blocks | None,
    J: Float[Array, "m n"],
    H: Matrix,
    P: Float[Array, "n m"],
    motions: list[Array],
    root: Matrix,
    f: Vector,
    c: Float[Array, " m"],
):
    start = P @ c
    free = _rotate_rows(blocks, motions, f - H @ start)
    free = root.T @ (root @ free)
    transposed = [jnp.swapaxes(motion, -1, -2) for motion in motions]
    x = start + _rotate_rows(blocks, transposed, free)
    return x, P.T @ (f - H @ x)


@_solve_constrained.defjvp
def _solved_jvp(blocks: Blocks | None, primals: tuple, tangents: tuple):
    J, H, P, motions, root, _, c = primals
    dJ, dH, _, _, _, df, dc = tangents
    x, lam = _solve_constrained(blocks, *primals)
    unsatisfied = c - J @ (P @ c)
    df = df - dH @ x - dJ.T @ lam
    dc = dc - dJ @ x + P.T @ (dJ.T @ unsatisfied)
    dx, dlam = _solve_constrained(blocks, J, H, P, motions, root, df, dc)
    # With redundant constraints the row space rotates.
    rotated = dJ @ (P @ lam)
    return (x, lam), (dx, dlam + rotated - J @ (P @ rotated))
