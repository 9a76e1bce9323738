"""Reaction of a joint."""

from typing import ClassVar

import equinox as eqx

from ..annotations import Scalar, Vector3
from ..checks import ArrayInput, vector_leaf
from ..forces.joint_force import joint_name
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..joints.base import AbstractJoint
from .base import AbstractReading, scale_leaf
from .calibration import ONE, ZERO, apply_calibration
from .joint import jointed_system


class AbstractReactionSensor(AbstractReading):
    """Force or moment of the reaction of a joint."""

    joint: str = eqx.field(static=True)
    bias: Vector3
    scale: Vector3
    misalignment: Vector3
    label: str | None = eqx.field(static=True)
    quantity: eqx.AbstractClassVar[str]
    """Name of the measured quantity, as used in the name of the sensor."""
    value_shape: ClassVar[tuple[int, ...]] = (3,)

    def __init__(
        self,
        joint: str | AbstractJoint,
        bias: ArrayInput = ZERO,
        scale: ArrayInput = ONE,
        misalignment: ArrayInput = ZERO,
        name: str | None = None,
    ):
        kind = type(self).__name__
        self.joint = joint_name(joint, kind)
        self.bias = vector_leaf(bias, f"{kind}(bias=...)")
        self.scale = scale_leaf(scale, f"{kind}(scale=...)")
        self.misalignment = vector_leaf(misalignment, f"{kind}(misalignment=...)")
        self.label = name

    @property
    def name(self) -> str:
        return f"{self.quantity} of {self.joint}" if self.label is None else self.label

    def check(self, model: AbstractFormulation) -> None:
        jointed_system(model, type(self).__name__).joint_index(self.joint)


class ReactionForce(AbstractReactionSensor):
    r"""The reaction force of a joint on its child, (3,) N, space components.

    This is the force of the joint's constraints. It includes the drive of a prescribed motion, but
    not forces on the coordinates (`Motor`, `TorsionSpring`). Redundant constraints have the
    multipliers of least norm.

    The sensor reads $s \circ \exp(\tilde m)^T F + b$; by default it reads $F$.

    **Arguments:**

    - `joint`: a joint of the system, or its name; it may close a loop.
    - `bias`, $b$, (3,) N; `scale`, $s$, (3,); `misalignment`, $m$, the rotation vector from space
      axes to sensor axes, (3,) rad. They can be fitted.
    - `name`, instead of "reaction force of ...", if a joint has several sensors.

    **Errors:** `ValueError` for an unknown joint, a wrong shape, or a scale of zero.
    """

    channels: ClassVar[tuple[str, ...]] = ("F1", "F2", "F3")
    unit: ClassVar[str] = "N"
    quantity: ClassVar[str] = "reaction force"

    def predict(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> Vector3:
        force = model.reactions(t, y)[self.joint].force
        return apply_calibration(force, self.bias, self.scale, self.misalignment)


class ReactionMoment(AbstractReactionSensor):
    """The reaction moment of a joint on its child, (3,) N m, space components.

    It is about the joint point of the child.

    **Arguments, errors:** those of `ReactionForce`; `bias` in N m.
    """

    channels: ClassVar[tuple[str, ...]] = ("M1", "M2", "M3")
    unit: ClassVar[str] = "N m"
    quantity: ClassVar[str] = "reaction moment"

    def predict(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> Vector3:
        moment = model.reactions(t, y)[self.joint].moment
        return apply_calibration(moment, self.bias, self.scale, self.misalignment)
