"""Poses of trees of bodies from the coordinates of their joints."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..joints import AbstractJoint, Relative
from ..rotations.matrix import product, to_space
from ..rotations.so3 import exp
from ..rotations.spurrier_klumpp import spurrier_klumpp
from ..state import State
from .attachment import Poses
from .jointed import JointedMechanics
from .system import System
from .topology import GROUND
from .trees import tree_twists


def joint_states(
    system: System, coordinates: Float[Array, "*T f"], rates: Float[Array, "*T f"] | None = None
) -> State:
    r"""States of a tree from the coordinates and rates of its joints.

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
    one = state_of_joints if q.ndim == 1 else jax.vmap(state_of_joints, in_axes=(None, 0, 0))
    return jax.jit(one)(JointedMechanics(system), q, nu)


def state_of_joints(mechanics: JointedMechanics, q, nu) -> State:
    """As `joint_states`, of one state, unchecked."""
    poses = tree_poses(mechanics, q)
    twists = tree_twists(mechanics, jnp.zeros((), q.dtype), poses, mechanics.place(poses), nu)
    p = jax.vmap(spurrier_klumpp)(poses.rotations[:-1])
    return State(poses.positions[:-1], p, twists.linear, twists.angular)


def rate_labels(system: System) -> tuple[str, ...]:
    r"""Names of the minimal velocities: of each body in turn, those of the joint it hangs on.

    A joint with several has `"joint[0]"`, `"joint[1]"`, ...; a free body `"body.vx"` to
    `"body.wz"`, velocity in space and angular velocity in body components.
    """
    labels: list[str] = []
    of_bodies = zip(system.bodies, system.topology.joints, system.rates_of_bodies, strict=True)
    for body, j, count in of_bodies:
        if j is None:
            labels += [f"{body.name}.{part}" for part in ("vx", "vy", "vz", "wx", "wy", "wz")]
        else:
            name = system.joints[j].name
            labels += [name] if count == 1 else [f"{name}[{k}]" for k in range(count)]
    return tuple(labels)


def check_placeable(system: System) -> None:
    """Raise `ValueError` unless joint coordinates place all bodies, as `joint_states` needs it."""
    if system.topology.loops:
        closing = [system.joints[j].name for j in system.topology.loops]
        raise ValueError(
            f"Joint coordinates place the bodies of a tree; {closing} close loops. Give states."
        )
    for body, j in zip(system.bodies, system.topology.joints, strict=True):
        if j is None:
            raise ValueError(
                f"Joint coordinates do not place the body {body.name!r}, which is free. "
                "Give states."
            )
        _check_joint(system.joints[j])


def _check_joint(joint: AbstractJoint) -> None:
    kind = f"the {type(joint).__name__} {joint.name!r}"
    if getattr(joint, "motion", None) is not None:
        raise ValueError(
            f"The motion of {kind} is prescribed; leave `motion` out where coordinates are given."
        )
    if joint.num_rates - joint.num_translations > 1:
        raise ValueError(
            f"Coordinates do not place the child of {kind}: only lengths and one angle do. Give "
            "states."
        )


def _relative(joint: AbstractJoint, q: Float[Array, " f"], turns) -> Relative:
    """Pose of the child of a joint whose coordinates are lengths and one angle."""
    start = Relative(jnp.zeros(3, q.dtype), jnp.eye(3, dtype=q.dtype), turns)
    twist = joint.null_space(start) @ q
    return Relative(twist[:3], exp(twist[3:]), turns)


def tree_poses(mechanics: JointedMechanics, q: Float[Array, " f"]) -> Poses:
    """Poses of all bodies from the coordinates of the tree joints, in the order of the rates."""
    system = mechanics.system
    topology = system.topology
    first = np.concatenate([[0], np.cumsum(system.rates_of_bodies)]).astype(int)
    zero = jnp.zeros((), q.dtype)
    x: dict[int, Array] = {GROUND: jnp.zeros(3, q.dtype)}
    R: dict[int, Array] = {GROUND: jnp.eye(3, dtype=q.dtype)}
    attached = mechanics.by_joint(
        [(g.parent_point, g.parent_frame, g.child_point, g.child_frame) for g in mechanics.groups]
    )
    turns = jnp.zeros(len(system.joints), q.dtype)
    for i in topology.order:
        j = topology.joints[i]
        assert j is not None
        joint, (r_p, B_p, r_c, B_c) = system.joints[j], attached[j]
        own = q[first[i] : first[i + 1]]
        pose = _relative(joint, own, zero)
        if joint.has_angle and joint.num_rates:
            k = joint.num_translations
            wound = own[k] - joint.coordinates(pose)[k]
            turns = turns.at[j].set(2 * jnp.pi * jnp.round(wound / (2 * jnp.pi)))
        here, d = topology.parents[i], pose.displacement
        if topology.reversed[i]:
            frame = product(product(R[here], B_c), pose.rotation.T)
            R[i] = product(frame, B_p.T)
            x[i] = x[here] + to_space(R[here], r_c) - to_space(frame, d) - to_space(R[i], r_p)
        else:
            frame = product(R[here], B_p)
            R[i] = product(product(frame, pose.rotation), B_c.T)
            x[i] = x[here] + to_space(R[here], r_p) + to_space(frame, d) - to_space(R[i], r_c)
    order = [*range(topology.num_bodies), GROUND]
    return Poses(jnp.stack([x[i] for i in order]), jnp.stack([R[i] for i in order]), turns)
