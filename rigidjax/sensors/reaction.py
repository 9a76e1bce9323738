"""Reaction of a joint."""

from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from ..forces.joint_force import joint_name
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..joints.base import AbstractJoint
from .base import AbstractReading
from .joint import jointed_system


class AbstractReactionSensor(AbstractReading):
    """A part of the reaction of a joint, given by its name."""

    joint: str = eqx.field(static=True)
    quantity: eqx.AbstractClassVar[str]
    """What is measured, in the name of the sensor."""
    value_shape: ClassVar[tuple[int, ...]] = (3,)

    def __init__(self, joint: str | AbstractJoint):
        self.joint = joint_name(joint, type(self).__name__)

    @property
    def name(self) -> str:
        return f"{self.quantity} of {self.joint}"

    def check(self, model: AbstractFormulation) -> None:
        jointed_system(model, type(self).__name__).joint_index(self.joint)


class ReactionForce(AbstractReactionSensor):
    """The reaction force of a joint on its child, (3,) N, space components.

    What the constraints of the joint exert; forces on its coordinates (`Motor`, `TorsionSpring`)
    are not part of it, the drive of a prescribed motion is. With redundant constraints it is that
    of the multipliers of least norm.

    **Arguments:** `joint`: a joint of the system, or its name; it may close a loop.
    **Errors:** `ValueError` for an unknown joint.
    """

    channels: ClassVar[tuple[str, ...]] = ("F1", "F2", "F3")
    unit: ClassVar[str] = "N"
    quantity: ClassVar[str] = "reaction force"

    def predict(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> Float[Array, "3"]:
        return model.reactions(t, y)[self.joint].force


class ReactionMoment(AbstractReactionSensor):
    """The reaction moment of a joint on its child, (3,) N m, about the joint point of the child.

    Space components. **Arguments, errors:** those of `ReactionForce`.
    """

    channels: ClassVar[tuple[str, ...]] = ("M1", "M2", "M3")
    unit: ClassVar[str] = "N m"
    quantity: ClassVar[str] = "reaction moment"

    def predict(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> Float[Array, "3"]:
        return model.reactions(t, y)[self.joint].moment
