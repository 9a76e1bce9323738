"""Poses of trees of bodies from the coordinates of their joints."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...joints.base import AbstractJoint
from ...joints.relative_pose import RelativePose
from ...rotations.conversion import spurrier_klumpp
from ...rotations.euler_map import euler_map
from ...rotations.matrix import product, relative, to_body, to_space
from ...rotations.so3 import exp, log, log_quaternion
from ...small_arrays import take
from ...state import State
from ..declared.system import AbstractSystem
from ..declared.topology import GROUND, Topology
from ..stacked.joints import JointGroup, Poses
from ..stacked.system import PreparedSystem
from .poses import joint_frames_at, with_joint_angles
from .trees import body_twists, free_bodies, tree_joints

# Depth up to which poses are composed level by level; longer paths use doubling.
_LEVELS = 12


def joint_states(
    system: AbstractSystem,
    coordinates: Float[Array, "*T f"],
    rates: Float[Array, "*T f"] | None = None,
) -> State:
    """Return states of a tree from the coordinates and rates of its joints.

    **Arguments:** `system`, a tree on the ground of joints whose motion is a sum of lengths and one
    angle (`Revolute`, `Prismatic`, `Cylindrical`, `Planar`, `Screw`, `Weld`), none prescribed;
    `coordinates`, (f,) or (T, f), m and rad, in the order of `rate_labels`; `rates`, the same
    shape, zero if left out.
    **Returns:** a state; with a leading axis of T in every leaf if the coordinates have one.
    **Errors:** `ValueError` for free bodies, closed loops, other joints, wrong shapes.
    """
    check_placeable(system)
    q = jnp.asarray(coordinates, float)
    nu = jnp.zeros_like(q) if rates is None else jnp.asarray(rates, float)
    count = sum(system.rates_of_bodies)
    if q.shape != nu.shape or q.ndim not in (1, 2) or q.shape[-1] != count:
        raise ValueError(
            f"`joint_states(coordinates, rates)` take shape ({count},) or (T, {count}), one column "
            f"for each of {list(rate_labels(system))}; got {q.shape} and {nu.shape}."
        )
    of_state = state_of_joints
    if q.ndim > 1:
        of_state = jax.vmap(state_of_joints, in_axes=(None, None, 0, 0))
    return jax.jit(of_state)(PreparedSystem(system), jnp.zeros((), q.dtype), q, nu)


def state_of_joints(
    prepared: PreparedSystem, t: Float[Array, ""], q: Float[Array, " f"], nu: Float[Array, " f"]
) -> State:
    """Return one state of any tree from its joint coordinates; arguments are not checked.

    Prescribed joints are at their prescribed coordinate at `t`, s, and have no coordinates. A free
    rotation has its rotation vector (rad), a free body the one from space to body axes, after its
    position (m).
    """
    system = prepared.system
    turning, rows, begin = turning_bodies(system), [], 0
    plain: list[int] = []
    for body, count in enumerate(system.rates_of_bodies):
        lengths = count - 3 if body in turning else count
        plain += range(begin, begin + lengths)
        rows += [range(begin + lengths, begin + count)] if body in turning else []
        begin += count
    vectors = take(q, np.array(rows, int).reshape(-1)).reshape(-1, 3)
    poses = tree_poses(prepared, t, take(q, np.array(plain, int)), jax.vmap(exp)(vectors))
    joint_frames = joint_frames_at(prepared, poses)
    twists = body_twists(prepared, t, poses, joint_frames, nu)
    p = jax.vmap(spurrier_klumpp)(poses.rotations[:-1])
    state = State(poses.positions[:-1], p, twists.linear, twists.angular)
    return with_joint_angles(prepared, state, joint_frames)


def rate_labels(system: AbstractSystem) -> tuple[str, ...]:
    """Return the names of the generalised velocities, body by body.

    A body that is attached to a joint has the name of the joint; `"joint[0]"`, `"joint[1]"`, ... if
    the joint has several rates. A free body has `"body.vx"` to `"body.wz"`, velocity in space and
    angular velocity in body components.
    """
    labels: list[str] = []
    of_bodies = zip(system.bodies, system.topology.joints, system.rates_of_bodies, strict=True)
    for body, j, count in of_bodies:
        if j is None:
            parts = ("vx", "vy", "vz", "wx", "wy", "wz")[-count:]
            labels += [f"{body.name}.{part}" if system.translates else part for part in parts]
        else:
            name = system.joints[j].name
            labels += [name] if count == 1 else [f"{name}[{k}]" for k in range(count)]
    return tuple(labels)


def reference_coordinates(system: AbstractSystem) -> Float[Array, " f"]:
    """Return the joint coordinates of a tree in the reference configuration.

    They are zero except for free bodies; see `state_of_joints`.
    """
    parts = [jnp.zeros(0, system.bodies[0].position.dtype)]
    of_bodies = zip(system.bodies, system.topology.joints, system.rates_of_bodies, strict=True)
    for body, j, count in of_bodies:
        joint = None if j is None else system.joints[j]
        if joint is None or (joint.at_centre and joint.parent == "ground"):
            parts += [body.position, log_quaternion(body.orientation)]
        elif joint.at_centre:
            parent, child = (
                system.bodies[system.locate(name)[0]] for name in (joint.parent, joint.child)
            )
            R = euler_map(parent.orientation)
            parts += [
                to_body(R, child.position - parent.position),
                log(relative(R, euler_map(child.orientation))),
            ]
        else:
            parts.append(jnp.zeros(count, body.position.dtype))
    return jnp.concatenate(parts)


def check_tree(system: AbstractSystem) -> None:
    """Raise `ValueError` for a system with loops."""
    if system.has_loops:
        closing = [system.joints[j].name for j in system.topology.loops]
        closing += [constraint.name for constraint in system.constraints]
        raise ValueError(
            f"Joint coordinates place the bodies of a tree; {closing} close loops. Give states."
        )


def check_placeable(system: AbstractSystem) -> None:
    """Raise `ValueError` unless joint coordinates determine all poses, as `joint_states` needs."""
    check_tree(system)
    for body, j in zip(system.bodies, system.topology.joints, strict=True):
        if j is None:
            raise ValueError(
                f"Joint coordinates do not place the body {body.name!r}, which is free. "
                "Give states."
            )
        _check_joint(system.joints[j])


def _check_joint(joint: AbstractJoint) -> None:
    kind = f"the {type(joint).__name__} {joint.name!r}"
    if joint.is_driven:
        raise ValueError(
            f"The motion of {kind} is prescribed; leave `motion` out where coordinates are given."
        )
    if joint.num_rates - joint.num_translations > 1:
        raise ValueError(
            f"Coordinates do not place the child of {kind}: only lengths and one angle do. Give "
            "states."
        )


def plain_counts(system: AbstractSystem) -> tuple[int, ...]:
    """Return the number of lengths and angles that place each body, without free rotations."""
    turning = turning_bodies(system)
    rates = enumerate(system.rates_of_bodies)
    return tuple(count - 3 if body in turning else count for body, count in rates)


def turning_bodies(system: AbstractSystem) -> tuple[int, ...]:
    """Return the bodies whose rotation is free: in space, or relative to their parent."""
    return tuple(
        body
        for body, j in enumerate(system.topology.joints)
        if j is None or system.joints[j].turns_freely
    )


class RelativeStep(eqx.Module):
    """Pose of a body relative to its parent: $R = R_p A$, $x = x_p + R_p b$."""

    rotation: Float[Array, "n 3 3"]
    shift: Float[Array, "n 3"]


def tree_poses(
    prepared: PreparedSystem,
    t: Float[Array, ""],
    coordinates: Float[Array, " q"],
    rotations: Float[Array, "k 3 3"],
) -> Poses:
    """Return the poses of all bodies from the coordinates of the tree joints.

    **Arguments:** `coordinates`, lengths and angles body after body, `plain_counts` of each;
    `rotations` of the `turning_bodies`.
    """
    topology = prepared.system.topology
    first_row = np.concatenate([[0], np.cumsum(plain_counts(prepared.system))]).astype(int)
    turning = {body: k for k, body in enumerate(turning_bodies(prepared.system))}
    turns = jnp.zeros(len(prepared.system.joints), coordinates.dtype)
    parts, where = [], []
    for _, group, _, bodies, sign in tree_joints(prepared, prepared.groups):
        count = plain_counts(prepared.system)[bodies[0]]
        rows = np.add.outer(first_row[bodies], np.arange(count)).ravel()
        coordinates_of_group = take(coordinates, rows).reshape(len(bodies), count)
        if group.joint.is_driven:
            coordinates_of_group = group.map(lambda joint: joint.prescribed_coordinate(t)[None])
        if group.joint.turns_freely:
            Q = take(rotations, [turning[body] for body in bodies])
            poses = group.map(lambda joint, q, Q: joint.pose(q, Q), coordinates_of_group, Q)
        else:
            poses = group.map(lambda joint, q: joint.pose(q), coordinates_of_group)
        if group.joint.has_angle:
            found = group.map(lambda joint, r: joint.coordinates(r), poses)
            k = group.joint.num_translations if count else 0
            whole = jax.lax.stop_gradient(coordinates_of_group[:, k] - found[:, k]) / (2 * jnp.pi)
            turns = turns.at[np.array(group.indices)].set(
                2 * jnp.pi * jnp.round(whole), unique_indices=True
            )
        parts.append(_steps(group, poses, sign < 0))
        where.append(bodies)
    free = free_bodies(prepared)
    if len(free):
        Q = take(rotations, [turning[body] for body in free])
        shift = jnp.zeros((len(free), 3), coordinates.dtype)
        if prepared.system.translates:
            rows = np.add.outer(first_row[free], np.arange(3)).ravel()
            shift = take(coordinates, rows).reshape(-1, 3)
        parts.append(RelativeStep(Q, shift))
        where.append(free)
    order = np.argsort(np.concatenate(where), kind="stable")
    steps = jax.tree.map(lambda *rows: take(jnp.concatenate(rows), order), *parts)
    steps = _from_the_ground(steps, topology)
    return Poses(steps.shift, steps.rotation, turns)


def _from_the_ground(steps: RelativeStep, topology: Topology) -> RelativeStep:
    """Compose the steps from the ground to each body; the ground itself is last."""
    L, dtype = topology.num_bodies, steps.shift.dtype
    ground = RelativeStep(jnp.eye(3, dtype=dtype)[None], jnp.zeros((1, 3), dtype))
    depths = np.zeros(L + 1, int)
    for body in topology.order:
        depths[body] = 1 + depths[topology.parents[body]]  # the last entry, 0, is of the ground
    of = lambda steps, rows: jax.tree.map(lambda leaf: take(leaf, rows), steps)  # noqa: E731
    if depths.max() <= _LEVELS:
        # Level by level: every product is computed once.
        levels, last, bodies = [ground], np.array([GROUND]), [np.array([L])]
        for depth in range(1, depths.max() + 1):
            rows = np.flatnonzero(depths == depth)
            frames = {int(body): k for k, body in enumerate(last)}
            parents = [frames[topology.parents[row]] for row in rows]
            levels.append(jax.vmap(_compose)(of(levels[-1], parents), of(steps, rows)))
            bodies.append(rows)
            last = rows
        order = np.argsort(np.concatenate(bodies))
        return jax.tree.map(lambda *parts: take(jnp.concatenate(parts), order), *levels)
    # By doubling: after k passes a step spans 2^k joints.
    steps = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), steps, ground)
    parents = np.array([L if p == GROUND else p for p in topology.parents] + [L])
    while np.any(parents != L):
        steps = jax.vmap(_compose)(of(steps, parents), steps)
        parents = parents[parents]
    return steps


def _compose(first_row: RelativeStep, second: RelativeStep) -> RelativeStep:
    shift = first_row.shift + to_space(first_row.rotation, second.shift)
    return RelativeStep(product(first_row.rotation, second.rotation), shift)


def _steps(group: JointGroup, poses: RelativePose, backwards: np.ndarray) -> RelativeStep:
    """Return the steps from the parents of the bodies of a group to these bodies."""

    def of_state(attachments, d, Q, backwards):
        r_p, B_p, r_c, B_c = attachments
        A = product(product(B_p, Q), B_c.T)
        b = r_p + to_space(B_p, d) - to_space(A, r_c)
        return RelativeStep(jnp.where(backwards, A.T, A), jnp.where(backwards, -to_body(A, b), b))

    return jax.vmap(of_state)(
        group.attachments, poses.displacement, poses.rotation, jnp.asarray(backwards)
    )
