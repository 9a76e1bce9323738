"""What increments of poses are measured by, so that no decision depends on units.

An increment of this size moves a body through a radian, or through its distance from the origin and
the size of what it belongs to. The round-off of a pose is about `eps` of it.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...mechanics.mechanics import SystemMechanics
from ...rotations.guarded import safe_sqrt


def extents(mechanics: SystemMechanics, positions: Float[Array, "L 3"]) -> Float[Array, "L 6"]:
    """Sizes of displacements, m, and rotations, rad, of the bodies of a system, joints or not."""
    distances = safe_sqrt(jnp.sum(positions * positions, axis=1))
    lengths = (distances + mechanics.lengths)[:, None]
    return jnp.concatenate([jnp.repeat(lengths, 3, axis=1), jnp.ones_like(positions)], axis=1)
