"""Mass matrix of trees by the composite-rigid-body algorithm, its inverse, generalised forces.

Derivatives of inverses are products of matrices; for batches see `rigidjax.native.ops.linalg`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad
from jaxtyping import Array, Float

from ...bodies.inertia import inertia_tensor
from ...rotations.matrix import product, to_space
from ...small_arrays import cross, lapack_primitive, short_sum
from ..kinematics.trees import MotionSubspace, bodies_of_rates, sum_over_subtrees
from ..stacked.joints import Poses
from ..stacked.system import PreparedSystem


def mass_matrix(
    prepared: PreparedSystem,
    poses: Poses,
    moving: MotionSubspace,
    inertias: Float[Array, "L 3 3"] | None = None,
) -> Float[Array, "f f"]:
    """Return $T^T M T$ by the composite-rigid-body algorithm.

    **Arguments:** `inertias`, (L, 3, 3), if not those of the bodies.
    **Source:** Featherstone (2008), Rigid Body Dynamics Algorithms, Table 6.2, about one point.
    """
    if inertias is None:
        inertias = jax.vmap(inertia_tensor)(prepared.inertias)
    x, R = poses.positions[:-1], poses.rotations[:-1]

    def about_centre(m, inertia, R, r):
        turned = product(R, product(inertia, R.T))
        J = turned + m * (jnp.sum(r * r) * jnp.eye(3, dtype=r.dtype) - r[:, None] * r[None])
        return jnp.concatenate([m[None], m * r, J.ravel()])

    packed = jax.vmap(about_centre)(prepared.masses, inertias, R, x - moving.reference_points)
    bodies = bodies_of_rates(prepared)
    composite = sum_over_subtrees(prepared, packed)[bodies]

    def momentum(row, s):
        m, c, J = row[0], row[1:4], row[4:].reshape(3, 3)
        v, w = s[:3], s[3:]
        return jnp.concatenate([m * v + cross(w, c), cross(c, v) + to_space(J, w)])

    momenta = jax.vmap(momentum)(composite, moving.columns)
    # Entries (i, j) are computed where body j is body i or an ancestor of it, and mirrored.
    ancestors = prepared.system.topology.ancestors
    below = ancestors[np.ix_(bodies, bodies)]
    strictly = below & (bodies[:, None] != bodies[None])
    H = momenta @ moving.columns.T
    mask = lambda where: jnp.asarray(where, H.dtype)  # noqa: E731
    H = H * mask(below) + (H * mask(strictly)).T
    rotors = prepared.system.armatures
    return H if rotors is None else H + jnp.diag(rotors)


def generalised_forces(
    prepared: PreparedSystem, poses: Poses, moving: MotionSubspace, wrenches: Float[Array, "L 6"]
) -> Float[Array, " f"]:
    """Return $T^T f$ of wrenches: forces in space, moments in body components."""
    x, R = poses.positions[:-1], poses.rotations[:-1]

    def about_centre(R, r, wrench):
        force, moment = wrench[:3], to_space(R, wrench[3:])
        return jnp.concatenate([force, moment + cross(r, force)])

    moved = jax.vmap(about_centre)(R, x - moving.reference_points, wrenches)
    total = sum_over_subtrees(prepared, moved)[bodies_of_rates(prepared)]
    return short_sum(moving.columns, total, axis=1)


def _cholesky_inverse(H: Float[Array, "n n"]):
    """Invert the Cholesky factor by LAPACK."""
    root = jax.lax.linalg.cholesky(H, symmetrize_input=False)
    unit = jnp.eye(H.shape[0], dtype=H.dtype)
    return jax.lax.linalg.triangular_solve(root, unit, left_side=True, lower=True)


def _cholesky_inverse_in_loop(H: Float[Array, "n n"]):
    """Invert the Cholesky factor by elimination below the diagonal, beside the unit matrix."""
    n = len(H)
    index = jnp.arange(n)

    def column(k, A):
        row = jax.lax.dynamic_slice_in_dim(A, k, 1)[0]
        below = jax.lax.dynamic_slice_in_dim(A, k, 1, axis=1)[:, 0]
        return A - jnp.where(index > k, below / row[k], 0.0)[:, None] * row[None]

    A = jax.lax.fori_loop(0, n, column, jnp.concatenate([H, jnp.eye(n, dtype=H.dtype)], axis=1))
    pivots = jnp.diagonal(A)
    root = A[:, n:] / jnp.sqrt(pivots)[:, None]
    return jnp.where(jnp.all(pivots > 0), root, jnp.nan)


def _solve_in_loop(H: Float[Array, "n n"], b: Float[Array, " n"]):
    """Solve by elimination above and below the diagonal."""
    n = len(H)
    index = jnp.arange(n)

    def column(k, A):
        row = jax.lax.dynamic_slice_in_dim(A, k, 1)[0]
        row = row / jnp.where(row[k] > 0, row[k], jnp.nan)
        rest = A - jax.lax.dynamic_slice_in_dim(A, k, 1, axis=1) * row[None]
        return jnp.where((index == k)[:, None], row[None], rest)

    A = jnp.concatenate([H, b[:, None]], axis=1)
    return jax.lax.fori_loop(0, n, column, A)[:, n]


def _inverse_root_jvp(primals: tuple, tangents: tuple):
    W, (dH,) = _inverse_root(*primals), tangents
    inner = W @ dH @ W.T
    half = jnp.tril(inner) - 0.5 * jnp.diag(jnp.diagonal(inner))
    return W, -half @ W


_inverse_root = lapack_primitive(
    "inverse_root", _cholesky_inverse, _cholesky_inverse_in_loop, _inverse_root_jvp
)


def inverse_root(H: Float[Array, "n n"]) -> Float[Array, "n n"]:
    r"""Return the lower triangular $W = L^{-1}$ of a positive definite $H = L L^T$.

    $H^{-1} = W^T W$. NaN if `H` is not positive definite.
    """
    return _inverse_root(H) if H.size else H


def _cholesky_solve(H: Float[Array, "n n"], b: Float[Array, " n"]):
    root = jax.lax.linalg.cholesky(H, symmetrize_input=False)
    z = jax.lax.linalg.triangular_solve(root, b[:, None], left_side=True, lower=True)
    x = jax.lax.linalg.triangular_solve(root, z, left_side=True, lower=True, transpose_a=True)
    return x[:, 0]


def _solve_jvp(primals: tuple, tangents: tuple):
    (H, b), (dH, db) = primals, tangents
    x, W = _solve(H, b), inverse_root(H)
    rest = 0.0 if isinstance(dH, ad.Zero) else -dH @ x
    rest = rest if isinstance(db, ad.Zero) else db + rest
    return x, W.T @ (W @ rest)


def _solve_transpose(cotangent: Any, H: Float[Array, "n n"], b: Float[Array, " n"]):
    if ad.is_undefined_primal(H):
        raise NotImplementedError("`solve` is linear in the right-hand side alone.")
    return [None, None if isinstance(cotangent, ad.Zero) else _solve(H, cotangent)]


_solve = lapack_primitive(
    "positive_solve", _cholesky_solve, _solve_in_loop, _solve_jvp, _solve_transpose
)


def solve(H: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    r"""Return $H^{-1} b$ for a positive definite `H`; NaN if it is not."""
    return _solve(H, b) if H.size else b
