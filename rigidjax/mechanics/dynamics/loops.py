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

from ...bodies.inertia import inertia_tensor
from ...checks import is_traced
from ...native.ops import cross, take
from ...rotations.euler_map import euler_map
from ...rotations.matrix import to_space
from ..constraints import constraint_rates, constraint_units, split_trees_and_loops
from ..extra_constraints import ExtraConstraints
from ..kinematics.poses import assemble_poses, joint_frames_at
from ..kinematics.trees import (
    MotionSubspace,
    bodies_of_rates,
    body_twists,
    motion_subspace,
    rate_lengths,
    reference_points,
)
from ..stacked.joints import Poses
from ..stacked.system import PreparedSystem
from .composite_rigid_body import generalised_forces, mass_matrix
from .pseudo_inverse import CUTOFF, Blocks, ConstrainedEquations, pseudo_inverse


class LoopGradient(eqx.Module):
    r"""Gradient $J = G T$ of the constraints of the loops on the minimal velocities of the trees,
    without units: `matrix` is $u^{-1} J s$, lengths measured by the size of the mechanism."""

    moving: MotionSubspace
    matrix: Float[Array, "m f"]
    units: Float[Array, " m"]  # $u$, of the constraints
    scale: Float[Array, " f"]  # $s$, of the minimal velocities
    blocks: Blocks | None = eqx.field(static=True)  # outside of which `matrix` is zero

    def inverse(self, cutoff: float = CUTOFF) -> Float[Array, "f m"]:
        """The pseudo-inverse of `matrix`."""
        return pseudo_inverse(self.matrix, cutoff, self.blocks)


class Loops(eqx.Module):
    r"""Constraints $J\nu + c = 0$ of the loops on the minimal velocities of the trees.

    Lengths are measured by the size of the mechanism (`mechanics.lengths`), so that which of the
    constraints are independent depends on the shape of the mechanism alone: not on units, on its
    size or on masses.
    """

    moving: MotionSubspace
    equations: ConstrainedEquations  # without units
    units: Float[Array, " m"]  # of the constraints
    scale: Float[Array, " f"]  # of the minimal velocities

    def rates(self, residual: Float[Array, " m"], forces: Float[Array, " f"]) -> Float[Array, " f"]:
        r"""$\dot\nu$ with $J\dot\nu = -$`residual` under generalised forces."""
        found, _ = self.equations.solve(self.scale * forces, -residual / self.units)
        return self.scale * found

    def correction(self, residual: Float[Array, " m"]) -> Float[Array, " f"]:
        """The smallest change of the rates, in kinetic energy, that removes the residual."""
        return self.rates(residual, jnp.zeros_like(self.scale))

    def response(self, forces: Float[Array, " f"]) -> Float[Array, " f"]:
        """Change of the rates by impulses, or of their derivatives by forces, loops closed."""
        return self.rates(jnp.zeros_like(self.units), forces)


def loop_gradient(prepared: PreparedSystem, t, poses: Poses, joint_frames) -> LoopGradient:
    """That of the loops in a pose."""
    at = reference_points(prepared, poses)
    moving = MotionSubspace(motion_subspace(prepared, poses, joint_frames, at), at)
    _, units = split_trees_and_loops(prepared, constraint_units(prepared))
    scale = rate_lengths(prepared)
    J = loop_jacobian(prepared, t, joint_frames, moving) * scale[None] * (1 / units)[:, None]
    return LoopGradient(moving, J, units, scale, loop_blocks(prepared))


def factor_loops(prepared: PreparedSystem, t, poses: Poses, joint_frames, inertias=None) -> Loops:
    """Factored mass matrix of the trees, and the constraints of the loops, in a pose; `inertias`
    (L, 3, 3) if not those of the bodies."""
    if inertias is None:
        inertias = jax.vmap(inertia_tensor)(prepared.inertias)
    return _factored(prepared, t, poses, joint_frames, inertias)


# One program for accelerations, for projections of positions and of velocities.
@eqx.filter_jit
def _factored(prepared, t, poses, joint_frames, inertias):
    of = loop_gradient(prepared, t, poses, joint_frames)
    H, scale = mass_matrix(prepared, poses, of.moving, inertias), of.scale[:, None]
    equations = ConstrainedEquations(of.matrix, scale * H * of.scale[None], of.blocks)
    return Loops(of.moving, equations, of.units, of.scale)


def consistent_rates(prepared: PreparedSystem, t, poses, joint_frames, nu):
    """The rates nearest to `nu`, in kinetic energy, with which the loops stay closed."""
    if not prepared.system.closes:
        return nu
    twists = body_twists(prepared, t, poses, joint_frames, nu)
    residual = constraint_rates(prepared, t, joint_frames, twists, loops_only=True)
    return nu + factor_loops(prepared, t, poses, joint_frames).correction(residual)


