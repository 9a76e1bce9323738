"""Applied, gyroscopic and inertial wrenches of the bodies, and accelerations of free bodies."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...bodies.euler_equations import angular_momentum, euler_equations, solve_inertia
from ...forces.base import Kinematics
from ...small_arrays import cross, divide_by_invariant, vmap_rows
from ..kinematics.poses import Twists
from ..stacked.forces import ForceGroup
from ..stacked.system import PreparedSystem


def applied_wrenches(
    prepared: PreparedSystem, t: Scalar, kinematics: Kinematics
) -> Float[Array, "L 6"]:
    """Return the applied forces, space components, and moments, body components."""
    return wrenches_of_groups(prepared, prepared.forces, t, kinematics)


def wrenches_of_groups(
    prepared: PreparedSystem, groups: Sequence[ForceGroup], t: Scalar, kinematics: Kinematics
) -> Float[Array, "L 6"]:
    """Return the applied wrenches of some groups of forces alone."""
    zero = jnp.zeros((prepared.num_bodies, 3), prepared.masses.dtype)
    parts = [zero if part is None else part for part in _sum_loads(groups, t, kinematics)]
    return jnp.concatenate(parts, axis=1)


def _sum_loads(
    groups: Sequence[ForceGroup], t: Scalar, kinematics: Kinematics
) -> tuple[Float[Array, "L 3"] | None, Float[Array, "L 3"] | None]:
    """Sum forces, space components, and moments, body components; `None` if there are none."""
    forces, moments = None, None
    for group in groups:
        group_forces, group_moments = group.loads(t, kinematics)
        forces, moments = _add(forces, group_forces), _add(moments, group_moments)
    return forces, moments


def _add(first: Array | None, second: Array | None) -> Array | None:
    """Add two arrays either of which may be absent."""
    if first is None or second is None:
        return second if first is None else first
    return first + second


def force_virials(
    prepared: PreparedSystem, t: Scalar, kinematics: Kinematics
) -> Float[Array, "L 3 3"]:
    r"""Return the symmetric part of $\sum f \otimes u$ of each body, N m.

    Forces $f$ act at points $u$ from the centre of mass, body components. It has no effect on the
    motion; multipliers of the internal constraints depend on it (Sherif 4.2).
    """
    zero = jnp.zeros((prepared.num_bodies, 3, 3), prepared.masses.dtype)
    return sum((group.virials(t, kinematics) for group in prepared.forces), zero)


def apply_mass(
    prepared: PreparedSystem, linear: Float[Array, "L 3"], angular: Float[Array, "L 3"]
) -> Float[Array, "L 6"]:
    """Multiply twists or their derivatives by the mass matrix of the bodies."""
    turn = jax.vmap(angular_momentum)(prepared.inertias, angular)
    return jnp.concatenate([prepared.masses[:, None] * linear, turn], axis=1)


def apply_inverse_mass(
    prepared: PreparedSystem, wrenches: Float[Array, "L 6"]
) -> Float[Array, "L 6"]:
    """Multiply wrenches by the inverse of the mass matrix of the bodies."""
    angular = jax.vmap(solve_inertia)(prepared.inertias, wrenches[:, 3:])
    return jnp.concatenate(
        [divide_by_invariant(wrenches[:, :3], prepared.masses[:, None]), angular], axis=1
    )


def gyroscopic_moments(prepared: PreparedSystem, omega: Float[Array, "L 3"]) -> Float[Array, "L 3"]:
    r"""Return $\Omega \times I\,\Omega$ of every body."""
    return jax.vmap(lambda I, w: cross(w, angular_momentum(I, w)))(prepared.inertias, omega)


def free_forces(prepared: PreparedSystem, t: Scalar, kinematics: Kinematics) -> Float[Array, "L 6"]:
    r"""Return applied less gyroscopic wrenches: $M \dot w$ is their sum with the reactions."""
    gyroscopic = gyroscopic_moments(prepared, kinematics.angular_velocities)
    return applied_wrenches(prepared, t, kinematics) - jnp.concatenate(
        [jnp.zeros_like(gyroscopic), gyroscopic], axis=1
    )


def free_accelerations(prepared: PreparedSystem, t: Scalar, kinematics: Kinematics) -> Twists:
    """Return the derivatives of the twists of bodies without joints."""
    linear, moments = free_accelerations_and_moments(prepared, t, kinematics)
    omega = kinematics.angular_velocities
    return Twists(linear, vmap_rows(euler_equations, prepared.inertias, omega, moments))


def free_accelerations_and_moments(
    prepared: PreparedSystem, t: Scalar, kinematics: Kinematics
) -> tuple[Float[Array, "L 3"], Float[Array, "L 3"] | None]:
    """Return accelerations of the centres of mass of bodies without joints, and applied moments,
    body components; `None` if there are none."""
    forces, moments = _sum_loads(prepared.forces, t, kinematics)
    if forces is None:
        return jnp.zeros_like(kinematics.velocities), moments
    return divide_by_invariant(forces, prepared.masses[:, None]), moments
