"""What a formulation needs to know of the bodies that it moves."""

import abc
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.euler_equations import angular_momentum, euler_equations, rotational_energy
from ..forces.base import Kinematics, Wrench, to_space
from ..rotations.so3 import cross

Inertia = Float[Array, "3"] | Float[Array, "3 3"]


class AbstractMechanics(eqx.Module):
    """Masses, inertias and applied wrenches, in poses and twists only.

    Knows no parametrization. Per-body values come as tuples with one entry for each body;
    where bodies cannot translate (`FixedPointBody`) the tuples of positions, velocities and
    masses are empty.
    """

    num_bodies: eqx.AbstractVar[int]
    translates: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def masses(self) -> Sequence[Float[Array, ""]]:
        """Masses, kg."""

    @abc.abstractmethod
    def inertias(self) -> Sequence[Inertia]:
        """Inertias about the reference point of each body, body axes, kg m^2."""

    @abc.abstractmethod
    def wrenches(self, t: Float[Array, ""], kinematics: Kinematics) -> Sequence[Wrench]:
        """Applied force (space components, N) and moment (body components, N m) of each body."""

    @abc.abstractmethod
    def virials(
        self, t: Float[Array, ""], kinematics: Kinematics
    ) -> Sequence[Float[Array, "3 3"] | None]:
        r"""Symmetric part of $\sum f \otimes u$ of each body (see `AbstractForce.virials`), N m."""

    @abc.abstractmethod
    def potential_energy(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, ""]:
        """Potential energy of the applied forces, J."""

    def accelerations(
        self, t: Float[Array, ""], kinematics: Kinematics
    ) -> tuple[tuple[Float[Array, "3"], ...], tuple[Float[Array, "3"], ...]]:
        r"""Newton-Euler: $\dot v = f/m$ (space), $\dot\Omega = I^{-1}(\mu - \Omega\times I\Omega)$
        (body).

        **Returns:** one (3,) for each body, m/s^2 and rad/s^2.
        """
        wrenches = self.wrenches(t, kinematics)
        linear = self.linear_accelerations(wrenches, kinematics)
        angular = tuple(
            euler_equations(inertia, omega, moment)
            for (_, moment), inertia, omega in zip(
                wrenches, self.inertias(), kinematics.angular_velocities, strict=True
            )
        )
        return linear, angular

    def linear_accelerations(
        self, wrenches: Sequence[Wrench], kinematics: Kinematics
    ) -> tuple[Float[Array, "3"], ...]:
        """Accelerations of the centres of mass, empty if the bodies do not translate, m/s^2."""
        if not self.translates:
            return ()
        return tuple(
            jnp.zeros_like(v) if force is None else force / mass
            for (force, _), mass, v in zip(
                wrenches, self.masses(), kinematics.velocities, strict=True
            )
        )

    def kinetic_energy(self, kinematics: Kinematics) -> Float[Array, ""]:
        """Kinetic energy, J."""
        energy = sum(
            rotational_energy(inertia, omega)
            for inertia, omega in zip(self.inertias(), kinematics.angular_velocities, strict=True)
        )
        for mass, v in zip(self.masses(), kinematics.velocities, strict=True):
            energy = energy + 0.5 * mass * jnp.sum(v * v)
        return jnp.asarray(energy)

    def momentum(self, kinematics: Kinematics) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """Linear and angular momentum (about the origin), space components.

        **Returns:** two arrays of shape (3,), kg m/s and kg m^2/s.
        """
        angular = jnp.zeros(3, kinematics.angular_velocities[0].dtype)
        linear = jnp.zeros_like(angular)
        for R, inertia, omega in zip(
            kinematics.rotations, self.inertias(), kinematics.angular_velocities, strict=True
        ):
            angular = angular + to_space(R, angular_momentum(inertia, omega))
        for mass, x, v in zip(
            self.masses(), kinematics.positions, kinematics.velocities, strict=True
        ):
            linear = linear + mass * v
            angular = angular + mass * cross(x, v)
        return linear, angular


def add(first: Float[Array, "3"] | None, second: Float[Array, "3"] | None):
    """Sum of two vectors either of which may be absent (`None`, exactly zero)."""
    if first is None:
        return second
    return first if second is None else first + second
