"""Smallest changes of poses, twists and accelerations that satisfy all constraints."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...bodies.inertia import inertia_tensor
from ...native.ops import short_sum
from ..constraints import constraint_rates, constraint_values, split_trees_and_loops
from ..kinematics.poses import differentiate_along_motion, joint_frames_at, kinematics_for_forces
from ..kinematics.trees import twists_from_velocities
from ..kinematics.twists import Twists
from ..loads import apply_inverse_mass, free_accelerations, free_forces
from ..stacked.joints import Poses
from ..stacked.system import PreparedSystem
from .composite_rigid_body import generalised_forces
from .loops import factor_loops
from .select import tree_constraints, tree_correction


def allowed_accelerations(
    prepared: PreparedSystem, t, poses: Poses, joint_frames, residual, forces, inertias
) -> Float[Array, "L 6"]:
    r"""$\dot w$ with $G \dot w = -$`residual` under wrenches (L, 6), in a system with loops.

    What the tree joints ask for is found from the geometry, the rest are motions that they allow:
    masses and `inertias`, (L, 3, 3), matter along these only.
    """
    tree, loop = split_trees_and_loops(prepared, residual)
    square = prepared.lengths**2
    unit = square[:, None, None] * jnp.eye(3, dtype=square.dtype)[None]
    start = tree_correction(prepared, t, poses, joint_frames, unit, jnp.ones_like(square), tree)

    def rate(w):
        return constraint_rates(
            prepared, t, joint_frames, Twists(w[:, :3], w[:, 3:]), loops_only=True
        )

    _, moved = jax.jvp(rate, (start,), (start,))
    loops = factor_loops(prepared, t, poses, joint_frames, inertias)
    turning = short_sum(inertias, start[:, None, 3:], axis=2)
    inertial = jnp.concatenate([prepared.masses[:, None] * start[:, :3], turning], axis=1)
    forces = generalised_forces(prepared, poses, loops.moving, forces - inertial)
    return start + twists_from_velocities(
        prepared, poses, loops.moving, loops.rates(loop + moved, forces)
    )


def constrained_accelerations(prepared: PreparedSystem, t, poses, joint_frames, twists):
    r"""Accelerations of all bodies with all joints as constraints, (L, 6).

    $M\dot w + G^T\lambda = f$, $G\dot w = -\gamma$. **Source:** Lang (6), (58).
    """
    kinematics = kinematics_for_forces(prepared, poses, joint_frames, twists)
    if prepared.is_free:
        of = free_accelerations(prepared, t, kinematics)
        return jnp.concatenate([of.linear, of.angular], axis=1)
    forces = free_forces(prepared, t, kinematics)

    def rate(t, poses):
        return constraint_rates(prepared, t, joint_frames_at(prepared, poses), twists)

    _, gamma = differentiate_along_motion(rate, t, poses, twists)
    inertias = jax.vmap(inertia_tensor)(prepared.inertias)
    if prepared.system.closes:
        return allowed_accelerations(prepared, t, poses, joint_frames, gamma, forces, inertias)
    free = apply_inverse_mass(prepared, forces)
    joints = tree_constraints(prepared, t, joint_frames, inertias, prepared.masses)
    return free + joints.correction(joints.apply(free) + gamma)


def smallest_change(
    prepared: PreparedSystem, t, poses: Poses, joint_frames, residual: Float[Array, " m"], inertias
) -> Float[Array, "L 6"]:
    """The smallest change of all twists, in kinetic energy, that removes the residual.

    `inertias`, (L, 3, 3), that no motion is without.
    """
    if prepared.system.closes:
        still = jnp.zeros((prepared.num_bodies, 6), residual.dtype)
        return allowed_accelerations(prepared, t, poses, joint_frames, residual, still, inertias)
    masses = regular_masses(prepared)
    return tree_correction(prepared, t, poses, joint_frames, inertias, masses, residual)


def project_twists(prepared: PreparedSystem, t, poses, joint_frames, twists: Twists) -> Twists:
    """Twists nearest to the given ones, in kinetic energy, that the joints allow (Lang (62, V))."""
    residual = constraint_rates(prepared, t, joint_frames, twists)
    change = smallest_change(prepared, t, poses, joint_frames, residual, regular_inertias(prepared))
    return Twists(twists.linear + change[:, :3], twists.angular + change[:, 3:])


def pose_correction(prepared: PreparedSystem, t, poses, joint_frames) -> Float[Array, "L 6"]:
    r"""Small motion of all bodies that closes the joints, smallest in the mass metric.

    One Newton step of Lang (62, P), `(dx, dtheta)` of each body, `dtheta` in body components.
    """
    prepared = prepared.holonomic
    residual = constraint_values(prepared, t, joint_frames)
    return smallest_change(prepared, t, poses, joint_frames, residual, regular_inertias(prepared))


def mass_metric(prepared: PreparedSystem) -> Float[Array, "n n"]:
    r"""Mass matrix (6L, 6L) of small motions $(\Delta x / \ell, \Delta\theta)$ of all bodies.

    $\ell$ is the length of the mechanism. Made regular where a body lacks mass.
    """
    L = prepared.num_bodies
    unit = jnp.eye(3, dtype=prepared.masses.dtype)[None]
    shift = (regular_masses(prepared) * prepared.lengths**2)[:, None, None] * unit
    M = jnp.zeros((L, 6, L, 6), prepared.masses.dtype)
    i = np.arange(L)
    M = M.at[i, :3, i, :3].set(shift)
    return M.at[i, 3:, i, 3:].set(regular_inertias(prepared)).reshape(6 * L, 6 * L)


def regular_masses(prepared: PreparedSystem) -> Float[Array, " L"]:
    """Return masses for a metric of motions; a body without mass has the mean of all.

    Its motion costs nothing, so that any mass serves as a metric.
    """
    masses = prepared.masses
    return jnp.where(masses > 0, masses, jnp.mean(masses))


def regular_inertias(prepared: PreparedSystem) -> Float[Array, "L 3 3"]:
    """Inertias about which no motion is without any."""
    inertias = jax.vmap(inertia_tensor)(prepared.inertias)
    # A body whose mass is a point at its joint turns at no cost: any length will do.
    masses = regular_masses(prepared)
    points = jnp.where(prepared.masses > 0, 1e-9, 1.0) * masses * prepared.lengths**2
    floor = 1e-6 * jnp.trace(inertias, axis1=1, axis2=2) + points
    return inertias + floor[:, None, None] * jnp.eye(3, dtype=inertias.dtype)[None]
