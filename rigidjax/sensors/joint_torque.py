"""What an actuator exerts on the coordinate of a joint."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..forces import Motor
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..mechanics.reactions import Reaction
from .joint import AbstractJointSensor


class JointTorque(AbstractJointSensor):
    r"""The moment, N m, or force, N, of the actuator of a joint, on the child.

    - A joint with a prescribed motion: what drives it, the multiplier of the driving constraint
      (`Reaction.drive`): all that the motion needs against inertia, gravity and springs elsewhere.
    - Else the sum of the `Motor`s on this coordinate, as their laws command at this time,
      coordinate and rate. Springs and dampers on the joint (`TorsionSpring`, `Bushing`) are not
      part of it.

    **Arguments, errors:** those of `JointCoordinate` but `period`, with `bias` in N m or N;
    `ValueError` for a joint that has neither a motor on this coordinate nor a prescribed motion.
    """

    channels: ClassVar[tuple[str, ...]] = ("tau",)
    unit: ClassVar[str] = "N m or N"
    quantity: ClassVar[str] = "torque"

    def check(self, model: AbstractFormulation) -> None:
        joint, k = self.coordinate(model)
        if not joint.is_driven and not self._motors(model, k):
            raise ValueError(
                f"`JointTorque({self.joint!r})` measures an actuator; this coordinate has neither "
                "an `rj.Motor` nor a prescribed motion."
            )

    def predict(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> Float[Array, ""]:
        joint, k = self.coordinate(model)
        if joint.is_driven:
            reaction = model.reactions(t, y)[self.joint]
            assert isinstance(reaction, Reaction)
            assert reaction.drive is not None
            return self.reading(reaction.drive)
        seen = model.kinematics(t, y).joints[self.joint]
        t = jnp.asarray(t, seen.rates.dtype)
        torques = [
            motor.generalised_force(t, seen.coordinates[k], seen.rates[k])
            for motor in self._motors(model, k)
        ]
        return self.reading(sum(torques, jnp.zeros_like(seen.rates[k])))

    def _motors(self, model, k):
        return [
            force
            for force in model.system.forces
            if isinstance(force, Motor)
            and force.joint == self.joint
            and (force.component or 0) == k
        ]
