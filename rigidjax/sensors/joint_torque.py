"""Force or moment of an actuator on the coordinate of a joint."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..forces import Motor
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..mechanics.reactions import Reaction
from .joint import AbstractJointSensor, jointed_system


class JointTorque(AbstractJointSensor):
    r"""The moment, N m, or force, N, of the actuator of a joint, on the child.

    - For a prescribed motion it is the multiplier of the driving constraint (`Reaction.drive`),
      which balances inertia, gravity and all other forces.
    - Otherwise it is the sum of the `Motor`s on this coordinate, evaluated at the time, the
      coordinate and the rate. Springs and dampers on the joint (`TorsionSpring`, `Bushing`), its
      friction and its stops do not count.

    **Arguments, errors:** those of `JointCoordinate` except `period`, with `bias` in N m or N;
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
        kinematics = model.kinematics(t, y).joints[self.joint]
        t = jnp.asarray(t, kinematics.rates.dtype)
        torques = [
            motor.generalised_force(t, kinematics.coordinates[k], kinematics.rates[k])
            for motor in self._motors(model, k)
        ]
        return self.reading(sum(torques, jnp.zeros_like(kinematics.rates[k])))

    def _motors(self, model: AbstractFormulation, k: int) -> list[Motor]:
        return [
            force
            for force in jointed_system(model, type(self).__name__).forces
            if isinstance(force, Motor)
            and force.joint == self.joint
            and (force.component or 0) == k
        ]
