"""Spherical joint."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector, Vector3
from ..checks import ArrayInput
from ..rotations.so3 import exp, log
from .arguments import point_leaf, set_bodies
from .base import AbstractNamedJoint
from .relative_pose import RelativePose, rotation_pose


class Spherical(AbstractNamedJoint):
    r"""A ball joint: three rotations about a point.

    The joint rates are the angular velocity of the child relative to the parent, rad/s, in
    components of the child's joint frame. The coordinates are the rotation vector of the relative
    rotation (not continuous beyond pi).

    **Arguments:** `parent`, `child`, names of bodies, frames or `"ground"`; `point`, (3,) m, space
    components, or `None` for the origin of the named frame; `name`, by default
    `"spherical <parent>-<child>"`.
    **Errors:** `ValueError` for wrong shapes, or a joint of a body with itself.
    **Source:** Lang (67).
    """

    point: Vector3

    num_translations: ClassVar[int] = 0
    has_angle: ClassVar[bool] = False
    turns_freely: ClassVar[bool] = True

    def __init__(
        self, parent: str, child: str, point: ArrayInput | None = None, name: str | None = None
    ):
        set_bodies(self, parent, child, name)
        self.point = point_leaf(point, "Spherical(point=...)")

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return (True,) * 3

    def frame(self) -> Matrix3:
        return jnp.eye(3, dtype=self.point.dtype)

    def constraint(self, relative: RelativePose, t: Scalar) -> Float[Array, " m"]:
        return relative.displacement

    def null_space(self, relative: RelativePose) -> Float[Array, "6 f"]:
        return jnp.concatenate([jnp.zeros_like(relative.rotation), relative.rotation])

    def coordinates(self, relative: RelativePose) -> Vector:
        return log(relative.rotation)

    def pose(self, coordinates: Vector, rotation: Matrix3 | None = None) -> RelativePose:
        return rotation_pose(exp(coordinates) if rotation is None else rotation)
