r"""Accelerations of trees by articulated bodies, body after body.

The cost is the lowest, and so is the memory, but each body waits for another one: the fastest in
native kernels, slow where XLA goes through the bodies (see `elimination`).
"""

from typing import NamedTuple

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
from ..kinematics.twists import Motion
from ..loads import free_forces
from ..stacked.joints import GroupFrames, Poses
from ..stacked.system import PreparedSystem
from ..topology import GROUND
from .block_elimination import invert


class _Body(NamedTuple):
    r"""Inertia of a body about a point, and the bias wrench there.

    $(m v + H^T\omega, H v + J\omega)$ are the momentum and its moment.
    """

    mass: Float[Array, "*L 3 3"]
    H: Float[Array, "*L 3 3"]
    J: Float[Array, "*L 3 3"]
    force: Float[Array, "*L 3"]
    moment: Float[Array, "*L 3"]


class _Rows(NamedTuple):
    """What one step of the recursion takes of its body, parents before children."""

    body: _Body
    columns: Float[Array, "L k 6"]  # allowed motions, rows of zeros up to k
    gap: Float[Array, "L k k"]  # unit diagonal where a row is missing
    bias: Float[Array, "L 6"]  # acceleration at constant rates, less the parent's
    frames: np.ndarray
    parent: np.ndarray


def articulated_body_accelerations(
    prepared: PreparedSystem, t, poses: Poses, joint_frames, nu
) -> Motion:
    r"""`dynamics.motion` of a system without loops.

    **Source:** Featherstone (2008), Rigid Body Dynamics Algorithms, Table 7.1, in space axes about
    one point of each tree, so that nothing is transformed from body to body.
    """
    at, (order, parents) = reference_points(prepared, poses), _order(prepared)
    own = joint_twists_in_space(prepared, t, poses, joint_frames, at, nu)
    motions = take(_along(take(own, order), parents), np.argsort(order))
    twists = twists_of(poses, at, motions)
    body = _loaded_bodies(prepared, t, poses, joint_frames, at, motions, twists)
    bias = joint_bias_accelerations(prepared, t, poses, joint_frames, at, motions, nu)
    columns = motion_subspace(prepared, poses, joint_frames, at)
    rows = _rows(prepared, columns, body, bias, prepared.system.armatures)
    rates, _ = _recursion(rows)
    return Motion(nu, twists, _flat(prepared, rates, order))


def least_change_of_trees(
    prepared: PreparedSystem, t, poses: Poses, joint_frames, inertias, masses, residual
) -> Float[Array, "L 6"]:
    r"""The smallest change of the twists, in kinetic energy, with $G\,\Delta w = -$`residual`.

    That of all tree joints; a change of accelerations without forces, in which what the joints
    allow adds to what closes each of them with its parent at rest.

    Exact also where matrices $R$ are no rotations (inside of a step, quaternions lose their unit
    length): velocities in body axes are $R^T v$ in $G$, so that space axes are $R^{-T}$.

    **Arguments:** `inertias`, (L, 3, 3), and `masses`; `residual`, of the tree joints.
    """
    poses = Poses(poses.positions, jax.vmap(_dual)(poses.rotations), poses.turns)
    joint_frames = [_in_dual_frames(frames) for frames in joint_frames]
    at, order = reference_points(prepared, poses), _order(prepared)[0]
    still = jnp.zeros_like(at)
    body = _bodies(masses, inertias, poses, at, still, still)

    # Gradients of the constraints of each group, and their pseudo-inverses.
    gradients = {}
    for _, group, frames, _, _ in tree_joints(prepared, joint_frames):
        G = group.over(lambda joint, r: joint.constraint_jacobian(r, t), frames.relative)
        gradients[id(group)] = G, jax.vmap(_right_inverse)(G)

    def allowed(group, frames):
        # The columns of the null space keep open joints as they are to first order only.
        S = group.over(lambda joint, r: joint.null_space(r), frames.relative)
        G, P = gradients[id(group)]
        return jnp.swapaxes(S - P @ (G @ S), 1, 2)

    closing, where, start = [], [], 0
    for _, group, frames, bodies, sign in tree_joints(prepared, joint_frames):
        count = len(bodies) * group.joint.num_constraints
        rest = residual[start : start + count].reshape(len(bodies), -1)
        start += count
        twists = -jax.vmap(jnp.matmul)(gradients[id(group)][1], rest)
        closing.append(motions_about(frames, take(at, bodies), sign, twists[:, None])[:, 0])
        where.append(bodies)
    free = free_bodies(prepared)
    if len(free):
        closing.append(jnp.zeros((len(free), 6), residual.dtype))
        where.append(free)
    bias = in_order(closing, where, jnp.zeros((0, 6), residual.dtype))
    columns = motion_subspace(prepared, poses, joint_frames, at, allowed)
    _, motions = _recursion(_rows(prepared, columns, body, bias, None))
    change = twists_of(poses, at, take(motions, np.argsort(order)))
    return jnp.concatenate([change.linear, change.angular], axis=1)


