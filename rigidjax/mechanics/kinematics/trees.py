r"""Motions of trees of bodies, in space axes about one reference point for each tree.

A motion is $(v, \omega)$ with the velocity $v$ of the material point at the reference point.
Motions add up along the tree without transformations, as wrenches and inertias about that point add
up towards its root: all sums over paths and subtrees are products with one constant matrix.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...rotations.matrix import to_body, to_space
from ...small_arrays import cross, short_sum, take
from ..declared.topology import GROUND
from ..stacked.joints import GroupFrames, JointFrames, JointGroup, Poses
from ..stacked.system import PreparedSystem
from .poses import Twists, joint_frames_at, joint_twists, pose_rate

# Bodies up to which sums along paths are products with a matrix; more are added by doubling.
_MATRIX_LIMIT = 16


class MotionSubspace(eqx.Module):
    """Motions that the tree joints allow in a pose.

    `columns`, the motion of each generalised velocity, (f, 6), about the `reference_points`,
    (L, 3), of the trees of the bodies, fixed in space.
    """

    columns: Float[Array, "f 6"]
    reference_points: Float[Array, "L 3"]


def reference_points(prepared: PreparedSystem, poses: Poses) -> Float[Array, "L 3"]:
    """Return the centre of mass of the first body of the tree of each body.

    Distances from it stay small, so that round-off does.
    """
    return jax.lax.stop_gradient(take(poses.positions, prepared.system.topology.roots))


def tree_joints(
    prepared: PreparedSystem, joint_frames: Iterable[Any]
) -> Iterator[tuple[int, JointGroup, Any, np.ndarray, np.ndarray]]:
    """Yield groups of tree joints: number, group, frames, attached bodies, signs of twists.

    The sign is -1 where the attached body is the parent in its joint.
    """
    topology = prepared.system.topology
    attached_body = {j: i for i, j in enumerate(topology.joints) if j is not None}
    for g, (group, frames) in enumerate(zip(prepared.groups, joint_frames, strict=True)):
        if not group.closes_loops:
            bodies = np.array([attached_body[j] for j in group.indices], int)
            sign = np.where(np.array(topology.reversed)[bodies], -1.0, 1.0)
            yield g, group, frames, bodies, sign


def motions_about(
    frames: GroupFrames,
    point: Float[Array, "n 3"],
    sign: np.ndarray,
    columns: Float[Array, "n k 6"],
) -> Float[Array, "n k 6"]:
    """Return relative twists of joints as motions, about `point`, of the attached bodies."""

    def of_joint(joint_point, frame, point, sign, columns):
        def motion(column):
            v, w = to_space(frame, column[:3]), to_space(frame, column[3:])
            return sign * jnp.concatenate([v + cross(joint_point - point, w), w])

        return jax.vmap(motion)(columns)

    signs = jnp.asarray(sign, columns.dtype)
    return jax.vmap(of_joint)(frames.point, frames.frame, point, signs, columns)


def free_bodies(prepared: PreparedSystem) -> np.ndarray:
    """Return the bodies that are attached to no joint."""
    joints = prepared.system.topology.joints
    return np.array([i for i, j in enumerate(joints) if j is None], int)


def free_rate_rows(prepared: PreparedSystem) -> np.ndarray:
    """Return the rows of the generalised velocities of free bodies, (n, 6).

    (n, 3) where bodies do not translate.
    """
    count = prepared.system.rates_of_free
    return np.add.outer(first_rate(prepared)[free_bodies(prepared)], np.arange(count))


def free_body_rates(prepared: PreparedSystem, nu: Float[Array, " f"]) -> Float[Array, "n 6"]:
    """Return velocities, zero without translation, and angular velocities of free bodies."""
    rates = take(nu, free_rate_rows(prepared).ravel()).reshape(-1, prepared.system.rates_of_free)
    if prepared.system.translates:
        return rates
    return jnp.concatenate([jnp.zeros_like(rates), rates], axis=1)


def first_rate(prepared: PreparedSystem) -> np.ndarray:
    """Return the row of the first generalised velocity of each body, and their number, (L + 1,)."""
    return np.concatenate([[0], np.cumsum(prepared.system.rates_of_bodies)]).astype(int)


def in_order(parts: list[Array], rows_of_parts: list[np.ndarray], empty: Array) -> Array:
    """Join parts and sort their rows by `rows_of_parts`."""
    if not parts:
        return empty
    rows = jnp.concatenate(parts) if len(parts) > 1 else parts[0]
    return take(rows, np.argsort(np.concatenate(rows_of_parts), kind="stable"))


def _joint_null_spaces(group: JointGroup, frames: GroupFrames) -> Float[Array, "n k 6"]:
    return group.map(lambda joint, r: joint.null_space(r).T, frames.relative)


def motion_subspace(
    prepared: PreparedSystem,
    poses: Poses,
    joint_frames: JointFrames,
    points: Float[Array, "L 3"],
    allowed: Callable[[JointGroup, GroupFrames], Float[Array, "n k 6"]] = _joint_null_spaces,
) -> Float[Array, "f 6"]:
    """Return the motion of each generalised velocity about reference points.

    **Arguments:** `allowed`, a function of a group and its frames that returns the relative twists
    that its joints allow.
    """
    start = first_rate(prepared)
    rows, rows_of_parts = [], []
    for _, group, frames, bodies, sign in tree_joints(prepared, joint_frames):
        count = group.joint.num_rates
        if count:
            S = allowed(group, frames)
            rows.append(motions_about(frames, take(points, bodies), sign, S).reshape(-1, 6))
            rows_of_parts.append((start[bodies][:, None] + np.arange(count)).ravel())
    free = free_bodies(prepared)
    if len(free):
        R, arm = take(poses.rotations, free), take(poses.positions, free) - take(points, free)
        shift = jnp.broadcast_to(jnp.eye(3, 6, dtype=R.dtype), (len(free), 3, 6))
        axes = jnp.swapaxes(R, 1, 2)
        moved = jax.vmap(lambda arm, axes: jax.vmap(lambda w: cross(arm, w))(axes))(arm, axes)
        turn = jnp.concatenate([moved, axes], axis=2)
        both = jnp.concatenate([shift, turn], axis=1)
        rows.append(both[:, -prepared.system.rates_of_free :].reshape(-1, 6))
        rows_of_parts.append(free_rate_rows(prepared).ravel())
    return in_order(rows, rows_of_parts, jnp.zeros((0, 6), poses.positions.dtype))


def joint_twists_in_space(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    points: Float[Array, "L 3"],
    nu: Float[Array, " f"],
) -> Float[Array, "L 6"]:
    """Return the motion that each body's joint adds, from its rates and its prescribed motion."""
    start = first_rate(prepared)
    rows, rows_of_parts = [], []
    for _, group, frames, bodies, sign in tree_joints(prepared, joint_frames):
        twists = joint_twists_from_rates(group, frames, t, group_rates(group, start[bodies], nu))
        rows.append(motions_about(frames, take(points, bodies), sign, twists[:, None])[:, 0])
        rows_of_parts.append(bodies)
    free = free_bodies(prepared)
    if len(free):
        rates = free_body_rates(prepared, nu)
        arm = take(poses.positions, free) - take(points, free)
        w = jax.vmap(to_space)(take(poses.rotations, free), rates[:, 3:])
        rows.append(jnp.concatenate([rates[:, :3] + jax.vmap(cross)(arm, w), w], axis=1))
        rows_of_parts.append(free)
    return in_order(rows, rows_of_parts, jnp.zeros((0, 6), nu.dtype))


