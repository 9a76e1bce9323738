"""Massless rod between two points."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector, Vector3
from ..checks import ArrayInput, check
from ..rotations.so3 import dot
from .arguments import point_leaf, set_bodies
from .base import AbstractNamedJoint
from .relative_pose import RelativePose


class Distance(AbstractNamedJoint):
    r"""A massless rod with ball joints at its ends: two points keep their distance.

    Its null space has no basis that is smooth everywhere, so the rod always closes a loop: the
    child is attached to its other joint, or moves freely, and the rod adds a constraint.

    **Arguments:** `parent`, `child`, names of bodies, frames or `"ground"`; `parent_point`,
    `child_point`, (3,) m, space components, or `None` for the origin of the frame at that end;
    `name`, by default `"distance <parent>-<child>"`.
    **Errors:** `ValueError` for wrong shapes, coinciding points, or a joint of a body with itself.
    """

    parent_point: Vector3
    child_point: Vector3

    num_translations: ClassVar[int] = 0
    has_angle: ClassVar[bool] = False
    closes_loops_only: ClassVar[bool] = True

    def __init__(
        self,
        parent: str,
        child: str,
        parent_point: ArrayInput | None = None,
        child_point: ArrayInput | None = None,
        name: str | None = None,
    ):
        set_bodies(self, parent, child, name)
        self.parent_point = point_leaf(parent_point, "Distance(parent_point=...)")
        self.child_point = point_leaf(child_point, "Distance(child_point=...)")
        if self.parent_point is not None and self.child_point is not None:
            self.child_point = self.check_points()

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return (True,)

    def check_points(self) -> Vector3:
        start = self.parent_point
        return check(
            self.child_point,
            lambda point: ((point - start) ** 2).sum() > 0,
            "`Distance(parent_point=..., child_point=...)` must be two different points; for "
            "coinciding points use `Spherical`.",
        )

    def points(self) -> tuple[Vector3, Vector3]:
        return self.parent_point, self.child_point

    def frame(self) -> Matrix3:
        return jnp.eye(3, dtype=self.parent_point.dtype)

    def constraint(self, relative: RelativePose, t: Scalar) -> Float[Array, " m"]:
        d, d0 = relative.displacement, self.child_point - self.parent_point
        length = jnp.sqrt(dot(d0, d0))
        return 0.5 * (dot(d, d) / length - length)[None]

    def null_space(self, relative: RelativePose) -> Float[Array, "6 f"]:
        raise NotImplementedError("`Distance` closes loops only and has no global null space.")

    def coordinates(self, relative: RelativePose) -> Vector:
        d = relative.displacement
        return jnp.sqrt(dot(d, d))[None]
