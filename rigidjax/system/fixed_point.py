"""A body with a fixed point, as formulations see it."""

from collections.abc import Sequence
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.euler_equations import angular_momentum, euler_equations, rotational_energy
from ..bodies.fixed_point import FixedPointBody
from ..forces.base import Kinematics, Wrench, symmetric_part, to_space
from .jointed import Twists
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

    @property
    def inertia(self) -> Inertia:
        """About the fixed point, body axes, kg m^2."""
        return self.body.inertia

    def moment(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, "3"] | None:
        """Applied moment, body components, N m; `None` if there is none."""
        return self.wrenches(t, kinematics)[0][1]

    def turning(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, "3"]:
        r"""$\dot\Omega = I^{-1}(\mu - \Omega\times I\Omega)$, body components, rad/s^2."""
        omega = kinematics.angular_velocities[0]
        return euler_equations(self.inertia, omega, self.moment(t, kinematics))

    def accelerations(self, t: Float[Array, ""], kinematics: Kinematics) -> Twists:
        """Derivatives of the twist, that of the fixed point is zero."""
        turning = self.turning(t, kinematics)[None]
        return Twists(jnp.zeros_like(turning), turning)

    def kinetic_energy(self, kinematics: Kinematics) -> Float[Array, ""]:
        """Kinetic energy, J."""
        return rotational_energy(self.inertia, kinematics.angular_velocities[0])

    def momentum(self, kinematics: Kinematics) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """Zero, since nothing is known of the centre of mass, and the angular momentum about the
        fixed point, space components, kg m^2/s."""
        spin = angular_momentum(self.inertia, kinematics.angular_velocities[0])
        return jnp.zeros_like(spin), to_space(kinematics.rotations[0], spin)

    def virials(
        self, t: Float[Array, ""], kinematics: Kinematics
    ) -> Sequence[Float[Array, "3 3"] | None]:
        if self.body.potential is None:
            return (None,)
        R = kinematics.rotations[0]
        return (symmetric_part(-R.T @ self.body.potential.gradient(R)),)

    def potential_energy(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, ""]:
        return jnp.asarray(self.body.potential_energy(kinematics.rotations[0]))
