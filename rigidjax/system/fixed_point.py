"""A body with a fixed point, as formulations see it."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.euler_equations import angular_momentum, euler_equations, rotational_energy
from ..bodies.fixed_point import FixedPointBody
from ..forces.base import Kinematics, symmetric_part, to_space
from .mechanics import Twists


class FixedPointMechanics(eqx.Module):
    """Spherical motion: one body, no translation, in the terms of `SystemMechanics`."""

    body: FixedPointBody
    num_bodies: ClassVar[int] = 1
    translates: ClassVar[bool] = False

    @property
    def inertia(self) -> Float[Array, "3"] | Float[Array, "3 3"]:
        """About the fixed point, body axes, kg m^2."""
        return self.body.inertia

    @property
    def inertias(self) -> Float[Array, "1 3"] | Float[Array, "1 3 3"]:
        """That of the one body."""
        return self.inertia[None]

    @property
    def masses(self) -> Float[Array, "1"]:
        """Zero: nothing is known of it, and nothing translates."""
        return jnp.zeros(1, self.inertia.dtype)

    def moment(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, "3"] | None:
        """Applied moment, body components, N m; `None` if there is none."""
        if self.body.is_free:
            return None
        return self.body.applied_moment(
            t, kinematics.rotations[0], kinematics.angular_velocities[0]
        )

    def applied(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, "1 6"]:
        """The moment, as a wrench."""
        moment = self.moment(t, kinematics)
        moment = jnp.zeros(3, self.inertia.dtype) if moment is None else moment
        return jnp.concatenate([jnp.zeros_like(moment), moment])[None]

    def virials(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, "1 3 3"]:
        r"""Symmetric part of $\sum f \otimes u$ (see `AbstractForce.virials`), N m."""
        if self.body.potential is None:
            return jnp.zeros((1, 3, 3), self.inertia.dtype)
        R = kinematics.rotations[0]
        return symmetric_part(-R.T @ self.body.potential.gradient(R))[None]

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

    def potential_energy(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, ""]:
        """Potential energy of the body, J."""
        return jnp.asarray(self.body.potential_energy(kinematics.rotations[0]))