def group_rates(
    group: JointGroup, first: np.ndarray, nu: Float[Array, " f"]
) -> Float[Array, "n f"]:
    """Return the generalised velocities of the joints of a group."""
    count = group.joint.num_rates
    rows = np.add.outer(first, np.arange(count)).ravel()
    return take(nu, rows).reshape(len(first), count)


def joint_twists_from_rates(
    group: JointGroup, frames: GroupFrames, t: Scalar, rates: Float[Array, "n f"]
) -> Float[Array, "n 6"]:
    """Return the relative twists of the joints of a group from their rates."""
    driven = group.joint.is_driven

    def of_joint(joint, r, rates):
        twist = short_sum(joint.null_space(r), rates, axis=1)
        return twist + joint.prescribed_twist(r, t) if driven else twist

    return group.map(of_joint, frames.relative, rates)


def sum_along_paths(prepared: PreparedSystem, values: Float[Array, "L k"]) -> Float[Array, "L k"]:
    """Sum values over each body and its ancestors."""
    topology = prepared.system.topology
    L = topology.num_bodies
    if L <= _MATRIX_LIMIT:
        return jnp.asarray(topology.ancestors, values.dtype) @ values
    # By doubling, in log2(depth) steps.
    parents = np.array([L if p == GROUND else p for p in topology.parents] + [L])
    values = jnp.concatenate([values, jnp.zeros((1, values.shape[1]), values.dtype)])
    while np.any(parents != L):
        values = values + take(values, parents)
        parents = parents[parents]
    return values[:-1]


def sum_over_subtrees(prepared: PreparedSystem, values: Float[Array, "L k"]) -> Float[Array, "L k"]:
    """Sum values over each body and its descendants."""
    ancestors = jnp.asarray(prepared.system.topology.ancestors.T, values.dtype)
    return ancestors @ values


def bodies_of_rates(prepared: PreparedSystem) -> np.ndarray:
    """Return the body of each generalised velocity, (f,)."""
    return np.repeat(np.arange(prepared.num_bodies), prepared.system.rates_of_bodies)


