"""Values, rates and Jacobian of all constraints, group of joints by group, then the others."""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar, Vector
from ...small_arrays import take
from ..stacked.joints import GroupFrames, JointFrames, JointGroup
from ..stacked.system import PreparedSystem
from .extra_constraints import ExtraConstraints
from .poses import Twists, joint_twists


def constraint_values(
    prepared: PreparedSystem, t: Scalar, joint_frames: JointFrames, loops_only: bool = False
) -> Float[Array, " m"]:
    """Return the constraints of all joints, or of joints that close loops, group by group.

    Constraints on velocities alone, which are the last, have the value zero.
    """
    parts = [
        group.map(lambda joint, r: joint.constraint(r, t), frames.relative).ravel()
        for group, frames in _select_groups(prepared, joint_frames, loops_only)
    ]
    free = jnp.zeros(prepared.num_velocity_constraints, prepared.masses.dtype)
    return jnp.concatenate([*parts, *ExtraConstraints(prepared).values(t, joint_frames), free])


def constraint_rates(
    prepared: PreparedSystem,
    t: Scalar,
    joint_frames: JointFrames,
    twists: Twists,
    loops_only: bool = False,
) -> Float[Array, " m"]:
    """Return the rates of the constraints in the order of `constraint_values`."""
    relative = joint_twists(prepared, joint_frames, twists)
    twists_of = {id(group): twist for group, twist in zip(prepared.groups, relative, strict=True)}
    parts = [
        group.map(
            lambda joint, r, s: joint.constraint_rate(r, s, t),
            frames.relative,
            twists_of[id(group)],
        ).ravel()
        for group, frames in _select_groups(prepared, joint_frames, loops_only)
    ]
    if prepared.system.constraints:
        parts.append(ExtraConstraints(prepared).rates(t, joint_frames, twists))
    return jnp.concatenate([jnp.zeros(0, prepared.masses.dtype), *parts])


def constraint_jacobian(
    prepared: PreparedSystem, t: Scalar, joint_frames: JointFrames, trees_only: bool = False
) -> Float[Array, "m L 6"]:
    r"""Return the Jacobian $G$ of the constraints on the twists of all bodies."""
    blocks = []
    for group, frames in zip(prepared.groups, joint_frames, strict=True):
        if trees_only and group.closes_loops:
            continue
        on_parent, on_child = group.jacobians(frames, t)
        n, m, _ = on_child.shape
        block = jnp.zeros((n, m, prepared.num_bodies + 1, 6), on_child.dtype)
        k = np.arange(n)
        block = block.at[k, :, np.array(group.parents)].set(on_parent, unique_indices=True)
        block = block.at[k, :, np.array(group.children)].set(on_child, unique_indices=True)
        blocks.append(block[:, :, :-1].reshape(n * m, prepared.num_bodies, 6))
    if prepared.system.constraints and not trees_only:
        blocks.append(ExtraConstraints(prepared).jacobian(t, joint_frames))
    empty = jnp.zeros((0, prepared.num_bodies, 6), prepared.masses.dtype)
    return jnp.concatenate([empty, *blocks])


def split_by_group(
    prepared: PreparedSystem, values: Float[Array, " m"]
) -> list[Float[Array, "n m"]]:
    """Split values in the order of `constraint_values`: a row for each joint of every group."""
    counts = [(len(g.indices), g.joint.num_constraints) for g in prepared.groups]
    ends = np.cumsum([n * m for n, m in counts])[:-1]
    parts = jnp.split(values, ends)
    return [part.reshape(shape) for part, shape in zip(parts, counts, strict=True)]


def split_trees_and_loops(
    prepared: PreparedSystem, values: Float[Array, " m"]
) -> tuple[Float[Array, " k"], Float[Array, " l"]]:
    """Split values into those of the tree joints and those of the loops."""
    count = prepared.num_tree_constraints
    return values[:count], values[count:]


def _select_groups(
    prepared: PreparedSystem, joint_frames: JointFrames, loops_only: bool
) -> Iterator[tuple[JointGroup, GroupFrames]]:
    for group, frames in zip(prepared.groups, joint_frames, strict=True):
        if group.closes_loops or not loops_only:
            yield group, frames


def joint_lengths(prepared: PreparedSystem) -> list[Vector]:
    """Return characteristic lengths at the joints of every group, m."""
    count = prepared.num_bodies
    rows = [
        [c if c < count else p for p, c in zip(g.parents, g.children, strict=True)]
        for g in prepared.groups
    ]
    return [take(prepared.lengths, row) for row in rows]


def constraint_units(prepared: PreparedSystem) -> Float[Array, " m"]:
    """Return the unit of each constraint: the size of the mechanism for lengths, 1 for angles."""
    counts = [group.joint.num_constraints for group in prepared.groups]
    parts = [
        jnp.repeat(length, m) for length, m in zip(joint_lengths(prepared), counts, strict=True)
    ]
    largest = jnp.max(prepared.lengths)
    others = [jnp.full(c.num_constraints, largest) for c in prepared.system.constraints]
    lengths = jnp.concatenate([jnp.zeros(0, prepared.masses.dtype), *parts, *others])
    return jnp.where(constraints_are_lengths(prepared), lengths, 1.0)


