r"""Motions of trees of bodies, in space axes about one point for each tree.

A motion is $(v, \omega)$, $v$ the velocity of what would be at that point. Such motions add up
along the tree without transformations, and so do wrenches and inertias about the point towards its
root: all sums over paths and subtrees are products with one constant matrix.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies.inertia import inertia_tensor
from ..native.ops import cross, short_sum, take
from ..rotations.matrix import product, to_body, to_space
from .attachment import JointGroup, Placement, Poses
from .topology import GROUND
from .twists import Twists

if TYPE_CHECKING:
    from .mechanics import SystemMechanics

# Bodies up to which sums along paths are products with a matrix; more are added by doubling.
_MATRIX_LIMIT = 16


class Screws(eqx.Module):
    r"""Motions that the tree joints allow in a pose.

    `columns`, one for each minimal velocity, (f, 6); `centres`, the point of each body's tree that
    they are about, (L, 3), fixed in space.
    """

    columns: Float[Array, "f 6"]
    centres: Float[Array, "L 3"]


def centres(mechanics: "SystemMechanics", poses: Poses) -> Float[Array, "L 3"]:
    """The centre of mass of the first body of each tree: distances from it stay small."""
    return jax.lax.stop_gradient(take(poses.positions, mechanics.system.topology.roots))


def tree_joints(mechanics: "SystemMechanics", places: Iterable[Any]):
    """Groups of tree joints by number, their places, the bodies that hang on them, and signs."""
    topology = mechanics.system.topology
    hung = {j: i for i, j in enumerate(topology.joints) if j is not None}
    for g, (group, place) in enumerate(zip(mechanics.groups, places, strict=True)):
        if not group.closes_loops:
            bodies = np.array([hung[j] for j in group.indices], int)
            sign = np.where(np.array(topology.reversed)[bodies], -1.0, 1.0)
            yield g, group, place, bodies, sign


def motions_about(place: Placement, centre, sign, columns: Float[Array, "n k 6"]):
    """Relative twists of joints as motions about the centres, of bodies that hang on them."""

    def one(point, frame, centre, sign, columns):
        def motion(column):
            v, w = to_space(frame, column[:3]), to_space(frame, column[3:])
            return sign * jnp.concatenate([v + cross(point - centre, w), w])

        return jax.vmap(motion)(columns)

    sign = jnp.asarray(sign, columns.dtype)
    return jax.vmap(one)(place.point, place.frame, centre, sign, columns)


def free_bodies(mechanics: "SystemMechanics") -> np.ndarray:
    """Bodies that hang on no joint."""
    joints = mechanics.system.topology.joints
    return np.array([i for i, j in enumerate(joints) if j is None], int)


def rows_of_free(mechanics: "SystemMechanics") -> np.ndarray:
    """Rows of the minimal velocities of the bodies that hang on no joint, (n, 6), or (n, 3) where
    translation is left out."""
    count = mechanics.system.rates_of_free
    return np.add.outer(first_rate(mechanics)[free_bodies(mechanics)], np.arange(count))


def free_rates(mechanics: "SystemMechanics", nu: Float[Array, " f"]) -> Float[Array, "n 6"]:
    """Velocities, zero where translation is left out, and angular velocities of the bodies that
    hang on no joint."""
    own = take(nu, rows_of_free(mechanics).ravel()).reshape(-1, mechanics.system.rates_of_free)
    if mechanics.system.translates:
        return own
    return jnp.concatenate([jnp.zeros_like(own), own], axis=1)


def first_rate(mechanics: "SystemMechanics") -> np.ndarray:
    """Where the minimal velocities of each body begin, and where they end, (L + 1,)."""
    return np.concatenate([[0], np.cumsum(mechanics.system.rates_of_bodies)]).astype(int)


def in_order(parts: list[Array], where: list[np.ndarray], empty: Array) -> Array:
    """Parts one after another, sorted by the rows that they belong to."""
    if not parts:
        return empty
    rows = jnp.concatenate(parts) if len(parts) > 1 else parts[0]
    return take(rows, np.argsort(np.concatenate(where), kind="stable"))


def _null_spaces(group: JointGroup, place: Placement) -> Float[Array, "n k 6"]:
    return group.over(lambda joint, r: joint.null_space(r).T, place.relative)


def screws(
    mechanics: "SystemMechanics", poses: Poses, places, at, allowed=_null_spaces
) -> Float[Array, "f 6"]:
    """Motion about the points `at` for each minimal velocity.

    `allowed`, a function of a group and its place: relative twists that its joints allow.
    """
    start = first_rate(mechanics)
    rows, where = [], []
    for _, group, place, bodies, sign in tree_joints(mechanics, places):
        count = group.joint.num_rates
        if count:
            S = allowed(group, place)
            rows.append(motions_about(place, take(at, bodies), sign, S).reshape(-1, 6))
            where.append((start[bodies][:, None] + np.arange(count)).ravel())
    free = free_bodies(mechanics)
    if len(free):
        R, arm = take(poses.rotations, free), take(poses.positions, free) - take(at, free)
        shift = jnp.broadcast_to(jnp.eye(3, 6, dtype=R.dtype), (len(free), 3, 6))
        axes = jnp.swapaxes(R, 1, 2)
        moved = jax.vmap(lambda arm, axes: jax.vmap(lambda w: cross(arm, w))(axes))(arm, axes)
        turn = jnp.concatenate([moved, axes], axis=2)
        both = jnp.concatenate([shift, turn], axis=1)
        rows.append(both[:, -mechanics.system.rates_of_free :].reshape(-1, 6))
        where.append(rows_of_free(mechanics).ravel())
    return in_order(rows, where, jnp.zeros((0, 6), poses.positions.dtype))


def joint_twists_in_space(mechanics: "SystemMechanics", t, poses: Poses, places, at, nu):
    """What each body's own minimal velocities and prescribed motions add, (L, 6)."""
    start = first_rate(mechanics)
    rows, where = [], []
    for _, group, place, bodies, sign in tree_joints(mechanics, places):
        twists = free_twists(group, place, t, rates_of(group, start[bodies], nu))
        rows.append(motions_about(place, take(at, bodies), sign, twists[:, None])[:, 0])
        where.append(bodies)
    free = free_bodies(mechanics)
    if len(free):
        own = free_rates(mechanics, nu)
        arm = take(poses.positions, free) - take(at, free)
        w = jax.vmap(to_space)(take(poses.rotations, free), own[:, 3:])
        rows.append(jnp.concatenate([own[:, :3] + jax.vmap(cross)(arm, w), w], axis=1))
        where.append(free)
    return in_order(rows, where, jnp.zeros((0, 6), nu.dtype))


