"""Conversion of states, and of velocities in a state, to those of other programs and back."""

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import float_array
from ..formulations import Relative
from ..joints.relative_pose import wrap_angle
from ..mechanics.kinematics.poses import Motion
from ..mechanics.kinematics.trees import body_twists
from ..native.ops import cross
from ..persistent_jit import persistent_jit
from ..rotations.euler_map import euler_map
from ..rotations.matrix import product, relative, to_body, to_space
from ..rotations.so3 import exp
from ..rotations.spurrier_klumpp import spurrier_klumpp
from ..state import State
from .tree_joints import (
    Program,
    TreeJoints,
    count_coordinates,
    order_tree_joints,
    place_frames,
    with_ground,
)
from .velocity_map import VelocityMap

if TYPE_CHECKING:
    from .model import Model

Vector: TypeAlias = Float[Array, "3"]
Matrix: TypeAlias = Float[Array, "3 3"]


class _Motion(NamedTuple):
    """Poses and velocities of frames, space components: origins, rotations, velocities."""

    x: Array
    R: Array
    v: Array
    w: Array


def _scatter(joints: TreeJoints, parts: list[Array], of: int) -> Array:
    """Return coordinates (`of=0`) or velocities (1) of all joints from those of each group."""
    first = np.concatenate([[0], np.cumsum([pair[of] for pair in joints.counts])])
    rows = [
        (first[members][:, None] + np.arange(part.shape[1])).ravel()
        for members, part in zip(joints.groups.values(), parts, strict=True)
    ]
    order = np.argsort(np.concatenate(rows))
    return jnp.concatenate([part.ravel() for part in parts])[order]


def from_coordinates(model: "Model", program: Program, q: Any, v: Any) -> State:
    """Return the state with coordinates and velocities of another program."""
    names, kinds = model.names, dict(zip(model.names.joints, model.names.kinds, strict=True))
    pairs = [
        count_coordinates(name, kinds[name], name in names.continuous, program)
        for name in names.joints if name not in names.closing
    ]  # fmt: skip
    nq, nv = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    q = float_array(q, f"from_{program}(q)", (nq,))
    v = np.zeros(nv) if v is None else float_array(v, f"from_{program}(v)", (nv,))
    return _from_coordinates(model, program, jnp.asarray(q, float), jnp.asarray(v, float))


@persistent_jit
def _from_coordinates(model: "Model", program: Program, q: Array, v: Array) -> State:
    joints = order_tree_joints(model, program)
    parts, members, angles = [], [], {}
    first = np.cumsum([(0, 0), *joints.counts], axis=0)
    for (kind, nq), rows in joints.groups.items():
        nv = joints.counts[rows[0]][1]
        of_q = q[first[rows, 0][:, None] + np.arange(nq)]
        of_v = v[first[rows, 1][:, None] + np.arange(nv)]

        def of_joint(*arguments, kind=kind):
            return _relative_motion(kind, program, *arguments)

        motion, angle = jax.vmap(of_joint)(
            of_q, of_v, joints.p0[rows], joints.R0[rows], joints.axis[rows], joints.anchor[rows],
            joints.zero[rows],
        )  # fmt: skip
        parts.append(motion)
        members.append(rows)
        if kind == "revolute":
            angles |= {joints.names[k]: angle[i] for i, k in enumerate(rows)}
    order = np.argsort(np.concatenate(members))
    motion = jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[order], *parts)
    bodies = _compose(model, joints, motion)
    state = State(
        bodies.x,
        jax.vmap(spurrier_klumpp)(bodies.R),
        bodies.v,
        jax.vmap(to_body)(bodies.R, bodies.w),
    )
    names = tuple(name for name in model.system.angle_names if name in angles)
    return state.with_angles(names, jnp.stack([angles[n] for n in names]) if names else None)


def _compose(model: "Model", joints: TreeJoints, motion: _Motion) -> _Motion:
    """Return the motion of all bodies from that of the joints, level by level from the ground."""
    count = model.system.num_bodies
    zero = jnp.zeros((count + 1, 3))
    bodies = _Motion(zero, jnp.broadcast_to(jnp.eye(3), (count + 1, 3, 3)), zero, zero)
    placed, pending = {count}, np.arange(len(joints.names))
    while len(pending):
        ready = np.array([joints.parents[k] in placed for k in pending])
        level, pending = pending[ready], pending[~ready]
        above, row = joints.parents[level], joints.children[level]
        at = jax.tree.map(lambda leaf, above=above: leaf[above], bodies)
        relative_motion = jax.tree.map(lambda leaf, level=level: leaf[level], motion)
        moved = jax.vmap(_child_motion)(
            at,
            relative_motion,
            jax.tree.map(lambda leaf, level=level: leaf[level], joints.parent_frames),
            jax.tree.map(lambda leaf, level=level: leaf[level], joints.child_frames),
            joints.p0[level],
            joints.R0[level],
        )
        bodies = jax.tree.map(lambda leaf, new, row=row: leaf.at[row].set(new), bodies, moved)
        placed |= set(row.tolist())
    return jax.tree.map(lambda leaf: leaf[:-1], bodies)


