"""Mass matrix of trees by the composite-rigid-body algorithm, and generalised forces."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...bodies.inertia import inertia_tensor
from ...rotations.matrix import product, to_space
from ...small_arrays import cross, short_sum
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
