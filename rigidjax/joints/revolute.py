"""Hinge."""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..checks import ArrayInput
from .base import (
    AbstractJoint,
    RelativePose,
    Vector,
    about_third_axis,
    alignment_of_axes,
    angle_about_third_axis,
    check_names,
    checked_motion,
    columns,
    direction,
    frame_of_axis,
    motion_rate,
    no_twist,
    per_rate,
    point_leaf,
    tilt,
    unit,
    wrapped,
)


class Revolute(AbstractJoint):
    r"""A hinge: one rotation about an axis.

    The coordinate is the angle of the child about the axis, rad, zero in the reference
    configuration.

    `motion(t)` prescribes the coordinate (rheonomic joint; it may be an Equinox module with
    parameters): no degree of freedom is left, and the reaction includes the driving moment.

    **Arguments:** `parent`, `child`, names of bodies, frames or `"ground"`; `point`, (3,) m, or
    `None`; `axis`, (3,), of any length but zero; `motion`, a function of time, or `None`; `name`;
    `damping`, viscous, and `armature`, the inertia of a rotor as the joint feels it, not negative,
    N m s and kg m^2. Of a prescribed
    motion too: they load its drive.
    **Errors:** `ValueError` for wrong shapes, also of what `motion` returns, a zero axis, a joint
    of a body with itself.
    """

    parent: str = eqx.field(static=True)
    child: str = eqx.field(static=True)
    name: str = eqx.field(static=True)
    point: Vector
    axis: Vector
    motion: Callable | None
    damping: Float[Array, " f"] | None
    armature: Float[Array, " f"] | None

    num_translations: ClassVar[int] = 0
    has_angle: ClassVar[bool] = True
    closes_loops_only: ClassVar[bool] = False

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
    ):
        self.name = check_names("Revolute", parent, child, name)
        self.parent, self.child = parent, child
        self.point = point_leaf(point, "Revolute(point=...)")
        self.axis = direction(axis, "Revolute(axis=...)")
        self.motion = checked_motion("Revolute", motion)
        self.damping = per_rate(self, damping, "damping")
        self.armature = per_rate(self, armature, "armature")

    @property
    def num_constraints(self) -> int:
        return 5 if self.motion is None else 6

    @property
    def num_rates(self) -> int:
        return 1 if self.motion is None else 0

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return (True, True, True, False, False) + (False,) * (self.motion is not None)

    def points(self) -> tuple[Vector, Vector]:
        return self.point, self.point

    def frame(self) -> Float[Array, "3 3"]:
        return frame_of_axis(unit(self.axis))

    def constraint(self, relative: RelativePose, t: Float[Array, ""]) -> Float[Array, " m"]:
        d = relative.displacement
        parts = [d[0], d[1], d[2], *tilt(relative)]
        if self.motion is not None:
            angle = angle_about_third_axis(relative)
            parts.append(wrapped(angle - self.prescribed_coordinate(t)))
        return jnp.stack(parts)

    def alignment(self, relative: RelativePose) -> Float[Array, ""]:
        return alignment_of_axes(relative)

    def null_space(self, relative: RelativePose) -> Float[Array, "6 f"]:
        free = columns(5) if self.motion is None else columns()
        return free.astype(relative.displacement.dtype)

    def prescribed_twist(self, relative: RelativePose, t: Float[Array, ""]) -> Float[Array, "6"]:
        if self.motion is None:
            return no_twist(relative)
        rate = motion_rate("Revolute", self.motion, t)
        return no_twist(relative).at[5].set(rate)

    def coordinates(self, relative: RelativePose) -> Float[Array, " k"]:
        return angle_about_third_axis(relative)[None]

    def pose(
        self, coordinates: Float[Array, " k"], rotation: Float[Array, "3 3"] | None = None
    ) -> RelativePose:
        return about_third_axis(coordinates[0])
