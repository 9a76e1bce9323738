"""What increments of poses are measured by, so that no decision depends on units.

An increment of this size moves a body through a radian, or through its distance from the origin and
the size of what it belongs to. The round-off of a pose is about `eps` of it.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...rotations.guarded import safe_divide, safe_sqrt
from ...system.jointed import JointedMechanics


def extents(mechanics: JointedMechanics, positions: Float[Array, "L 3"]) -> Float[Array, "L 6"]:
    """Sizes of displacements, m, and rotations, rad, of the bodies of a system, joints or not."""
    distances = safe_sqrt(jnp.sum(positions * positions, axis=1))
    lengths = (distances + mechanics.lengths)[:, None]
    return jnp.concatenate([jnp.repeat(lengths, 3, axis=1), jnp.ones_like(positions)], axis=1)


def extent(position: Float[Array, "3"], mass: Any, inertia: Any) -> Float[Array, ""]:
    """Size of displacements of one free body, m; 1 for a point mass at the origin.

    Its own size is the radius within which it has its mass.
    """
    trace = jnp.sum(inertia) if inertia.ndim == 1 else jnp.trace(inertia)
    radius = safe_sqrt(safe_divide(0.5 * trace, mass))
    length = safe_sqrt(jnp.sum(position * position)) + radius
    return jnp.where(length > 0, length, 1.0)
