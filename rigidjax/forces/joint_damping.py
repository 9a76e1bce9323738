"""Generalised forces of the arguments of a joint: damping, friction, spring, stops, armature."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..joints.base import AbstractJoint
from ..joints.friction import Friction, HeldFriction, values_of_coordinate
from ..joints.stop import Stop
from .base import AbstractForce, Bodies, Kinematics
from .joint_force import AbstractJointForce


class JointDamping(AbstractJointForce):
    r"""Viscous damping $-d\,\dot q$ of one coordinate, N m or N, from the `damping` of a joint.

    A system adds it for joints such as `Revolute(..., damping=...)`.
    """

    joint: str = eqx.field(static=True)
    damping: Scalar
    component: int | None = eqx.field(static=True)

    def generalised_force(self, t: Scalar, coordinate: Scalar, rate: Scalar) -> Scalar:
        return -self.damping * rate


class JointFriction(AbstractJointForce):
    """Friction on one coordinate, N m or N, from the `friction` of a joint."""

    joint: str = eqx.field(static=True)
    friction: Friction | HeldFriction
    component: int | None = eqx.field(static=True)

    def generalised_force(self, t: Scalar, coordinate: Scalar, rate: Scalar) -> Scalar:
        return self.friction.at(t).force(rate)


class JointSpring(AbstractJointForce):
    r"""Spring $-k\,(q - q_0)$ on one coordinate, from the `stiffness` and `rest` of a joint."""

    joint: str = eqx.field(static=True)
    stiffness: Scalar
    rest: Scalar | None
    component: int | None = eqx.field(static=True)

    def generalised_force(self, t: Scalar, coordinate: Scalar, rate: Scalar) -> Scalar:
        return -self.stiffness * self._stretch(coordinate)

    def potential_energy(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Scalar:
        coordinate = kinematics.joints[0].coordinates[self.component or 0]
        return 0.5 * self.stiffness * self._stretch(coordinate) ** 2

    def _stretch(self, coordinate: Scalar) -> Scalar:
        return coordinate if self.rest is None else coordinate - self.rest


class JointStops(AbstractJointForce):
    """Stops at both ends of one coordinate, N m or N, from the `limits` of a joint."""

    joint: str = eqx.field(static=True)
    limits: Float[Array, "2"]
    stop: Stop
    component: int | None = eqx.field(static=True)

    def generalised_force(self, t: Scalar, coordinate: Scalar, rate: Scalar) -> Scalar:
        low, high = self.limits
        return self.stop.force(low - coordinate, -rate) - self.stop.force(coordinate - high, rate)

    def potential_energy(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Scalar:
        coordinate = kinematics.joints[0].coordinates[self.component or 0]
        low, high = self.limits
        return self.stop.energy(low - coordinate) + self.stop.energy(coordinate - high)


class RotorInertia(AbstractJointForce):
    r"""Inertial force $-a\,\ddot q$ of a rotor of inertia $a$ on a joint, N m or N."""

    joint: str = eqx.field(static=True)
    armature: Scalar
    acceleration: Scalar
    component: int | None = eqx.field(static=True)

    def generalised_force(self, t: Scalar, coordinate: Scalar, rate: Scalar) -> Scalar:
        return -self.armature * self.acceleration


def forces_of_joint(joint: AbstractJoint) -> list[AbstractForce]:
    """Return the forces of the arguments of a joint, of every coordinate, without the rotor."""
    constants: Any = joint
    laws: list[tuple[Any, Callable[..., AbstractForce], tuple[str, ...]]] = [
        (constants.damping, JointDamping, ("damping",)),
        (constants.friction, JointFriction, ("friction",)),
        (constants.stiffness, JointSpring, ("stiffness", "rest")),
        (constants.limits, JointStops, ("limits", "stop")),
    ]
    forces = []
    for given, kind, fields in laws:
        for k in range(joint.num_undriven_rates) if given is not None else ():
            values = values_of_coordinate({name: getattr(joint, name) for name in fields}, k)
            forces.append(kind(joint=joint.name, component=k, **values))
    return forces
