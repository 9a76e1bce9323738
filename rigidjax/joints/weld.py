"""Rigid connection of two bodies."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector, Vector3
from ..checks import ArrayInput
from ..rotations.so3 import unskew
from .arguments import point_leaf, set_bodies
from .base import AbstractNamedJoint
from .relative_pose import RelativePose, alignment_of_frames, unit_twists


class Weld(AbstractNamedJoint):
    r"""A rigid connection: the bodies keep the relative pose of the reference configuration.

    **Arguments:** `parent`, `child`, names of bodies, frames or `"ground"`; `point`, where the
    reaction acts, (3,) m, space components, or `None` for the origin of the named frame, if any,
    else of space; `name`, by default `"weld <parent>-<child>"`.
    **Errors:** `ValueError` for wrong shapes, or a joint of a body with itself.
    """

    point: Vector3

    num_translations: ClassVar[int] = 0
    has_angle: ClassVar[bool] = False
    needs_point: ClassVar[bool] = False

    def __init__(
        self, parent: str, child: str, point: ArrayInput | None = None, name: str | None = None
    ):
        set_bodies(self, parent, child, name)
        self.point = point_leaf(point, "Weld(point=...)")

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return (True,) * 3 + (False,) * 3

    def frame(self) -> Matrix3:
        return jnp.eye(3, dtype=self.point.dtype)

    def constraint(self, relative: RelativePose, t: Scalar) -> Float[Array, " m"]:
        return jnp.concatenate([relative.displacement, unskew(relative.rotation)])

    def alignment(self, relative: RelativePose) -> Scalar:
        return alignment_of_frames(relative)

    def null_space(self, relative: RelativePose) -> Float[Array, "6 f"]:
        return unit_twists().astype(relative.displacement.dtype)

    def coordinates(self, relative: RelativePose) -> Vector:
        return jnp.zeros(0, relative.displacement.dtype)
