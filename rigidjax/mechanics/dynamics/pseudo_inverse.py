r"""Pseudo-inverses and null spaces of the constraints of loops, which may be redundant.

Loops that share no joint have rows and columns of their own: each is decomposed by itself.
Derivatives are products of matrices, at constant rank; for batches see
`rigidjax.native.ops.linalg`.
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

from ...native import variants
from ...native.ops import householder_qr, sequential_vmap_on_cpu
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
        return variants(kernel=lambda: alone(function), xla=lambda: alone(otherwise))
    return variants(
        kernel=lambda: jax.lax.map(function, stack), xla=lambda: jax.vmap(otherwise)(stack)
    )


def _by_singular_values(A, cutoff):
    m, n = A.shape
    if m > 1.5 * n:
        # Many redundant constraints: the singular values of a smaller triangle.
        Q, R = jnp.linalg.qr(A)
        return _by_singular_values(R, cutoff) @ Q.T
    U, s, Vt = jnp.linalg.svd(A, full_matrices=False)
    inverse, _ = _inverted(s, cutoff)
    return (Vt.T * inverse[None]) @ U.T


def _inverted(s, cutoff):
    """Inverses of singular values, zero for those that are taken for zero, and which are not."""
    keep = s > _relative(cutoff, s.dtype) * jnp.max(s, initial=0.0)
    return jnp.where(keep, 1.0 / jnp.where(keep, s, 1.0), 0.0), keep


def _relative(cutoff, dtype):
    return max(cutoff, 10 * float(np.finfo(dtype).eps))


_at_cutoff = functools.cache(
    lambda cutoff: sequential_vmap_on_cpu(lambda A: _by_singular_values(A, cutoff))
)


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
        return variants(kernel=lambda: in_kernels(A), xla=lambda: _at_cutoff(cutoff)(A))
    P = jnp.zeros_like(A.T)
    for rows, columns in blocks.stacks():
        part = A[rows[:, :, None], columns[:, None]]
        inverses = _each(in_kernels, part, _at_cutoff(cutoff))
        P = P.at[columns[:, :, None], rows[:, None]].set(inverses, unique_indices=True)
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
    P = (Vt[: len(s)].T * inverse[None]) @ U.T
    return P, Vt, jnp.concatenate([keep, jnp.zeros(n - len(s), bool)])


_by_lapack = sequential_vmap_on_cpu(_null_space)


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
    Q, R, order = householder_qr(A.T, pivoting=True)
    sizes = jnp.abs(jnp.diagonal(R))
    keep = sizes > _relative(cutoff, A.dtype) * sizes[0]
    # A with its rows in that order is M Q^T; columns of M that are taken for zero come last.
    Z, T, _ = householder_qr(jnp.where(keep[None], R[:k].T, 0.0))
    T = T[:k] + jnp.diag(jnp.where(keep, 0.0, 1.0))
    X = jax.lax.linalg.triangular_solve(T, Z[:, :k].T, left_side=True)
    X = jnp.where(keep[:, None], X, 0.0)
    # R R^T couples what is kept and what is left out by the rows of R in both.
    turn = jnp.where(keep[:, None], 0.0, R[:k]) @ X.T
    spanned = Q[:, :k] + Q[:, :k] @ (turn - turn.T)
    Q = jnp.concatenate([spanned, Q[:, k:]], axis=1)
    # Not by sorting, which kernels do of few entries alone.
    frames = jnp.zeros_like(order).at[order].set(jnp.arange(len(order), dtype=order.dtype))
    return (spanned @ X)[:, frames], Q, keep


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _decomposed(J, blocks):
    """$J^+$; orthogonal matrices that turn the columns of each part, those of its row space first
    and made zero; and which of the turned columns these are.

    The matrices are not unique. Their derivatives turn the motions that are left free with `J`, no
    farther than that needs. They are of use where a solution is transposed, for reverse mode, and
    differentiated again: JAX has forgotten then that `_solved` has a rule of its own.
    """
    if blocks is None:
        P, rows, fixed = variants(kernel=lambda: _by_reflections(J), xla=lambda: _by_lapack(J))
        return P, [jnp.where(fixed[:, None], 0.0, rows)], fixed.astype(J.dtype)
    P, motions, fixed = jnp.zeros_like(J.T), [], jnp.zeros(J.shape[1], J.dtype)
    for of_part, columns in blocks.stacks():
        part = J[of_part[:, :, None], columns[:, None]]
        inverses, rows, own_fixed = _each(_by_reflections, part, _by_lapack)
        P = P.at[columns[:, :, None], of_part[:, None]].set(inverses, unique_indices=True)
        motions.append(jnp.where(own_fixed[:, :, None], 0.0, rows))
        fixed = fixed.at[columns].set(own_fixed.astype(J.dtype), unique_indices=True)
    return P, motions, fixed


@_decomposed.defjvp
def _decomposed_jvp(blocks, primals, tangents):
    (J,), (dJ,) = primals, tangents
    P, motions, fixed = _decomposed(J, blocks)
    change = _change_of_pseudo_inverse(J, P, dJ)
    turn = -(dJ.T @ P.T)
    if blocks is None:
        turned = [motions[0] @ turn]
    else:
        columns = [columns for _, columns in blocks.stacks()]
        turned = [
            own @ turn[c[:, :, None], c[:, None]] for own, c in zip(motions, columns, strict=True)
        ]
    return (P, motions, fixed), (change, turned, jnp.zeros_like(fixed))


class ConstrainedEquations(eqx.Module):
    r"""$H x + J^T \lambda = f$, $J x = c$, ready for one right-hand side after another.

    Which constraints are independent is decided by $J$ alone, whose rows and columns must be of
    similar size, and not by $H$, which has to be positive definite on the motions that the
    constraints leave free only (NaN elsewhere). Where no $x$ fulfils all constraints, $J x$ is as
    near to $c$ as it can be; $\lambda$ is the one of least norm.

    **Arguments:** `J`, (m, n); `H`, (n, n); `blocks` (static), outside of which `J` is zero, as in
    `pseudo_inverse`.
    """

    J: Float[Array, "m n"]
    H: Float[Array, "n n"]
    inverse: Float[Array, "n m"]  # $J^+$
    motions: list[Float[Array, "*k p p"]]  # of the parts, as `_decomposed` gives them
    root: Float[Array, "n n"]  # of the inverse of `H` on the motions
    blocks: Blocks | None = eqx.field(static=True)

    def __init__(self, J, H, blocks: Blocks | None = None):
        self.J, self.H, self.blocks = J, H, blocks
        if J.size:
            self.inverse, self.motions, fixed = _decomposed(J, blocks)
        else:
            self.blocks = Blocks(())
            self.inverse, self.motions, fixed = J.T, [], jnp.zeros(len(H), H.dtype)
        K = _turned(self.blocks, self.motions, H)
        K = _turned(self.blocks, self.motions, K.T)
        # What is fixed is zero, with ones in its place: nothing of its size comes into the root.
        self.root = inverse_root(K + jnp.diag(fixed))

    def solve(
        self, f: Float[Array, " n"], c: Float[Array, " m"]
    ) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
        r"""$x$ and $\lambda$; derivatives are those at constant rank, by one more solution."""
        return _solved(self.blocks, self.J, self.H, self.inverse, self.motions, self.root, f, c)


def _turned(blocks, matrices, A):
    """Products of matrices with the rows of `A` that belong to the parts."""
    if blocks is None:
        return matrices[0] @ A
    for own, (_, columns) in zip(matrices, blocks.stacks(), strict=True):
        turned = jnp.einsum("kij,kj...->ki...", own, A[columns])
        A = A.at[columns].set(turned, unique_indices=True)
    return A


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solved(blocks, J, H, P, motions, root, f, c):
    start = P @ c
    free = _turned(blocks, motions, f - H @ start)
    free = root.T @ (root @ free)
    back = [jnp.swapaxes(own, -1, -2) for own in motions]
    x = start + _turned(blocks, back, free)
    return x, P.T @ (f - H @ x)


@_solved.defjvp
def _solved_jvp(blocks, primals, tangents):
    J, H, P, motions, root, _, c = primals
    dJ, dH, _, _, _, df, dc = tangents
    x, lam = _solved(blocks, *primals)
    unmet = c - J @ (P @ c)
    df = df - dH @ x - dJ.T @ lam
    dc = dc - dJ @ x + P.T @ (dJ.T @ unmet)
    dx, dlam = _solved(blocks, J, H, P, motions, root, df, dc)
    # Redundant constraints: the row space turns.
    turned = dJ @ (P @ lam)
    return (x, lam), (dx, dlam + turned - J @ (P @ turned))
