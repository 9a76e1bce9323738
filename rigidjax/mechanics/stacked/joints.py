"""Joints of one kind, stacked, and their attachments to bodies."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Matrix3, Scalar, Vector3
from ...bodies.frame import Frame
from ...checks import is_traced, vector_leaf
from ...joints.base import AbstractJoint
from ...joints.relative_pose import RelativePose
from ...joints.replacing import rename_joint, replace_fields
from ...rotations.matrix import product, relative, to_body, to_space
from ...small_arrays import cross, stack_rows, take
from ..declared.system import AbstractSystem

# Distance of two origins that count as one point, relative to their largest coordinate.
_TOGETHER = 1e-6


def missing_points(joint: AbstractJoint) -> list[str]:
    """Return the names of the fields of points that are `None`."""
    fields = ("point", "parent_point", "child_point")
    return [name for name in fields if getattr(joint, name, ()) is None]


def mounts(joint: AbstractJoint, frames: Collection[str]) -> tuple[str | None, str | None]:
    """Return the frames, at parent and child, whose origins stand for missing points."""
    fields = {*missing_points(joint)}
    ends = (joint.parent, "parent_point"), (joint.child, "child_point")
    parent, child = (
        name if name in frames and fields & {"point", own_point} else None
        for name, own_point in ends
    )
    return parent, child


def with_origins(joint: AbstractJoint, parent: Any, child: Any) -> AbstractJoint:
    """Return the joint with the origins of its `mounts` as its missing points."""
    either = parent if child is None else child
    origins = {"point": either, "parent_point": parent, "child_point": child}
    return replace_fields(joint, **{name: origins[name] for name in missing_points(joint)})


def find_origins(joint: AbstractJoint, system: AbstractSystem) -> list[np.ndarray | None]:
    """Return the origins of the `mounts` of a joint, space components, for concrete values."""
    frames = {frame.name: frame for frame in system.frames}
    found = [None if name is None else frames[name] for name in mounts(joint, frames)]
    bodies = {body.name: body for body in system.bodies} if any(found) else {}
    return [None if frame is None else frame.origin(bodies[frame.body]) for frame in found]


def check_points(joint: AbstractJoint, system: AbstractSystem) -> AbstractJoint:
    """Return the joint; raise `ValueError` for missing points that frames do not determine.

    The frames at both ends must not have different origins.

    **Arguments:** `system`, which has its bodies and frames.
    """
    if not (fields := missing_points(joint)):
        return joint
    mounted = mounts(joint, {frame.name for frame in system.frames})
    if mounted == (None, None) and not joint.needs_point:
        return replace_fields(joint, point=vector_leaf(np.zeros(3), "point"))
    names = [joint.parent, joint.child]
    if still_missing := missing_points(with_origins(joint, *mounted)):
        raise ValueError(
            f"The joint {joint.name!r} needs `{still_missing[0]}`, space components in the "
            f"reference configuration: a frame supplies it only where one is named; got {names}."
        )
    frames = [frame for frame in system.frames if frame.name in mounted]
    carriers = {frame.body for frame in frames}
    if is_traced((joint, frames, [body for body in system.bodies if body.name in carriers])):
        return joint
    first, second = find_origins(joint, system)
    with_origins(joint, first, second).check_points()
    if "point" in fields and first is not None and second is not None:
        size = np.abs([first, second, *(np.asarray(frame.point) for frame in frames)]).max()
        if (gap := np.linalg.norm(second - first)) > _TOGETHER * size:
            raise ValueError(
                f"The joint {joint.name!r} is in the origins of {names}, which are {gap:.3g} m "
                "apart in the reference configuration. Move a body or a frame, or give `point`."
            )
    return joint


class Poses(eqx.Module):
    r"""Poses of all bodies, with the ground as the last row.

    `positions`, (L + 1, 3) m; `rotations`, (L + 1, 3, 3); `turns`, revolutions of the angle of each
    joint beyond $(-\pi, \pi]$, (J,), rad.
    """

    positions: Float[Array, "L+1 3"]
    rotations: Float[Array, "L+1 3 3"]
    turns: Float[Array, " J"]


def poses_with_ground(
    positions: Float[Array, "L 3"], rotations: Float[Array, "L 3 3"], num_joints: int
) -> Poses:
    """Return poses with the ground as the last row; no joint has made a revolution."""
    x = jnp.concatenate([positions, jnp.zeros((1, 3), positions.dtype)])
    R = jnp.concatenate([rotations, np.eye(3, dtype=rotations.dtype)[None]])
    return Poses(x, R, jnp.zeros(num_joints, positions.dtype))


class GroupFrames(eqx.Module):
    """Joint points and frames in space and relative poses of the joints of a group."""

    point: Float[Array, "n 3"]  # of the child
    frame: Float[Array, "n 3 3"]  # of the parent
    relative: RelativePose
    parent_arm: Float[Array, "n 3"]  # from the parent's centre of mass to the child's point
    child_arm: Float[Array, "n 3"]
    parent_rotation: Float[Array, "n 3 3"]
    child_rotation: Float[Array, "n 3 3"]


class JointFrames(eqx.Module):
    """Frames of every group of joints, and the poses of the bodies that they belong to."""

    groups: list[GroupFrames]
    poses: Poses

    def __iter__(self) -> Iterator[GroupFrames]:
        return iter(self.groups)

    def __getitem__(self, group: int) -> GroupFrames:
        return self.groups[group]


class JointGroup(eqx.Module):
    """Joints of one kind and their attachments, stacked, with a leading axis of n.

    `joint`, a joint whose leaves are stacked; `attachments`, joint points and frames in parents and
    children, empty until the group is attached. Static: `indices` in the system, `parents` and
    `children`, rows of the bodies, `closes_loops`, whether all of them close loops or none, and
    `mounts`, names of the frames at parents and at children whose origins stand for missing points,
    `None` without.
    """

    joint: AbstractJoint
    attachments: tuple[Float[Array, "n *s"], ...]
    indices: tuple[int, ...] = eqx.field(static=True)
    parents: tuple[int, ...] = eqx.field(static=True)
    children: tuple[int, ...] = eqx.field(static=True)
    closes_loops: bool = eqx.field(static=True)
    mounts: tuple[tuple[str, ...] | None, ...] = eqx.field(static=True)

    def map(self, function: Callable[..., Any], *stacked: Any) -> Any:
        """Return `function(joint, *values)` for every joint of the group."""
        return eqx.filter_vmap(function)(self.joint, *stacked)

    def frames_at(self, poses: Poses) -> GroupFrames:
        """Return points, frames and relative poses of the joints in given poses."""
        parents, children = self.parents, self.children
        x, R = poses.positions, poses.rotations
        return jax.vmap(frames_between)(
            take(x, parents), take(R, parents), take(x, children), take(R, children),
            self.attachments, take(poses.turns, self.indices),
        )  # fmt: skip

    @property
    def parent_point(self) -> Float[Array, "n 3"]:
        """Joint points in the parents, from their centres of mass, body components, m."""
        return self.attachments[0]

    @property
    def child_point(self) -> Float[Array, "n 3"]:
        """Joint points in the children, from their centres of mass, body components, m."""
        return self.attachments[2]

    def attach(
        self,
        positions: Float[Array, "L+1 3"],
        rotations: Float[Array, "L+1 3 3"],
        frames: Sequence[Frame],
    ) -> "JointGroup":
        """Return the joints attached to bodies and frames in this reference configuration."""
        points = {frame.name: frame.point for frame in frames} if any(self.mounts) else {}

        def origins(bodies, names):
            if names is None:
                return None
            x, R = positions[np.array(bodies)], rotations[np.array(bodies)]
            arms = jnp.stack([points[name] for name in names]).astype(x.dtype)
            return x + jax.vmap(to_space)(R, arms)

        def attach_to(bodies, points, frames):
            x, R = positions[np.array(bodies)], rotations[np.array(bodies)]
            arms = jax.vmap(lambda R, x, point: to_body(R, point - x))(R, x, points)
            return arms, jax.vmap(relative)(R, frames)

        if self.joint.at_centre:
            n, group = len(self.indices), self
            axes = jnp.broadcast_to(jnp.eye(3, dtype=positions.dtype), (n, 3, 3))
            attachments = 2 * (jnp.zeros(axes.shape[:2], axes.dtype), axes)
        else:
            mounted = [
                origins(*end)
                for end in zip((self.parents, self.children), self.mounts, strict=True)
            ]
            group = replace_fields(self, joint=with_origins(self.joint, *mounted))
            first, second, frame = group.map(lambda joint: (*joint.points(), joint.frame()))
            # Two frames need not coincide any more where one has been moved.
            first = first if mounted[0] is None else mounted[0]
            attachments = (
                *attach_to(self.parents, first, frame),
                *attach_to(self.children, second, frame),
            )
        return replace_fields(group, attachments=attachments)

    def member(self, rows: Sequence[int]) -> AbstractJoint:
        """Return some of the joints, stacked."""
        arrays, rest = eqx.partition(self.joint, eqx.is_array)
        return eqx.combine(take(arrays, rows), rest)

    def twists(
        self, place: GroupFrames, v: Float[Array, "L+1 3"], omega: Float[Array, "L+1 3"]
    ) -> Float[Array, "n 6"]:
        """Return relative twists of the children in the joint frames."""
        parents, children = self.parents, self.children

        def of_joint(place, v_p, w_p, v_c, w_c):
            w_p, w_c = to_space(place.parent_rotation, w_p), to_space(place.child_rotation, w_c)
            slip = v_c + cross(w_c, place.child_arm) - v_p - cross(w_p, place.parent_arm)
            return jnp.concatenate([to_body(place.frame, slip), to_body(place.frame, w_c - w_p)])

        return jax.vmap(of_joint)(
            place, take(v, parents), take(omega, parents), take(v, children), take(omega, children)
        )

    def jacobians(
        self, place: GroupFrames, t: Scalar
    ) -> tuple[Float[Array, "n m 6"], Float[Array, "n m 6"]]:
        r"""Return the constraint gradients on the twists $(\dot x, \Omega)$ of parent and child."""
        G = self.map(lambda joint, r: joint.constraint_jacobian(r, t), place.relative)

        def of_joint(place, G):
            # Rows of the gradient as forces and moments of unit size, in space components.
            force = jax.vmap(lambda row: to_space(place.frame, row))(G[:, :3])
            moment = jax.vmap(lambda row: to_space(place.frame, row))(G[:, 3:])

            def attach_to(arm, R):
                turned = moment + jax.vmap(lambda f: cross(arm, f))(force)
                return jnp.concatenate([force, jax.vmap(lambda m: to_body(R, m))(turned)], axis=1)

            return (
                -attach_to(place.parent_arm, place.parent_rotation),
                attach_to(place.child_arm, place.child_rotation),
            )

        return jax.vmap(of_joint)(place, G)


def frames_between(
    x_p: Vector3,
    R_p: Matrix3,
    x_c: Vector3,
    R_c: Matrix3,
    attachments: tuple[Array, ...],
    turns: Scalar,
) -> GroupFrames:
    """Return the frames of a joint between two bodies.

    **Arguments:** poses of parent and child; `attachments`, joint points and frames in them;
    `turns`, revolutions of the angle.
    """
    r_p, B_p, r_c, B_c = attachments
    arm_p, arm_c = to_space(R_p, r_p), to_space(R_c, r_c)
    frame, point = product(R_p, B_p), x_c + arm_c
    d = to_body(frame, point - (x_p + arm_p))
    Q = relative(frame, product(R_c, B_c))
    return GroupFrames(point, frame, RelativePose(d, Q, turns), point - x_p, arm_c, R_p, R_c)


def group_joints(
    joints: Sequence[AbstractJoint],
    loops: Sequence[int],
    rows: dict[str, int],
    frames: Collection[str],
) -> list[JointGroup]:
    """Stack joints of the same kind and structure; loops are last, and no group is attached yet.

    **Arguments:** `joints`; `loops`, the indices of those that close loops; `rows`, of the bodies
    by name, including those of frames and `"ground"`; `frames`, names.
    """
    kinds: dict[object, list[int]] = {}
    unnamed = [rename_joint(joint, "", "-", "-") for joint in joints]
    mounted = [mounts(joint, frames) for joint in joints]
    for j, joint in enumerate(unnamed):
        arrays, rest = eqx.partition(joint, eqx.is_array)
        shapes = tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(arrays))
        other_leaves = tuple(id(leaf) for leaf in jax.tree.leaves(rest))
        at_frames = tuple(name is not None for name in mounted[j])
        kind = (jax.tree.structure(joint), shapes, other_leaves, j in loops, at_frames)
        kinds.setdefault(kind, []).append(j)
    groups = []
    for indices in sorted(kinds.values(), key=lambda indices: indices[0] in loops):
        parts = [eqx.partition(unnamed[j], eqx.is_array) for j in indices]
        arrays = jax.tree.map(lambda *leaves: stack_rows(leaves), *(part[0] for part in parts))
        joint = eqx.combine(arrays, parts[0][1])
        parents = tuple(rows[joints[j].parent] for j in indices)
        children = tuple(rows[joints[j].child] for j in indices)
        closes = indices[0] in loops
        names = zip(*(mounted[j] for j in indices), strict=True)
        of_frames = tuple(
            None if None in names_of_group else names_of_group for names_of_group in names
        )
        groups.append(JointGroup(joint, (), tuple(indices), parents, children, closes, of_frames))
    return groups
