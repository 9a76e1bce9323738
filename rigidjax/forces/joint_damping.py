"""What the damping and the armature of a joint do to its coordinates."""

import equinox as eqx
from jaxtyping import Array, Float

from .joint_force import AbstractJointForce


class JointDamping(AbstractJointForce):
    r"""Viscous damping $-d\,\dot q$ of one coordinate, N m s or N s/m, as a joint brings it along.

    `Revolute(..., damping=...)` and others make it; a system has it without being given it.
    """

    joint: str = eqx.field(static=True)
    damping: Float[Array, ""]
    component: int | None = eqx.field(static=True)

    def generalised_force(
        self, t: Float[Array, ""], coordinate: Float[Array, ""], rate: Float[Array, ""]
    ) -> Float[Array, ""]:
        return -self.damping * rate


class RotorInertia(AbstractJointForce):
    r"""What a rotor of inertia $a$ does to a joint that it turns, $-a\,\ddot q$, N m or N."""

    joint: str = eqx.field(static=True)
    armature: Float[Array, ""]
    acceleration: Float[Array, ""]
    component: int | None = eqx.field(static=True)

    def generalised_force(
        self, t: Float[Array, ""], coordinate: Float[Array, ""], rate: Float[Array, ""]
    ) -> Float[Array, ""]:
        return -self.armature * self.acceleration
