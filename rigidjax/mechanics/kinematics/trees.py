r"""Motions of trees of bodies, in space axes about one point for each tree.

A motion is $(v, \omega)$, $v$ the velocity of what would be at that point. Such motions add up
along the tree without transformations, and so do wrenches and inertias about the point towards its
root: all sums over paths and subtrees are products with one constant matrix.
"""

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...native.ops import cross, short_sum, take
from ...rotations.matrix import to_body, to_space
from ..stacked.joints import GroupFrames, JointGroup, Poses
from ..stacked.system import PreparedSystem
from ..topology import GROUND
from .poses import joint_frames_at, joint_twists, pose_rate
from .twists import Twists

# Bodies up to which sums along paths are products with a matrix; more are added by doubling.
_MATRIX_LIMIT = 16


class MotionSubspace(eqx.Module):
    r"""Motions that the tree joints allow in a pose.

    `columns`, one for each minimal velocity, (f, 6); `centres`, the point of each body's tree that
    they are about, (L, 3), fixed in space.
    """

    columns: Float[Array, "f 6"]
    reference_points: Float[Array, "L 3"]


def reference_points(prepared: PreparedSystem, poses: Poses) -> Float[Array, "L 3"]:
    """The centre of mass of the first body of each tree: distances from it stay small."""
    return jax.lax.stop_gradient(take(poses.positions, prepared.system.topology.roots))


def tree_joints(prepared: PreparedSystem, joint_frames: Iterable[Any]):
    """Groups of tree joints by number, their places, the bodies that hang on them, and signs."""
    topology = prepared.system.topology
    hung = {j: i for i, j in enumerate(topology.joints) if j is not None}
    for g, (group, frames) in enumerate(zip(prepared.groups, joint_frames, strict=True)):
        if not group.closes_loops:
            bodies = np.array([hung[j] for j in group.indices], int)
            sign = np.where(np.array(topology.reversed)[bodies], -1.0, 1.0)
            yield g, group, frames, bodies, sign


def motions_about(frames: GroupFrames, centre, sign, columns: Float[Array, "n k 6"]):
    """Relative twists of joints as motions about the centres, of bodies that hang on them."""

    def one(point, frame, centre, sign, columns):
        def motion(column):
            v, w = to_space(frame, column[:3]), to_space(frame, column[3:])
            return sign * jnp.concatenate([v + cross(point - centre, w), w])

        return jax.vmap(motion)(columns)

    sign = jnp.asarray(sign, columns.dtype)
    return jax.vmap(one)(frames.point, frames.frame, centre, sign, columns)


def free_bodies(prepared: PreparedSystem) -> np.ndarray:
    """Bodies that hang on no joint."""
    joints = prepared.system.topology.joints
    return np.array([i for i, j in enumerate(joints) if j is None], int)


def rows_of_free(prepared: PreparedSystem) -> np.ndarray:
    """Rows of the minimal velocities of the bodies that hang on no joint, (n, 6), or (n, 3) where
    translation is left out."""
    count = prepared.system.rates_of_free
    return np.add.outer(first_rate(prepared)[free_bodies(prepared)], np.arange(count))


def free_rates(prepared: PreparedSystem, nu: Float[Array, " f"]) -> Float[Array, "n 6"]:
    """Velocities, zero where translation is left out, and angular velocities of the bodies that
    hang on no joint."""
    own = take(nu, rows_of_free(prepared).ravel()).reshape(-1, prepared.system.rates_of_free)
    if prepared.system.translates:
        return own
    return jnp.concatenate([jnp.zeros_like(own), own], axis=1)


def first_rate(prepared: PreparedSystem) -> np.ndarray:
    """Where the minimal velocities of each body begin, and where they end, (L + 1,)."""
    return np.concatenate([[0], np.cumsum(prepared.system.rates_of_bodies)]).astype(int)


def in_order(parts: list[Array], where: list[np.ndarray], empty: Array) -> Array:
    """Parts one after another, sorted by the rows that they belong to."""
    if not parts:
        return empty
    rows = jnp.concatenate(parts) if len(parts) > 1 else parts[0]
    return take(rows, np.argsort(np.concatenate(where), kind="stable"))


def _null_spaces(group: JointGroup, frames: GroupFrames) -> Float[Array, "n k 6"]:
    return group.over(lambda joint, r: joint.null_space(r).T, frames.relative)


