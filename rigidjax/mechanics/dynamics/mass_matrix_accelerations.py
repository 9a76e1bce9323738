"""Accelerations by a dense mass matrix, and by the constraints of loops."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Scalar
from ..constraints import constraint_rates
from ..kinematics.bias_accelerations import bias_accelerations
from ..kinematics.poses import joint_frames_at, kinematics_for_forces, pose_rate
from ..kinematics.trees import MotionSubspace, motion_subspace, motions_and_twists, reference_points
from ..kinematics.twists import Motion, Twists
from ..loads import apply_mass, free_forces
from ..stacked.joints import JointFrames, Poses
from ..stacked.system import PreparedSystem
from .composite_rigid_body import generalised_forces, mass_matrix
from .inverses import solve
from .loops import factor_loops


def mass_matrix_accelerations(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    nu: Float[Array, " f"],
    efforts: Float[Array, " f"] | None = None,
) -> Motion:
    r"""Compute accelerations by a dense mass matrix of the trees, with closed loops too.

    `efforts` are generalised forces beyond those of the system.

    **Source:** Lang (11): $T^T M T \dot\nu = T^T (f - M (\dot T \nu - \dot r))$.
    """
    points = reference_points(prepared, poses)
    motions, twists = motions_and_twists(prepared, t, poses, joint_frames, points, nu)
    loops = None
    if prepared.system.has_loops:
        loops = factor_loops(prepared, t, poses, joint_frames)
        residual = constraint_rates(prepared, t, joint_frames, twists, loops_only=True)
        nu = nu + loops.correction(residual)
        motions, twists = motions_and_twists(prepared, t, poses, joint_frames, points, nu)
    bias = bias_accelerations(prepared, t, poses, joint_frames, points, motions, nu)
    kinematics = kinematics_for_forces(prepared, poses, joint_frames, twists)
    forces = free_forces(prepared, t, kinematics) - apply_mass(prepared, bias[:, :3], bias[:, 3:])
    if loops is None:
        moving = MotionSubspace(motion_subspace(prepared, poses, joint_frames, points), points)
        generalised = _add_efforts(generalised_forces(prepared, poses, moving, forces), efforts)
        return Motion(nu, twists, solve(mass_matrix(prepared, poses, moving), generalised))

    def rate(t, poses, w):
        joint_frames = joint_frames_at(prepared, poses)
        return constraint_rates(
            prepared, t, joint_frames, Twists(w[:, :3], w[:, 3:]), loops_only=True
        )

    w = jnp.concatenate([twists.linear, twists.angular], axis=1)
    rates = (jnp.ones_like(t), pose_rate(poses, twists), bias)
    _, bias_residual = jax.jvp(rate, (t, poses, w), rates)
    generalised = _add_efforts(generalised_forces(prepared, poses, loops.moving, forces), efforts)
    return Motion(nu, twists, loops.rates(bias_residual, generalised))


def _add_efforts(
    forces: Float[Array, " f"], efforts: Float[Array, " f"] | None
) -> Float[Array, " f"]:
    return forces if efforts is None else forces + efforts
