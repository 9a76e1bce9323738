"""Generalised forces of the damping and the armature of a joint."""

import equinox as eqx
from jaxtyping import Array, Float

from .joint_force import AbstractJointForce


class JointDamping(AbstractJointForce):
    r"""Viscous damping $-d\,\dot q$ of one coordinate, N m or N, from the `damping` of a joint.

    A system adds it for joints such as `Revolute(..., damping=...)`.
    """

    joint: str = eqx.field(static=True)
    damping: Float[Array, ""]
    component: int | None = eqx.field(static=True)

    def generalised_force(
        self, t: Float[Array, ""], coordinate: Float[Array, ""], rate: Float[Array, ""]
    ) -> Float[Array, ""]:
        return -self.damping * rate


class RotorInertia(AbstractJointForce):
    r"""Inertial force $-a\,\ddot q$ of a rotor of inertia $a$ on a joint, N m or N."""

    joint: str = eqx.field(static=True)
    armature: Float[Array, ""]
    acceleration: Float[Array, ""]
    component: int | None = eqx.field(static=True)

    def generalised_force(
        self, t: Float[Array, ""], coordinate: Float[Array, ""], rate: Float[Array, ""]
    ) -> Float[Array, ""]:
        return -self.armature * self.acceleration
