"""Coordinate of a joint."""

import math
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..checks import ArrayInput
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..joints.base import AbstractJoint
from ..joints.relative_pose import apply_small_twist, wrap_angle
from .joint import AbstractJointSensor, joint_motion

_REVOLUTION = 2 * math.pi
# Largest range of readings modulo a revolution, with a margin for noise.
_LARGEST_RANGE = 1.05 * _REVOLUTION
# Successive readings that differ by more may be readings modulo a revolution.
_LARGE_CHANGE = 0.25 * _REVOLUTION
# Tolerance of a jump by full revolutions, and largest median change of other samples.
_SMALL_CHANGE = 0.1 * _REVOLUTION


class JointCoordinate(AbstractJointSensor):
    r"""A coordinate of a joint: an angle, rad, or a length, m; zero in the reference configuration.

    It reads $s\,q + b$; by default it reads $q$. In `identify` and `sensitivity` angles are
    unwrapped beyond pi, except for the second angle of a `Universal`, which stays in
    $(-\pi, \pi]$. The angle of the start state is in $(-\pi, \pi]$ unless the state has `angles`;
    a prescribed motion defines its own angle. Elsewhere `predict` returns an unwrapped angle for a
    model with `system.tracking([joint])`, and an angle in $(-\pi, \pi]$ for others.

    Readings of an encoder that restarts after a revolution are compared modulo a revolution, by the
    difference of least magnitude, which also works for samples far apart. `identify` detects such
    encoders from their samples and reports it in `Fit.notes`: the samples lie within one
    revolution, and successive ones differ by more than a quarter revolution, or one lies beyond
    half a revolution.

    **Arguments:**

    - `joint`: a joint of the system, or its name; it may close a loop.
    - `component`: index of the coordinate if the joint has several, from 0, lengths before angles.
    - `bias`, $b$, rad or m; `scale`, $s$. They can be fitted.
    - `name`, instead of "coordinate of ...", if a joint has several sensors.
    - `period`, after which the readings of an encoder restart, rad, such as `2 * numpy.pi`;
      `numpy.inf` for an encoder that counts revolutions; `None` to detect it from the samples.

    **Errors:** `ValueError` for an unknown joint, a joint without a length or an angle, a wrong
    component, a scale of zero, or a period that is not positive.
    """

    period: float | None = eqx.field(static=True)
    channels: ClassVar[tuple[str, ...]] = ("q",)
    unit: ClassVar[str] = "rad or m"
    quantity: ClassVar[str] = "coordinate"

    def __init__(
        self,
        joint: str | AbstractJoint,
        component: int | None = None,
        bias: ArrayInput = 0.0,
        scale: ArrayInput = 1.0,
        name: str | None = None,
        period: float | None = None,
    ):
        self._set_fields(joint, component, bias, scale, name)
        if period is not None and not period > 0:
            raise ValueError(f"`JointCoordinate(period=...)` must be positive, rad; got {period}.")
        self.period = None if period is None else float(period)

    def tracked_joints(self, model: AbstractFormulation) -> tuple[str, ...]:
        joint, k = self.coordinate(model)
        is_unbounded = joint.has_angle and joint.num_rates > 0 and k == joint.num_translations
        return (self.joint,) if is_unbounded else ()

    def predict(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> Scalar:
        joint, k = self.coordinate(model)
        relative, _ = joint_motion(model, t, y, self.joint)
        value = joint.coordinates(relative)[k]
        if joint.is_driven and joint.has_angle:
            prescribed = joint.prescribed_coordinate(jnp.asarray(t, value.dtype))
            value = prescribed + wrap_angle(value - prescribed)
        return self.reading(value)

    def residual(self, predicted: Array, measured: Array) -> Float[Array, " C"]:
        r = (predicted - measured).reshape(1)
        if self.period is None or math.isinf(self.period):
            return r
        scale = _REVOLUTION / self.period
        return wrap_angle(scale * r) / scale

    def in_range(
        self, model: AbstractFormulation, samples: Sequence[np.ndarray]
    ) -> tuple["JointCoordinate", list[str]]:
        joint, k = self.coordinate(model)
        if k < joint.num_translations or self.period is not None:
            return self, []
        if not (self.tracked_joints(model) or joint.is_driven):
            return self._modulo_revolution(), []  # The predictions restart too.
        series = [values[np.isfinite(values)] for values in samples]
        lowest, highest = min(x.min() for x in series), max(x.max() for x in series)
        changes = np.concatenate([np.abs(np.diff(x)) for x in series])
        num_large = int(np.count_nonzero(changes > _LARGE_CHANGE))
        if highest - lowest > _LARGEST_RANGE:
            return self, self._lost_revolutions(samples)
        if not num_large and max(-lowest, highest) <= math.pi:
            return self, []
        count = (
            f"{num_large} successive ones are more than a quarter turn apart" if num_large else ""
        )
        beyond = (
            "" if num_large else f"they reach {highest if highest > -lowest else lowest:.4g} rad"
        )
        return self._modulo_revolution(), [
            f"The samples of the {self.name} lie within one turn and {count}{beyond}: they are "
            "compared modulo a turn. For an encoder that counts revolutions say "
            "`JointCoordinate(..., period=numpy.inf)`."
        ]

    def _modulo_revolution(self) -> "JointCoordinate":
        return JointCoordinate(
            self.joint, self.component, self.bias, self.scale, self.label, _REVOLUTION
        )

    def _lost_revolutions(self, samples: Sequence[np.ndarray]) -> list[str]:
        """Return notes if samples over several revolutions have jumps by full revolutions."""
        notes = []
        for number, values in enumerate(samples):
            rows = np.flatnonzero(np.isfinite(values))
            changes = np.diff(values[rows])
            revolutions = np.round(changes / _REVOLUTION)
            error = np.abs(changes - _REVOLUTION * revolutions)
            is_smooth = np.median(np.abs(changes)) < _SMALL_CHANGE
            jumps = (revolutions != 0) & (error < _SMALL_CHANGE) & is_smooth
            if jumps.any():
                k = int(np.flatnonzero(jumps)[0])
                notes.append(
                    f"The samples of the {self.name} cover several turns and jump by whole turns, "
                    f"first by {changes[k]:.4g} rad to the sample {rows[k + 1]} of the run "
                    f"{number + 1}: revolutions were lost, or the encoder starts again after "
                    "several. Repair the samples, or say `JointCoordinate(..., period=...)`."
                )
        return notes


class JointRate(AbstractJointSensor):
    r"""The time derivative of a coordinate of a joint, rad/s or m/s, prescribed ones included.

    **Arguments, errors:** those of `JointCoordinate` except `period`; `bias` in rad/s or m/s.
    """

    channels: ClassVar[tuple[str, ...]] = ("q_dot",)
    unit: ClassVar[str] = "rad/s or m/s"
    quantity: ClassVar[str] = "rate"

    def predict(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> Scalar:
        joint, k = self.coordinate(model)
        relative, twist = joint_motion(model, t, y, self.joint)
        zero = jnp.zeros((), twist.dtype)
        # `joint.rates` has no entry for a prescribed motion.

        def along(s):
            return joint.coordinates(apply_small_twist(relative, s * twist))

        return self.reading(jax.jvp(along, (zero,), (jnp.ones_like(zero),))[1][k])
