"""Smallest changes of poses, twists and accelerations that satisfy all constraints."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Matrix, Scalar
from ...bodies.inertia import inertia_tensor
from ...small_arrays import short_sum
from ..kinematics.constraints import constraint_rates, constraint_values, split_trees_and_loops
from ..kinematics.poses import (
    Twists,
    differentiate_along_motion,
    joint_frames_at,
    kinematics_for_forces,
)
from ..kinematics.trees import twists_from_velocities
from ..stacked.joints import JointFrames, Poses
from ..stacked.system import PreparedSystem
from .loads import apply_inverse_mass, free_accelerations, free_forces
from .loops import factor_loops
from .mass_matrix import generalised_forces
from .select import tree_constraints, tree_correction


def accelerations_with_loops(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    residual: Float[Array, " m"],
    forces: Float[Array, "L 6"],
    inertias: Float[Array, "L 3 3"],
) -> Float[Array, "L 6"]:
    r"""Return $\dot w$ with $G \dot w = -$`residual` under wrenches, in a system with loops.

    The part that the tree joints require follows from geometry; the rest is a motion that they
    allow, and masses and `inertias` matter only along it.
    """
    tree, loop = split_trees_and_loops(prepared, residual)
    square = prepared.lengths**2
    unit = square[:, None, None] * jnp.eye(3, dtype=square.dtype)[None]
    start = tree_correction(prepared, t, poses, joint_frames, unit, jnp.ones_like(square), tree)

    def rate(w):
        return constraint_rates(
            prepared, t, joint_frames, Twists(w[:, :3], w[:, 3:]), loops_only=True
        )

    _, start_rate = jax.jvp(rate, (start,), (start,))
    loops = factor_loops(prepared, t, poses, joint_frames, inertias)
    turning = short_sum(inertias, start[:, None, 3:], axis=2)
    inertial = jnp.concatenate([prepared.masses[:, None] * start[:, :3], turning], axis=1)
    forces = generalised_forces(prepared, poses, loops.moving, forces - inertial)
    return start + twists_from_velocities(
        prepared, poses, loops.moving, loops.rates(loop + start_rate, forces)
    )


def constrained_accelerations(
    prepared: PreparedSystem, t: Scalar, poses: Poses, joint_frames: JointFrames, twists: Twists
) -> Float[Array, "L 6"]:
    r"""Compute the accelerations of all bodies with all joints as constraints, (L, 6).

    $M\dot w + G^T\lambda = f$, $G\dot w = -\gamma$. **Source:** Lang (6), (58).
    """
    kinematics = kinematics_for_forces(prepared, poses, joint_frames, twists)
    if prepared.is_free:
        accelerations = free_accelerations(prepared, t, kinematics)
        return jnp.concatenate([accelerations.linear, accelerations.angular], axis=1)
    forces = free_forces(prepared, t, kinematics)

    def rate(t, poses):
        return constraint_rates(prepared, t, joint_frames_at(prepared, poses), twists)

    _, gamma = differentiate_along_motion(rate, t, poses, twists)
    inertias = jax.vmap(inertia_tensor)(prepared.inertias)
    if prepared.system.has_loops:
        return accelerations_with_loops(prepared, t, poses, joint_frames, gamma, forces, inertias)
    free = apply_inverse_mass(prepared, forces)
    joints = tree_constraints(prepared, t, joint_frames, inertias, prepared.masses)
    return free + joints.correction(joints.apply(free) + gamma)


def smallest_change(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    residual: Float[Array, " m"],
    inertias: Float[Array, "L 3 3"],
) -> Float[Array, "L 6"]:
    """Return the smallest change of all twists, in kinetic energy, that removes the residual.

    **Arguments:** `inertias`, positive definite.
    """
    if prepared.system.has_loops:
        still = jnp.zeros((prepared.num_bodies, 6), residual.dtype)
        return accelerations_with_loops(prepared, t, poses, joint_frames, residual, still, inertias)
    masses = regular_masses(prepared)
    return tree_correction(prepared, t, poses, joint_frames, inertias, masses, residual)


def project_twists(
    prepared: PreparedSystem, t: Scalar, poses: Poses, joint_frames: JointFrames, twists: Twists
) -> Twists:
    """Return the twists nearest to given ones, in kinetic energy, that satisfy all constraints.

    **Source:** Lang (62, V).
    """
    residual = constraint_rates(prepared, t, joint_frames, twists)
    change = smallest_change(prepared, t, poses, joint_frames, residual, regular_inertias(prepared))
    return Twists(twists.linear + change[:, :3], twists.angular + change[:, 3:])


def pose_correction(
    prepared: PreparedSystem, t: Scalar, poses: Poses, joint_frames: JointFrames
) -> Float[Array, "L 6"]:
    """Return the small motion of all bodies that closes the joints, smallest in the mass metric.

    One Newton step of Lang (62, P): `(dx, dtheta)` of each body, `dtheta` in body components.
    """
    prepared = prepared.holonomic
    residual = constraint_values(prepared, t, joint_frames)
    return smallest_change(prepared, t, poses, joint_frames, residual, regular_inertias(prepared))


def mass_metric(prepared: PreparedSystem) -> Matrix:
    r"""Return the mass matrix (6L, 6L) of small motions $(\Delta x / \ell, \Delta\theta)$.

    $\ell$ is the length of the mechanism. The matrix is regular even where a body lacks mass.
    """
    L = prepared.num_bodies
    unit = jnp.eye(3, dtype=prepared.masses.dtype)[None]
    shift = (regular_masses(prepared) * prepared.lengths**2)[:, None, None] * unit
    M = jnp.zeros((L, 6, L, 6), prepared.masses.dtype)
    i = np.arange(L)
    M = M.at[i, :3, i, :3].set(shift)
    return M.at[i, 3:, i, 3:].set(regular_inertias(prepared)).reshape(6 * L, 6 * L)


def regular_masses(prepared: PreparedSystem) -> Float[Array, " L"]:
    """Return masses for a metric of motions: a body without mass has the mean of all masses.

    Its motion has no kinetic energy, so that any mass serves as a metric.
    """
    masses = prepared.masses
    return jnp.where(masses > 0, masses, jnp.mean(masses))


def regular_inertias(prepared: PreparedSystem) -> Float[Array, "L 3 3"]:
    """Return inertias to which a small part is added, so that they are positive definite."""
    inertias = jax.vmap(inertia_tensor)(prepared.inertias)
    # The inertia of a point mass at its joint is zero: any length serves as its scale.
    masses = regular_masses(prepared)
    points = jnp.where(prepared.masses > 0, 1e-9, 1.0) * masses * prepared.lengths**2
    floor = 1e-6 * jnp.trace(inertias, axis1=1, axis2=2) + points
    return inertias + floor[:, None, None] * jnp.eye(3, dtype=inertias.dtype)[None]
