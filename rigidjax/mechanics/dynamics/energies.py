"""Kinetic and potential energy and momentum of a system."""

import jax
import jax.numpy as jnp

from ...annotations import Scalar, Vector3
from ...forces.base import Kinematics
from ...rotations.matrix import to_space
from ...small_arrays import cross
from ..stacked.system import PreparedSystem
from .loads import apply_mass


def kinetic_energy(prepared: PreparedSystem, kinematics: Kinematics) -> Scalar:
    """Return the kinetic energy of bodies and rotors, J."""
    v, omega = kinematics.velocities, kinematics.angular_velocities
    momenta = apply_mass(prepared, v, omega)
    energy = 0.5 * jnp.sum(momenta * jnp.concatenate([v, omega], axis=1))
    for group in prepared.groups:
        if group.joint.armatures is not None:
            names = [prepared.system.joints[j].name for j in group.indices]
            rates = kinematics.joints.select(names).rates
            energy = energy + 0.5 * jnp.sum(group.joint.armatures * rates**2)
    return energy


def total_momentum(prepared: PreparedSystem, kinematics: Kinematics) -> tuple[Vector3, Vector3]:
    """Return linear momentum, kg m/s, and angular momentum about the origin, kg m^2/s, space
    components."""
    momenta = apply_mass(prepared, kinematics.velocities, kinematics.angular_velocities)
    linear = momenta[:, :3]
    spin = jax.vmap(to_space)(kinematics.rotations, momenta[:, 3:])
    angular = spin + jax.vmap(cross)(kinematics.positions, linear)
    return jnp.sum(linear, axis=0), jnp.sum(angular, axis=0)


def potential_energy(prepared: PreparedSystem, t: Scalar, kinematics: Kinematics) -> Scalar:
    """Return the potential energy of the applied forces, J."""
    groups = [group for group in prepared.forces if group.force.has_potential]
    zero = jnp.zeros((), prepared.masses.dtype)
    return sum((group.potential_energy(t, kinematics) for group in groups), zero)
