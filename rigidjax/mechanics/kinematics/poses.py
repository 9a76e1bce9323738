"""Twists and poses of bodies, frames and coordinates of joints, relative twists."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...forces.base import JointKinematics, Joints, Kinematics
from ...joints.base import AbstractJoint
from ...joints.relative_pose import RelativePose, wrap_angle
from ...joints.replacing import without_motion
from ...rotations.euler_map import euler_map
from ...rotations.matrix import product, to_space
from ...rotations.so3 import skew
from ...small_arrays import take
from ...state import State
from ..stacked.joints import GroupFrames, JointFrames, Poses, poses_with_ground
from ..stacked.system import PreparedSystem


class Twists(eqx.Module):
    """Velocities of the bodies.

    `linear`, of the centres of mass, (L, 3) m/s, space components; `angular`, (L, 3) rad/s, body
    components.
    """

    linear: Float[Array, "L 3"]
    angular: Float[Array, "L 3"]


class Motion(eqx.Module):
    r"""Consistent generalised velocities (f,), the twists of the bodies, and $\dot\nu$ (f,)."""

    rates: Float[Array, " f"]
    twists: Twists
    derivatives: Float[Array, " f"]


def assemble_poses(
    prepared: PreparedSystem,
    positions: Float[Array, "L 3"],
    rotations: Float[Array, "L 3 3"],
    angles: Float[Array, " k"],
    joints: Sequence[int] | None = None,
) -> Poses:
    """Return poses with the ground, and revolutions that bring the angles of joints next to given
    ones.

    **Arguments:** `angles` of the `joints`; those that the system tracks if left out.
    """
    poses = poses_with_ground(positions, rotations, len(prepared.system.joints))
    if angles.size == 0:
        return poses
    tracked = prepared.system.tracked_joints if joints is None else joints
    found = joint_angles(prepared, joint_frames_at(prepared, poses), tracked)
    revolutions = jax.lax.stop_gradient(angles - found)
    revolutions = 2 * jnp.pi * jnp.round(revolutions / (2 * jnp.pi))
    return Poses(
        poses.positions,
        poses.rotations,
        poses.turns.at[np.array(tracked)].set(revolutions, unique_indices=True),
    )


def poses_of_state(
    prepared: PreparedSystem, state: State, joints: Sequence[int] | None = None
) -> Poses:
    """Return the poses of a state with unit quaternions, with the revolutions of its joint angles.

    **Arguments:** `joints`, those whose revolutions are wanted; all that the state knows if left
    out.
    """
    system = prepared.system
    rows = {j: system.joints[j].name for j in system.angle_joints}
    known = [
        (j, state.angle_names.index(name))
        for j, name in rows.items()
        if name in state.angle_names and (joints is None or j in joints)
    ]
    R = jax.vmap(euler_map)(state.orientation)
    angles: Any = jnp.zeros(0)
    if known:
        angles = take(state.joint_angles, [row for _, row in known])
    return assemble_poses(prepared, state.position, R, angles, [j for j, _ in known])


def joint_frames_at(prepared: PreparedSystem, poses: Poses) -> JointFrames:
    """Compute points, frames and relative poses of all joints."""
    return JointFrames([group.frames_at(poses) for group in prepared.groups], poses)


def with_joint_angles(prepared: PreparedSystem, state: State, joint_frames: JointFrames) -> State:
    """Return the state with the unwrapped angles of its joints."""
    system = prepared.system
    angles = joint_angles(prepared, joint_frames, system.angle_joints)
    return state.with_angles(system.angle_names, angles)


def joint_angles(
    prepared: PreparedSystem, joint_frames: JointFrames, joints: Sequence[int]
) -> Float[Array, " k"]:
    """Return the unwrapped angles of joints, rad."""
    if not joints:
        return jnp.zeros(0, joint_frames.poses.positions.dtype)
    coordinates, kinds = joint_coordinates(prepared, joint_frames), prepared.system.joints
    return jnp.stack([coordinates[j][kinds[j].num_translations] for j in joints])


def joint_angle_rates(
    prepared: PreparedSystem, joint_frames: JointFrames, twists: Twists, joints: Sequence[int]
) -> Float[Array, " k"]:
    """Return the rates of the angles of joints, rad/s."""
    if not joints:
        return jnp.zeros(0, twists.linear.dtype)
    frames, kinds = split_by_joint(prepared, joint_frames), prepared.system.joints
    relative = split_by_joint(prepared, joint_twists(prepared, joint_frames, twists))
    rates = {j: kinds[j].rates(frames[j].relative, relative[j]) for j in joints}
    return jnp.stack([rates[j][kinds[j].num_translations] for j in joints])


def joint_coordinates(
    prepared: PreparedSystem, joint_frames: JointFrames, t: Float[Array, ""] | None = None
) -> dict[int, Float[Array, " k"]]:
    """Return the coordinates of every joint, by its index.

    With a time, prescribed angles have the revolutions of their motion at that time.
    """

    def coordinates_of(joint: AbstractJoint, relative: RelativePose):
        coordinates = joint.coordinates(relative)
        if t is None or not (joint.is_driven and joint.has_angle):
            return coordinates
        prescribed = joint.prescribed_coordinate(t)
        return prescribed + wrap_angle(coordinates - prescribed)

    return split_by_joint(
        prepared,
        [
            group.map(coordinates_of, frames.relative)
            for group, frames in zip(prepared.groups, joint_frames, strict=True)
        ],
    )


def joint_twists(
    prepared: PreparedSystem, joint_frames: JointFrames, twists: Twists
) -> list[Float[Array, "n 6"]]:
    """Return the relative twists of every group of joints, in the joint frames."""
    v, omega = _with_ground(twists.linear), _with_ground(twists.angular)
    groups = zip(prepared.groups, joint_frames, strict=True)
    return [group.twists(frames, v, omega) for group, frames in groups]


def split_by_joint(prepared: PreparedSystem, values: Iterable[Any]) -> dict[int, Any]:
    """Return values that are stacked group by group as values by the index of the joint."""
    return {
        j: jax.tree.map(lambda leaf, k=k: leaf[k], value)
        for group, value in zip(prepared.groups, values, strict=True)
        for k, j in enumerate(group.indices)
    }


def pose_rate(poses: Poses, twists: Twists) -> Poses:
    """Return the time derivative of the poses."""
    R = poses.rotations
    R_dot = jax.vmap(lambda R, w: product(R, skew(w)))(R, _with_ground(twists.angular))
    return Poses(_with_ground(twists.linear), R_dot, jnp.zeros_like(poses.turns))


def differentiate_along_motion(
    function: Callable[..., Any], t: Float[Array, ""], poses: Poses, twists: Twists
) -> tuple[Any, Any]:
    """Return `function(t, poses)` and its time derivative at constant twists."""
    return jax.jvp(function, (t, poses), (jnp.ones_like(t), pose_rate(poses, twists)))


def kinematics_for_forces(
    prepared: PreparedSystem, poses: Poses, joint_frames: JointFrames, twists: Twists
) -> Kinematics:
    """Return the motion of bodies and of joints that forces act on."""
    wanted = {name for group in prepared.forces for names in group.joints for name in names}
    wanted |= {joint.name for joint in prepared.system.joints if joint.armatures is not None}
    joints, names = [], []
    groups = zip(prepared.groups, joint_frames, strict=True) if wanted else ()
    for g, (group, frames) in enumerate(groups):
        group_names = [prepared.system.joints[j].name for j in group.indices]
        members = [k for k, name in enumerate(group_names) if name in wanted]
        if members:
            twist = joint_twists(prepared, joint_frames, twists)[g]
            seen = take((frames, twist), members)
            joints.append(eqx.filter_vmap(_joint_kinematics)(group.member(members), *seen))
            names.append(tuple(group_names[k] for k in members))
    return Kinematics(
        poses.positions[:-1], poses.rotations[:-1], twists.linear, twists.angular,
        Joints(joints, tuple(names)),
    )  # fmt: skip


def _joint_kinematics(
    joint: AbstractJoint, frames: GroupFrames, twist: Float[Array, "6"]
) -> JointKinematics:
    """Return coordinates and rates of a joint, prescribed ones included, and the wrenches that do
    work on them."""
    dual = without_motion(joint).dual(frames.relative)
    force = jax.vmap(lambda column: to_space(frames.frame, column))(dual[:3].T)
    moment = jax.vmap(lambda column: to_space(frames.frame, column))(dual[3:].T)
    return JointKinematics(
        joint.coordinates(frames.relative), dual.T @ twist, force, moment, frames.parent_arm,
        frames.child_arm, frames.relative.turns,
    )  # fmt: skip


def _with_ground(values: Float[Array, "L k"]) -> Float[Array, "L+1 k"]:
    return jnp.concatenate([values, jnp.zeros((1, *values.shape[1:]), values.dtype)])
