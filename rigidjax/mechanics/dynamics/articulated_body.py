r"""The articulated-body algorithm: accelerations of trees, body after body.

Its cost and memory are the lowest. The bodies form a sequential recursion, which is fast where a
step costs a few operations on scalars and slow where a step has an overhead of its own.

**Source:** Featherstone (2008), Rigid Body Dynamics Algorithms, Table 7.1, with its symbols and
passes. Spatial vectors are in space axes about one point of each tree, so that the transforms $X$
between bodies are the identity.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...bodies.inertia import inertia_tensor
from ...native.ops import cross, short_sum, take
from ...rotations.matrix import matrix, product, to_space
from ...rotations.so3 import skew
from ..kinematics.bias_accelerations import joint_bias_accelerations
from ..kinematics.poses import kinematics_for_forces
from ..kinematics.trees import (
    first_rate,
    free_bodies,
    in_order,
    joint_twists_in_space,
    motion_subspace,
    motions_about,
    reference_points,
    tree_joints,
    twists_of,
)
from ..kinematics.twists import Motion, Twists
from ..loads import free_forces
from ..stacked.joints import GroupFrames, JointFrames, JointGroup, Poses
from ..stacked.system import PreparedSystem
from ..topology import GROUND
from .block_elimination import invert


class _SpatialInertia(NamedTuple):
    r"""Spatial (articulated) inertia and bias force of bodies about a point.

    The inertia maps the velocity $(v, \omega)$ of the point to the momentum
    $(m v + H^T\omega, H v + J\omega)$. `force` and `moment` are the bias force $p$.
    """

    mass: Float[Array, "*L 3 3"]
    H: Float[Array, "*L 3 3"]
    J: Float[Array, "*L 3 3"]
    force: Float[Array, "*L 3"]
    moment: Float[Array, "*L 3"]


class _Rows(NamedTuple):
    """Input of each step of the recursion, parents before children."""

    body: _SpatialInertia
    S: Float[Array, "L k 6"]  # motion subspace, rows of zeros up to k
    diagonal: Float[Array, "L k k"]  # added to D: rotor inertia, ones where a row of S is missing
    bias: Float[Array, "L 6"]  # acceleration at constant rates, less the parent's
    position: np.ndarray
    parent: np.ndarray


def articulated_body_accelerations(
    prepared: PreparedSystem,
    t: Float[Array, ""],
    poses: Poses,
    joint_frames: JointFrames,
    nu: Float[Array, " f"],
) -> Motion:
    r"""Compute the accelerations of a system without loops; see `select.compute_accelerations`."""
    points, (order, parents) = reference_points(prepared, poses), _outward_order(prepared)
    joint_motions = joint_twists_in_space(prepared, t, poses, joint_frames, points, nu)
    motions = take(_sum_outwards(take(joint_motions, order), parents), np.argsort(order))
    twists = twists_of(poses, points, motions)
    body = _loaded_bodies(prepared, t, poses, joint_frames, points, motions, twists)
    bias = joint_bias_accelerations(prepared, t, poses, joint_frames, points, motions, nu)
    S = motion_subspace(prepared, poses, joint_frames, points)
    rates, _ = _recursion(_make_rows(prepared, S, body, bias, prepared.system.armatures))
    return Motion(nu, twists, _unpad_rates(prepared, rates, order))


def least_change_of_trees(
    prepared: PreparedSystem,
    t: Float[Array, ""],
    poses: Poses,
    joint_frames: JointFrames,
    inertias: Float[Array, "L 3 3"],
    masses: Float[Array, " L"],
    residual: Float[Array, " m"],
) -> Float[Array, "L 6"]:
    r"""Compute the smallest change of the twists, in kinetic energy, with
    $G\,\Delta w = -$`residual` for the constraints $G$ of the tree joints.

    The change is an acceleration without forces: the motion that closes each joint with its parent
    at rest takes the role of the bias acceleration.

    Exact also where matrices $R$ are no rotations (inside a step, quaternions lose their unit
    length): velocities in body axes are $R^T v$ in $G$, so that space axes are $R^{-T}$.
    """
    poses = Poses(poses.positions, jax.vmap(_dual)(poses.rotations), poses.turns)
    dual_frames = JointFrames([_in_dual_frames(frames) for frames in joint_frames], poses)
    points, order = reference_points(prepared, poses), _outward_order(prepared)[0]
    still = jnp.zeros_like(points)
    body = _spatial_inertias(masses, inertias, poses, points, still, still)

    # Gradients of the constraints of each group, and their pseudo-inverses.
    gradients = {}
    for _, group, frames, _, _ in tree_joints(prepared, dual_frames):
        G = group.map(lambda joint, r: joint.constraint_jacobian(r, t), frames.relative)
        gradients[id(group)] = G, jax.vmap(_right_inverse)(G)

    def subspace_in_constraints(group: JointGroup, frames: GroupFrames) -> Float[Array, "n k 6"]:
        # The columns of the null space keep open joints as they are to first order only.
        S = group.map(lambda joint, r: joint.null_space(r), frames.relative)
        G, P = gradients[id(group)]
        return jnp.swapaxes(S - P @ (G @ S), 1, 2)

    closing, rows, start = [], [], 0
    for _, group, frames, bodies, sign in tree_joints(prepared, dual_frames):
        count = len(bodies) * group.joint.num_constraints
        rest = residual[start : start + count].reshape(len(bodies), -1)
        start += count
        twists = -jax.vmap(jnp.matmul)(gradients[id(group)][1], rest)
        closing.append(motions_about(frames, take(points, bodies), sign, twists[:, None])[:, 0])
        rows.append(bodies)
    free = free_bodies(prepared)
    if len(free):
        closing.append(jnp.zeros((len(free), 6), residual.dtype))
        rows.append(free)
    bias = in_order(closing, rows, jnp.zeros((0, 6), residual.dtype))
    S = motion_subspace(prepared, poses, dual_frames, points, subspace_in_constraints)
    _, motions = _recursion(_make_rows(prepared, S, body, bias, None))
    change = twists_of(poses, points, take(motions, np.argsort(order)))
    return jnp.concatenate([change.linear, change.angular], axis=1)


def _dual(R: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    r"""Return $R^{-T}$, the cofactors over the determinant; of a rotation the rotation itself."""
    d1, d2, d3 = jnp.unstack(R, axis=1)
    cofactors = jnp.stack([cross(d2, d3), cross(d3, d1), cross(d1, d2)], axis=1)
    return cofactors / jnp.sum(d1 * cofactors[:, 0])


def _in_dual_frames(frames: GroupFrames) -> GroupFrames:
    return eqx.tree_at(lambda frames: frames.frame, frames, jax.vmap(_dual)(frames.frame))


def _right_inverse(G: Float[Array, "m 6"]) -> Float[Array, "6 m"]:
    r"""Return $G^T (G G^T)^{-1}$."""
    m = len(G)
    size = next(n for n in (0, 1, 3, 6) if n >= m)
    if not m:
        return G.T
    square = jnp.pad(G @ G.T, ((0, size - m), (0, size - m)))
    square = square + jnp.asarray(np.diag(np.arange(size) >= m), G.dtype)
    return G.T @ invert(square[None])[0, :m, :m]


def _make_rows(
    prepared: PreparedSystem,
    S: Float[Array, "f 6"],
    body: _SpatialInertia,
    bias: Float[Array, "L 6"],
    rotors: Float[Array, " f"] | None,
) -> _Rows:
    """Return the input of the recursion, parents before children."""
    order, parents = _outward_order(prepared)
    S_of_bodies, diagonal = _pad_subspaces(prepared, S, order, rotors)
    body = _SpatialInertia(*(take(part, order) for part in body))
    index = np.arange(len(order))
    return _Rows(body, S_of_bodies, diagonal, take(bias, order), index, parents)


def _outward_order(prepared: PreparedSystem) -> tuple[np.ndarray, np.ndarray]:
    """Return the bodies with parents before children, and the positions of their parents in this
    order; the ground is the last."""
    topology = prepared.system.topology
    order, count = np.array(topology.order, int), topology.num_bodies
    position = np.empty(count + 1, int)
    position[order], position[GROUND] = np.arange(count), count
    return order, position[np.array(topology.parents)[order]]


def _is_chain(parents: np.ndarray) -> bool:
    """Return whether every parent directly precedes its child, so that nothing has to be stored."""
    return np.array_equal(parents, [len(parents), *range(len(parents) - 1)])


def _sum_outwards(values: Float[Array, "L k"], parents: np.ndarray) -> Float[Array, "L k"]:
    """Sum values over each body and its ancestors."""
    chain = _is_chain(parents)

    def outwards(sums, row):
        value, index, parent = row
        value = _add(value, sums if chain else _row(sums, parent))
        return value if chain else _set_row(sums, value, index), value

    start = jnp.zeros(values.shape[1:] if chain else (len(parents) + 1, *values.shape[1:]))
    rows = (values, np.arange(len(parents)), parents)
    return jax.lax.scan(outwards, start.astype(values.dtype), rows)[1]


def _padded_width(prepared: PreparedSystem) -> int:
    """Return the number of rows k that the motion subspace of every joint is padded to."""
    most = max(prepared.system.rates_of_bodies)
    return next(width for width in (1, 3, 6) if width >= most)


def _pad_subspaces(
    prepared: PreparedSystem,
    S: Float[Array, "f 6"],
    order: np.ndarray,
    rotors: Float[Array, " f"] | None,
) -> tuple[Float[Array, "L k 6"], Float[Array, "L k k"]]:
    """Return the motion subspaces body by body, in the order given, with rows of zeros, and what
    is added to the diagonal of $D$."""
    width = _padded_width(prepared)
    counts = np.array(prepared.system.rates_of_bodies, int)[order]
    first = first_rate(prepared)[:-1][order]
    slots = np.arange(width)
    rows = np.where(slots < counts[:, None], first[:, None] + slots, len(S))
    with_zeros = S
    if np.any(rows == len(S)):
        with_zeros = jnp.concatenate([S, jnp.zeros((1, 6), S.dtype)])
    missing = np.eye(width) * (slots >= counts[:, None])[:, :, None]
    diagonal = jnp.asarray(missing, S.dtype)
    if rotors is not None:
        inertias = take(jnp.concatenate([rotors, jnp.zeros(1, rotors.dtype)]), rows.ravel())
        unit = jnp.eye(width, dtype=inertias.dtype)
        diagonal = diagonal + inertias.reshape(len(order), width)[:, :, None] * unit[None]
    return take(with_zeros, rows.ravel()).reshape(len(order), width, 6), diagonal


def _unpad_rates(
    prepared: PreparedSystem, rates: Float[Array, "L k"], order: np.ndarray
) -> Float[Array, " f"]:
    """Return the rates of all bodies one after another, from padded rows in the order given."""
    width, position = rates.shape[1], np.argsort(order)
    counts = prepared.system.rates_of_bodies
    rows = [position[i] * width + k for i, count in enumerate(counts) for k in range(count)]
    return take(rates.reshape(-1), np.array(rows, int))


def _spatial_inertias(
    masses: Float[Array, " L"],
    inertias: Float[Array, "L 3 3"],
    poses: Poses,
    points: Float[Array, "L 3"],
    force: Float[Array, "L 3"],
    moment: Float[Array, "L 3"],
) -> _SpatialInertia:
    """Return the spatial inertia of each body about its reference point."""

    def of_body(m, inertia, x, R, point, force, moment):
        unit, r = jnp.eye(3, dtype=x.dtype), x - point
        square = short_sum(r, r, axis=0) * unit - r[:, None] * r[None]
        J = product(R, product(inertia, R.T)) + m * square
        return _SpatialInertia(m * unit, skew(m * r), J, force, moment)

    x, R = poses.positions[:-1], poses.rotations[:-1]
    return jax.vmap(of_body)(masses, inertias, x, R, points, force, moment)


def _loaded_bodies(
    prepared: PreparedSystem,
    t: Float[Array, ""],
    poses: Poses,
    joint_frames: JointFrames,
    points: Float[Array, "L 3"],
    motions: Float[Array, "L 6"],
    twists: Twists,
) -> _SpatialInertia:
    r"""Return the bodies with the bias force $p = v \times^* I v - f$ of velocities and
    applied forces (pass 1)."""
    kinematics = kinematics_for_forces(prepared, poses, joint_frames, twists)
    wrenches = free_forces(prepared, t, kinematics)
    inertias, still = jax.vmap(inertia_tensor)(prepared.inertias), jnp.zeros_like(points)
    body = _spatial_inertias(prepared.masses, inertias, poses, points, still, still)

    def bias_force(m, x, R, point, V, wrench):
        r = x - point
        force = m * cross(V[3:], V[:3] + cross(V[3:], r)) - wrench[:3]
        return force, cross(r, force) - to_space(R, wrench[3:])

    x, R = poses.positions[:-1], poses.rotations[:-1]
    force, moment = jax.vmap(bias_force)(prepared.masses, x, R, points, motions, wrenches)
    return body._replace(force=force, moment=moment)


def _recursion(rows: _Rows) -> tuple[Float[Array, "L k"], Float[Array, "L 6"]]:
    """Compute the derivatives of the generalised velocities of each body, (L, k), and of its
    motion: inwards to the roots, then outwards."""
    count = len(rows.parent)
    chain = _is_chain(rows.parent)
    find: Callable[[Any, Any], Any] = (lambda values, index: values) if chain else _row

    def inwards(carried: _SpatialInertia, row: _Rows):
        """Add the articulated inertia and bias force of a body to those of its parent (pass 2)."""
        S_v, S_w = row.S[:, :3], row.S[:, 3:]
        body = _SpatialInertia(*map(_add, row.body, find(carried, row.position)))
        # U = I^A S, D = S^T U.
        U_v = _apply_inertia(body.mass, body.H.T, S_v, S_w)
        U_w = _apply_inertia(body.H, body.J, S_v, S_w)
        D_inverse = _invert(_project_inertia(S_v, S_w, U_v, U_w, row.diagonal))
        W_v, W_w = _multiply(U_v, D_inverse), _multiply(U_w, D_inverse)  # U D^{-1}
        # u = tau - S^T p^A; forces of joints are among the applied wrenches.
        u = _joint_force(S_v, S_w, body.force, body.moment)
        # I^a = I^A - U D^{-1} U^T, p^a = p^A + I^a c + U D^{-1} u.
        mass, H = _subtract_outer(body.mass, W_v, U_v), _subtract_outer(body.H, W_w, U_v)
        J = _subtract_outer(body.J, W_w, U_w)
        force = _propagate_bias_force(body.force, mass, H.T, W_v, row.bias, u)
        moment = _propagate_bias_force(body.moment, H, J, W_w, row.bias, u)
        on_parent = _SpatialInertia(mass, H, J, force, moment)
        if not chain:
            on_parent = jax.tree.map(jnp.add, on_parent, _row(carried, row.parent))
            on_parent = _set_row(carried, on_parent, row.parent)
        return on_parent, (W_v, W_w, _apply(D_inverse, u))

    def outwards(accelerations: Float[Array, "*L 6"], inputs: tuple[_Rows, Array, Array, Array]):
        row, W_v, W_w, free = inputs
        # Pass 3: a' = a_parent + c, the acceleration of the joint, a = a' + S times it.
        start = _add(find(accelerations, row.parent), row.bias)
        rates = _joint_acceleration(start, W_v, W_w, free)
        motion = _add_joint_motion(start, row.S, rates)
        return motion if chain else _set_row(accelerations, motion, row.position), (rates, motion)

    no_load = jax.tree.map(
        lambda part: jnp.zeros(
            part.shape[1:] if chain else (count + 1, *part.shape[1:]), part.dtype
        ),
        rows.body,
    )
    _, factors = jax.lax.scan(inwards, no_load, rows, reverse=True)
    rest = jnp.concatenate([no_load.force, no_load.moment], axis=-1)
    return jax.lax.scan(outwards, rest, (rows, *factors))[1]


def _row(values: Any, index: Array | np.ndarray) -> Any:
    return jax.tree.map(lambda v: jax.lax.dynamic_index_in_dim(v, index, 0, False), values)


def _set_row(values: Any, row: Any, index: Array | np.ndarray) -> Any:
    return jax.tree.map(
        lambda v, r: jax.lax.dynamic_update_index_in_dim(v, r, index, 0), values, row
    )


def _add(A: Array, B: Array) -> Array:
    return A + B


def _apply_inertia(
    A: Float[Array, "3 3"], B: Float[Array, "3 3"], v: Float[Array, "k 3"], w: Float[Array, "k 3"]
) -> Float[Array, "3 k"]:
    """Return $A v^T + B w^T$."""
    return short_sum(A[:, None], v[None], axis=2) + short_sum(B[:, None], w[None], axis=2)


def _project_inertia(
    S_v: Float[Array, "k 3"],
    S_w: Float[Array, "k 3"],
    U_v: Float[Array, "3 k"],
    U_w: Float[Array, "3 k"],
    diagonal: Float[Array, "k k"],
) -> Float[Array, "k k"]:
    """Return $D = S^T U$."""
    turn = short_sum(S_w[:, :, None], U_w[None], axis=1)
    return short_sum(S_v[:, :, None], U_v[None], axis=1) + turn + diagonal


def _invert(D: Float[Array, "k k"]) -> Float[Array, "k k"]:
    if len(D) != 3:
        return invert(D[None])[0]
    # Entry by entry: whole rows gain nothing where the elements of a vector are of many systems.
    (a, f, e), (_, b, d), (_, _, c) = (jnp.unstack(row) for row in jnp.unstack(D))
    k11, k22, k33 = b * c - d * d, a * c - e * e, a * b - f * f
    k23, k13, k12 = e * f - a * d, d * f - b * e, d * e - c * f
    scale = 1 / (a * k11 + f * k12 + e * k13)
    return matrix([k * scale for k in (k11, k12, k13, k12, k22, k23, k13, k23, k33)])


def _multiply(A: Float[Array, "3 k"], B: Float[Array, "k k"]) -> Float[Array, "3 k"]:
    return short_sum(A[:, :, None], B[None], axis=1)


def _apply(A: Float[Array, "k k"], v: Float[Array, " k"]) -> Float[Array, " k"]:
    return short_sum(A, v[None], axis=1)


def _joint_force(
    S_v: Float[Array, "k 3"],
    S_w: Float[Array, "k 3"],
    force: Float[Array, "3"],
    moment: Float[Array, "3"],
) -> Float[Array, " k"]:
    """Return $u = -S^T p^A$."""
    return -short_sum(S_v, force[None], axis=1) - short_sum(S_w, moment[None], axis=1)


def _subtract_outer(
    A: Float[Array, "3 3"], W: Float[Array, "3 k"], U: Float[Array, "3 k"]
) -> Float[Array, "3 3"]:
    """Return $A - W U^T$."""
    return A - short_sum(W[:, None], U[None], axis=2)


def _propagate_bias_force(
    p: Float[Array, "3"],
    A: Float[Array, "3 3"],
    B: Float[Array, "3 3"],
    W: Float[Array, "3 k"],
    bias: Float[Array, "6"],
    u: Float[Array, " k"],
) -> Float[Array, "3"]:
    """Return force or moment of $p^A + I^a c + U D^{-1} u$; `A`, `B`, its rows of $I^a$."""
    inertial = short_sum(A, bias[None, :3], axis=1) + short_sum(B, bias[None, 3:], axis=1)
    return p + inertial + short_sum(W, u[None], axis=1)


def _joint_acceleration(
    start: Float[Array, "6"],
    W_v: Float[Array, "3 k"],
    W_w: Float[Array, "3 k"],
    free: Float[Array, " k"],
) -> Float[Array, " k"]:
    r"""Return $\ddot q = D^{-1}(u - U^T a')$; `free` is $D^{-1} u$."""
    moved = short_sum(W_v, start[:3, None], axis=0) + short_sum(W_w, start[3:, None], axis=0)
    return free - moved


def _add_joint_motion(
    start: Float[Array, "6"], S: Float[Array, "k 6"], rates: Float[Array, " k"]
) -> Float[Array, "6"]:
    r"""Return $a' + S \ddot q$."""
    return start + short_sum(S, rates[:, None], axis=0)
