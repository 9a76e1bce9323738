"""Internal constraints of the rotations of all bodies: drift and multipliers."""

import jax
from jaxtyping import Array, Float

from ..forces.base import Kinematics
from ..mechanics.dynamics.loads import applied_wrenches, force_virials
from ..mechanics.stacked.system import PreparedSystem
from ..rotations.base import AbstractRotation
from ..rotations.quaternion import Quaternion
from .constrained import internal_multipliers


def check_rotation(rotation: AbstractRotation | None) -> AbstractRotation:
    """Return `rotation`, or the quaternion for `None`; raise `TypeError` for anything else."""
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
    prepared: PreparedSystem,
    t: Float[Array, ""],
    kinematics: Kinematics,
    coordinates: Float[Array, "L n"],
    rates: Float[Array, "L n"],
) -> Float[Array, " m"]:
    """Return the multipliers of the internal constraints of all bodies, in one vector."""
    moments = applied_wrenches(prepared, t, kinematics)[:, 3:]
    virials = force_virials(prepared, t, kinematics)
    each = jax.vmap(lambda *of_body: internal_multipliers(rotation, *of_body))
    return each(coordinates, rates, prepared.inertias, moments, virials).ravel()
