"""The internal constraints of the rotations of all bodies: drift and multipliers."""

import jax
from jaxtyping import Array, Float

from ..forces.base import Kinematics
from ..mechanics import SystemMechanics
from ..rotations.base import AbstractRotation
from ..rotations.quaternion import Quaternion
from .constrained import internal_multipliers


def check_rotation(rotation: AbstractRotation | None) -> AbstractRotation:
    """`rotation`, the quaternion if it is `None`; `TypeError` if it is something else."""
    if rotation is None:
        return Quaternion()
    if not isinstance(rotation, AbstractRotation):
        raise TypeError(
            "`rotation` must be a parametrization such as `rj.Quaternion()`, an instance and not "
            f"a class; got {rotation!r}."
        )
    return rotation


def multipliers_of_rotations(
    rotation: AbstractRotation,
    mechanics: SystemMechanics,
    t: Float[Array, ""],
    kinematics: Kinematics,
    coordinates: Float[Array, "L n"],
    rates: Float[Array, "L n"],
) -> Float[Array, " m"]:
    """Multipliers of the internal constraints of all bodies, joined."""
    moments = mechanics.applied(t, kinematics)[:, 3:]
    virials = mechanics.virials(t, kinematics)
    each = jax.vmap(lambda *of_body: internal_multipliers(rotation, *of_body))
    return each(coordinates, rates, mechanics.inertias, moments, virials).ravel()
