"""Screw joint."""

from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector, Vector3
from ..checks import ArrayInput, finite_leaf
from ..rotations.guarded import arctan2_ratio
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


class Screw(AbstractDrivableJoint):
    r"""A rotation about an axis with a proportional translation along it.

    The coordinate is the angle (rad), zero in the reference configuration. The displacement is
    `pitch` per revolution; unless `pitch` is zero, it determines the number of revolutions.

    **Arguments:** `parent`, `child`, names of bodies, frames or `"ground"`; `point`, (3,) m, space
    components, or `None` for the origin of the named frame; `axis`, required, (3,), space
    components, of any length but zero; `pitch`, m per revolution; `motion`, a function of time,
    rad, or `None` for a free coordinate, which `stiffness`, `rest`, `limits` and `stop` need;
    `name`, by default `"screw <parent>-<child>"`; `damping`, viscous, N m s, not negative;
    `armature`, rotor inertia reflected to the joint, kg m^2, not negative; `friction`, a
    `Friction`, which like damping and armature also loads the drive of a prescribed motion;
    `stiffness`, N m/rad, not negative, of a spring; `rest`, the coordinate at which it is unloaded,
    rad; `limits`, (low, high), rad, infinite for none; `stop`, the `Stop` at the limits, by default
    `Stop()`.
    **Errors:** `ValueError` for wrong shapes or values, a zero axis, or a joint of a body with
    itself.
    """

    pitch: Scalar

    num_translations: ClassVar[int] = 0
    has_angle: ClassVar[bool] = True

    def __init__(
        self,
        parent: str,
        child: str,
        point: ArrayInput | None = None,
        axis: ArrayInput | None = None,
        pitch: ArrayInput | None = None,
        name: str | None = None,
        *,
        motion: Callable | None = None,
        damping: ArrayInput = 0.0,
        armature: ArrayInput = 0.0,
        friction: Friction | None = None,
        stiffness: ArrayInput = 0.0,
        rest: ArrayInput = 0.0,
        limits: ArrayInput | None = None,
        stop: Stop | None = None,
    ):
        set_bodies(self, parent, child, name)
        self.point = point_leaf(point, "Screw(point=...)")
        self.axis = checked_axis(axis, "Screw(axis=...)")
        self.pitch = finite_leaf(pitch, "Screw(pitch=...)", ())
        self.motion = checked_motion("Screw", motion)
        set_laws(self, damping, armature, friction, stiffness, rest, limits, stop)

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return (True, True, False, False, True) + (False,) * (self.motion is not None)

    def constraint(self, relative: RelativePose, t: Scalar) -> Float[Array, " m"]:
        d = relative.displacement
        angle = self.coordinates(relative)[0]
        parts = [d[0], d[1], *tilt(relative), d[2] - self.pitch / (2 * jnp.pi) * angle]
        if self.motion is not None:
            violation = angle - self.prescribed_coordinate(t)
            parts.append(jnp.where(self.pitch == 0, wrap_angle(violation), violation))
        return jnp.stack(parts)

    def mean_gradient(
        self, first: RelativePose, last: RelativePose, t: Scalar, multipliers: Float[Array, " m"]
    ) -> tuple[Vector3, Matrix3]:
        mu1, mu2, mu3, mu4, mu5, *driving = jnp.unstack(multipliers)
        # The angle is arctan2(s, c); at the mean, c ds - s dc is the sine of its change.
        (s0, c0), (s1, c1) = (_double_sine_and_cosine(pose.rotation) for pose in (first, last))
        ratio = arctan2_ratio(s1 * c0 - c1 * s0, c0 * c1 + s0 * s1)
        by_angle = -0.5 * (mu5 * self.pitch / (2 * jnp.pi) - sum(driving)) * ratio
        by_s, by_c, zero = by_angle * (c0 + c1), -by_angle * (s0 + s1), jnp.zeros_like(by_angle)
        by_rotation = [[by_c, -by_s, mu3], [by_s, by_c, mu4], [zero, zero, zero]]
        return jnp.stack([mu1, mu2, mu5]), jnp.stack([jnp.stack(row) for row in by_rotation])

    def alignment(self, relative: RelativePose) -> Scalar:
        return alignment_of_axes(relative)

    def unit_twist(self, relative: RelativePose) -> Float[Array, "6"]:
        dtype = relative.displacement.dtype
        spin, shift = unit_twists(5)[:, 0].astype(dtype), unit_twists(2)[:, 0].astype(dtype)
        return spin + shift * self.pitch / (2 * jnp.pi)

    def coordinates(self, relative: RelativePose) -> Vector:
        angle = angle_about_third_axis(relative)
        # A state holds no count of revolutions, so the displacement determines it.
        has_pitch = self.pitch != 0
        thread = relative.displacement[2] / jnp.where(has_pitch, self.pitch, 1.0)
        revolutions = jnp.round(jax.lax.stop_gradient(thread - angle / (2 * jnp.pi)))
        return (angle + 2 * jnp.pi * jnp.where(has_pitch, revolutions, 0.0))[None]

    def pose(self, coordinates: Vector, rotation: Matrix3 | None = None) -> RelativePose:
        angle = coordinates[0]
        zero = jnp.zeros_like(angle)
        return pose_about_third_axis(angle, (zero, zero, self.pitch / (2 * jnp.pi) * angle))


def _double_sine_and_cosine(Q: Matrix3) -> tuple[Scalar, Scalar]:
    """Return twice the sine and twice the cosine of the angle about the third axis."""
    return Q[1, 0] - Q[0, 1], Q[0, 0] + Q[1, 1]
