"""Universal joint."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector, Vector3
from ..checks import ArrayInput, check
from ..rotations.matrix import product
from ..rotations.so3 import exp
from ..small_arrays import cross
from .arguments import checked_axis, point_leaf, set_bodies
from .axes import unit_vector
from .base import AbstractNamedJoint
from .relative_pose import RelativePose, rotation_pose


class Universal(AbstractNamedJoint):
    r"""A universal (Cardan, Hooke) joint: rotations about two orthogonal axes.

    The coordinates are the angles about `axis1`, fixed in the parent, and about `axis2`, fixed in
    the child, rad, zero in the reference configuration.

    **Arguments:** `parent`, `child`, names of bodies, frames or `"ground"`; `point`, (3,) m, space
    components, or `None` for the origin of the named frame; `axis1`, `axis2`, required, (3,), space
    components, orthogonal, of any length but zero; `name`, by default
    `"universal <parent>-<child>"`.
    **Errors:** `ValueError` for wrong shapes, zero or non-orthogonal axes, or a joint of a body
    with itself.
    """

    point: Vector3
    axis1: Vector3
    axis2: Vector3

    num_translations: ClassVar[int] = 0
    has_angle: ClassVar[bool] = True

    def __init__(
        self,
        parent: str,
        child: str,
        point: ArrayInput | None = None,
        axis1: ArrayInput | None = None,
        axis2: ArrayInput | None = None,
        name: str | None = None,
    ):
        set_bodies(self, parent, child, name)
        self.point = point_leaf(point, "Universal(point=...)")
        self.axis1 = checked_axis(axis1, "Universal(axis1=...)")
        first = self.axis1
        self.axis2 = check(
            checked_axis(axis2, "Universal(axis2=...)"),
            lambda axis: _are_orthogonal(first, axis),
            "`Universal(axis1=..., axis2=...)` must be orthogonal (to 1e-6 of the cosine of their "
            "angle); subtract from one axis its component along the other.",
        )

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return (True, True, True, False)

    def frame(self) -> Matrix3:
        first = unit_vector(self.axis1)
        third = unit_vector(cross(first, self.axis2))
        return jnp.stack([first, cross(third, first), third], axis=1)

    def constraint(self, relative: RelativePose, t: Scalar) -> Float[Array, " m"]:
        d = relative.displacement
        return jnp.stack([d[0], d[1], d[2], relative.rotation[0, 1]])

    def null_space(self, relative: RelativePose) -> Float[Array, "6 f"]:
        Q, zero = relative.rotation, jnp.zeros(3, relative.rotation.dtype)
        first = jnp.zeros(6, Q.dtype).at[3].set(1)
        return jnp.stack([first, jnp.concatenate([zero, Q[:, 1]])], axis=1)

    def coordinates(self, relative: RelativePose) -> Vector:
        Q = relative.rotation
        first = jnp.arctan2(Q[2, 1], Q[1, 1]) + relative.turns
        return jnp.stack([first, jnp.arctan2(Q[0, 2], Q[0, 0])])

    def pose(self, coordinates: Vector, rotation: Matrix3 | None = None) -> RelativePose:
        zero = jnp.zeros_like(coordinates[0])
        first = exp(jnp.stack([coordinates[0], zero, zero]))
        return rotation_pose(product(first, exp(jnp.stack([zero, coordinates[1], zero]))))


def _are_orthogonal(a: Array, b: Array) -> Array:
    a, b = (x / abs(x).max() for x in (a, b))
    return (a * b).sum() ** 2 <= 1e-12 * (a**2).sum() * (b**2).sum()