def loop_jacobian(
    prepared: PreparedSystem, t, joint_frames, moving: MotionSubspace
) -> Float[Array, "m f"]:
    r"""Gradient $J = G\,T$ of the constraints of the loops on the minimal velocities."""
    ancestors, owner = prepared.system.topology.ancestors, bodies_of_rates(prepared)
    paths = np.concatenate([ancestors, np.zeros((1, len(ancestors)), bool)])[:, owner]
    rows = []
    for group, frames in zip(prepared.groups, joint_frames, strict=True):
        if not group.closes_loops:
            continue
        G = group.over(lambda joint, r: joint.constraint_jacobian(r, t), frames.relative)
        # What both bodies hang on moves them alike.
        signs = paths[list(group.children)] - paths[list(group.parents)].astype(float)
        around = _distinct(signs != 0)
        signs = np.take_along_axis(signs, around, axis=1)

        def on(G, frames, signs, at, columns):
            def in_space(row):
                return jnp.concatenate([to_space(frames.frame, x) for x in (row[:3], row[3:])])

            def slip(sign, at, column):
                v, w = column[:3], column[3:]
                return sign * jnp.concatenate([v + cross(w, frames.point - at), w])

            return jax.vmap(in_space)(G) @ jax.vmap(slip)(signs, at, columns).T

        n, k = around.shape
        columns = take(moving.columns, around.ravel()).reshape(n, k, 6)
        at = take(moving.reference_points, owner[around.ravel()]).reshape(n, k, 3)
        part = jax.vmap(on)(G, frames, jnp.asarray(signs, G.dtype), at, columns)
        m = part.shape[1]
        if k != len(owner):
            whole = jnp.zeros((n, m, len(owner)), G.dtype)
            own, one, _ = np.ogrid[:n, :m, :k]
            part = whole.at[own, one, around[:, None]].set(part, unique_indices=True)
        rows.append(part.reshape(n * m, -1))
    if prepared.system.constraints:
        G = ExtraConstraints(prepared).jacobian(t, joint_frames)
        rows.append(
            jax.vmap(lambda row: generalised_forces(prepared, joint_frames.poses, moving, row))(G)
        )
    empty = jnp.zeros((0, moving.columns.shape[0]), moving.columns.dtype)
    return jnp.concatenate([empty, *rows])


def _distinct(masks: np.ndarray) -> np.ndarray:
    """Where each mask is set, in order, with as many places for all: others make up for fewer."""
    most = max(masks.sum(axis=1), default=0)
    return np.sort(np.argsort(~masks, axis=1, kind="stable")[:, :most], axis=1)


def loop_blocks(prepared: PreparedSystem) -> Blocks | None:
    """Blocks of the gradient of the constraints of the loops on the minimal velocities.

    A joint that closes a loop acts on those of the joints along the loop. `None` if all of them
    are one block.
    """
    system, owner = prepared.system, bodies_of_rates(prepared)
    ancestors = system.topology.ancestors
    paths = np.concatenate([ancestors, np.zeros((1, len(ancestors)), bool)])
    index = {"ground": -1, **{body.name: i for i, body in enumerate(system.bodies)}}
    index |= {frame: index[body] for frame, body in system.body_of.items()}

    def around(first, second):
        return paths[first] ^ paths[second]

    ends = system.joined_bodies.items()
    joints = {name: around(index[parent], index[child]) for name, (parent, child) in ends}
    bodies = [
        (group.joint.num_constraints, around(parent, child))
        for group in prepared.groups
        if group.closes_loops
        for parent, child in zip(group.parents, group.children, strict=True)
    ]
    for one in system.constraints:
        masks = [paths[index[name]] for name in one.body_names()]
        masks += [joints[name] for name in one.joint_names()]
        bodies.append((one.num_constraints, np.any(masks, axis=0)))
    ends = np.cumsum([count for count, _ in bodies])
    blocks = Blocks.of(
        (range(end - count, end), np.flatnonzero(mask[owner]))
        for end, (count, mask) in zip(ends, bodies, strict=True)
    )
    whole = len(blocks.parts) == 1 and len(blocks.parts[0][1]) == len(owner)
    return None if whole else blocks


def loop_rank(system) -> int:
    """Rank of the loop constraints in the reference configuration."""
    if is_traced(system):
        raise ValueError(
            "`System.num_dof` with closed loops needs known values: read it outside of `jax.jit`."
        )
    J = np.asarray(_loop_gradient(system))
    return int(np.linalg.matrix_rank(J, tol=1e-8 * np.abs(J).max(initial=0.0)))


@eqx.filter_jit
def _loop_gradient(system):
    reference = system.reference_state()
    prepared = PreparedSystem(system)
    rotations = jax.vmap(euler_map)(reference.orientation)
    poses = assemble_poses(prepared, reference.position, rotations, jnp.zeros(0))
    t = jnp.zeros((), reference.position.dtype)
    return loop_gradient(prepared, t, poses, joint_frames_at(prepared, poses)).matrix
