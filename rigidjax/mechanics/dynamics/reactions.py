"""Multipliers and reactions of joints and other constraints."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar, Vector3
from ...forces.joint_damping import RotorInertia
from ...joints.motion import motion_acceleration
from ...rotations.matrix import to_space
from ..kinematics.bias_accelerations import joint_bias
from ..kinematics.constraints import constraint_jacobian, constraint_units
from ..kinematics.extra_constraints import ExtraConstraints
from ..kinematics.poses import Twists, kinematics_for_forces
from ..kinematics.trees import first_rate, generalised_velocities
from ..stacked.joints import JointFrames, Poses
from ..stacked.system import PreparedSystem
from .loads import apply_mass, free_forces, wrenches_of_groups
from .loops import loop_gradient
from .mass_matrix import generalised_forces, inverse_root
from .pseudo_inverse import CUTOFF
from .select import tree_constraints


class Reaction(eqx.Module):
    """Wrench that a joint exerts on its child, space components.

    `force`, (3,) N; `moment`, (3,) N m, about the joint point (of the child); `drive`, the force
    (N) or moment (N m) along the axis of a prescribed motion, included in them, `None` without one.
    The `damping`, the `friction`, the spring and the stops of the joint, and the inertia of its
    rotor (`armature`) act on the child in addition: the drive includes the load that the motion
    needs against them. With redundant constraints it belongs to the multipliers of least norm.
    """

    force: Vector3
    moment: Vector3
    drive: Scalar | None


class ConstraintReaction(eqx.Module):
    r"""Wrenches that a constraint that is no joint exerts on bodies, space components.

    `bodies`, their names; `force`, (k, 3) N, at their centres of mass; `moment`, (k, 3) N m, about
    these. `multipliers`, (m,), of its equations, of least norm: the reaction is $-G^T \lambda$, or
    $-A^T \lambda$ of a `VelocityConstraint`.
    """

    bodies: tuple[str, ...] = eqx.field(static=True)
    force: Float[Array, "k 3"]
    moment: Float[Array, "k 3"]
    multipliers: Float[Array, " m"]


def multipliers(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    twists: Twists,
    accelerations: Twists,
) -> Float[Array, " m"]:
    r"""Return multipliers of all joints, $G^T\lambda = f - M\dot w$, of least norm."""
    kinematics = kinematics_for_forces(prepared, poses, joint_frames, twists)
    balance = free_forces(prepared, t, kinematics) - apply_mass(
        prepared, accelerations.linear, accelerations.angular
    )
    if prepared.system.has_armature:
        forces = rotor_forces(prepared, t, poses, joint_frames, twists, accelerations)
        balance = balance + wrenches_of_groups(
            prepared, prepared.stack_forces(forces), t, kinematics
        )
    return multipliers_from_balance(prepared, t, poses, joint_frames, balance)


def rotor_forces(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    twists: Twists,
    accelerations: Twists,
) -> list[RotorInertia]:
    """Return the effect of the rotors of joints, of prescribed motions too, as forces."""
    nu = generalised_velocities(prepared, t, joint_frames, twists)
    bias = joint_bias(prepared, t, poses, nu, twists)
    nu_dot = generalised_velocities(prepared, t, joint_frames, accelerations, bias)
    system, forces = prepared.system, []
    first = dict(zip(system.topology.joints, first_rate(prepared), strict=False))
    for j, joint in enumerate(system.joints):
        if joint.armatures is None:
            continue
        if joint.is_driven:
            of_motion: Any = joint
            accelerations_of_rates = [
                motion_acceleration(type(joint).__name__, of_motion.motion, t)
            ]
        else:
            accelerations_of_rates = nu_dot[first[j] : first[j] + joint.num_rates]
        forces += [
            RotorInertia(joint=joint.name, armature=armature, acceleration=rate_dot, component=k)
            for k, (armature, rate_dot) in enumerate(
                zip(joint.armatures, accelerations_of_rates, strict=True)
            )
        ]
    return forces


def multipliers_from_balance(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    balance: Float[Array, "L 6"],
) -> Float[Array, " m"]:
    r"""Return $\lambda$ with $G^T\lambda =$ `balance`, of least norm.

    Moments count in units of the mechanism's length. Multipliers of the tree joints follow from
    those of the loops.
    """
    of_trees = _tree_multipliers(prepared, t, joint_frames)
    if not prepared.system.has_loops:
        return of_trees(balance)
    G = constraint_jacobian(prepared, t, joint_frames)[prepared.num_tree_constraints :]
    loops = loop_gradient(prepared, t, poses, joint_frames)
    forces = loops.scale * generalised_forces(prepared, poses, loops.moving, balance)
    of_loops = (loops.inverse().T @ forces) / loops.units
    lam = jnp.concatenate([of_trees(balance - jnp.tensordot(of_loops, G, 1)), of_loops])
    return (
        lam
        - redundant_multipliers(prepared, t, poses, joint_frames, constraint_units(prepared)) @ lam
    )


def _tree_multipliers(
    prepared: PreparedSystem, t: Scalar, joint_frames: JointFrames
) -> Callable[[Float[Array, "L 6"]], Float[Array, " m"]]:
    """Return a function of wrenches: the multipliers of the tree joints that balance them."""
    # The solution is unique, so that any metric serves: here one without masses.
    square = prepared.lengths**2
    unit = square[:, None, None] * jnp.eye(3, dtype=square.dtype)[None]
    joints = tree_constraints(prepared, t, joint_frames, unit, jnp.ones_like(square))
    return lambda wrenches: joints.solve(joints.apply(joints.inverse_mass(wrenches)))


def redundant_multipliers(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    weights: Float[Array, " m"],
    cutoff: float = CUTOFF,
) -> Float[Array, "m m"]:
    r"""Return the projection of multipliers onto those without effect, $G^T\lambda = 0$.

    It is orthogonal if multipliers are multiplied by `weights`, and exactly zero without loops or
    redundant constraints.
    """
    loops = loop_gradient(prepared, t, poses, joint_frames)
    unit = jnp.eye(len(loops.units), dtype=loops.units.dtype)
    redundant = unit - loops.matrix @ loops.inverse(cutoff)
    redundant = jnp.where(jnp.trace(redundant) < 0.5, 0.0, redundant)
    # Multipliers of the loops without effect, and those of the tree joints that balance them.
    G = constraint_jacobian(prepared, t, joint_frames)[prepared.num_tree_constraints :]
    of_trees = _tree_multipliers(prepared, t, joint_frames)
    carried = -jax.vmap(of_trees, out_axes=1)(G / loops.units[:, None, None])
    all_joints = jnp.concatenate([carried, unit / loops.units[None]]) @ redundant
    all_joints = weights[:, None] * all_joints
    square = all_joints.T @ all_joints
    size = jnp.max(jnp.diagonal(square))
    size = jnp.where(size > 0, size, 1.0)
    factor = inverse_root(square / size + unit - redundant) @ all_joints.T
    return (factor.T @ factor) / size / weights[:, None] * weights[None]


def reactions(
    prepared: PreparedSystem, t: Scalar, joint_frames: JointFrames, lam: Float[Array, " m"]
) -> dict[str, Reaction | ConstraintReaction]:
    """Return the reactions of all joints and constraints, by name, from the multipliers.

    The reaction of a joint acts on its child at the joint point.
    """
    reactions_by_joint: dict[int, Any] = {}
    start = 0
    for group, frames in zip(prepared.groups, joint_frames, strict=True):
        n, m = len(group.indices), group.joint.num_constraints
        rows = lam[start : start + n * m].reshape(n, m)
        start += n * m

        def reaction_of(joint, frames, row):
            G = joint.constraint_jacobian(frames.relative, t)
            wrench = -(G.T @ row)
            force, moment = to_space(frames.frame, wrench[:3]), to_space(frames.frame, wrench[3:])
            # The last constraint prescribes the coordinate.
            return Reaction(force, moment, -row[-1] if joint.is_driven else None)

        values = group.map(reaction_of, frames, rows)
        for k, j in enumerate(group.indices):
            reactions_by_joint[j] = jax.tree.map(lambda leaf, k=k: leaf[k], values)
    by_name = {
        prepared.system.joints[j].name: reactions_by_joint[j] for j in sorted(reactions_by_joint)
    }
    return by_name | _extra_reactions(prepared, t, joint_frames, lam[start:])


def _extra_reactions(
    prepared: PreparedSystem, t: Scalar, joint_frames: JointFrames, lam: Float[Array, " m"]
) -> dict[str, Any]:
    """Return the reactions of the constraints that are no joint, by name."""
    system, reactions_by_joint = prepared.system, {}
    if not system.constraints:
        return reactions_by_joint
    index = {body.name: i for i, body in enumerate(system.bodies)}
    joined, body_of = system.joined_bodies, system.body_of
    G, R = ExtraConstraints(prepared).jacobian(t, joint_frames), joint_frames.poses.rotations
    start = 0
    for constraint in system.constraints:
        rows = slice(start, start + constraint.num_constraints)
        start = rows.stop
        named = [body_of.get(name, name) for name in constraint.body_names()]
        names = [*named, *(body for j in constraint.joint_names() for body in joined[j])]
        bodies = tuple(name for name in dict.fromkeys(names) if name != "ground")
        rows_of_bodies = np.array([index[name] for name in bodies])
        wrench = -jnp.tensordot(lam[rows], G[rows], 1)[rows_of_bodies]
        moment = jax.vmap(to_space)(R[rows_of_bodies], wrench[:, 3:])
        reactions_by_joint[constraint.name] = ConstraintReaction(
            bodies, wrench[:, :3], moment, lam[rows]
        )
    return reactions_by_joint
