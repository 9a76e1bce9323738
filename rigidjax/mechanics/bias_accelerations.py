r"""Accelerations that trees have at constant minimal velocities, in closed form.

Only what a joint's motion depends on inside of the joint, its null-space columns and its prescribed
motion, is differentiated by `jax.jvp`; how frames and points move with the bodies is written down.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..joints import RelativePose
from ..joints.relative_pose import apply_small_twist
from ..native.ops import cross, take
from ..rotations.matrix import to_body, to_space
from .attachment import JointGroup, Placement, Poses
from .mechanics import SystemMechanics
from .trees import (
    along_paths,
    first_rate,
    free_bodies,
    free_rates,
    free_twists,
    in_order,
    rates_of,
    tree_joints,
)
from .twists import Twists


def own_accelerations(
    mechanics: SystemMechanics, t, poses: Poses, places, at, motions: Float[Array, "L 6"], nu
) -> Float[Array, "L 6"]:
    r"""Time derivative of `trees.joint_twists_in_space` at constant minimal velocities.

    `motions`, of the bodies about the points `at`.
    """
    start = first_rate(mechanics)
    V = jnp.concatenate([motions, jnp.zeros((1, 6), motions.dtype)])
    rows, where = [], []
    for _, group, place, bodies, sign in tree_joints(mechanics, places):
        twist, change = _twist_and_change(group, place, t, rates_of(group, start[bodies], nu))
        of_frame = take(V, group.parents)[:, 3:]
        of_child = take(V, group.children)
        centre = take(at, bodies)
        moving = (place.point - centre, place.frame, of_frame, of_child, twist, change)
        rows.append(jax.vmap(_carried)(jnp.asarray(sign, V.dtype), *moving))
        where.append(bodies)
    free = free_bodies(mechanics)
    if len(free):
        w = take(motions, free)[:, 3:]
        turning = jax.vmap(cross)(free_rates(mechanics, nu)[:, :3], w)
        rows.append(jnp.concatenate([turning, jnp.zeros_like(turning)], axis=1))
        where.append(free)
    return in_order(rows, where, jnp.zeros((0, 6), nu.dtype))


def _twist_and_change(group: JointGroup, place: Placement, t, rates):
    r"""Relative twists $s = S\nu + s_t$ of joints, and $\dot s$ in their frames, rates constant."""
    twist = free_twists(group, place, t, rates)
    relative = place.relative
    velocity = jax.vmap(_velocity)(relative, twist)

    def of(t, relative):
        at = Placement(
            place.point, place.frame, relative, place.parent_arm, place.child_arm,
            place.parent_rotation, place.child_rotation,
        )  # fmt: skip
        return free_twists(group, at, t, rates)

    _, change = jax.jvp(of, (t, relative), (jnp.ones_like(t), velocity))
    return twist, change


def _velocity(relative: RelativePose, twist: Float[Array, "6"]) -> RelativePose:
    """Rate of change of a relative pose that moves with a twist."""
    _, rate = jax.jvp(lambda s: apply_small_twist(relative, s), (jnp.zeros_like(twist),), (twist,))
    return rate


def _carried(sign, arm, frame, of_frame, of_child, twist, change) -> Float[Array, "6"]:
    """Rate of a joint's motion about a fixed point; `arm`, from there to the joint's point."""
    v, w = to_space(frame, twist[:3]), to_space(frame, twist[3:])
    v_dot = to_space(frame, change[:3]) + cross(of_frame, v)
    w_dot = to_space(frame, change[3:]) + cross(of_frame, w)
    arm_dot = of_child[:3] + cross(of_child[3:], arm)
    return sign * jnp.concatenate([v_dot + cross(arm_dot, w) + cross(arm, w_dot), w_dot])


def bias_accelerations(mechanics: SystemMechanics, t, poses: Poses, places, at, motions, nu):
    r"""Accelerations $(\ddot x, \dot\Omega)$ of all bodies at constant minimal velocities, (L, 6).

    `motions`, (L, 6), of the bodies about the points `at`.
    """
    change = own_accelerations(mechanics, t, poses, places, at, motions, nu)
    change = along_paths(mechanics, change)
    x, R = poses.positions[:-1], poses.rotations[:-1]

    def one(R, r, V, A):
        v = V[:3] + cross(V[3:], r)
        linear = A[:3] + cross(A[3:], r) + cross(V[3:], v)
        return jnp.concatenate([linear, to_body(R, A[3:])])

    return jax.vmap(one)(R, x - at, motions, change)


def joint_bias(
    mechanics: SystemMechanics, t, poses: Poses, nu, twists: Twists
) -> dict[int, Float[Array, "n 6"]]:
    r"""What turns accelerations of bodies into those of joints, $S\dot\nu$ = theirs + bias.

    The relative twist is $P w = S\nu + s_t$, so that it is $\dot P w - \dot S\nu - \dot s_t$, for
    each group of tree joints, by its number.
    """
    start = first_rate(mechanics)
    places = mechanics.place(poses)
    rates = {
        g: rates_of(group, start[bodies], nu)
        for g, group, _, bodies, _ in tree_joints(mechanics, places)
    }

    def gap(t, poses):
        places = mechanics.place(poses)
        relative = mechanics.joint_twists(places, twists)
        return {
            g: relative[g] - free_twists(group, place, t, rates[g])
            for g, group, place, _, _ in tree_joints(mechanics, places)
        }

    return mechanics.bias(gap, t, poses, twists)[1]