def motion_subspace(
    prepared: PreparedSystem, poses: Poses, joint_frames, at, allowed=_null_spaces
) -> Float[Array, "f 6"]:
    """Motion about the points `at` for each minimal velocity.

    `allowed`, a function of a group and its place: relative twists that its joints allow.
    """
    start = first_rate(prepared)
    rows, where = [], []
    for _, group, frames, bodies, sign in tree_joints(prepared, joint_frames):
        count = group.joint.num_rates
        if count:
            S = allowed(group, frames)
            rows.append(motions_about(frames, take(at, bodies), sign, S).reshape(-1, 6))
            where.append((start[bodies][:, None] + np.arange(count)).ravel())
    free = free_bodies(prepared)
    if len(free):
        R, arm = take(poses.rotations, free), take(poses.positions, free) - take(at, free)
        shift = jnp.broadcast_to(jnp.eye(3, 6, dtype=R.dtype), (len(free), 3, 6))
        axes = jnp.swapaxes(R, 1, 2)
        moved = jax.vmap(lambda arm, axes: jax.vmap(lambda w: cross(arm, w))(axes))(arm, axes)
        turn = jnp.concatenate([moved, axes], axis=2)
        both = jnp.concatenate([shift, turn], axis=1)
        rows.append(both[:, -prepared.system.rates_of_free :].reshape(-1, 6))
        where.append(rows_of_free(prepared).ravel())
    return in_order(rows, where, jnp.zeros((0, 6), poses.positions.dtype))


def joint_twists_in_space(prepared: PreparedSystem, t, poses: Poses, joint_frames, at, nu):
    """What each body's own minimal velocities and prescribed motions add, (L, 6)."""
    start = first_rate(prepared)
    rows, where = [], []
    for _, group, frames, bodies, sign in tree_joints(prepared, joint_frames):
        twists = joint_twists_from_rates(group, frames, t, rates_of(group, start[bodies], nu))
        rows.append(motions_about(frames, take(at, bodies), sign, twists[:, None])[:, 0])
        where.append(bodies)
    free = free_bodies(prepared)
    if len(free):
        own = free_rates(prepared, nu)
        arm = take(poses.positions, free) - take(at, free)
        w = jax.vmap(to_space)(take(poses.rotations, free), own[:, 3:])
        rows.append(jnp.concatenate([own[:, :3] + jax.vmap(cross)(arm, w), w], axis=1))
        where.append(free)
    return in_order(rows, where, jnp.zeros((0, 6), nu.dtype))


def rates_of(group: JointGroup, first: np.ndarray, nu) -> Float[Array, "n f"]:
    """Minimal velocities of the joints of a group."""
    count = group.joint.num_rates
    rows = np.add.outer(first, np.arange(count)).ravel()
    return take(nu, rows).reshape(len(first), count)


def joint_twists_from_rates(
    group: JointGroup, frames: GroupFrames, t, rates
) -> Float[Array, "n 6"]:
    """Relative twists of the joints of a group from their rates."""
    driven = group.joint.is_driven

    def one(joint, r, rates):
        twist = short_sum(joint.null_space(r), rates, axis=1)
        return twist + joint.prescribed_twist(r, t) if driven else twist

    return group.over(one, frames.relative, rates)


# Sums along paths and over subtrees.


def sum_along_paths(prepared: PreparedSystem, values: Float[Array, "L k"]) -> Float[Array, "L k"]:
    """Sum over each body and those that it hangs on."""
    topology = prepared.system.topology
    L = topology.num_bodies
    if L <= _MATRIX_LIMIT:
        return jnp.asarray(topology.ancestors, values.dtype) @ values
    # By doubling: log2 of the depth steps.
    parents = np.array([L if p == GROUND else p for p in topology.parents] + [L])
    values = jnp.concatenate([values, jnp.zeros((1, values.shape[1]), values.dtype)])
    while np.any(parents != L):
        values = values + take(values, parents)
        parents = parents[parents]
    return values[:-1]


def sum_over_subtrees(prepared: PreparedSystem, values: Float[Array, "L k"]):
    """Sum over each body and those that hang on it, (L, k)."""
    ancestors = jnp.asarray(prepared.system.topology.ancestors.T, values.dtype)
    return ancestors @ values


def bodies_of_rates(prepared: PreparedSystem) -> np.ndarray:
    """Body of each minimal velocity, shape (f,)."""
    return np.repeat(np.arange(prepared.num_bodies), prepared.system.rates_of_bodies)


def rate_lengths(prepared: PreparedSystem) -> Float[Array, " f"]:
    """What minimal velocities are measured by: the size of the mechanism where they are velocities,
    1 where they are angular velocities."""
    joints, counts = prepared.system.joints, prepared.system.rates_of_bodies
    lengths = [
        k < (count - 3 if j is None else joints[j].num_translations)
        for j, count in zip(prepared.system.topology.joints, counts, strict=True)
        for k in range(count)
    ]
    return jnp.where(np.array(lengths, bool), prepared.lengths[bodies_of_rates(prepared)], 1.0)