def _child_motion(
    above: _Motion,
    joint: _Motion,
    parent_frame: tuple[Vector, Matrix],
    child_frame: tuple[Vector, Matrix],
    p0: Vector,
    R0: Matrix,
) -> _Motion:
    """Return the motion of the child's centre of mass from that of the parent's."""
    (p_p, B_p), (p_c, B_c) = parent_frame, child_frame
    base = product(product(above.R, B_p), R0)
    R = product(product(base, joint.R), B_c.T)
    w_relative = to_space(base, joint.w)
    origin = to_space(above.R, p_p + to_space(B_p, p0)) + to_space(base, joint.x)
    w = above.w + w_relative
    to_centre = -to_space(R, p_c)
    v = above.v + cross(above.w, origin) + to_space(base, joint.v) + cross(w, to_centre)
    return _Motion(above.x + origin + to_centre, R, v, w)


def _relative_motion(
    kind: str, program: Program, q: Array, v: Array, p0: Vector, R0: Matrix, axis: Vector,
    anchor: Vector, zero: Float[Array, ""],
) -> tuple[_Motion, Float[Array, ""]]:  # fmt: skip
    """Return the motion of a joint, components of its base, and its angle (zero without one)."""
    none, one = jnp.zeros(3, q.dtype), jnp.eye(3, dtype=q.dtype)
    angle = jnp.zeros((), q.dtype)
    if kind == "fixed":
        return _Motion(none, one, none, none), angle
    if kind == "prismatic":
        return _Motion(axis * (q[0] - zero), one, axis * v[0], none), angle
    if kind == "planar":
        Q = exp(axis * jnp.arctan2(q[3], q[2]))
        d = jnp.stack([q[0], q[1], angle])
        rate = to_space(Q, jnp.stack([v[0], v[1], angle]))
        return _Motion(d, Q, rate, axis * v[2]), angle
    if kind == "floating":
        p = q[3:] if program == "mujoco" else jnp.roll(q[3:], 1)
        R = euler_map(p / jnp.sqrt(jnp.sum(p * p)))
        if program == "pinocchio":
            return _Motion(q[:3], R, to_space(R, v[:3]), to_space(R, v[3:])), angle
        # MuJoCo's are the pose and the velocity in space.
        d, Q = to_body(R0, q[:3] - p0), relative(R0, R)
        return _Motion(d, Q, to_body(R0, v[:3]), to_space(Q, v[3:])), angle
    if kind == "spherical":
        p = q if program == "mujoco" else jnp.roll(q, 1)
        Q = euler_map(p / jnp.sqrt(jnp.sum(p * p)))
        w = to_space(Q, v)
    else:
        angle = (q[0] if len(q) == 1 else jnp.arctan2(q[1], q[0])) - zero
        Q, w = exp(axis * angle), axis * v[0]
    arm = to_space(Q, anchor)
    return _Motion(anchor - arm, Q, -cross(w, arm), w), angle


