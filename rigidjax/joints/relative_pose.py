"""Pose of a joint's child as seen from its parent, and functions of that pose."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from ..rotations.matrix import product
from ..rotations.so3 import skew


class RelativePose(eqx.Module):
    r"""Pose of the child's joint frame as seen from the parent's.

    `displacement`, $d$, (3,) m; `rotation`, $Q$, (3, 3); `turns`, the full revolutions of the
    joint's angle beyond $(-\pi, \pi]$, rad, a multiple of $2\pi$ that is constant while the joint
    moves.
    """

    displacement: Vector3
    rotation: Matrix3
    turns: Scalar


def apply_small_twist(relative: RelativePose, twist: Float[Array, "6"]) -> RelativePose:
    """Return the relative pose after a small twist, to first order."""
    d, w = twist[:3], twist[3:]
    rotation = relative.rotation + product(skew(w), relative.rotation)
    return RelativePose(relative.displacement + d, rotation, relative.turns)


def translation_pose(displacement: Sequence[Scalar]) -> RelativePose:
    """Return a relative pose without rotation."""
    d = jnp.stack(list(displacement))
    return RelativePose(d, jnp.eye(3, dtype=d.dtype), jnp.zeros((), d.dtype))


def rotation_pose(rotation: Matrix3) -> RelativePose:
    """Return a relative pose without displacement."""
    dtype = rotation.dtype
    return RelativePose(jnp.zeros(3, dtype), rotation, jnp.zeros((), dtype))


def pose_about_third_axis(angle: Scalar, displacement: Sequence[Scalar] = ()) -> RelativePose:
    """Return a relative pose whose rotation is about the third axis of the joint frame."""
    c, s, zero = jnp.cos(angle), jnp.sin(angle), jnp.zeros_like(angle)
    rows = [[c, -s, zero], [s, c, zero], [zero, zero, jnp.ones_like(angle)]]
    d = jnp.stack(list(displacement) or [zero] * 3)
    return RelativePose(d, jnp.stack([jnp.stack(row) for row in rows]), zero)


def angle_about_third_axis(relative: RelativePose) -> Scalar:
    """Return the angle about the third axis of the joint frame, rad, continuous beyond pi."""
    Q = relative.rotation
    return jnp.arctan2(Q[1, 0] - Q[0, 1], Q[0, 0] + Q[1, 1]) + relative.turns


def wrap_angle(angle: Scalar) -> Scalar:
    r"""Return an angle up to full revolutions, in $[-\pi, \pi]$."""
    return angle - 2 * jnp.pi * jnp.round(angle / (2 * jnp.pi))


def tilt(relative: RelativePose) -> list[Scalar]:
    """Return the two components of the child's third axis that vanish if the axes are parallel."""
    Q = relative.rotation
    return [Q[0, 2], Q[1, 2]]


def alignment_of_axes(relative: RelativePose) -> Scalar:
    """Return the cosine of the angle between the third axes of parent and child."""
    return relative.rotation[2, 2]


def alignment_of_frames(relative: RelativePose) -> Scalar:
    """Return the cosine of the angle of the relative rotation."""
    return 0.5 * (jnp.trace(relative.rotation) - 1.0)


def unit_twists(*entries: int) -> Float[Array, "6 f"]:
    """Return columns of the 6x6 unit matrix, each a translation or rotation along one axis."""
    return jnp.eye(6)[:, list(entries)]


def zero_twist(relative: RelativePose) -> Float[Array, "6"]:
    """Return a zero twist, the prescribed one of a joint without a prescribed motion."""
    return jnp.zeros(6, relative.displacement.dtype)
