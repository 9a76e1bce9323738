"""Base classes of joints with an axis."""

import abc
from collections.abc import Callable

from jaxtyping import Array, Float

from ..annotations import Scalar, Vector3
from .base import AbstractNamedJoint
from .friction import Friction
from .motion import motion_rate
from .relative_pose import RelativePose, unit_twists, zero_twist
from .stop import Stop


class AbstractAxisJoint(AbstractNamedJoint):
    """A joint with coordinates about or along an axis, and forces on each of them."""

    point: Vector3
    axis: Vector3
    damping: Float[Array, " f"] | None
    armature: Float[Array, " f"] | None
    friction: Friction | None
    stiffness: Float[Array, " f"] | None
    rest: Float[Array, " f"] | None
    limits: Float[Array, "f 2"] | None
    stop: Stop | None


class AbstractDrivableJoint(AbstractAxisJoint):
    """A joint with one coordinate; the function of time `motion`, unless `None`, prescribes it."""

    motion: Callable | None

    @abc.abstractmethod
    def unit_twist(self, relative: RelativePose) -> Float[Array, "6"]:
        """Return the twist for a unit rate of the coordinate."""

    def null_space(self, relative: RelativePose) -> Float[Array, "6 f"]:
        if self.motion is not None:
            return unit_twists().astype(relative.displacement.dtype)
        return self.unit_twist(relative)[:, None]

    def prescribed_twist(self, relative: RelativePose, t: Scalar) -> Float[Array, "6"]:
        if self.motion is None:
            return zero_twist(relative)
        return motion_rate(type(self).__name__, self.motion, t) * self.unit_twist(relative)