# From minimal velocities to twists and back.


def twists_of(poses: Poses, at, motions: Float[Array, "L 6"]) -> Twists:
    """Twists of the bodies from their motions about the points `at`."""
    x, R = poses.positions[:-1], poses.rotations[:-1]
    linear = motions[:, :3] + jax.vmap(cross)(motions[:, 3:], x - at)
    return Twists(linear, jax.vmap(to_body)(R, motions[:, 3:]))


def body_twists(prepared: PreparedSystem, t, poses: Poses, joint_frames, nu) -> Twists:
    """Twists of all bodies from the minimal velocities of the trees."""
    if prepared.is_free:
        rows = free_rates(prepared, nu)
        return Twists(rows[:, :3], rows[:, 3:])
    at = reference_points(prepared, poses)
    own = joint_twists_in_space(prepared, t, poses, joint_frames, at, nu)
    return twists_of(poses, at, sum_along_paths(prepared, own))


def twists_from_velocities(
    prepared: PreparedSystem, poses: Poses, moving: MotionSubspace, nu
) -> Float[Array, "L 6"]:
    r"""$T\nu$: change of all twists with the minimal velocities."""
    own = jax.ops.segment_sum(
        moving.columns * nu[:, None], bodies_of_rates(prepared), prepared.num_bodies
    )
    change = twists_of(poses, moving.reference_points, sum_along_paths(prepared, own))
    return jnp.concatenate([change.linear, change.angular], axis=1)


def null_space(prepared: PreparedSystem, poses: Poses, joint_frames) -> Float[Array, "L 6 f"]:
    r"""The external null-space matrix $T$ with $(\dot x, \Omega) = T\,\nu - r$ of each body.

    **Source:** Lang (11), and Example C for the multiplicative form that it generalises.
    """
    at = reference_points(prepared, poses)
    moving = MotionSubspace(motion_subspace(prepared, poses, joint_frames, at), at)
    unit = jnp.eye(prepared.num_rates, dtype=at.dtype)
    return jax.vmap(lambda nu: twists_from_velocities(prepared, poses, moving, nu), out_axes=2)(
        unit
    )


def generalised_velocities(prepared: PreparedSystem, t, joint_frames, twists: Twists, bias=None):
    r"""Minimal velocities of the trees nearest to the twists, joint by joint, (f,).

    With `bias` (see `bias.joint_bias`): derivatives of minimal velocities, from those of twists.
    """
    start = first_rate(prepared)
    relative = joint_twists(prepared, joint_frames, twists)
    rows, where = [], []
    for g, group, frames, bodies, _ in tree_joints(prepared, joint_frames):
        count = group.joint.num_rates
        if not count:
            continue
        twist = relative[g]
        if bias is not None:
            twist = twist + bias[g]
        elif group.joint.is_driven:
            twist = twist - group.over(
                lambda joint, r: joint.prescribed_twist(r, t), frames.relative
            )
        rows.append(group.over(lambda j, r, s: j.rates(r, s), frames.relative, twist).ravel())
        where.append((start[bodies][:, None] + np.arange(count)).ravel())
    free = free_bodies(prepared)
    if len(free):
        own = jnp.concatenate([take(twists.linear, free), take(twists.angular, free)], axis=1)
        rows.append(own[:, -prepared.system.rates_of_free :].ravel())
        where.append(rows_of_free(prepared).ravel())
    return in_order(rows, where, jnp.zeros(0, twists.linear.dtype))


def body_accelerations(prepared, t, poses, nu, nu_dot) -> Twists:
    r"""Derivatives $\dot w = T\dot\nu + \dot T\nu - \dot r$ of the twists of all bodies."""

    def twists(t, poses, nu):
        return body_twists(prepared, t, poses, joint_frames_at(prepared, poses), nu)

    start = twists(t, poses, nu)
    rate = pose_rate(poses, start)
    return jax.jvp(twists, (t, poses, nu), (jnp.ones_like(t), rate, nu_dot))[1]


def motions_and_twists(prepared: PreparedSystem, t, poses, joint_frames, at, nu):
    """Motions of all bodies about the points `at`, (L, 6), and their twists."""
    motions = sum_along_paths(
        prepared, joint_twists_in_space(prepared, t, poses, joint_frames, at, nu)
    )
    return motions, twists_of(poses, at, motions)