def rates_of(group: JointGroup, first: np.ndarray, nu) -> Float[Array, "n f"]:
    """Minimal velocities of the joints of a group."""
    count = group.joint.num_rates
    rows = np.add.outer(first, np.arange(count)).ravel()
    return take(nu, rows).reshape(len(first), count)


def free_twists(group: JointGroup, place: Placement, t, rates) -> Float[Array, "n 6"]:
    """Relative twists of the joints of a group from their rates."""
    driven = group.joint.is_driven

    def one(joint, r, rates):
        twist = short_sum(joint.null_space(r), rates, axis=1)
        return twist + joint.prescribed_twist(r, t) if driven else twist

    return group.over(one, place.relative, rates)


# Sums along paths and over subtrees.


def along_paths(mechanics: "SystemMechanics", values: Float[Array, "L k"]) -> Float[Array, "L k"]:
    """Sum over each body and those that it hangs on."""
    topology = mechanics.system.topology
    L = topology.num_bodies
    if L <= _MATRIX_LIMIT:
        return jnp.asarray(topology.ancestors, values.dtype) @ values
    # By doubling: log2 of the depth steps.
    parents = np.array([L if p == GROUND else p for p in topology.parents] + [L])
    values = jnp.concatenate([values, jnp.zeros((1, values.shape[1]), values.dtype)])
    while np.any(parents != L):
        values = values + take(values, parents)
        parents = parents[parents]
    return values[:-1]


def over_subtrees(mechanics: "SystemMechanics", values: Float[Array, "L k"]):
    """Sum over each body and those that hang on it, (L, k)."""
    ancestors = jnp.asarray(mechanics.system.topology.ancestors.T, values.dtype)
    return ancestors @ values


def owners(mechanics: "SystemMechanics") -> np.ndarray:
    """Body of each minimal velocity, shape (f,)."""
    return np.repeat(np.arange(mechanics.num_bodies), mechanics.system.rates_of_bodies)