def constraints_are_lengths(prepared: PreparedSystem) -> np.ndarray:
    """Return which constraints are lengths, m, (m,); the others are angles."""
    joints = [joint for g in prepared.groups for joint in [g.joint] * len(g.indices)]
    items = [*joints, *prepared.system.constraints]
    return np.array([x for item in items for x in item.constraint_is_length], bool)


def constraint_owners(prepared: PreparedSystem) -> list[int]:
    """Return the index of the joint of each constraint; constraints that are no joint follow."""
    bodies_of_rates = [
        j
        for group in prepared.groups
        for j in group.indices
        for _ in range(group.joint.num_constraints)
    ]
    others = enumerate(prepared.system.constraints, len(prepared.system.joints))
    return bodies_of_rates + [
        j for j, constraint in others for _ in range(constraint.num_constraints)
    ]


# Cosine below which a child is rotated by nearly half a revolution: no way back is the shortest,
# and a derivative could not point to one.
_OPPOSITE = -1.0 + 1e-9
# Violation up to which a joint counts as closed, of given states and after a projection.
_TOLERANCE = 1e-6


def violation_tolerance(dtype: Any) -> float:
    """Return the violation up to which a joint counts as closed, in mechanism units or rad."""
    return max(_TOLERANCE, 1000 * float(jnp.finfo(dtype).eps))


def constraint_violations(
    prepared: PreparedSystem, t: Scalar, joint_frames: JointFrames
) -> Float[Array, " J"]:
    r"""Return the violation of each joint: its largest constraint, without units.

    A child that is rotated by more than a quarter of a revolution against directions that its joint
    keeps parallel (see `AbstractJoint.alignment`) violates it by the chord $2 \sin(\varphi/2)$.
    """
    largest = largest_by_joint(
        prepared, constraint_values(prepared, t, joint_frames) / constraint_units(prepared)
    )
    cosines = alignments(prepared, joint_frames)
    chords = jnp.sqrt(2.0 * jnp.maximum(1.0 - cosines, 1.0))
    return jnp.where(cosines < 0, jnp.maximum(chords, largest), largest)


def alignments(prepared: PreparedSystem, joint_frames: JointFrames) -> Float[Array, " J"]:
    """Return the alignment of every joint; 1 for constraints that are no joint."""
    values = [
        group.map(lambda joint, r: joint.alignment(r), frames.relative)
        for group, frames in zip(prepared.groups, joint_frames, strict=True)
    ]
    order = np.array([j for group in prepared.groups for j in group.indices], int)
    alignment = jnp.ones(len(prepared.system.closing_names), prepared.masses.dtype)
    return (
        alignment.at[order].set(jnp.concatenate(values), unique_indices=True)
        if values
        else alignment
    )


def largest_by_joint(prepared: PreparedSystem, g: Float[Array, " m"]) -> Float[Array, " J"]:
    """Return the largest absolute value of the constraints of each joint."""
    bodies_of_rates = np.array(constraint_owners(prepared), int)
    count = len(prepared.system.closing_names)
    return jnp.zeros(count, g.dtype).at[bodies_of_rates].max(jnp.abs(g))


def closing_residual(
    prepared: PreparedSystem, t: Scalar, joint_frames: JointFrames
) -> Float[Array, " m"]:
    r"""Return constraints that vanish where all joints are closed and no child is reversed.

    Lengths are divided by the length of the mechanism, sines by the cosine of half the angle
    between the directions that a joint keeps parallel: $\sin\varphi$ becomes $2 \sin(\varphi/2)$,
    which grows up to half a revolution. At half a revolution they are 1, without derivatives.
    """
    parts = []
    for group, frames, lengths in zip(
        prepared.groups, joint_frames, joint_lengths(prepared), strict=True
    ):
        cosines = group.map(lambda joint, r: joint.alignment(r), frames.relative)[:, None]
        opposite = cosines < _OPPOSITE
        half = jnp.sqrt(0.5 * (1.0 + jnp.where(opposite, 1.0, cosines)))
        is_length = np.array(group.joint.constraint_is_length)
        g = group.map(lambda joint, r: joint.constraint(r, t), frames.relative)
        sines = jnp.where(opposite, 1.0, g / half)
        parts.append(jnp.where(is_length, g / lengths[:, None], sines).ravel())
    if prepared.system.constraints:
        count = sum(part.size for part in parts)
        parts.append(
            (constraint_values(prepared, t, joint_frames) / constraint_units(prepared))[count:]
        )
    return jnp.concatenate([jnp.zeros(0, prepared.masses.dtype), *parts])
