"""Coordinate of a joint."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...forces.joint_force import checked_component, joint_name
from ...formulations import AbstractFormulation
from ...formulations.charts import Unknowns
from ...joints.base import AbstractJoint, wrapped
from .joint import AbstractJointSensor, joint_motion, measured_coordinate, sensor_name


class JointCoordinate(AbstractJointSensor):
    r"""A coordinate of a joint: an angle, rad, or a length, m; zero in the reference configuration.

    An angle is that of the whole motion, beyond pi too, from $(-\pi, \pi]$ at the start (of a
    prescribed motion, what it prescribes): `identify` and `sensitivity` follow it. Only the second
    angle of a `Universal` stays in $(-\pi, \pi]$. Without them, `predict` takes a model with
    `system.tracking([joint])`, or gives an angle in $(-\pi, \pi]$.

    **Arguments:**

    - `joint`: a joint of the system, or its name; it may close a loop.
    - `component`: which coordinate of a joint that has several, from 0, lengths before angles.

    **Errors:** `ValueError` for an unknown joint, one without length or angle, a wrong component.
    """

    joint: str = eqx.field(static=True)
    component: int | None = eqx.field(static=True)
    channels: ClassVar[tuple[str, ...]] = ("q",)
    unit: ClassVar[str] = "rad or m"
    value_shape: ClassVar[tuple[int, ...]] = ()

    def __init__(self, joint: str | AbstractJoint, component: int | None = None):
        self.joint = joint_name(joint, "JointCoordinate")
        self.component = checked_component(component, "JointCoordinate")

    @property
    def name(self) -> str:
        return sensor_name("coordinate", self.joint, self.component)

    def tracked_joints(self, model: AbstractFormulation) -> tuple[str, ...]:
        joint, k = measured_coordinate(model, self.joint, self.component, "JointCoordinate")
        follows = joint.has_angle and joint.num_rates > 0 and k == joint.num_translations
        return (self.joint,) if follows else ()

    def predict(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> Float[Array, ""]:
        joint, k = measured_coordinate(model, self.joint, self.component, "JointCoordinate")
        relative, _ = joint_motion(model, t, y, self.joint)
        found = joint.coordinates(relative)[k]
        if not (joint.is_driven and joint.has_angle):
            return found
        prescribed = joint.prescribed_coordinate(jnp.asarray(t, found.dtype))
        return prescribed + wrapped(found - prescribed)
