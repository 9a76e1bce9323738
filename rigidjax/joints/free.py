"""Joint of a body that moves freely in space."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector, Vector3
from ..rotations.so3 import exp, log
from .arguments import set_bodies
from .base import AbstractNamedJoint
from .relative_pose import RelativePose


class Free(AbstractNamedJoint):
    r"""Six degrees of freedom of a body relative to the ground or to another body.

    A body without a joint has this joint, from the ground, implicitly. Naming it chooses the base
    of a tree that is not attached to the ground, whose pose and twist are unknowns, such as the
    base of a walking robot; by default the base is the first body of the tree.

    The joint rates are the velocity of the centre of mass relative to the parent, components of the
    parent (from the ground: space components), m/s, and the relative angular velocity, body
    components, rad/s. The coordinates are the position of the centre of mass, from that of the
    parent, and the rotation vector of the body relative to the parent (not continuous beyond pi).
    Unlike those of other joints, they are not zero in the reference configuration, but where the
    body frame coincides with the parent's.

    **Arguments:** `child`, name of a body; `name`, by default `"free <parent>-<child>"`; `parent`,
    name of a body or `"ground"`.
    **Errors:** `ValueError` for a joint of a body with itself; when the `System` is built, for a
    body that is attached to the parent already.
    """

    num_translations: ClassVar[int] = 3
    has_angle: ClassVar[bool] = False
    turns_freely: ClassVar[bool] = True
    at_centre: ClassVar[bool] = True

    def __init__(self, child: str, name: str | None = None, parent: str = "ground"):
        set_bodies(self, parent, child, name)

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return ()

    def points(self) -> tuple[Vector3, Vector3]:
        raise NotImplementedError(
            "`Free` has no joint points: it acts at the centres of mass of its bodies."
        )

    def frame(self) -> Matrix3:
        return jnp.eye(3)

    def constraint(self, relative: RelativePose, t: Scalar) -> Float[Array, " m"]:
        return jnp.zeros(0, relative.displacement.dtype)

    def null_space(self, relative: RelativePose) -> Float[Array, "6 f"]:
        Q = relative.rotation
        zero = jnp.zeros_like(Q)
        return jnp.block([[jnp.eye(3, dtype=Q.dtype), zero], [zero, Q]])

    def dual(self, relative: RelativePose) -> Float[Array, "6 f"]:
        # The columns are orthonormal.
        return self.null_space(relative)

    def coordinates(self, relative: RelativePose) -> Vector:
        return jnp.concatenate([relative.displacement, log(relative.rotation)])

    def pose(self, coordinates: Vector, rotation: Matrix3 | None = None) -> RelativePose:
        Q = exp(coordinates[3:]) if rotation is None else rotation
        return RelativePose(coordinates[:3], Q, jnp.zeros((), Q.dtype))
