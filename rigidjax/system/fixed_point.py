"""A body with a fixed point, as formulations see it."""

from collections.abc import Sequence
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.fixed_point import FixedPointBody
from ..forces.base import Kinematics, Wrench, symmetric_part
from .mechanics import AbstractMechanics, Inertia


class FixedPointMechanics(AbstractMechanics):
    """Spherical motion: one body, no translation."""

    body: FixedPointBody
    num_bodies: ClassVar[int] = 1
    translates: ClassVar[bool] = False

    def masses(self) -> Sequence[Float[Array, ""]]:
        return ()

    def inertias(self) -> Sequence[Inertia]:
        return (self.body.inertia,)

    def wrenches(self, t: Float[Array, ""], kinematics: Kinematics) -> Sequence[Wrench]:
        if self.body.is_free:
            return ((None, None),)
        moment = self.body.applied_moment(
            t, kinematics.rotations[0], kinematics.angular_velocities[0]
        )
        return ((None, moment),)

    def virials(
        self, t: Float[Array, ""], kinematics: Kinematics
    ) -> Sequence[Float[Array, "3 3"] | None]:
        if self.body.potential is None:
            return (None,)
        R = kinematics.rotations[0]
        return (symmetric_part(-R.T @ self.body.potential.gradient(R)),)

    def potential_energy(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, ""]:
        return jnp.asarray(self.body.potential_energy(kinematics.rotations[0]))
