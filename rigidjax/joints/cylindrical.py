"""Cylindrical joint."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector
from ..checks import ArrayInput
from .arguments import checked_axis, point_leaf, set_bodies, set_laws
from .axis_joint import AbstractAxisJoint
from .friction import Friction
from .relative_pose import (
    RelativePose,
    alignment_of_axes,
    angle_about_third_axis,
    pose_about_third_axis,
    tilt,
    unit_twists,
)
from .stop import Stop


class Cylindrical(AbstractAxisJoint):
    r"""A translation along and a rotation about the same axis.

    The coordinates are the displacement (m) and the angle (rad), zero in the reference
    configuration.

    **Arguments:** `parent`, `child`, names of bodies, frames or `"ground"`; `point`, (3,) m, space
    components, or `None` for the origin of the named frame; `axis`, required, (3,), space
    components, of any length but zero; `name`, by default `"cylindrical <parent>-<child>"`;
    `damping`, viscous, N s/m and N m s, not negative, a scalar for both coordinates or (2,);
    `armature`, rotor inertia reflected to the joint, kg and kg m^2, not negative, likewise;
    `friction`, a `Friction`; `stiffness`, N/m and N m/rad, not negative, of springs, likewise;
    `rest`, the coordinates at which they are unloaded, m and rad, likewise; `limits`, ((low, high),
    (low, high)), m and rad, infinite for none; `stop`, the `Stop` at the limits, by default
    `Stop()`.
    **Errors:** `ValueError` for wrong shapes or values, a zero axis, or a joint of a body with
    itself.
    """

    num_translations: ClassVar[int] = 1
    has_angle: ClassVar[bool] = True

    def __init__(
        self,
        parent: str,
        child: str,
        point: ArrayInput | None = None,
        axis: ArrayInput | None = None,
        name: str | None = None,
        *,
        damping: ArrayInput = 0.0,
        armature: ArrayInput = 0.0,
        friction: Friction | None = None,
        stiffness: ArrayInput = 0.0,
        rest: ArrayInput = 0.0,
        limits: ArrayInput | None = None,
        stop: Stop | None = None,
    ):
        set_bodies(self, parent, child, name)
        self.point = point_leaf(point, "Cylindrical(point=...)")
        self.axis = checked_axis(axis, "Cylindrical(axis=...)")
        set_laws(self, damping, armature, friction, stiffness, rest, limits, stop)

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return (True, True, False, False)

    def constraint(self, relative: RelativePose, t: Scalar) -> Float[Array, " m"]:
        d = relative.displacement
        return jnp.stack([d[0], d[1], *tilt(relative)])

    def alignment(self, relative: RelativePose) -> Scalar:
        return alignment_of_axes(relative)

    def null_space(self, relative: RelativePose) -> Float[Array, "6 f"]:
        return unit_twists(2, 5).astype(relative.displacement.dtype)

    def coordinates(self, relative: RelativePose) -> Vector:
        return jnp.stack([relative.displacement[2], angle_about_third_axis(relative)])

    def pose(self, coordinates: Vector, rotation: Matrix3 | None = None) -> RelativePose:
        shift, angle = coordinates[0], coordinates[1]
        zero = jnp.zeros_like(angle)
        return pose_about_third_axis(angle, (zero, zero, shift))
