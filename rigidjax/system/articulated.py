r"""Accelerations of trees by articulated bodies, body after body.

The cost is the lowest, and so is the memory, but each body waits for another one. For one system
that is slow (see `elimination`); for a batch of systems side by side it is the fastest.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..batch_last import stage
from ..bodies.inertia import inertia_tensor
from ..rotations.matrix import cross, matrix, product, to_space
from ..rotations.so3 import skew
from ..sums import short_sum
from .attachment import Poses
from .bias import own_accelerations
from .dynamics import Motion
from .elimination import invert
from .mechanics import SystemMechanics, Twists
from .rows import take
from .topology import GROUND
from .trees import centres, first_rate, own_motions, screws, twists_of


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
    place: np.ndarray
    parent: np.ndarray


def articulated(mechanics: SystemMechanics, t, poses: Poses, places, nu) -> Motion:
    r"""`dynamics.motion` of a system without loops.

    **Source:** Featherstone (2008), Rigid Body Dynamics Algorithms, Table 7.1, in space axes about
    one point of each tree, so that nothing is transformed from body to body.
    """
    at, (order, parents) = centres(mechanics, poses), _order(mechanics)
    own = own_motions(mechanics, t, poses, places, at, nu)
    motions = take(_along(take(own, order), parents), np.argsort(order))
    twists = twists_of(poses, at, motions)
    columns, gap = _padded(mechanics, screws(mechanics, poses, places, at), order)
    body = _bodies(mechanics, t, poses, places, at, motions, twists)
    bias = own_accelerations(mechanics, t, poses, places, at, motions, nu)
    body = _Body(*(take(part, order) for part in body))
    rows = _Rows(body, columns, gap, take(bias, order), np.arange(len(order)), parents)
    rates = _recursion(rows)
    return Motion(nu, twists, _flat(mechanics, rates, order))


def _order(mechanics: SystemMechanics) -> tuple[np.ndarray, np.ndarray]:
    """Bodies with parents before children, and the places of their parents, the ground's last."""
    topology = mechanics.system.topology
    order, count = np.array(topology.order, int), topology.num_bodies
    place = np.empty(count + 1, int)
    place[order], place[GROUND] = np.arange(count), count
    return order, place[np.array(topology.parents)[order]]


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


def _widths(mechanics: SystemMechanics) -> int:
    most = max(mechanics.system.rates_of_bodies)
    return next(width for width in (1, 3, 6) if width >= most)


def _padded(mechanics: SystemMechanics, columns: Float[Array, "f 6"], order):
    """Columns body by body, in the order given, with rows of zeros; and the diagonal for these."""
    width, counts = _widths(mechanics), np.array(mechanics.system.rates_of_bodies, int)[order]
    first = first_rate(mechanics)[:-1][order]
    slots = np.arange(width)
    rows = np.where(slots < counts[:, None], first[:, None] + slots, len(columns))
    behind = columns
    if np.any(rows == len(columns)):
        behind = jnp.concatenate([columns, jnp.zeros((1, 6), columns.dtype)])
    gap = jnp.asarray(np.eye(width) * (slots >= counts[:, None])[:, :, None], columns.dtype)
    rotors = mechanics.system.armatures
    if rotors is not None:
        own = take(jnp.concatenate([rotors, jnp.zeros(1, rotors.dtype)]), rows.ravel())
        gap = gap + own.reshape(len(order), width)[:, :, None] * np.eye(width)
    return take(behind, rows.ravel()).reshape(len(order), width, 6), gap


def _flat(mechanics: SystemMechanics, rates: Float[Array, "L k"], order) -> Float[Array, " f"]:
    """Rates of all bodies, one after another, from those in the order given."""
    width, place = rates.shape[1], np.argsort(order)
    counts = mechanics.system.rates_of_bodies
    rows = [place[i] * width + k for i, count in enumerate(counts) for k in range(count)]
    return take(rates.reshape(-1), np.array(rows, int))


