"""Prismatic joint."""

from collections.abc import Callable
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector
from ..checks import ArrayInput
from ..rotations.so3 import unskew
from .arguments import checked_axis, point_leaf, set_bodies, set_laws
from .axis_joint import AbstractDrivableJoint
from .friction import Friction
from .motion import checked_motion
from .relative_pose import RelativePose, alignment_of_frames, translation_pose, unit_twists
from .stop import Stop


class Prismatic(AbstractDrivableJoint):
    r"""A slider: one translation along an axis.

    The coordinate is the displacement of the child along the axis, m, zero in the reference
    configuration.

    `motion(t)` prescribes the coordinate (rheonomic joint; it may be an Equinox module with
    parameters). No degree of freedom is left then, and the reaction includes the driving force.

    **Arguments:** `parent`, `child`, names of bodies, frames or `"ground"`; `axis`, required, (3,),
    space components, of any length but zero; `motion`, a function of time, m, or `None` for a free
    coordinate, which `stiffness`, `rest`, `limits` and `stop` need; `point`, where the reaction
    acts, (3,) m, space components, or `None` for the origin of the named frame, if any, else of
    space; `name`, by default `"prismatic <parent>-<child>"`; `damping`, viscous, N s/m, not
    negative; `armature`, rotor inertia reflected to the joint, kg, not negative; `friction`, a
    `Friction`, which like damping and armature also loads the drive of a prescribed motion;
    `stiffness`, N/m, not negative, of a spring; `rest`, the coordinate at which it is unloaded, m;
    `limits`, (low, high), m, infinite for none; `stop`, the `Stop` at the limits, by default
    `Stop()`.
    **Errors:** `ValueError` for wrong shapes, also of the result of `motion`, a zero axis, or a
    joint of a body with itself.
    """

    num_translations: ClassVar[int] = 1
    has_angle: ClassVar[bool] = False
    needs_point: ClassVar[bool] = False

    def __init__(
        self,
        parent: str,
        child: str,
        axis: ArrayInput,
        motion: Callable | None = None,
        point: ArrayInput | None = None,
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
        # First, because its message covers a point that was given instead of the axis.
        self.motion = checked_motion("Prismatic", motion)
        self.axis = checked_axis(axis, "Prismatic(axis=...)")
        self.point = point_leaf(point, "Prismatic(point=...)")
        set_laws(self, damping, armature, friction, stiffness, rest, limits, stop)

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return (True, True, False, False, False) + (True,) * (self.motion is not None)

    def constraint(self, relative: RelativePose, t: Scalar) -> Float[Array, " m"]:
        d = relative.displacement
        parts = [d[0], d[1], *jnp.unstack(unskew(relative.rotation))]
        if self.motion is not None:
            parts.append(d[2] - self.prescribed_coordinate(t))
        return jnp.stack(parts)

    def alignment(self, relative: RelativePose) -> Scalar:
        return alignment_of_frames(relative)

    def unit_twist(self, relative: RelativePose) -> Float[Array, "6"]:
        return unit_twists(2)[:, 0].astype(relative.displacement.dtype)

    def coordinates(self, relative: RelativePose) -> Vector:
        return relative.displacement[2:]

    def pose(self, coordinates: Vector, rotation: Matrix3 | None = None) -> RelativePose:
        zero = jnp.zeros_like(coordinates[0])
        return translation_pose([zero, zero, coordinates[0]])
