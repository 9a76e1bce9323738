"""Inverses of positive definite and of singular matrices, as multibody systems need them.

Derivatives are products of matrices; for batches see `rigidjax.linalg`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..linalg import one_by_one, with_kernel
from ..native.alternatives import alternatives
from ..reflections import reflected
from ..rotations.matrix import matrix
from ..sums import small_product

# Singular values below this part of the largest one are taken for zero (or below ten units of
# round-off, which is more in single precision). Where a mechanism comes through a position with
# more freedom (a parallelogram in line), directions of constraints that close to it are noise: the
# motion is carried across by its velocity. In a measure in which singular values there are 1.5
# times these (10 and 40 parallelograms; 2.5 times for 2), energy changes at a tolerance of 1e-9,
# for 40 parallelograms over 3 s, by 3.5e-6 J at 1e-5 (810 rejected steps) and 9.6e-8 J at 3e-5
# (437); for 10 over 10 s by 2.9e-7, 2.2e-7, 2.3e-7 J at 1e-5, 3e-5, 6e-5; for 2 over 10 s by
# 1.0e-1 J at 1e-7, 1.5e-5 at 1e-6, 1.7e-7 at 1e-5, 9.8e-7 at 1e-4.
_CUTOFF = 2e-5


def _inverted_root(H):
    root = jax.lax.linalg.cholesky(H, symmetrize_input=False)
    unit = jnp.eye(H.shape[0], dtype=H.dtype)
    return jax.lax.linalg.triangular_solve(root, unit, left_side=True, lower=True)


def _inverted_root_in_loop(H):
    """By elimination below the diagonal, next to the unit matrix."""
    n = len(H)
    index = jnp.arange(n)

    def column(k, A):
        row = jax.lax.dynamic_slice_in_dim(A, k, 1)[0]
        below = jax.lax.dynamic_slice_in_dim(A, k, 1, axis=1)[:, 0]
        return A - jnp.where(index > k, below / row[k], 0.0)[:, None] * row

    A = jax.lax.fori_loop(0, n, column, jnp.concatenate([H, jnp.eye(n, dtype=H.dtype)], axis=1))
    pivots = jnp.diagonal(A)
    root = A[:, n:] / jnp.sqrt(pivots)[:, None]
    return jnp.where(jnp.all(pivots > 0), root, jnp.nan)


def _solved_in_loop(H, b):
    """By elimination above and below the diagonal."""
    n = len(H)
    index = jnp.arange(n)

    def column(k, A):
        row = jax.lax.dynamic_slice_in_dim(A, k, 1)[0]
        row = row / jnp.where(row[k] > 0, row[k], jnp.nan)
        rest = A - jax.lax.dynamic_slice_in_dim(A, k, 1, axis=1) * row
        return jnp.where((index == k)[:, None], row, rest)

    A = jnp.concatenate([H, b[:, None]], axis=1)
    return jax.lax.fori_loop(0, n, column, A)[:, n]


_inverse_root = with_kernel("inverse_root", _inverted_root, _inverted_root_in_loop)


@jax.custom_jvp
def inverse_root(H: Float[Array, "n n"]) -> Float[Array, "n n"]:
    r"""Lower triangular $W = L^{-1}$ of a positive definite $H = L L^T$: $H^{-1} = W^T W$.

    NaN if `H` is not positive definite.
    """
    return _inverse_root(H) if H.size else H


@inverse_root.defjvp
def _inverse_root_jvp(primals, tangents):
    (H,), (dH,) = primals, tangents
    W = inverse_root(H)
    inner = small_product(small_product(W, dH), W.T)
    half = jnp.tril(inner) - 0.5 * jnp.diag(jnp.diagonal(inner))
    return W, -small_product(half, W)


def _solved(H, b):
    root = jax.lax.linalg.cholesky(H, symmetrize_input=False)
    z = jax.lax.linalg.triangular_solve(root, b[:, None], left_side=True, lower=True)
    x = jax.lax.linalg.triangular_solve(root, z, left_side=True, lower=True, transpose_a=True)
    return x[:, 0]


_solve = with_kernel("positive_solve", _solved, _solved_in_loop)


@jax.custom_jvp
def solve(H: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    r"""$H^{-1} b$ for a positive definite `H`; NaN if it is not."""
    return _solve(H, b) if H.size else b


@solve.defjvp
def _solve_jvp(primals, tangents):
    (H, b), (dH, db) = primals, tangents
    x, W = solve(H, b), inverse_root(H)
    return x, small_product(W.T, small_product(W, db - small_product(dH, x)))


def inverse_root_3(D: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """The same for a matrix 3x3, from its entries."""
    zero = jnp.zeros_like(D[0, 0])
    a = 1 / jnp.sqrt(D[0, 0])
    l21, l31 = D[1, 0] * a, D[2, 0] * a
    b = 1 / jnp.sqrt(D[1, 1] - l21 * l21)
    l32 = (D[2, 1] - l31 * l21) * b
    c = 1 / jnp.sqrt(D[2, 2] - l31 * l31 - l32 * l32)
    w21 = -l21 * a * b
    w31 = -(l31 * a + l32 * w21) * c
    return matrix([a, zero, zero, w21, b, zero, w31, -l32 * b * c, c])


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


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def pseudo_inverse(A: Float[Array, "m n"], cutoff: float = _CUTOFF) -> Float[Array, "n m"]:
    r"""The Moore-Penrose inverse $A^+$, shape (n, m).

    Singular values below `cutoff` (static) of the largest one, or ten units of round-off, are zero:
    rows and columns must be of similar size. Its derivative is that at constant rank (Golub and
    Pereyra 1973, theorem 4.3), which needs no derivatives of singular vectors.
    """
    if not A.size:
        return A.T
    return alternatives(
        lambda: _orthogonal_decomposition(A, cutoff)[0], lambda: _at_cutoff(cutoff)(A)
    )


@pseudo_inverse.defjvp
def _pseudo_inverse_jvp(cutoff, primals, tangents):
    (A,), (dA,) = primals, tangents
    P = pseudo_inverse(A, cutoff)
    return P, _change_of_pseudo_inverse(A, P, dA)


def _change_of_pseudo_inverse(A, P, dA):
    change = -P @ dA @ P
    # What the change of the row and the column space adds.
    change = change + P @ P.T @ (dA.T - dA.T @ A @ P)
    return change + (dA.T - P @ A @ dA.T) @ P.T @ P


def _by_null_space(J, H):
    m, n = J.shape
    if m > 1.5 * n:
        Q, R = jnp.linalg.qr(J)
        P, X = _by_null_space(R, H)
        return P @ Q.T, X
    U, s, Vt = jnp.linalg.svd(J, full_matrices=m < n)
    inverse, keep = _inverted(s, _CUTOFF)
    P = (Vt[: len(s)].T * inverse) @ U.T
    # The rows of Vt that J leaves free; the others are replaced by zeros, and by ones in the matrix
    # that is factorised, so that nothing of their size comes into it.
    fixed = jnp.concatenate([keep, jnp.zeros(n - len(s), bool)])
    return P, _in_motions(jnp.where(fixed[:, None], 0.0, Vt), fixed, H)


def _in_motions(free, fixed, H):
    """The inverse of `H` in the rows of `free`; those that are `fixed` are zero."""
    K = small_product(small_product(free, H), free.T)
    Y = small_product(_inverse_root(K + jnp.diag(fixed.astype(H.dtype))), free)
    return small_product(Y.T, Y)


_by_lapack = one_by_one(_by_null_space)


def _by_reflections(J, H):
    """The same without singular values, in fewer and shorter loops."""
    P, Q, keep = _orthogonal_decomposition(J, _CUTOFF)
    fixed = jnp.concatenate([keep, jnp.zeros(len(Q) - len(keep), bool)])
    return P, _in_motions(jnp.where(fixed[:, None], 0.0, Q.T), fixed, H)


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


@jax.custom_jvp
def constrained_inverses(
    J: Float[Array, "m n"], H: Float[Array, "n n"]
) -> tuple[Float[Array, "n m"], Float[Array, "n n"]]:
    r"""$J^+$ and $X = N (N^T H N)^{-1} N^T$, where the columns of $N$ span the null space of $J$.

    The solution of $H x + J^T \lambda = f$, $J x = c$ is $x = J^+ c + X (f - H J^+ c)$. Which
    constraints are independent is decided by $J$ alone, whose rows and columns must be of similar
    size, and not by $H$, which has to be positive definite in the null space only (NaN elsewhere).
    Derivatives are those at constant rank.
    """
    if not J.size:
        return J.T, _inverse_of(H)
    return alternatives(lambda: _by_reflections(J, H), lambda: _by_lapack(J, H))


def _inverse_of(H):
    W = inverse_root(H)
    return small_product(W.T, W)


@constrained_inverses.defjvp
def _constrained_inverses_jvp(primals, tangents):
    (J, H), (dJ, dH) = primals, tangents
    P, X = constrained_inverses(J, H)
    # The null space turns by dN = -P dJ N.
    turned = P @ (dJ @ X)
    turned = turned - X @ (H @ turned)
    dX = -X @ dH @ X - turned - turned.T
    return (P, X), (_change_of_pseudo_inverse(J, P, dJ), dX)
