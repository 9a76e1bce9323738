r"""Accelerations that trees have at constant minimal velocities, in closed form.

Only what a joint's motion depends on inside of the joint, its null-space columns and its prescribed
motion, is differentiated by `jax.jvp`; how frames and points move with the bodies is written down.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...joints.relative_pose import RelativePose, apply_small_twist
from ...native.ops import cross, take
from ...rotations.matrix import to_body, to_space
from ..stacked.joints import GroupFrames, JointGroup, Poses
from ..stacked.system import PreparedSystem
from .poses import differentiate_along_motion, joint_frames_at, joint_twists
from .trees import (
    first_rate,
    free_bodies,
    free_rates,
    in_order,
    joint_twists_from_rates,
    rates_of,
    sum_along_paths,
    tree_joints,
)
from .twists import Twists


def joint_bias_accelerations(
    prepared: PreparedSystem, t, poses: Poses, joint_frames, at, motions: Float[Array, "L 6"], nu
) -> Float[Array, "L 6"]:
    r"""Time derivative of `trees.joint_twists_in_space` at constant minimal velocities.

    `motions`, of the bodies about the points `at`.
    """
    start = first_rate(prepared)
    V = jnp.concatenate([motions, jnp.zeros((1, 6), motions.dtype)])
    rows, where = [], []
    for _, group, frames, bodies, sign in tree_joints(prepared, joint_frames):
        twist, change = _twist_and_change(group, frames, t, rates_of(group, start[bodies], nu))
        of_frame = take(V, group.parents)[:, 3:]
        of_child = take(V, group.children)
        centre = take(at, bodies)
        moving = (frames.point - centre, frames.frame, of_frame, of_child, twist, change)
        rows.append(jax.vmap(_carried)(jnp.asarray(sign, V.dtype), *moving))
        where.append(bodies)
    free = free_bodies(prepared)
    if len(free):
        w = take(motions, free)[:, 3:]
        turning = jax.vmap(cross)(free_rates(prepared, nu)[:, :3], w)
        rows.append(jnp.concatenate([turning, jnp.zeros_like(turning)], axis=1))
        where.append(free)
    return in_order(rows, where, jnp.zeros((0, 6), nu.dtype))


def _twist_and_change(group: JointGroup, frames: GroupFrames, t, rates):
    r"""Relative twists $s = S\nu + s_t$ of joints, and $\dot s$ in their frames, rates constant."""
    twist = joint_twists_from_rates(group, frames, t, rates)
    relative = frames.relative
    velocity = jax.vmap(_velocity)(relative, twist)

    def of(t, relative):
        at = GroupFrames(
            frames.point, frames.frame, relative, frames.parent_arm, frames.child_arm,
            frames.parent_rotation, frames.child_rotation,
        )  # fmt: skip
        return joint_twists_from_rates(group, at, t, rates)

    _, change = jax.jvp(of, (t, relative), (jnp.ones_like(t), velocity))
    return twist, change


def _velocity(relative: RelativePose, twist: Float[Array, "6"]) -> RelativePose:
    """Rate of change of a relative pose that moves with a twist."""
    _, rate = jax.jvp(lambda s: apply_small_twist(relative, s), (jnp.zeros_like(twist),), (twist,))
    return rate


def _carried(sign, arm, frame, of_frame, of_child, twist, change) -> Float[Array, "6"]:
    """Rate of a joint's motion about a fixed point; `arm`, from there to the joint's point."""
    v, w = to_space(frame, twist[:3]), to_space(frame, twist[3:])
    v_dot = to_space(frame, change[:3]) + cross(of_frame, v)
    w_dot = to_space(frame, change[3:]) + cross(of_frame, w)
    arm_dot = of_child[:3] + cross(of_child[3:], arm)
    return sign * jnp.concatenate([v_dot + cross(arm_dot, w) + cross(arm, w_dot), w_dot])


def bias_accelerations(prepared: PreparedSystem, t, poses: Poses, joint_frames, at, motions, nu):
    r"""Accelerations $(\ddot x, \dot\Omega)$ of all bodies at constant minimal velocities, (L, 6).

    `motions`, (L, 6), of the bodies about the points `at`.
    """
    change = joint_bias_accelerations(prepared, t, poses, joint_frames, at, motions, nu)
    change = sum_along_paths(prepared, change)
    x, R = poses.positions[:-1], poses.rotations[:-1]

    def one(R, r, V, A):
        v = V[:3] + cross(V[3:], r)
        linear = A[:3] + cross(A[3:], r) + cross(V[3:], v)
        return jnp.concatenate([linear, to_body(R, A[3:])])

    return jax.vmap(one)(R, x - at, motions, change)


def joint_bias(
    prepared: PreparedSystem, t, poses: Poses, nu, twists: Twists
) -> dict[int, Float[Array, "n 6"]]:
    r"""What turns accelerations of bodies into those of joints, $S\dot\nu$ = theirs + bias.

    The relative twist is $P w = S\nu + s_t$, so that it is $\dot P w - \dot S\nu - \dot s_t$, for
    each group of tree joints, by its number.
    """
    start = first_rate(prepared)
    joint_frames = joint_frames_at(prepared, poses)
    rates = {
        g: rates_of(group, start[bodies], nu)
        for g, group, _, bodies, _ in tree_joints(prepared, joint_frames)
    }

    def gap(t, poses):
        joint_frames = joint_frames_at(prepared, poses)
        relative = joint_twists(prepared, joint_frames, twists)
        return {
            g: relative[g] - joint_twists_from_rates(group, frames, t, rates[g])
            for g, group, frames, _, _ in tree_joints(prepared, joint_frames)
        }

    return differentiate_along_motion(gap, t, poses, twists)[1]
