"""Coordinate of a joint."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..joints.base import wrapped
from .joint import AbstractJointSensor, joint_motion


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

    channels: ClassVar[tuple[str, ...]] = ("q",)
    unit: ClassVar[str] = "rad or m"
    quantity: ClassVar[str] = "coordinate"

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
        if not (joint.is_driven and joint.has_angle):
            return found
        prescribed = joint.prescribed_coordinate(jnp.asarray(t, found.dtype))
        return prescribed + wrapped(found - prescribed)
