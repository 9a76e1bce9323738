"""Directions of joint axes, and joint frames along them."""

import jax
import jax.numpy as jnp

from ..annotations import Matrix3, Vector3
from ..small_arrays import cross


def unit_vector(v: Vector3) -> Vector3:
    """Return the vector of unit length in the direction of `v`, which is not zero."""
    # Squares of scaled components neither overflow nor underflow; the scale's derivative cancels.
    v = v / jax.lax.stop_gradient(jnp.max(jnp.abs(v)))
    return v / jnp.sqrt(jnp.sum(v * v))


def frame_of_axis(axis: Vector3) -> Matrix3:
    """Return a right-handed frame, in columns, whose third axis is the unit vector `axis`.

    The first axis is along the cross product of the x axis and `axis`, or of the y axis and `axis`
    where `axis` is within 26 degrees of the x axis. The frame jumps at that angle, which mechanisms
    rarely have.
    """
    x, y = jnp.eye(2, 3, dtype=axis.dtype)
    first = unit_vector(cross(jnp.where(jnp.abs(axis[0]) < 0.9, x, y), axis))
    return jnp.stack([first, cross(axis, first), axis], axis=1)