@persistent_jit
def to_coordinates(
    model: "Model", program: Program, state: State
) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
    """Return coordinates and velocities of another program in a state."""
    joints = order_tree_joints(model, program)
    R_bodies = jax.vmap(euler_map)(state.orientation)
    w_bodies = jax.vmap(to_space)(R_bodies, state.angular_velocity)
    x_all, R_all = with_ground(state.position, R_bodies)
    v_all, w_all = (
        jnp.concatenate([rows, jnp.zeros((1, 3))]) for rows in (state.velocity, w_bodies)
    )

    def motion(rows, frames):
        x, R = place_frames(x_all, R_all, rows, *frames)
        w = w_all[rows]
        return _Motion(x, R, v_all[rows] + jax.vmap(cross)(w, x - x_all[rows]), w)

    def between(above, child, p0, R0):
        base = product(above.R, R0)
        apart = child.x - above.x
        rate = to_body(base, child.v - above.v - cross(above.w, apart))
        d = to_body(base, apart - to_space(above.R, p0))
        return _Motion(d, relative(base, child.R), rate, to_body(base, child.w - above.w))

    moved = jax.vmap(between)(
        motion(joints.parents, joints.parent_frames), motion(joints.children, joints.child_frames),
        joints.p0, joints.R0,
    )  # fmt: skip
    known = state.angles
    coordinates, velocities = [], []
    for (kind, nq), rows in joints.groups.items():

        def of_joint(*arguments, kind=kind, nq=nq):
            return _joint_coordinates(kind, nq, program, *arguments)

        angles = jnp.stack([known.get(joints.names[k], jnp.zeros(())) for k in rows])
        q, v = jax.vmap(of_joint)(
            jax.tree.map(lambda leaf, rows=rows: leaf[rows], moved), joints.p0[rows],
            joints.R0[rows], joints.axis[rows], joints.zero[rows], angles,
        )  # fmt: skip
        coordinates.append(q)
        velocities.append(v)
    return _scatter(joints, coordinates, 0), _scatter(joints, velocities, 1)


def _joint_coordinates(
    kind: str, count: int, program: Program, of: _Motion, p0: Vector, R0: Matrix, axis: Vector,
    zero: Float[Array, ""], known: Float[Array, ""],
) -> tuple[Array, Array]:  # fmt: skip
    """Return coordinates and velocities of a joint from its motion in base components."""
    d, Q, rate, w = of
    if kind == "fixed":
        return jnp.zeros(0), jnp.zeros(0)
    if kind == "prismatic":
        return jnp.sum(axis * d)[None] + zero, jnp.sum(axis * rate)[None]
    if kind == "floating":
        if program == "pinocchio":
            p = jnp.roll(spurrier_klumpp(Q), -1)
            return jnp.concatenate([d, p]), jnp.concatenate([to_body(Q, rate), to_body(Q, w)])
        p = spurrier_klumpp(product(R0, Q))
        velocity = jnp.concatenate([to_space(R0, rate), to_body(Q, w)])
        return jnp.concatenate([p0 + to_space(R0, d), p]), velocity
    if kind == "spherical":
        p = spurrier_klumpp(Q)
        return (p if program == "mujoco" else jnp.roll(p, -1)), to_body(Q, w)
    # Twice the sine along the axis, and twice the cosine, of the angle about it.
    sine = jnp.stack([Q[2, 1] - Q[1, 2], Q[0, 2] - Q[2, 0], Q[1, 0] - Q[0, 1]])
    angle = jnp.arctan2(jnp.sum(axis * sine), jnp.trace(Q) - 1.0)
    angle_rate = jnp.sum(axis * w)
    if kind == "planar":
        turn = jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        velocity = to_body(Q, rate)[:2]
        return jnp.concatenate([d[:2], turn]), jnp.append(velocity, angle_rate)
    angle = known + wrap_angle(angle - known) + zero
    if count == 2:
        return jnp.stack([jnp.cos(angle), jnp.sin(angle)]), angle_rate[None]
    return angle[None], angle_rate[None]


def velocity_map(model: "Model", program: Program, state: State) -> VelocityMap:
    """Return the conversion of velocities, forces and mass matrices in a state.

    **Errors:** `ValueError` for another program.
    """
    if program not in ("pinocchio", "mujoco"):
        raise ValueError(
            f'`velocity_map(program=...)` must be "pinocchio" or "mujoco"; got {program!r}.'
        )
    return _velocity_map(model, program, state)


@persistent_jit
def _velocity_map(model: "Model", program: Program, state: State) -> VelocityMap:
    trees = Relative(model.system)
    y = trees.pack(state)
    n = trees.layout.num_positions
    rows = slice(n, n + trees.layout.velocity_size)
    t = jnp.zeros((), y.dtype)

    def velocities(y):
        return to_coordinates(model, program, trees.decode(t, y))[1]

    nu = y[rows]
    poses, joint_frames, twists = trees.motion(t, y)
    prepared = trees.prepared_system

    def with_rates(nu):
        # Poses do not depend on the velocities.
        of = body_twists(prepared, t, poses, joint_frames, nu)
        moving = State(state.position, state.orientation, of.linear, of.angular)
        return to_coordinates(model, program, moving)[1]

    steady = trees.joined_rates(y, joint_frames, Motion(nu, twists, jnp.zeros_like(nu)))
    bias = jax.jvp(velocities, (y,), (steady,))[1]
    return VelocityMap(jax.jacfwd(with_rates)(nu), bias)
