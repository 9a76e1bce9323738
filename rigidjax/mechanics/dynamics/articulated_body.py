r"""The articulated-body algorithm: accelerations of trees, body after body.

Its cost and memory are the lowest. The bodies form a sequential recursion, which is fast where a
step costs a few operations on scalars and slow where a step has an overhead of its own.

**Source:** Featherstone (2008), Rigid Body Dynamics Algorithms, Table 7.1, with its symbols and
passes. Spatial vectors are in space axes about one point of each tree, so that the transforms $X$
between bodies are the identity.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Matrix3, Scalar, Vector3
from ...bodies.inertia import inertia_tensor
from ...rotations.matrix import matrix, product, to_space
from ...rotations.so3 import skew
from ...small_arrays import cross, short_sum, take
from ..declared.system import AbstractSystem
from ..kinematics.bias_accelerations import joint_bias_accelerations
from ..kinematics.poses import Motion, Twists, kinematics_for_forces
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
from ..stacked.joints import GroupFrames, JointFrames, JointGroup, Poses
from ..stacked.system import PreparedSystem
from .block_elimination import invert
from .loads import free_forces


class Segment(NamedTuple):
    """Bodies of a chain, parents first, whose joints have equally padded motion subspaces.

    `parent`, the segment that ends with the parent of the first body, `None` for the ground;
    `width`, the number of rows of the motion subspaces, with rows of zeros.
    """

    bodies: np.ndarray
    parent: int | None
    width: int


def find_segments(system: AbstractSystem) -> list[Segment]:
    """Return the bodies of the trees as chains between branchings, parents before children."""
    topology, counts = system.topology, system.rates_of_bodies
    widths = [next(width for width in (1, 3, 6) if width >= count) for count in counts]
    num_children = np.bincount(np.array(topology.parents) + 1, minlength=len(counts) + 1)[1:]
    chains: list[list[int]] = []
    above: list[int | None] = []
    segment_of: dict[int, int] = {}
    for body in topology.order:
        parent = topology.parents[body]
        segment = segment_of.get(parent)
        extends = segment is not None and num_children[parent] == 1
        if segment is None or not (extends and widths[parent] == widths[body]):
            above.append(segment)
            chains.append([])
            segment = len(chains) - 1
        chains[segment].append(body)
        segment_of[body] = segment
    return [
        Segment(np.array(chain, int), parent, widths[chain[0]])
        for chain, parent in zip(chains, above, strict=True)
    ]


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
    """Input of each step of the recursion along a segment, parents before children."""

    body: _SpatialInertia
    S: Float[Array, "n k 6"]  # motion subspace, rows of zeros up to k
    diagonal: Float[Array, "n k k"]  # added to D: rotor inertia, ones where a row of S is missing
    bias: Float[Array, "n 6"]  # acceleration at constant rates, less the parent's
    tau: Float[Array, "n k"]  # generalised forces beyond the applied wrenches


def articulated_body_accelerations(
    prepared: PreparedSystem,
    t: Scalar,
    poses: Poses,
    joint_frames: JointFrames,
    nu: Float[Array, " f"],
    efforts: Float[Array, " f"] | None = None,
) -> Motion:
    r"""Compute the accelerations of a system without loops; see `select.compute_accelerations`."""
    points, segments = reference_points(prepared, poses), find_segments(prepared.system)
    joint_motions = joint_twists_in_space(prepared, t, poses, joint_frames, points, nu)
    motions = _sum_outwards(segments, joint_motions)
    twists = twists_of(poses, points, motions)
    body = _loaded_bodies(prepared, t, poses, joint_frames, points, motions, twists)
    bias = joint_bias_accelerations(prepared, t, poses, joint_frames, points, motions, nu)
    S = motion_subspace(prepared, poses, joint_frames, points)
    rows = _make_rows(prepared, segments, S, body, bias, prepared.system.armatures, efforts)
    rates, _ = _recursion(segments, rows)
    return Motion(nu, twists, _unpad_rates(prepared, segments, rates))


def least_change_of_trees(
    prepared: PreparedSystem,
    t: Scalar,
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
    points, segments = reference_points(prepared, poses), find_segments(prepared.system)
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
    _, motions = _recursion(segments, _make_rows(prepared, segments, S, body, bias, None, None))
    change = twists_of(poses, points, motions)
    return jnp.concatenate([change.linear, change.angular], axis=1)


def _dual(R: Matrix3) -> Matrix3:
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
    segments: Sequence[Segment],
    S: Float[Array, "f 6"],
    body: _SpatialInertia,
    bias: Float[Array, "L 6"],
    rotors: Float[Array, " f"] | None,
    efforts: Float[Array, " f"] | None,
) -> list[_Rows]:
    """Return the input of the recursion along each segment."""
    rows = []
    for segment in segments:
        slots = _padded_slots(prepared, segment)
        S_of_bodies, diagonal = _pad_subspaces(segment, slots, S, rotors)
        own = _SpatialInertia(*(take(part, segment.bodies) for part in body))
        tau = jnp.zeros(slots.shape, S.dtype)
        if efforts is not None:
            tau = take(jnp.append(efforts, 0.0), slots.ravel()).reshape(slots.shape)
        rows.append(_Rows(own, S_of_bodies, diagonal, take(bias, segment.bodies), tau))
    return rows


def _padded_slots(prepared: PreparedSystem, segment: Segment) -> np.ndarray:
    """Return the generalised velocity of each row of the motion subspaces of a segment, (n, k).

    Rows of zeros have the number of generalised velocities.
    """
    counts = np.array(prepared.system.rates_of_bodies, int)[segment.bodies]
    first, row = first_rate(prepared)[:-1][segment.bodies], np.arange(segment.width)
    return np.where(row < counts[:, None], first[:, None] + row, prepared.num_rates)


def _sum_outwards(segments: Sequence[Segment], values: Float[Array, "L k"]) -> Float[Array, "L k"]:
    """Sum values over each body and its ancestors."""

    def outwards(total, value):
        total = total + value
        return total, total

    sums: list[Array] = []
    for segment in segments:
        parent = segment.parent
        start = jnp.zeros(values.shape[1], values.dtype) if parent is None else sums[parent][-1]
        sums.append(jax.lax.scan(outwards, start, take(values, segment.bodies))[1])
    return in_order(sums, [segment.bodies for segment in segments], values)


def _pad_subspaces(
    segment: Segment, slots: np.ndarray, S: Float[Array, "f 6"], rotors: Float[Array, " f"] | None
) -> tuple[Float[Array, "n k 6"], Float[Array, "n k k"]]:
    """Return the motion subspaces of the bodies of a segment, with rows of zeros, and the terms
    that are added to the diagonal of $D$."""
    unit = np.eye(segment.width)
    diagonal = jnp.asarray(unit * (slots == len(S))[:, :, None], S.dtype)
    with_zeros = S
    if np.any(slots == len(S)):
        with_zeros = jnp.concatenate([S, jnp.zeros((1, 6), S.dtype)])
    if rotors is not None:
        inertias = take(jnp.append(rotors, 0.0), slots.ravel()).reshape(slots.shape)
        diagonal = diagonal + inertias[:, :, None] * jnp.asarray(unit, inertias.dtype)[None]
    return take(with_zeros, slots.ravel()).reshape(*slots.shape, 6), diagonal


def _unpad_rates(
    prepared: PreparedSystem, segments: Sequence[Segment], rates: Sequence[Float[Array, "n k"]]
) -> Float[Array, " f"]:
    """Return the rates of all bodies one after another, from the padded rows of the segments."""
    slots = np.concatenate([_padded_slots(prepared, segment).ravel() for segment in segments])
    order = np.argsort(slots, kind="stable")[: prepared.num_rates]
    return take(jnp.concatenate([part.reshape(-1) for part in rates]), order)


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
    t: Scalar,
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


def _recursion(
    segments: Sequence[Segment], rows: Sequence[_Rows]
) -> tuple[list[Float[Array, "n k"]], Float[Array, "L 6"]]:
    """Compute the derivatives of the generalised velocities of each body, by segment, and of its
    motion, (L, 6): inwards to the roots, then outwards."""

    def inwards(carried: _SpatialInertia, row: _Rows):
        """Add the articulated inertia and bias force of a body to those of its parent (pass 2)."""
        S_v, S_w = row.S[:, :3], row.S[:, 3:]
        body = jax.tree.map(jnp.add, row.body, carried)
        # U = I^A S, D = S^T U.
        U_v = _apply_inertia(body.mass, body.H.T, S_v, S_w)
        U_w = _apply_inertia(body.H, body.J, S_v, S_w)
        D_inverse = _invert(_project_inertia(S_v, S_w, U_v, U_w, row.diagonal))
        W_v, W_w = _multiply(U_v, D_inverse), _multiply(U_w, D_inverse)  # U D^{-1}
        # u = tau - S^T p^A; forces of the system on joints are among the applied wrenches.
        u = row.tau + _joint_force(S_v, S_w, body.force, body.moment)
        # I^a = I^A - U D^{-1} U^T, p^a = p^A + I^a c + U D^{-1} u.
        mass, H = _subtract_outer(body.mass, W_v, U_v), _subtract_outer(body.H, W_w, U_v)
        J = _subtract_outer(body.J, W_w, U_w)
        force = _propagate_bias_force(body.force, mass, H.T, W_v, row.bias, u)
        moment = _propagate_bias_force(body.moment, H, J, W_w, row.bias, u)
        return _SpatialInertia(mass, H, J, force, moment), (W_v, W_w, _apply(D_inverse, u))

    def outwards(acceleration: Float[Array, "6"], inputs: tuple[_Rows, Array, Array, Array]):
        row, W_v, W_w, free = inputs
        # Pass 3: a' = a_parent + c, the joint accelerations q'', and a = a' + S q''.
        start = acceleration + row.bias
        rates = _joint_acceleration(start, W_v, W_w, free)
        motion = _add_joint_motion(start, row.S, rates)
        return motion, (rates, motion)

    unloaded = jax.tree.map(lambda part: jnp.zeros(part.shape[1:], part.dtype), rows[0].body)
    on_parents = [unloaded] * len(segments)
    factors: dict[int, tuple[Array, Array, Array]] = {}
    for k in reversed(range(len(segments))):
        on_parent, factors[k] = jax.lax.scan(inwards, on_parents[k], rows[k], reverse=True)
        parent = segments[k].parent
        if parent is not None:
            on_parents[parent] = jax.tree.map(jnp.add, on_parents[parent], on_parent)
    rates: list[Array] = []
    motions: list[Array] = []
    for k, (segment, row) in enumerate(zip(segments, rows, strict=True)):
        start = jnp.zeros(6, row.bias.dtype)
        if segment.parent is not None:
            start = motions[segment.parent][-1]
        of_segment = jax.lax.scan(outwards, start, (row, *factors[k]))[1]
        rates.append(of_segment[0])
        motions.append(of_segment[1])
    rows_of_segments = [segment.bodies for segment in segments]
    return rates, in_order(motions, rows_of_segments, motions[0])


def _apply_inertia(
    A: Matrix3, B: Matrix3, v: Float[Array, "k 3"], w: Float[Array, "k 3"]
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
    # Entry by entry: whole rows are no faster where a vector holds entries of many systems.
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
    S_v: Float[Array, "k 3"], S_w: Float[Array, "k 3"], force: Vector3, moment: Vector3
) -> Float[Array, " k"]:
    """Return $u = -S^T p^A$."""
    return -short_sum(S_v, force[None], axis=1) - short_sum(S_w, moment[None], axis=1)


def _subtract_outer(A: Matrix3, W: Float[Array, "3 k"], U: Float[Array, "3 k"]) -> Matrix3:
    """Return $A - W U^T$."""
    return A - short_sum(W[:, None], U[None], axis=2)


def _propagate_bias_force(
    p: Vector3,
    A: Matrix3,
    B: Matrix3,
    W: Float[Array, "3 k"],
    bias: Float[Array, "6"],
    u: Float[Array, " k"],
) -> Vector3:
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
