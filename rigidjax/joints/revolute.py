"""Revolute joint."""

from collections.abc import Callable
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector
from ..checks import ArrayInput
from .arguments import checked_axis, point_leaf, set_bodies, set_laws
from .axis_joint import AbstractDrivableJoint
from .friction import Friction
from .motion import checked_motion
from .relative_pose import (
    RelativePose,
    alignment_of_axes,
    angle_about_third_axis,
    pose_about_third_axis,
    tilt,
    unit_twists,
    wrap_angle,
)
from .stop import Stop


class Revolute(AbstractDrivableJoint):
    r"""A hinge: one rotation about an axis.

    The coordinate is the angle of the child about the axis, rad, zero in the reference
    configuration.

    `motion(t)` prescribes the coordinate (rheonomic joint; it may be an Equinox module with
    parameters). No degree of freedom is left then, and the reaction includes the driving moment.

    **Arguments:** `parent`, `child`, names of bodies, frames or `"ground"`; `point`, (3,) m, space
    components, or `None` for the origin of the named frame; `axis`, required, (3,), space
    components, of any length but zero; `motion`, a function of time, rad, or `None` for a free
    coordinate, which `stiffness`, `rest`, `limits` and `stop` need; `name`, by default
    `"revolute <parent>-<child>"`; `damping`, viscous, N m s, not negative; `armature`, rotor
    inertia reflected to the joint, kg m^2, not negative; `friction`, a `Friction`, which like
    damping and armature also loads the drive of a prescribed motion; `stiffness`, N m/rad, not
    negative, of a spring; `rest`, the coordinate at which it is unloaded, rad; `limits`, (low,
    high), rad, infinite for none; `stop`, the `Stop` at the limits, by default `Stop()`.
    **Errors:** `ValueError` for wrong shapes, also of the result of `motion`, a zero axis, or a
    joint of a body with itself.
    """

    num_translations: ClassVar[int] = 0
    has_angle: ClassVar[bool] = True

    def __init__(
        self,
        parent: str,
        child: str,
        point: ArrayInput | None = None,
        axis: ArrayInput | None = None,
        motion: Callable | None = None,
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
        self.point = point_leaf(point, "Revolute(point=...)")
        self.axis = checked_axis(axis, "Revolute(axis=...)")
        self.motion = checked_motion("Revolute", motion)
        set_laws(self, damping, armature, friction, stiffness, rest, limits, stop)

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return (True, True, True, False, False) + (False,) * (self.motion is not None)

    def constraint(self, relative: RelativePose, t: Scalar) -> Float[Array, " m"]:
        d = relative.displacement
        parts = [d[0], d[1], d[2], *tilt(relative)]
        if self.motion is not None:
            angle = angle_about_third_axis(relative)
            parts.append(wrap_angle(angle - self.prescribed_coordinate(t)))
        return jnp.stack(parts)

    def alignment(self, relative: RelativePose) -> Scalar:
        return alignment_of_axes(relative)

    def unit_twist(self, relative: RelativePose) -> Float[Array, "6"]:
        return unit_twists(5)[:, 0].astype(relative.displacement.dtype)

    def coordinates(self, relative: RelativePose) -> Vector:
        return angle_about_third_axis(relative)[None]

    def pose(self, coordinates: Vector, rotation: Matrix3 | None = None) -> RelativePose:
        return pose_about_third_axis(coordinates[0])
