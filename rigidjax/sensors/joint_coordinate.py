"""Coordinate of a joint."""

import math
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import ArrayInput
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..joints.base import AbstractJoint
from ..joints.relative_pose import wrap_angle
from .joint import AbstractJointSensor, joint_motion

_TURN = 2 * math.pi
# Readings of an encoder that starts again after a turn span one turn, and this much for noise.
_ONE_TURN = 1.05 * _TURN
# Successive readings that differ by more cannot be told from readings modulo a turn.
_FAR = 0.25 * _TURN
# Most that a jump of whole turns is off, and that samples otherwise change by.
_SMALL = 0.1 * _TURN


class JointCoordinate(AbstractJointSensor):
    r"""A coordinate of a joint: an angle, rad, or a length, m; zero in the reference configuration.

    It reads $s\,q + b$; as it stands that is $q$. An angle is that of the whole motion, beyond pi
    too, from that of the start state, which is in $(-\pi, \pi]$ unless the state has `angles` (of a
    prescribed motion, what it prescribes): `identify` and `sensitivity` unwrap it. Only the second
    angle of a `Universal` stays in $(-\pi, \pi]$. Without them, `predict` takes a model with
    `system.tracking([joint])`, or gives an angle in $(-\pi, \pi]$.

    An encoder that starts again after a turn is compared modulo a turn, by the difference of least
    magnitude: this holds for samples far apart, too. `identify` sees from the samples whether an
    encoder does so, and says it in `Fit.notes`: they lie within one turn, and successive ones
    differ by more than a quarter of it, or one lies beyond half a turn.

    **Arguments:**

    - `joint`: a joint of the system, or its name; it may close a loop.
    - `component`: which coordinate of a joint that has several, from 0, lengths before angles.
    - `bias`, $b$, rad or m; `scale`, $s$. They can be fitted.
    - `name`, in place of "coordinate of ...", where a joint has several.
    - `period`: after which the readings of an encoder start again, rad, such as `2 * numpy.pi`;
      `numpy.inf` for one that counts revolutions; `None` to see it from the samples.

    **Errors:** `ValueError` for an unknown joint, one without length or angle, a wrong component, a
    scale of zero, or a period that is not positive.
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
        self._mount(joint, component, bias, scale, name)
        if period is not None and not period > 0:
            raise ValueError(f"`JointCoordinate(period=...)` must be positive, rad; got {period}.")
        self.period = None if period is None else float(period)

    def tracked_joints(self, model: AbstractFormulation) -> tuple[str, ...]:
        joint, k = self.coordinate(model)
        follows = joint.has_angle and joint.num_rates > 0 and k == joint.num_translations
        return (self.joint,) if follows else ()

    def predict(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> Float[Array, ""]:
        joint, k = self.coordinate(model)
        relative, _ = joint_motion(model, t, y, self.joint)
        found = joint.coordinates(relative)[k]
        if joint.is_driven and joint.has_angle:
            prescribed = joint.prescribed_coordinate(jnp.asarray(t, found.dtype))
            found = prescribed + wrap_angle(found - prescribed)
        return self.reading(found)

    def residual(self, predicted: Array, measured: Array) -> Float[Array, " C"]:
        r = (predicted - measured).reshape(1)
        if self.period is None or math.isinf(self.period):
            return r
        part = _TURN / self.period
        return wrap_angle(part * r) / part

    def in_range(
        self, model: AbstractFormulation, samples: Sequence[np.ndarray]
    ) -> tuple["JointCoordinate", list[str]]:
        joint, k = self.coordinate(model)
        if k < joint.num_translations or self.period is not None:
            return self, []
        if not (self.tracked_joints(model) or joint.is_driven):
            return self._modulo_a_turn(), []  # Predictions themselves start again.
        series = [values[np.isfinite(values)] for values in samples]
        lowest, highest = min(x.min() for x in series), max(x.max() for x in series)
        changes = np.concatenate([np.abs(np.diff(x)) for x in series])
        far = int(np.count_nonzero(changes > _FAR))
        if highest - lowest > _ONE_TURN:
            return self, self._lost_turns(samples)
        if not far and max(-lowest, highest) <= math.pi:
            return self, []
        count = f"{far} successive ones are more than a quarter turn apart" if far else ""
        beyond = "" if far else f"they reach {highest if highest > -lowest else lowest:.4g} rad"
        return self._modulo_a_turn(), [
            f"The samples of the {self.name} lie within one turn and {count}{beyond}: they are "
            "compared modulo a turn. For an encoder that counts revolutions say "
            "`JointCoordinate(..., period=numpy.inf)`."
        ]

    def _modulo_a_turn(self) -> "JointCoordinate":
        return JointCoordinate(self.joint, self.component, self.bias, self.scale, self.label, _TURN)

    def _lost_turns(self, samples: Sequence[np.ndarray]) -> list[str]:
        """Return a note if samples over several turns jump by whole turns here and there."""
        notes = []
        for number, values in enumerate(samples):
            rows = np.flatnonzero(np.isfinite(values))
            changes = np.diff(values[rows])
            turns = np.round(changes / _TURN)
            off = np.abs(changes - _TURN * turns)
            jumps = (turns != 0) & (off < _SMALL) & (np.median(np.abs(changes)) < _SMALL)
            if jumps.any():
                k = int(np.flatnonzero(jumps)[0])
                notes.append(
                    f"The samples of the {self.name} cover several turns and jump by whole turns, "
                    f"first by {changes[k]:.4g} rad to the sample {rows[k + 1]} of the run "
                    f"{number + 1}: revolutions were lost, or the encoder starts again after "
                    "several. Repair the samples, or say `JointCoordinate(..., period=...)`."
                )
        return notes
