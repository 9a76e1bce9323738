"""Rate of a joint's coordinate."""

from typing import ClassVar

import jax
import jax.numpy as jnp

from ..annotations import Scalar
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..joints.relative_pose import apply_small_twist
from .joint import AbstractJointSensor, joint_motion


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
