"""The internal constraints of the rotations of all bodies: drift and multipliers."""

from collections.abc import Iterable

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..forces.base import Kinematics
from ..rotations.base import AbstractRotation
from ..rotations.quaternion import Quaternion
from ..system import AbstractMechanics
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


def constraint_drift(
    rotation: AbstractRotation, a: Float[Array, " n"], a_dot: Float[Array, " n"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Largest absolute value of the internal constraints of a body and of their rates."""
    position, velocity = rotation.constraint(a), rotation.constraint_jacobian(a) @ a_dot
    return jnp.max(jnp.abs(position), initial=0.0), jnp.max(jnp.abs(velocity), initial=0.0)


def multipliers_of_rotations(
    rotation: AbstractRotation,
    mechanics: AbstractMechanics,
    t: Float[Array, ""],
    kinematics: Kinematics,
    coordinates: Iterable[Float[Array, " n"]],
    rates: Iterable[Float[Array, " n"]],
) -> Float[Array, " m"]:
    """Multipliers of the internal constraints of all bodies, joined."""
    wrenches = mechanics.wrenches(t, kinematics)
    virials = mechanics.virials(t, kinematics)
    return jnp.concatenate(
        [
            internal_multipliers(rotation, a, a_dot, inertia, moment, virial)
            for a, a_dot, inertia, (_, moment), virial in zip(
                coordinates, rates, mechanics.inertias(), wrenches, virials, strict=True
            )
        ]
    )