def rate_lengths(mechanics: "SystemMechanics") -> Float[Array, " f"]:
    """What minimal velocities are measured by: the size of the mechanism where they are velocities,
    1 where they are angular velocities."""
    joints, counts = mechanics.system.joints, mechanics.system.rates_of_bodies
    lengths = [
        k < (count - 3 if j is None else joints[j].num_translations)
        for j, count in zip(mechanics.system.topology.joints, counts, strict=True)
        for k in range(count)
    ]
    return jnp.where(np.array(lengths, bool), mechanics.lengths[owners(mechanics)], 1.0)


# From minimal velocities to twists and back.


def twists_of(poses: Poses, at, motions: Float[Array, "L 6"]) -> Twists:
    """Twists of the bodies from their motions about the points `at`."""
    x, R = poses.positions[:-1], poses.rotations[:-1]
    linear = motions[:, :3] + jax.vmap(cross)(motions[:, 3:], x - at)
    return Twists(linear, jax.vmap(to_body)(R, motions[:, 3:]))


def tree_twists(mechanics: "SystemMechanics", t, poses: Poses, places, nu) -> Twists:
    """Twists of all bodies from the minimal velocities of the trees."""
    if mechanics.is_free:
        rows = free_rates(mechanics, nu)
        return Twists(rows[:, :3], rows[:, 3:])
    at = centres(mechanics, poses)
    own = joint_twists_in_space(mechanics, t, poses, places, at, nu)
    return twists_of(poses, at, along_paths(mechanics, own))


def spread(mechanics: "SystemMechanics", poses: Poses, moving: Screws, nu) -> Float[Array, "L 6"]:
    r"""$T\nu$: change of all twists with the minimal velocities."""
    own = jax.ops.segment_sum(moving.columns * nu[:, None], owners(mechanics), mechanics.num_bodies)
    change = twists_of(poses, moving.centres, along_paths(mechanics, own))
    return jnp.concatenate([change.linear, change.angular], axis=1)


def null_space(mechanics: "SystemMechanics", poses: Poses, places) -> Float[Array, "L 6 f"]:
    r"""The external null-space matrix $T$ with $(\dot x, \Omega) = T\,\nu - r$ of each body.

    **Source:** Lang (11), and Example C for the multiplicative form that it generalises.
    """
    at = centres(mechanics, poses)
    moving = Screws(screws(mechanics, poses, places, at), at)
    unit = jnp.eye(mechanics.num_rates, dtype=at.dtype)
    return jax.vmap(lambda nu: spread(mechanics, poses, moving, nu), out_axes=2)(unit)


def tree_rates(mechanics: "SystemMechanics", t, places, twists: Twists, bias=None):
    r"""Minimal velocities of the trees nearest to the twists, joint by joint, (f,).

    With `bias` (see `bias.joint_bias`): derivatives of minimal velocities, from those of twists.
    """
    start = first_rate(mechanics)
    relative = mechanics.joint_twists(places, twists)
    rows, where = [], []
    for g, group, place, bodies, _ in tree_joints(mechanics, places):
        count = group.joint.num_rates
        if not count:
            continue
        twist = relative[g]
        if bias is not None:
            twist = twist + bias[g]
        elif group.joint.is_driven:
            twist = twist - group.over(
                lambda joint, r: joint.prescribed_twist(r, t), place.relative
            )
        rows.append(group.over(lambda j, r, s: j.rates(r, s), place.relative, twist).ravel())
        where.append((start[bodies][:, None] + np.arange(count)).ravel())
    free = free_bodies(mechanics)
    if len(free):
        own = jnp.concatenate([take(twists.linear, free), take(twists.angular, free)], axis=1)
        rows.append(own[:, -mechanics.system.rates_of_free :].ravel())
        where.append(rows_of_free(mechanics).ravel())
    return in_order(rows, where, jnp.zeros(0, twists.linear.dtype))


# Dynamics.


