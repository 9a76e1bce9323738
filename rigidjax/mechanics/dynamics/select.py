"""Choice of the algorithm that computes accelerations, the only place that makes it.

A free body needs no algorithm. Loops need the mass matrix of the trees. Trees have three: the
articulated-body algorithm where it runs as a sequence of operations on scalars and the trees have
few branches, otherwise a dense mass matrix for few generalised velocities, or elimination of the
reactions for many.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...bodies.inertia import inertia_tensor
from ...native import variants
from ...small_arrays import divide_by_invariant, short_sum
from ..declared.system import AbstractSystem
from ..kinematics.bias_accelerations import bias_accelerations
from ..kinematics.constraints import constraint_jacobian, constraint_rates
from ..kinematics.poses import Motion, Twists, joint_frames_at, kinematics_for_forces, pose_rate
from ..kinematics.trees import (
    MotionSubspace,
    body_twists,
    motion_subspace,
    motions_and_twists,
    reference_points,
)
from ..stacked.joints import JointFrames, Poses
from ..stacked.system import PreparedSystem
from .articulated_body import articulated_body_accelerations, find_segments, least_change_of_trees
from .block_elimination import invert
from .constraint_elimination import (
    AbstractConstraints,
    DenseConstraints,
    EliminatedConstraints,
    constraint_elimination_accelerations,
    flatten_jacobian,
)
from .joint_gradients import joint_gradients
from .loads import apply_mass, free_accelerations, free_forces
from .loops import factor_loops
from .mass_matrix import generalised_forces, mass_matrix, solve


def mass_matrix_accelerations(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    nu: Float[Array, " f"],
    efforts: Float[Array, " f"] | None = None,
) -> Motion:
    r"""Compute accelerations by a dense mass matrix of the trees, with closed loops too.

    `efforts` are generalised forces beyond those of the system.

    **Source:** Lang (11): $T^T M T \dot\nu = T^T (f - M (\dot T \nu - \dot r))$.
    """
    points = reference_points(prepared, poses)
    motions, twists = motions_and_twists(prepared, t, poses, joint_frames, points, nu)
    loops = None
    if prepared.system.has_loops:
        loops = factor_loops(prepared, t, poses, joint_frames)
        residual = constraint_rates(prepared, t, joint_frames, twists, loops_only=True)
        nu = nu + loops.correction(residual)
        motions, twists = motions_and_twists(prepared, t, poses, joint_frames, points, nu)
    bias = bias_accelerations(prepared, t, poses, joint_frames, points, motions, nu)
    kinematics = kinematics_for_forces(prepared, poses, joint_frames, twists)
    forces = free_forces(prepared, t, kinematics) - apply_mass(prepared, bias[:, :3], bias[:, 3:])
    if loops is None:
        moving = MotionSubspace(motion_subspace(prepared, poses, joint_frames, points), points)
        generalised = _add_efforts(generalised_forces(prepared, poses, moving, forces), efforts)
        return Motion(nu, twists, solve(mass_matrix(prepared, poses, moving), generalised))

    def rate(t, poses, w):
        joint_frames = joint_frames_at(prepared, poses)
        return constraint_rates(
            prepared, t, joint_frames, Twists(w[:, :3], w[:, 3:]), loops_only=True
        )

    w = jnp.concatenate([twists.linear, twists.angular], axis=1)
    rates = (jnp.ones_like(t), pose_rate(poses, twists), bias)
    _, bias_residual = jax.jvp(rate, (t, poses, w), rates)
    generalised = _add_efforts(generalised_forces(prepared, poses, loops.moving, forces), efforts)
    return Motion(nu, twists, loops.rates(bias_residual, generalised))


def _add_efforts(
    forces: Float[Array, " f"], efforts: Float[Array, " f"] | None
) -> Float[Array, " f"]:
    return forces if efforts is None else forces + efforts


# Generalised velocities up to which a dense mass matrix is faster (16 ball joints or 48 hinges).
DENSE_LIMIT = 48
# Constraints of trees up to which a dense matrix is faster than elimination.
_DENSE_CONSTRAINTS = 48
# Chains between branchings up to which the articulated-body algorithm is used: each adds code, and
# the time of compilation grows with them.
_MOST_SEGMENTS = 64


def uses_elimination(system: AbstractSystem) -> bool:
    """Return whether accelerations are computed by elimination along the trees, at linear cost.

    A dense mass matrix is faster for few generalised velocities, and needs mass in fewer
    directions.
    """
    few = sum(system.rates_of_bodies) <= DENSE_LIMIT
    regular = system.has_all_mass and system.armatures is None
    return not few and not system.has_loops and regular


def compute_accelerations(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    nu: Float[Array, " f"],
    efforts: Float[Array, " f"] | None = None,
) -> Motion:
    """Compute consistent generalised velocities and their derivatives.

    `efforts` are generalised forces, N and N m, beyond those of the system; none if left out.
    All algorithms agree in consistent poses. Where joints are violated or matrices are no
    rotations, as inside a step, elimination along the trees differs from the others to first order.
    """
    if nu.size == 0:
        return Motion(nu, body_twists(prepared, t, poses, joint_frames, nu), nu)
    if prepared.is_free:
        twists = body_twists(prepared, t, poses, joint_frames, nu)
        free = free_accelerations(
            prepared, t, kinematics_for_forces(prepared, poses, joint_frames, twists)
        )
        derivatives = free.angular
        if prepared.system.translates:
            derivatives = jnp.concatenate([free.linear, free.angular], axis=1)
        derivatives = derivatives.ravel()
        if efforts is not None:
            points = reference_points(prepared, poses)
            S = motion_subspace(prepared, poses, joint_frames, points)
            moving = MotionSubspace(S, points)
            derivatives = derivatives + solve(mass_matrix(prepared, poses, moving), efforts)
        return Motion(nu, twists, derivatives)
    if prepared.system.has_loops:
        return mass_matrix_accelerations(prepared, t, poses, joint_frames, nu, efforts)

    def by_matrices() -> Motion:
        if efforts is not None or not uses_elimination(prepared.system):
            return mass_matrix_accelerations(prepared, t, poses, joint_frames, nu, efforts)
        inertias = jax.vmap(inertia_tensor)(prepared.inertias)
        joints = tree_constraints(prepared, t, joint_frames, inertias, prepared.masses)
        return constraint_elimination_accelerations(prepared, t, poses, joint_frames, nu, joints)

    def by_recursion() -> Motion:
        if len(find_segments(prepared.system)) > _MOST_SEGMENTS:
            return by_matrices()
        return articulated_body_accelerations(prepared, t, poses, joint_frames, nu, efforts)

    return variants(sequential=by_recursion, batched=by_matrices)


def tree_constraints(
    prepared: PreparedSystem,
    t: Scalar,
    joint_frames: JointFrames,
    inertias: Float[Array, "L 3 3"],
    masses: Float[Array, " L"],
) -> AbstractConstraints:
    """Return the constraints of the tree joints, factored."""
    inverses = invert(inertias)
    if prepared.num_tree_constraints > _DENSE_CONSTRAINTS:
        gradients = joint_gradients(prepared, t, joint_frames)
        factors = gradients.factor(masses, inverses)
        return EliminatedConstraints(
            gradients=gradients, factors=factors, masses=masses, inverses=inverses
        )
    G = constraint_jacobian(prepared, t, joint_frames, trees_only=True)
    turn = short_sum(G[:, :, None, 3:], inverses, axis=3)
    lighter = jnp.concatenate([divide_by_invariant(G[:, :, :3], masses[:, None]), turn], axis=2)
    return DenseConstraints(
        G=G, S=flatten_jacobian(lighter) @ flatten_jacobian(G).T, masses=masses, inverses=inverses
    )


def tree_correction(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    inertias: Float[Array, "L 3 3"],
    masses: Float[Array, " L"],
    residual: Float[Array, " m"],
) -> Float[Array, "L 6"]:
    """Return the change of all twists of least kinetic energy that removes the residual of the
    tree joints."""

    def by_constraints() -> Float[Array, "L 6"]:
        return tree_constraints(prepared, t, joint_frames, inertias, masses).correction(residual)

    def by_recursion() -> Float[Array, "L 6"]:
        if len(find_segments(prepared.system)) > _MOST_SEGMENTS:
            return by_constraints()
        return least_change_of_trees(prepared, t, poses, joint_frames, inertias, masses, residual)

    return variants(sequential=by_recursion, batched=by_constraints)
