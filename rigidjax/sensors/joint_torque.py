"""Force or moment of an actuator on the coordinate of a joint."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from ..annotations import Scalar
from ..forces import AbstractActuator, Motor
from ..forces.base import ForceAtStates
from ..formulations import AbstractFormulation
from ..formulations.binding import bind_free
from ..formulations.charts import Unknowns
from ..mechanics.dynamics.reactions import Reaction
from .joint import AbstractJointSensor, jointed_system


class JointTorque(AbstractJointSensor):
    r"""The moment, N m, or force, N, of the actuator of a joint, on the child.

    - For a prescribed motion it is the multiplier of the driving constraint (`Reaction.drive`),
      which balances inertia, gravity and all other forces.
    - Otherwise it is the sum of the `Motor`s and the actuators with states (`LaggedMotor`,
      `DCMotor`, `PIController`, ...) on this coordinate, at the present values of their inputs.
      Springs and dampers on the joint (`TorsionSpring`, `Bushing`), its friction and its stops do
      not count.

    **Arguments, errors:** those of `JointCoordinate` except `period`, with `bias` in N m or N;
    `ValueError` for a joint with neither an actuator on this coordinate nor a prescribed motion.
    """

    channels: ClassVar[tuple[str, ...]] = ("tau",)
    unit: ClassVar[str] = "N m or N"
    quantity: ClassVar[str] = "torque"

    def check(self, model: AbstractFormulation) -> None:
        joint, k = self.coordinate(model)
        if not joint.is_driven and not self._actuators(model, k):
            raise ValueError(
                f"`JointTorque({self.joint!r})` measures an actuator; this coordinate has neither "
                "an actuator, such as `rj.Motor`, nor a prescribed motion."
            )

    def predict(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> Scalar:
        joint, k = self.coordinate(model)
        if joint.is_driven:
            reaction = model.reactions(t, y)[self.joint]
            assert isinstance(reaction, Reaction)
            assert reaction.drive is not None
            return self.reading(reaction.drive)
        kinematics = model.kinematics(t, y).joints[self.joint]
        t = jnp.asarray(t, kinematics.rates.dtype)
        motion = kinematics.coordinates[k], kinematics.rates[k]

        def evaluate(force: Any) -> Array:
            if isinstance(force, ForceAtStates):
                actuator: Any = force.force
                return actuator.evaluate_force(t, force.states, *motion)
            return force.generalised_force(t, *motion)

        # Without the values at `(t, y)`, inputs of controllers would have their defaults.
        torques = map(evaluate, self._actuators(bind_free(model, t, y), k))
        return self.reading(sum(torques, jnp.zeros_like(motion[1])))

    def _actuators(self, model: AbstractFormulation, k: int) -> list[Any]:
        """Return the actuators on coordinate `k`, at their states if the model is bound."""

        def acts(force):
            force = force.force if isinstance(force, ForceAtStates) else force
            is_actuator = isinstance(force, Motor | AbstractActuator)
            return is_actuator and force.joint == self.joint and (force.component or 0) == k

        return [*filter(acts, jointed_system(model, type(self).__name__).forces)]