def mass_matrix(
    mechanics: "SystemMechanics", poses: Poses, moving: Screws, inertias=None
) -> Float[Array, "f f"]:
    r"""$T^T M T$ by composite bodies; `inertias` (L, 3, 3) if not those of the bodies.

    **Source:** Featherstone (2008), Rigid Body Dynamics Algorithms, Table 6.2, about
    one point.
    """
    if inertias is None:
        inertias = jax.vmap(inertia_tensor)(mechanics.inertias)
    x, R = poses.positions[:-1], poses.rotations[:-1]

    def about_centre(m, inertia, R, r):
        turned = product(R, product(inertia, R.T))
        J = turned + m * (jnp.sum(r * r) * jnp.eye(3, dtype=r.dtype) - r[:, None] * r[None])
        return jnp.concatenate([m[None], m * r, J.ravel()])

    packed = jax.vmap(about_centre)(mechanics.masses, inertias, R, x - moving.centres)
    owner = owners(mechanics)
    composite = over_subtrees(mechanics, packed)[owner]

    def momentum(row, s):
        m, c, J = row[0], row[1:4], row[4:].reshape(3, 3)
        v, w = s[:3], s[3:]
        return jnp.concatenate([m * v + cross(w, c), cross(c, v) + to_space(J, w)])

    momenta = jax.vmap(momentum)(composite, moving.columns)
    # Entry i, j stands where body j is body i or one that it hangs on; the others are mirrored.
    ancestors = mechanics.system.topology.ancestors
    below = ancestors[np.ix_(owner, owner)]
    strictly = below & (owner[:, None] != owner[None])
    H = momenta @ moving.columns.T
    mask = lambda where: jnp.asarray(where, H.dtype)  # noqa: E731
    H = H * mask(below) + (H * mask(strictly)).T
    rotors = mechanics.system.armatures
    return H if rotors is None else H + jnp.diag(rotors)


def generalised_forces(mechanics: "SystemMechanics", poses: Poses, moving: Screws, wrenches):
    r"""$T^T f$ of wrenches (L, 6), forces in space and moments in body components."""
    x, R = poses.positions[:-1], poses.rotations[:-1]

    def about_centre(R, r, wrench):
        force, moment = wrench[:3], to_space(R, wrench[3:])
        return jnp.concatenate([force, moment + cross(r, force)])

    moved = jax.vmap(about_centre)(R, x - moving.centres, wrenches)
    total = over_subtrees(mechanics, moved)[owners(mechanics)]
    return short_sum(moving.columns, total, axis=1)


def _distinct(masks: np.ndarray) -> np.ndarray:
    """Where each mask is set, in order, with as many places for all: others make up for fewer."""
    most = max(masks.sum(axis=1), default=0)
    return np.sort(np.argsort(~masks, axis=1, kind="stable")[:, :most], axis=1)


def loop_jacobian(mechanics: "SystemMechanics", t, places, moving: Screws) -> Float[Array, "m f"]:
    r"""Gradient $J = G\,T$ of the constraints of the loops on the minimal velocities."""
    ancestors, owner = mechanics.system.topology.ancestors, owners(mechanics)
    paths = np.concatenate([ancestors, np.zeros((1, len(ancestors)), bool)])[:, owner]
    rows = []
    for group, place in zip(mechanics.groups, places, strict=True):
        if not group.closes_loops:
            continue
        G = group.over(lambda joint, r: joint.constraint_jacobian(r, t), place.relative)
        # What both bodies hang on moves them alike.
        signs = paths[list(group.children)] - paths[list(group.parents)].astype(float)
        around = _distinct(signs != 0)
        signs = np.take_along_axis(signs, around, axis=1)

        def on(G, place, signs, at, columns):
            def in_space(row):
                return jnp.concatenate([to_space(place.frame, x) for x in (row[:3], row[3:])])

            def slip(sign, at, column):
                v, w = column[:3], column[3:]
                return sign * jnp.concatenate([v + cross(w, place.point - at), w])

            return jax.vmap(in_space)(G) @ jax.vmap(slip)(signs, at, columns).T

        n, k = around.shape
        columns = take(moving.columns, around.ravel()).reshape(n, k, 6)
        at = take(moving.centres, owner[around.ravel()]).reshape(n, k, 3)
        part = jax.vmap(on)(G, place, jnp.asarray(signs, G.dtype), at, columns)
        m = part.shape[1]
        if k != len(owner):
            whole = jnp.zeros((n, m, len(owner)), G.dtype)
            own, one, _ = np.ogrid[:n, :m, :k]
            part = whole.at[own, one, around[:, None]].set(part, unique_indices=True)
        rows.append(part.reshape(n * m, -1))
    if mechanics.system.constraints:
        G = mechanics.others.jacobian(t, places)
        rows.append(
            jax.vmap(lambda row: generalised_forces(mechanics, places.poses, moving, row))(G)
        )
    empty = jnp.zeros((0, moving.columns.shape[0]), moving.columns.dtype)
    return jnp.concatenate([empty, *rows])