def _dual(R: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    r"""$R^{-T}$, the cofactors over the determinant; that of a rotation is the rotation."""
    d1, d2, d3 = jnp.unstack(R, axis=1)
    cofactors = jnp.stack([cross(d2, d3), cross(d3, d1), cross(d1, d2)], axis=1)
    return cofactors / jnp.sum(d1 * cofactors[:, 0])


def _in_dual_frames(frames: GroupFrames) -> GroupFrames:
    return eqx.tree_at(lambda frames: frames.frame, frames, jax.vmap(_dual)(frames.frame))


def _right_inverse(G: Float[Array, "m 6"]) -> Float[Array, "6 m"]:
    r"""$G^T (G G^T)^{-1}$."""
    m = len(G)
    size = next(n for n in (0, 1, 3, 6) if n >= m)
    if not m:
        return G.T
    square = jnp.pad(G @ G.T, ((0, size - m), (0, size - m)))
    square = square + jnp.asarray(np.diag(np.arange(size) >= m), G.dtype)
    return G.T @ invert(square[None])[0, :m, :m]


def _rows(prepared: PreparedSystem, columns, body: _Body, bias, rotors) -> _Rows:
    """What the recursion takes, parents before children."""
    order, parents = _order(prepared)
    columns, gap = _padded(prepared, columns, order, rotors)
    body = _Body(*(take(part, order) for part in body))
    return _Rows(body, columns, gap, take(bias, order), np.arange(len(order)), parents)


def _order(prepared: PreparedSystem) -> tuple[np.ndarray, np.ndarray]:
    """Bodies with parents before children, and the places of their parents, the ground's last."""
    topology = prepared.system.topology
    order, count = np.array(topology.order, int), topology.num_bodies
    frames = np.empty(count + 1, int)
    frames[order], frames[GROUND] = np.arange(count), count
    return order, frames[np.array(topology.parents)[order]]


def _is_chain(parents: np.ndarray) -> bool:
    """Whether the parent is the next one inwards: nothing has to be laid down and found again."""
    return np.array_equal(parents, [len(parents), *range(len(parents) - 1)])


def _along(values: Float[Array, "L k"], parents: np.ndarray) -> Float[Array, "L k"]:
    """Sums over each body and those that it hangs on."""
    chain = _is_chain(parents)

    def outwards(sums, row):
        value, index, parent = row
        value = _sum(value, sums if chain else _row(sums, parent))
        return value if chain else _set_row(sums, value, index), value

    start = jnp.zeros(values.shape[1:] if chain else (len(parents) + 1, *values.shape[1:]))
    rows = (values, np.arange(len(parents)), parents)
    return jax.lax.scan(outwards, start.astype(values.dtype), rows)[1]


def _widths(prepared: PreparedSystem) -> int:
    most = max(prepared.system.rates_of_bodies)
    return next(width for width in (1, 3, 6) if width >= most)


def _padded(prepared: PreparedSystem, columns: Float[Array, "f 6"], order, rotors):
    """Columns body by body, in the order given, with rows of zeros; and the diagonal for these."""
    width, counts = _widths(prepared), np.array(prepared.system.rates_of_bodies, int)[order]
    first = first_rate(prepared)[:-1][order]
    slots = np.arange(width)
    rows = np.where(slots < counts[:, None], first[:, None] + slots, len(columns))
    behind = columns
    if np.any(rows == len(columns)):
        behind = jnp.concatenate([columns, jnp.zeros((1, 6), columns.dtype)])
    gap = jnp.asarray(np.eye(width) * (slots >= counts[:, None])[:, :, None], columns.dtype)
    if rotors is not None:
        own = take(jnp.concatenate([rotors, jnp.zeros(1, rotors.dtype)]), rows.ravel())
        gap = (
            gap + own.reshape(len(order), width)[:, :, None] * jnp.eye(width, dtype=own.dtype)[None]
        )
    return take(behind, rows.ravel()).reshape(len(order), width, 6), gap


def _flat(prepared: PreparedSystem, rates: Float[Array, "L k"], order) -> Float[Array, " f"]:
    """Rates of all bodies, one after another, from those in the order given."""
    width, frames = rates.shape[1], np.argsort(order)
    counts = prepared.system.rates_of_bodies
    rows = [frames[i] * width + k for i, count in enumerate(counts) for k in range(count)]
    return take(rates.reshape(-1), np.array(rows, int))


def _bodies(masses, inertias, poses: Poses, at, force, moment) -> _Body:
    """The bodies, each for itself, about the points `at`."""

    def one(m, inertia, x, R, at, force, moment):
        unit, r = jnp.eye(3, dtype=x.dtype), x - at
        square = short_sum(r, r, axis=0) * unit - r[:, None] * r[None]
        J = product(R, product(inertia, R.T)) + m * square
        return _Body(m * unit, skew(m * r), J, force, moment)

    x, R = poses.positions[:-1], poses.rotations[:-1]
    return jax.vmap(one)(masses, inertias, x, R, at, force, moment)


def _loaded_bodies(prepared: PreparedSystem, t, poses: Poses, joint_frames, at, motions, twists):
    """The bodies with what their motion and the applied forces ask for."""
    wrenches = free_forces(
        prepared, t, kinematics_for_forces(prepared, poses, joint_frames, twists)
    )
    inertias, still = jax.vmap(inertia_tensor)(prepared.inertias), jnp.zeros_like(at)
    body = _bodies(prepared.masses, inertias, poses, at, still, still)

    def one(m, x, R, at, V, wrench):
        r = x - at
        force = m * cross(V[3:], V[:3] + cross(V[3:], r)) - wrench[:3]
        return force, cross(r, force) - to_space(R, wrench[3:])

    x, R = poses.positions[:-1], poses.rotations[:-1]
    force, moment = jax.vmap(one)(prepared.masses, x, R, at, motions, wrenches)
    return body._replace(force=force, moment=moment)


def _recursion(rows: _Rows) -> tuple[Float[Array, "L k"], Float[Array, "L 6"]]:
    """Derivatives of the minimal velocities of each body, and those of its motion: to the roots
    and back."""
    count = len(rows.parent)
    chain = _is_chain(rows.parent)
    find = (lambda values, index: values) if chain else _row

    def inwards(carried: _Body, row: _Rows):
        """What hangs on a joint, as its parent feels it."""
        v, w = row.columns[:, :3], row.columns[:, 3:]
        body = _Body(*map(_sum, row.body, find(carried, row.frames)))
        U_v, U_w = _momenta(body.mass, body.H.T, v, w), _momenta(body.H, body.J, v, w)
        inverse = _inverse(_metric(v, w, U_v, U_w, row.gap))
        W_v, W_w = _product(U_v, inverse), _product(U_w, inverse)
        free = _driven(v, w, body.force, body.moment)
        mass, H = _less(body.mass, W_v, U_v), _less(body.H, W_w, U_v)
        J = _less(body.J, W_w, U_w)
        force = _propagate_bias_force(body.force, mass, H.T, W_v, row.bias, free)
        moment = _propagate_bias_force(body.moment, H, J, W_w, row.bias, free)
        felt = _Body(mass, H, J, force, moment)
        if not chain:
            felt = jax.tree.map(jnp.add, felt, _row(carried, row.parent))
            felt = _set_row(carried, felt, row.parent)
        return felt, (W_v, W_w, _times(inverse, free))

    def outwards(accelerations, row):
        of, W_v, W_w, free = row
        start = _sum(find(accelerations, of.parent), of.bias)
        rates = _rates(start, W_v, W_w, free)
        own = _moved(start, of.columns, rates)
        return own if chain else _set_row(accelerations, own, of.frames), (rates, own)

    behind = jax.tree.map(
        lambda part: jnp.zeros(
            part.shape[1:] if chain else (count + 1, *part.shape[1:]), part.dtype
        ),
        rows.body,
    )
    _, factors = jax.lax.scan(inwards, behind, rows, reverse=True)
    rest = jnp.concatenate([behind.force, behind.moment], axis=-1)
    return jax.lax.scan(outwards, rest, (rows, *factors))[1]


def _row(values, index):
    return jax.tree.map(lambda v: jax.lax.dynamic_index_in_dim(v, index, 0, False), values)


def _set_row(values, row, index):
    return jax.tree.map(
        lambda v, r: jax.lax.dynamic_update_index_in_dim(v, r, index, 0), values, row
    )


def _sum(A, B):
    return A + B


def _momenta(A, B, v, w):
    return short_sum(A[:, None], v[None], axis=2) + short_sum(B[:, None], w[None], axis=2)


def _metric(v, w, U_v, U_w, gap):
    turn = short_sum(w[:, :, None], U_w[None], axis=1)
    return short_sum(v[:, :, None], U_v[None], axis=1) + turn + gap


def _inverse(D):
    if len(D) != 3:
        return invert(D[None])[0]
    # Entry by entry: there is nothing to be gained from whole rows where a lane is one system.
    (a, f, e), (_, b, d), (_, _, c) = (jnp.unstack(row) for row in jnp.unstack(D))
    k11, k22, k33 = b * c - d * d, a * c - e * e, a * b - f * f
    k23, k13, k12 = e * f - a * d, d * f - b * e, d * e - c * f
    scale = 1 / (a * k11 + f * k12 + e * k13)
    return matrix([k * scale for k in (k11, k12, k13, k12, k22, k23, k13, k23, k33)])


def _product(A, B):
    return short_sum(A[:, :, None], B[None], axis=1)


def _times(A, v):
    return short_sum(A, v[None], axis=1)


def _driven(v, w, force, moment):
    return -short_sum(v, force[None], axis=1) - short_sum(w, moment[None], axis=1)


def _less(A, W, U):
    return A - short_sum(W[:, None], U[None], axis=2)


def _propagate_bias_force(wrench, A, B, W, bias, free):
    inertial = short_sum(A, bias[None, :3], axis=1) + short_sum(B, bias[None, 3:], axis=1)
    return wrench + inertial + short_sum(W, free[None], axis=1)


def _rates(start, W_v, W_w, free):
    moved = short_sum(W_v, start[:3, None], axis=0) + short_sum(W_w, start[3:, None], axis=0)
    return free - moved


def _moved(start, S, rates):
    return start + short_sum(S, rates[:, None], axis=0)
