"""Accelerations that trees have at constant generalised velocities, in closed form.

Only the motion of a joint inside its own frames, its null space and its prescribed motion, is
differentiated by `jax.jvp`; how frames and points move with the bodies is written in closed form.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Matrix3, Scalar, Vector3
from ...joints.relative_pose import RelativePose, apply_small_twist
from ...rotations.matrix import to_body, to_space
from ...small_arrays import cross, take
from ..stacked.joints import GroupFrames, JointFrames, JointGroup, Poses
from ..stacked.system import PreparedSystem
from .poses import Twists, differentiate_along_motion, joint_frames_at, joint_twists
from .trees import (
    first_rate,
    free_bodies,
    free_body_rates,
    group_rates,
    in_order,
    joint_twists_from_rates,
    sum_along_paths,
    tree_joints,
)


def joint_bias_accelerations(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    points: Float[Array, "L 3"],
    motions: Float[Array, "L 6"],
    nu: Float[Array, " f"],
) -> Float[Array, "L 6"]:
    """Compute the time derivative of `trees.joint_twists_in_space` at constant velocities.

    **Arguments:** `motions`, of the bodies about the reference points `points`.
    """
    start = first_rate(prepared)
    V = jnp.concatenate([motions, jnp.zeros((1, 6), motions.dtype)])
    rows, bodies_of_rows = [], []
    for _, group, frames, bodies, sign in tree_joints(prepared, joint_frames):
        twist, change = _relative_twists(group, frames, t, group_rates(group, start[bodies], nu))
        of_frame = take(V, group.parents)[:, 3:]
        of_child = take(V, group.children)
        centre = take(points, bodies)
        moving = (frames.point - centre, frames.frame, of_frame, of_child, twist, change)
        rows.append(jax.vmap(_motion_rate)(jnp.asarray(sign, V.dtype), *moving))
        bodies_of_rows.append(bodies)
    free = free_bodies(prepared)
    if len(free):
        w = take(motions, free)[:, 3:]
        turning = jax.vmap(cross)(free_body_rates(prepared, nu)[:, :3], w)
        rows.append(jnp.concatenate([turning, jnp.zeros_like(turning)], axis=1))
        bodies_of_rows.append(free)
    return in_order(rows, bodies_of_rows, jnp.zeros((0, 6), nu.dtype))


def _relative_twists(
    group: JointGroup, frames: GroupFrames, t: Scalar, rates: Float[Array, "n f"]
) -> tuple[Float[Array, "n 6"], Float[Array, "n 6"]]:
    r"""Return the relative twists $s = S\nu + s_t$ of joints, and $\dot s$ in the joint frames at
    constant rates."""
    twist = joint_twists_from_rates(group, frames, t, rates)
    relative = frames.relative
    velocity = jax.vmap(_relative_velocity)(relative, twist)

    def twists_at(t, relative):
        points = GroupFrames(
            frames.point, frames.frame, relative, frames.parent_arm, frames.child_arm,
            frames.parent_rotation, frames.child_rotation,
        )  # fmt: skip
        return joint_twists_from_rates(group, points, t, rates)

    _, change = jax.jvp(twists_at, (t, relative), (jnp.ones_like(t), velocity))
    return twist, change


def _relative_velocity(relative: RelativePose, twist: Float[Array, "6"]) -> RelativePose:
    """Return the rate of change of a relative pose that moves with a twist."""
    _, rate = jax.jvp(lambda s: apply_small_twist(relative, s), (jnp.zeros_like(twist),), (twist,))
    return rate


def _motion_rate(
    sign: Scalar,
    arm: Vector3,
    frame: Matrix3,
    of_frame: Vector3,
    of_child: Float[Array, "6"],
    twist: Float[Array, "6"],
    change: Float[Array, "6"],
) -> Float[Array, "6"]:
    """Return the rate of a joint's motion about a fixed point.

    **Arguments:** `arm`, from the fixed point to the joint point; `of_frame`, angular velocity of
    the joint frame; `of_child`, motion of the child; `twist` and `change`, relative.
    """
    v, w = to_space(frame, twist[:3]), to_space(frame, twist[3:])
    v_dot = to_space(frame, change[:3]) + cross(of_frame, v)
    w_dot = to_space(frame, change[3:]) + cross(of_frame, w)
    arm_dot = of_child[:3] + cross(of_child[3:], arm)
    return sign * jnp.concatenate([v_dot + cross(arm_dot, w) + cross(arm, w_dot), w_dot])


def bias_accelerations(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    points: Float[Array, "L 3"],
    motions: Float[Array, "L 6"],
    nu: Float[Array, " f"],
) -> Float[Array, "L 6"]:
    r"""Compute the accelerations $(\ddot x, \dot\Omega)$ of all bodies at constant generalised
    velocities, (L, 6).

    **Arguments:** `motions`, of the bodies about the reference points `points`.
    """
    change = joint_bias_accelerations(prepared, t, poses, joint_frames, points, motions, nu)
    change = sum_along_paths(prepared, change)
    x, R = poses.positions[:-1], poses.rotations[:-1]

    def of_body(R, r, V, A):
        v = V[:3] + cross(V[3:], r)
        linear = A[:3] + cross(A[3:], r) + cross(V[3:], v)
        return jnp.concatenate([linear, to_body(R, A[3:])])

    return jax.vmap(of_body)(R, x - points, motions, change)


def joint_bias(
    prepared: PreparedSystem, t: Scalar, poses: Poses, nu: Float[Array, " f"], twists: Twists
) -> dict[int, Float[Array, "n 6"]]:
    r"""Return the bias that turns accelerations of bodies into accelerations of joints.

    The relative twist is $P w = S\nu + s_t$, so that $S\dot\nu = P\dot w$ + bias with the bias
    $\dot P w - \dot S\nu - \dot s_t$.
    **Returns:** one array for each group of tree joints, by the number of the group.
    """
    start = first_rate(prepared)
    joint_frames = joint_frames_at(prepared, poses)
    rates = {
        g: group_rates(group, start[bodies], nu)
        for g, group, _, bodies, _ in tree_joints(prepared, joint_frames)
    }

    def mismatch(t, poses):
        joint_frames = joint_frames_at(prepared, poses)
        relative = joint_twists(prepared, joint_frames, twists)
        return {
            g: relative[g] - joint_twists_from_rates(group, frames, t, rates[g])
            for g, group, frames, _, _ in tree_joints(prepared, joint_frames)
        }

    return differentiate_along_motion(mismatch, t, poses, twists)[1]
