"""Scales of pose increments, which make decisions independent of units.

The scale of a rotation is one radian; the scale of a displacement is the distance of the body from
the origin plus the size of its system. The round-off of a pose is about `eps` times these scales.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...mechanics.stacked.system import PreparedSystem
from ...rotations.guarded import safe_sqrt


def increment_scales(
    prepared: PreparedSystem, positions: Float[Array, "L 3"]
) -> Float[Array, "L 6"]:
    """Return the scales of displacements, m, and of rotations, rad, of all bodies."""
    distances = safe_sqrt(jnp.sum(positions * positions, axis=1))
    lengths = (distances + prepared.lengths)[:, None]
    return jnp.concatenate([jnp.repeat(lengths, 3, axis=1), jnp.ones_like(positions)], axis=1)
