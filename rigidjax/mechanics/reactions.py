"""Multipliers of the joints and what the joints exert."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..forces.joint_damping import RotorInertia
from ..joints.motion import motion_acceleration
from ..rotations.matrix import to_space
from .constraints import constraint_jacobian, constraint_units
from .dynamics.composite_rigid_body import generalised_forces
from .dynamics.inverses import inverse_root
from .dynamics.loops import loop_gradient
from .dynamics.pseudo_inverse import CUTOFF
from .dynamics.select import tree_constraints
from .extra_constraints import ExtraConstraints
from .kinematics.bias_accelerations import joint_bias
from .kinematics.poses import kinematics_for_forces
from .kinematics.trees import first_rate, generalised_velocities
from .kinematics.twists import Twists
from .loads import apply_mass, free_forces, wrenches_of_groups
from .stacked.joints import Poses
from .stacked.system import PreparedSystem


class Reaction(eqx.Module):
    """What a joint exerts on its child, space components.

    `force`, (3,) N; `moment`, (3,) N m, about the joint point (of the child); `drive`, the force
    (N) or moment (N m) along the axis of a prescribed motion, included in them, `None` without one.
    The `damping` of the joint and the inertia of its rotor (`armature`) act on the child besides:
    the drive is what the motion needs against them too.
    With redundant constraints it is the solution of least norm of the multipliers.
    """

    force: Float[Array, "3"]
    moment: Float[Array, "3"]
    drive: Float[Array, ""] | None


class ConstraintReaction(eqx.Module):
    r"""What a constraint that is no joint exerts on bodies, space components.

    `bodies`, their names; `force`, (k, 3) N, at their centres of mass; `moment`, (k, 3) N m, about
    these. `multipliers`, (m,), those of its equations, of least norm as those of joints: the
    reaction is $-G^T \lambda$, or $-A^T \lambda$ of a `VelocityConstraint`.
    """

    bodies: tuple[str, ...] = eqx.field(static=True)
    force: Float[Array, "k 3"]
    moment: Float[Array, "k 3"]
    multipliers: Float[Array, " m"]


def multipliers(prepared, t, poses, joint_frames, twists: Twists, accelerations: Twists):
    r"""Multipliers of all joints, $G^T\lambda = f - M\dot w$, of least norm."""
    kinematics = kinematics_for_forces(prepared, poses, joint_frames, twists)
    balance = free_forces(prepared, t, kinematics) - apply_mass(
        prepared, accelerations.linear, accelerations.angular
    )
    if prepared.system.has_armature:
        forces = rotors(prepared, t, poses, joint_frames, twists, accelerations)
        balance = balance + wrenches_of_groups(
            prepared, prepared.stack_forces(forces), t, kinematics
        )
    return balancing_multipliers(prepared, t, poses, joint_frames, balance)


def rotors(
    prepared: PreparedSystem, t, poses, joint_frames, twists: Twists, accelerations: Twists
) -> list[RotorInertia]:
    """Return what the rotors of joints, of prescribed motions too, do to them, as forces."""
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
            second = [motion_acceleration(type(joint).__name__, of_motion.motion, t)]
        else:
            second = nu_dot[first[j] : first[j] + joint.num_rates]
        forces += [
            RotorInertia(joint=joint.name, armature=armature, acceleration=rate_dot, component=k)
            for k, (armature, rate_dot) in enumerate(zip(joint.armatures, second, strict=True))
        ]
    return forces


def balancing_multipliers(
    prepared: PreparedSystem, t, poses: Poses, joint_frames, balance: Float[Array, "L 6"]
) -> Float[Array, " m"]:
    r"""$\lambda$ with $G^T\lambda =$ `balance`, of least norm, moments by the mechanism's length.

    Those of the tree joints follow from those of the loops.
    """
    of_trees = _tree_multipliers(prepared, t, joint_frames)
    if not prepared.system.closes:
        return of_trees(balance)
    G = constraint_jacobian(prepared, t, joint_frames)[prepared.num_tree_constraints :]
    loops = loop_gradient(prepared, t, poses, joint_frames)
    forces = loops.scale * generalised_forces(prepared, poses, loops.moving, balance)
    of_loops = (loops.inverse().T @ forces) / loops.units
    lam = jnp.concatenate([of_trees(balance - jnp.tensordot(of_loops, G, 1)), of_loops])
    return (
        lam - idle_multipliers(prepared, t, poses, joint_frames, constraint_units(prepared)) @ lam
    )


def _tree_multipliers(prepared: PreparedSystem, t, joint_frames):
    """Multipliers of the tree joints that balance wrenches, as a function of these."""
    # Any metric will do, since the solution is unique: one without masses.
    square = prepared.lengths**2
    unit = square[:, None, None] * jnp.eye(3, dtype=square.dtype)[None]
    joints = tree_constraints(prepared, t, joint_frames, unit, jnp.ones_like(square))
    return lambda wrenches: joints.solve(joints.apply(joints.inverse_mass(wrenches)))


def idle_multipliers(
    prepared: PreparedSystem,
    t,
    poses: Poses,
    joint_frames,
    weights: Float[Array, " m"],
    cutoff=CUTOFF,
) -> Float[Array, "m m"]:
    r"""The projection of multipliers onto those that do nothing, $G^T\lambda = 0$.

    Orthogonal if multipliers are multiplied by `weights`; exactly zero if no constraint is
    redundant. Without loops there are none.
    """
    loops = loop_gradient(prepared, t, poses, joint_frames)
    unit = jnp.eye(len(loops.units), dtype=loops.units.dtype)
    idle = unit - loops.matrix @ loops.inverse(cutoff)
    idle = jnp.where(jnp.trace(idle) < 0.5, 0.0, idle)
    # What the loops can carry without moving anything, and all joints with them.
    G = constraint_jacobian(prepared, t, joint_frames)[prepared.num_tree_constraints :]
    of_trees = _tree_multipliers(prepared, t, joint_frames)
    carried = -jax.vmap(of_trees, out_axes=1)(G / loops.units[:, None, None])
    both = jnp.concatenate([carried, unit / loops.units[None]]) @ idle
    both = weights[:, None] * both
    square = both.T @ both
    size = jnp.max(jnp.diagonal(square))
    size = jnp.where(size > 0, size, 1.0)
    root = inverse_root(square / size + unit - idle) @ both.T
    return (root.T @ root) / size / weights[:, None] * weights[None]


def reactions(
    prepared: PreparedSystem, t, joint_frames, lam
) -> dict[str, Reaction | ConstraintReaction]:
    """Reaction of every joint on its child at the joint point, from the multipliers, and of every
    constraint that is no joint on its bodies."""
    out: dict[int, Any] = {}
    start = 0
    for group, frames in zip(prepared.groups, joint_frames, strict=True):
        n, m = len(group.indices), group.joint.num_constraints
        rows = lam[start : start + n * m].reshape(n, m)
        start += n * m

        def one(joint, frames, row):
            G = joint.constraint_jacobian(frames.relative, t)
            wrench = -(G.T @ row)
            force, moment = to_space(frames.frame, wrench[:3]), to_space(frames.frame, wrench[3:])
            # The last constraint is the prescribed coordinate.
            return Reaction(force, moment, -row[-1] if joint.is_driven else None)

        values = group.over(one, frames, rows)
        for k, j in enumerate(group.indices):
            out[j] = jax.tree.map(lambda leaf, k=k: leaf[k], values)
    by_name = {prepared.system.joints[j].name: out[j] for j in sorted(out)}
    return by_name | _other_reactions(prepared, t, joint_frames, lam[start:])


def _other_reactions(prepared: PreparedSystem, t, joint_frames, lam) -> dict[str, Any]:
    """Those of the constraints that are no joint."""
    system, out = prepared.system, {}
    if not system.constraints:
        return out
    index = {body.name: i for i, body in enumerate(system.bodies)}
    joined, of = system.joined_bodies, system.body_of
    G, R = ExtraConstraints(prepared).jacobian(t, joint_frames), joint_frames.poses.rotations
    start = 0
    for one in system.constraints:
        rows = slice(start, start + one.num_constraints)
        start = rows.stop
        named = [of.get(name, name) for name in one.body_names()]
        names = [*named, *(body for j in one.joint_names() for body in joined[j])]
        bodies = tuple(name for name in dict.fromkeys(names) if name != "ground")
        at = np.array([index[name] for name in bodies])
        wrench = -jnp.tensordot(lam[rows], G[rows], 1)[at]
        moment = jax.vmap(to_space)(R[at], wrench[:, 3:])
        out[one.name] = ConstraintReaction(bodies, wrench[:, :3], moment, lam[rows])
    return out