def rate_lengths(prepared: PreparedSystem) -> Float[Array, " f"]:
    """Return the scale of each generalised velocity.

    The size of the mechanism for velocities, 1 for angular velocities.
    """
    joints, counts = prepared.system.joints, prepared.system.rates_of_bodies
    lengths = [
        k < (count - 3 if j is None else joints[j].num_translations)
        for j, count in zip(prepared.system.topology.joints, counts, strict=True)
        for k in range(count)
    ]
    return jnp.where(np.array(lengths, bool), prepared.lengths[bodies_of_rates(prepared)], 1.0)


def twists_of(poses: Poses, points: Float[Array, "L 3"], motions: Float[Array, "L 6"]) -> Twists:
    """Return the twists of bodies from their motions about reference points."""
    x, R = poses.positions[:-1], poses.rotations[:-1]
    linear = motions[:, :3] + jax.vmap(cross)(motions[:, 3:], x - points)
    return Twists(linear, jax.vmap(to_body)(R, motions[:, 3:]))


def body_twists(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    nu: Float[Array, " f"],
) -> Twists:
    """Return the twists of all bodies from the generalised velocities of the trees."""
    if prepared.is_free:
        rows = free_body_rates(prepared, nu)
        return Twists(rows[:, :3], rows[:, 3:])
    points = reference_points(prepared, poses)
    rates = joint_twists_in_space(prepared, t, poses, joint_frames, points, nu)
    return twists_of(poses, points, sum_along_paths(prepared, rates))


def twists_from_velocities(
    prepared: PreparedSystem, poses: Poses, moving: MotionSubspace, nu: Float[Array, " f"]
) -> Float[Array, "L 6"]:
    r"""Return $T\nu$, the part of all twists linear in the generalised velocities."""
    rates = jax.ops.segment_sum(
        moving.columns * nu[:, None], bodies_of_rates(prepared), prepared.num_bodies
    )
    change = twists_of(poses, moving.reference_points, sum_along_paths(prepared, rates))
    return jnp.concatenate([change.linear, change.angular], axis=1)


def null_space(
    prepared: PreparedSystem, poses: Poses, joint_frames: JointFrames
) -> Float[Array, "L 6 f"]:
    r"""Return the external null-space matrix $T$ with $(\dot x, \Omega) = T\,\nu - r$ of each body.

    **Source:** Lang (11), and Example C for the multiplicative form that it generalises.
    """
    points = reference_points(prepared, poses)
    moving = MotionSubspace(motion_subspace(prepared, poses, joint_frames, points), points)
    unit = jnp.eye(prepared.num_rates, dtype=points.dtype)
    return jax.vmap(lambda nu: twists_from_velocities(prepared, poses, moving, nu), out_axes=2)(
        unit
    )


def generalised_velocities(
    prepared: PreparedSystem,
    t: Scalar,
    joint_frames: JointFrames,
    twists: Twists,
    bias: Mapping[int, Float[Array, "n 6"]] | None = None,
) -> Float[Array, " f"]:
    """Return the generalised velocities of the trees nearest to given twists, joint by joint, (f,).

    With `bias` (see `bias_accelerations.joint_bias`): derivatives of generalised velocities, from
    derivatives of twists.
    """
    start = first_rate(prepared)
    relative = joint_twists(prepared, joint_frames, twists)
    rows, rows_of_parts = [], []
    for g, group, frames, bodies, _ in tree_joints(prepared, joint_frames):
        count = group.joint.num_rates
        if not count:
            continue
        twist = relative[g]
        if bias is not None:
            twist = twist + bias[g]
        elif group.joint.is_driven:
            twist = twist - group.map(
                lambda joint, r: joint.prescribed_twist(r, t), frames.relative
            )
        rows.append(group.map(lambda j, r, s: j.rates(r, s), frames.relative, twist).ravel())
        rows_of_parts.append((start[bodies][:, None] + np.arange(count)).ravel())
    free = free_bodies(prepared)
    if len(free):
        rates = jnp.concatenate([take(twists.linear, free), take(twists.angular, free)], axis=1)
        rows.append(rates[:, -prepared.system.rates_of_free :].ravel())
        rows_of_parts.append(free_rate_rows(prepared).ravel())
    return in_order(rows, rows_of_parts, jnp.zeros(0, twists.linear.dtype))


def body_accelerations(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    nu: Float[Array, " f"],
    nu_dot: Float[Array, " f"],
) -> Twists:
    r"""Return the derivatives $\dot w = T\dot\nu + \dot T\nu - \dot r$ of all twists."""

    def twists(t, poses, nu):
        return body_twists(prepared, t, poses, joint_frames_at(prepared, poses), nu)

    start = twists(t, poses, nu)
    rate = pose_rate(poses, start)
    return jax.jvp(twists, (t, poses, nu), (jnp.ones_like(t), rate, nu_dot))[1]


def motions_and_twists(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    points: Float[Array, "L 3"],
    nu: Float[Array, " f"],
) -> tuple[Float[Array, "L 6"], Twists]:
    """Return the motions of all bodies about reference points, and their twists."""
    motions = sum_along_paths(
        prepared, joint_twists_in_space(prepared, t, poses, joint_frames, points, nu)
    )
    return motions, twists_of(poses, points, motions)