def _bodies(mechanics: SystemMechanics, t, poses: Poses, places, at, motions, twists: Twists):
    """The bodies, each for itself, about the points `at`."""
    inertias = jax.vmap(inertia_tensor)(mechanics.inertias)
    wrenches = mechanics.applied(t, mechanics.kinematics(poses, places, twists))

    def one(m, inertia, x, R, at, V, wrench):
        unit, r, v, w = jnp.eye(3, dtype=x.dtype), x - at, V[:3], V[3:]
        square = short_sum(r, r, axis=0) * unit - r[:, None] * r[None]
        J, c = product(R, product(inertia, R.T)) + m * square, m * r
        momentum, moment = m * v + cross(w, c), cross(c, v) + to_space(J, w)
        force = cross(w, momentum) - wrench[:3]
        turning = cross(w, moment) + cross(v, momentum) - cross(r, wrench[:3])
        return _Body(m * unit, skew(c), J, force, turning - to_space(R, wrench[3:]))

    x, R = poses.positions[:-1], poses.rotations[:-1]
    return jax.vmap(one)(mechanics.masses, inertias, x, R, at, motions, wrenches)


def _recursion(rows: _Rows) -> Float[Array, "L k"]:
    """Derivatives of the minimal velocities of each body: to the roots and back."""
    count = len(rows.parent)
    chain = _is_chain(rows.parent)
    find = (lambda values, index: values) if chain else _row

    def inwards(carried: _Body, row: _Rows):
        """What hangs on a joint, as its parent feels it."""
        v, w = row.columns[:, :3], row.columns[:, 3:]
        body = _Body(*map(_sum, row.body, find(carried, row.place)))
        U_v, U_w = _momenta(body.mass, body.H.T, v, w), _momenta(body.H, body.J, v, w)
        inverse = _inverse(_metric(v, w, U_v, U_w, row.gap))
        W_v, W_w = _product(U_v, inverse), _product(U_w, inverse)
        free = _driven(v, w, body.force, body.moment)
        mass, H = _less(body.mass, W_v, U_v), _less(body.H, W_w, U_v)
        J = _less(body.J, W_w, U_w)
        force = _felt(body.force, mass, H.T, W_v, row.bias, free)
        moment = _felt(body.moment, H, J, W_w, row.bias, free)
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
        return own if chain else _set_row(accelerations, own, of.place), rates

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


@stage
def _sum(A, B):
    return A + B


@stage
def _momenta(A, B, v, w):
    return short_sum(A[:, None], v[None], axis=2) + short_sum(B[:, None], w[None], axis=2)


@stage
def _metric(v, w, U_v, U_w, gap):
    turn = short_sum(w[:, :, None], U_w[None], axis=1)
    return short_sum(v[:, :, None], U_v[None], axis=1) + turn + gap


@stage
def _inverse(D):
    if len(D) != 3:
        return invert(D[None])[0]
    # Entry by entry: there is nothing to be gained from whole rows where a lane is one system.
    (a, f, e), (_, b, d), (_, _, c) = (jnp.unstack(row) for row in jnp.unstack(D))
    k11, k22, k33 = b * c - d * d, a * c - e * e, a * b - f * f
    k23, k13, k12 = e * f - a * d, d * f - b * e, d * e - c * f
    scale = 1 / (a * k11 + f * k12 + e * k13)
    return matrix([k * scale for k in (k11, k12, k13, k12, k22, k23, k13, k23, k33)])


@stage
def _product(A, B):
    return short_sum(A[:, :, None], B[None], axis=1)


@stage
def _times(A, v):
    return short_sum(A, v[None], axis=1)


@stage
def _driven(v, w, force, moment):
    return -short_sum(v, force[None], axis=1) - short_sum(w, moment[None], axis=1)


@stage
def _less(A, W, U):
    return A - short_sum(W[:, None], U[None], axis=2)


@stage
def _felt(wrench, A, B, W, bias, free):
    inertial = short_sum(A, bias[None, :3], axis=1) + short_sum(B, bias[None, 3:], axis=1)
    return wrench + inertial + short_sum(W, free[None], axis=1)


@stage
def _rates(start, W_v, W_w, free):
    moved = short_sum(W_v, start[:3, None], axis=0) + short_sum(W_w, start[3:, None], axis=0)
    return free - moved


@stage
def _moved(start, S, rates):
    return start + short_sum(S, rates[:, None], axis=0)
