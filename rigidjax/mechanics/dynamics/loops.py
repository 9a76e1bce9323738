r"""Constraints of closed loops on the generalised velocities of the trees.

The constraints $J\nu + c = 0$ may be redundant or momentarily singular. They are solved by a
pseudo-inverse, then the motions that they leave free: positions in which $J$ loses rank need no
special treatment.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...bodies.inertia import inertia_tensor
from ...checks import is_traced
from ...persistent_jit import persistent_jit
from ...rotations.euler_map import euler_map
from ...rotations.matrix import to_space
from ...small_arrays import cross, take
from ..declared.system import AbstractSystem
from ..kinematics.constraints import constraint_rates, constraint_units, split_trees_and_loops
from ..kinematics.extra_constraints import ExtraConstraints
from ..kinematics.poses import assemble_poses, joint_frames_at
from ..kinematics.trees import (
    MotionSubspace,
    bodies_of_rates,
    body_twists,
    motion_subspace,
    rate_lengths,
    reference_points,
)
from ..stacked.joints import JointFrames, Poses
from ..stacked.system import PreparedSystem
from .mass_matrix import generalised_forces, mass_matrix
from .pseudo_inverse import CUTOFF, Blocks, ConstrainedEquations, pseudo_inverse


class LoopGradient(eqx.Module):
    """Jacobian $J = G T$ of the loop constraints on the generalised velocities of the trees.

    It has no units: `matrix` is $u^{-1} J s$ with lengths in units of the size of the mechanism.
    """

    moving: MotionSubspace
    matrix: Float[Array, "m f"]
    units: Float[Array, " m"]  # $u$, scale of the constraints
    scale: Float[Array, " f"]  # $s$, scale of the generalised velocities
    blocks: Blocks | None = eqx.field(static=True)  # `matrix` is zero outside of them

    def inverse(self, cutoff: float = CUTOFF) -> Float[Array, "f m"]:
        """Return the pseudo-inverse of `matrix`."""
        return pseudo_inverse(self.matrix, cutoff, self.blocks)


class Loops(eqx.Module):
    r"""Factored constraints $J\nu + c = 0$ of the loops on the generalised velocities of the trees.

    Lengths are in units of the size of the mechanism (see `stacked.lengths`), so that which
    constraints are independent depends on the shape of the mechanism alone, not on units, size or
    masses.
    """

    moving: MotionSubspace
    equations: ConstrainedEquations  # without units
    units: Float[Array, " m"]  # scale of the constraints
    scale: Float[Array, " f"]  # scale of the generalised velocities

    def rates(self, residual: Float[Array, " m"], forces: Float[Array, " f"]) -> Float[Array, " f"]:
        r"""Return $\dot\nu$ with $J\dot\nu = -$`residual` under generalised forces."""
        rates, _ = self.equations.solve(self.scale * forces, -residual / self.units)
        return self.scale * rates

    def correction(self, residual: Float[Array, " m"]) -> Float[Array, " f"]:
        """Return the smallest change of the rates, in kinetic energy, that removes the residual."""
        return self.rates(residual, jnp.zeros_like(self.scale))

    def response(self, forces: Float[Array, " f"]) -> Float[Array, " f"]:
        """Return the change of the rates due to impulses, or of their derivatives due to forces."""
        return self.rates(jnp.zeros_like(self.units), forces)


def loop_gradient(
    prepared: PreparedSystem, t: Scalar, poses: Poses, joint_frames: JointFrames
) -> LoopGradient:
    """Evaluate the loop-constraint Jacobian in a given pose."""
    points = reference_points(prepared, poses)
    moving = MotionSubspace(motion_subspace(prepared, poses, joint_frames, points), points)
    _, units = split_trees_and_loops(prepared, constraint_units(prepared))
    scale = rate_lengths(prepared)
    J = loop_jacobian(prepared, t, joint_frames, moving) * scale[None] * (1 / units)[:, None]
    return LoopGradient(moving, J, units, scale, loop_blocks(prepared))


def factor_loops(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    inertias: Float[Array, "L 3 3"] | None = None,
) -> Loops:
    """Factor the mass matrix of the trees and the loop constraints in a given pose.

    **Arguments:** `inertias`, (L, 3, 3), if not those of the bodies.
    """
    if inertias is None:
        inertias = jax.vmap(inertia_tensor)(prepared.inertias)
    return _factor(prepared, t, poses, joint_frames, inertias)


# Compiled once for accelerations and for projections of positions and of velocities.
@persistent_jit
def _factor(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    inertias: Float[Array, "L 3 3"],
) -> Loops:
    gradient = loop_gradient(prepared, t, poses, joint_frames)
    H, scale = mass_matrix(prepared, poses, gradient.moving, inertias), gradient.scale[:, None]
    equations = ConstrainedEquations(
        gradient.matrix, scale * H * gradient.scale[None], gradient.blocks
    )
    return Loops(gradient.moving, equations, gradient.units, gradient.scale)


def consistent_rates(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    nu: Float[Array, " f"],
) -> Float[Array, " f"]:
    """Return the rates nearest to `nu`, in kinetic energy, that keep the loops closed."""
    if not prepared.system.has_loops:
        return nu
    twists = body_twists(prepared, t, poses, joint_frames, nu)
    residual = constraint_rates(prepared, t, joint_frames, twists, loops_only=True)
    return nu + factor_loops(prepared, t, poses, joint_frames).correction(residual)


def loop_jacobian(
    prepared: PreparedSystem, t: Scalar, joint_frames: JointFrames, moving: MotionSubspace
) -> Float[Array, "m f"]:
    r"""Return the Jacobian $J = G\,T$ of the loop constraints on the generalised velocities."""
    ancestors, bodies = prepared.system.topology.ancestors, bodies_of_rates(prepared)
    paths = np.concatenate([ancestors, np.zeros((1, len(ancestors)), bool)])[:, bodies]
    rows = []
    for group, frames in zip(prepared.groups, joint_frames, strict=True):
        if not group.closes_loops:
            continue
        G = group.map(lambda joint, r: joint.constraint_jacobian(r, t), frames.relative)
        # Common ancestors of both bodies move them alike.
        signs = paths[list(group.children)] - paths[list(group.parents)].astype(float)
        around = _padded_indices(signs != 0)
        signs = np.take_along_axis(signs, around, axis=1)

        def of_joint(G, frames, signs, points, columns):
            def in_space(row):
                return jnp.concatenate([to_space(frames.frame, x) for x in (row[:3], row[3:])])

            def slip(sign, point, column):
                v, w = column[:3], column[3:]
                return sign * jnp.concatenate([v + cross(w, frames.point - point), w])

            return jax.vmap(in_space)(G) @ jax.vmap(slip)(signs, points, columns).T

        n, k = around.shape
        columns = take(moving.columns, around.ravel()).reshape(n, k, 6)
        points = take(moving.reference_points, bodies[around.ravel()]).reshape(n, k, 3)
        block = jax.vmap(of_joint)(G, frames, jnp.asarray(signs, G.dtype), points, columns)
        m = block.shape[1]
        if k != len(bodies):
            padded = jnp.zeros((n, m, len(bodies)), G.dtype)
            joint, k_row, _ = np.ogrid[:n, :m, :k]
            block = padded.at[joint, k_row, around[:, None]].set(block, unique_indices=True)
        rows.append(block.reshape(n * m, -1))
    if prepared.system.constraints:
        G = ExtraConstraints(prepared).jacobian(t, joint_frames)
        rows.append(
            jax.vmap(lambda row: generalised_forces(prepared, joint_frames.poses, moving, row))(G)
        )
    empty = jnp.zeros((0, moving.columns.shape[0]), moving.columns.dtype)
    return jnp.concatenate([empty, *rows])


def _padded_indices(masks: np.ndarray) -> np.ndarray:
    """Return ascending indices at which each mask is set, padded by indices at which it is not."""
    most = max(masks.sum(axis=1), default=0)
    return np.sort(np.argsort(~masks, axis=1, kind="stable")[:, :most], axis=1)


def loop_blocks(prepared: PreparedSystem) -> Blocks | None:
    """Return the blocks of the loop-constraint Jacobian.

    A joint that closes a loop acts on the rates of the joints along the loop: loops that share no
    joint are independent. `None` if all of them form one block.
    """
    system, bodies = prepared.system, bodies_of_rates(prepared)
    ancestors = system.topology.ancestors
    paths = np.concatenate([ancestors, np.zeros((1, len(ancestors)), bool)])
    index = {"ground": -1, **{body.name: i for i, body in enumerate(system.bodies)}}
    index |= {frame: index[body] for frame, body in system.body_of.items()}

    def around(first, second):
        return paths[first] ^ paths[second]

    ends = system.joined_bodies.items()
    joints = {name: around(index[parent], index[child]) for name, (parent, child) in ends}
    masks_of_rows = [
        (group.joint.num_constraints, around(parent, child))
        for group in prepared.groups
        if group.closes_loops
        for parent, child in zip(group.parents, group.children, strict=True)
    ]
    for constraint in system.constraints:
        masks = [paths[index[name]] for name in constraint.body_names()]
        masks += [joints[name] for name in constraint.joint_names()]
        masks_of_rows.append((constraint.num_constraints, np.any(masks, axis=0)))
    ends = np.cumsum([count for count, _ in masks_of_rows])
    blocks = Blocks.from_rows(
        (range(end - count, end), np.flatnonzero(mask[bodies]))
        for end, (count, mask) in zip(ends, masks_of_rows, strict=True)
    )
    is_dense = len(blocks.parts) == 1 and len(blocks.parts[0][1]) == len(bodies)
    return None if is_dense else blocks


def loop_rank(system: AbstractSystem) -> int:
    """Return the rank of the loop constraints in the reference configuration."""
    if is_traced(system):
        raise ValueError(
            "`System.num_dof` with closed loops needs concrete values: read it outside `jax.jit`."
        )
    J = np.asarray(_loop_gradient(system))
    return int(np.linalg.matrix_rank(J, tol=1e-8 * np.abs(J).max(initial=0.0)))


@persistent_jit
def _loop_gradient(system: AbstractSystem) -> Float[Array, "m f"]:
    reference = system.reference_state()
    prepared = PreparedSystem(system)
    rotations = jax.vmap(euler_map)(reference.orientation)
    poses = assemble_poses(prepared, reference.position, rotations, jnp.zeros(0))
    t = jnp.zeros((), reference.position.dtype)
    return loop_gradient(prepared, t, poses, joint_frames_at(prepared, poses)).matrix
