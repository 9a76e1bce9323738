"""Planar joint."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector, Vector3
from ..checks import ArrayInput
from .arguments import checked_axis, point_leaf, set_bodies
from .axes import frame_of_axis, unit_vector
from .base import AbstractNamedJoint
from .relative_pose import (
    RelativePose,
    alignment_of_axes,
    angle_about_third_axis,
    pose_about_third_axis,
    tilt,
    unit_twists,
)


class Planar(AbstractNamedJoint):
    r"""Two translations in a plane and the rotation about its normal.

    The coordinates are the displacements along the first and second axis of the joint frame (m) and
    the angle about the normal (rad), zero in the reference configuration. For the normal $n$ these
    axes are $e_x \times n$ and $n \times (e_x \times n)$, normalised; for a normal along z they are
    -y and x. If $n$ is within 26 degrees of the x axis, $e_y$ takes the place of $e_x$.

    **Arguments:** `parent`, `child`, names of bodies, frames or `"ground"`; `point`, (3,) m, space
    components, or `None` for the origin of the named frame; `normal`, required, (3,), space
    components, of any length but zero; `name`, by default `"planar <parent>-<child>"`.
    **Errors:** `ValueError` for wrong shapes, a zero normal, or a joint of a body with itself.
    """

    point: Vector3
    normal: Vector3

    num_translations: ClassVar[int] = 2
    has_angle: ClassVar[bool] = True

    def __init__(
        self,
        parent: str,
        child: str,
        point: ArrayInput | None = None,
        normal: ArrayInput | None = None,
        name: str | None = None,
    ):
        set_bodies(self, parent, child, name)
        self.point = point_leaf(point, "Planar(point=...)")
        self.normal = checked_axis(normal, "Planar(normal=...)")

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return (True, False, False)

    def frame(self) -> Matrix3:
        return frame_of_axis(unit_vector(self.normal))

    def constraint(self, relative: RelativePose, t: Scalar) -> Float[Array, " m"]:
        return jnp.stack([relative.displacement[2], *tilt(relative)])

    def alignment(self, relative: RelativePose) -> Scalar:
        return alignment_of_axes(relative)

    def null_space(self, relative: RelativePose) -> Float[Array, "6 f"]:
        return unit_twists(0, 1, 5).astype(relative.displacement.dtype)

    def coordinates(self, relative: RelativePose) -> Vector:
        d = relative.displacement
        return jnp.stack([d[0], d[1], angle_about_third_axis(relative)])

    def pose(self, coordinates: Vector, rotation: Matrix3 | None = None) -> RelativePose:
        first, second, angle = jnp.unstack(coordinates)
        return pose_about_third_axis(angle, (first, second, jnp.zeros_like(angle)))
