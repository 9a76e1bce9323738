"""Violations of joints and constraints, in units of the mechanism."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar
from .constraints import constraint_owners, constraint_units, constraint_values, joint_lengths
from .stacked.joints import JointFrames
from .stacked.system import PreparedSystem

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
