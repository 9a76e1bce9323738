"""How far joints are open, in units of the mechanism."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .constraints import constraint_owners, constraint_units, constraint_values, joint_lengths
from .stacked.system import PreparedSystem

# Cosine below which a child is turned by all but half a turn: there is no way back that is shorter
# than others, and a derivative could not show one.
_OPPOSITE = -1.0 + 1e-9
# Gap up to which a joint is closed: of states that are given, and of what a projection leaves.
_CLOSED = 1e-6


def closed_gap(dtype) -> float:
    """Gap up to which a joint is closed, in units of the mechanism or rad."""
    return max(_CLOSED, 1000 * float(jnp.finfo(dtype).eps))


def gaps(prepared: PreparedSystem, t, joint_frames) -> Float[Array, " J"]:
    r"""How far each joint is open: its largest constraint, lengths over that of the mechanism.

    A child that is turned by more than a quarter of a turn against directions that its joint keeps
    alike (see `AbstractJoint.alignment`) leaves it open by the chord $2 \sin(\varphi/2)$.
    """
    largest = by_joint(
        prepared, constraint_values(prepared, t, joint_frames) / constraint_units(prepared)
    )
    cosines = alignments(prepared, joint_frames)
    chords = jnp.sqrt(2.0 * jnp.maximum(1.0 - cosines, 1.0))
    return jnp.where(cosines < 0, jnp.maximum(chords, largest), largest)


def alignments(prepared: PreparedSystem, joint_frames) -> Float[Array, " J"]:
    """Alignment of every joint; 1 for constraints that are no joint."""
    values = [
        group.over(lambda joint, r: joint.alignment(r), frames.relative)
        for group, frames in zip(prepared.groups, joint_frames, strict=True)
    ]
    order = np.array([j for group in prepared.groups for j in group.indices], int)
    found = jnp.ones(len(prepared.system.closing_names), prepared.masses.dtype)
    return found.at[order].set(jnp.concatenate(values), unique_indices=True) if values else found


def by_joint(prepared: PreparedSystem, g: Float[Array, " m"]) -> Float[Array, " J"]:
    """Largest absolute value of the constraints of each joint."""
    bodies_of_rates = np.array(constraint_owners(prepared), int)
    count = len(prepared.system.closing_names)
    return jnp.zeros(count, g.dtype).at[bodies_of_rates].max(jnp.abs(g))


def closing(prepared: PreparedSystem, t, joint_frames) -> Float[Array, " m"]:
    r"""Constraints that vanish where all joints are closed and no child is the wrong way round.

    Lengths over that of the mechanism; sines over the cosine of half the angle between the
    directions that a joint keeps alike, so that $\sin\varphi$ becomes $2 \sin(\varphi/2)$, which
    grows up to half a turn. Where it is half a turn they are 1, without derivatives.
    """
    parts = []
    for group, frames, lengths in zip(
        prepared.groups, joint_frames, joint_lengths(prepared), strict=True
    ):
        cosines = group.over(lambda joint, r: joint.alignment(r), frames.relative)[:, None]
        opposite = cosines < _OPPOSITE
        half = jnp.sqrt(0.5 * (1.0 + jnp.where(opposite, 1.0, cosines)))
        is_length = np.array(group.joint.constraint_is_length)
        g = group.over(lambda joint, r: joint.constraint(r, t), frames.relative)
        sines = jnp.where(opposite, 1.0, g / half)
        parts.append(jnp.where(is_length, g / lengths[:, None], sines).ravel())
    if prepared.system.constraints:
        count = sum(part.size for part in parts)
        parts.append(
            (constraint_values(prepared, t, joint_frames) / constraint_units(prepared))[count:]
        )
    return jnp.concatenate([jnp.zeros(0, prepared.masses.dtype), *parts])
