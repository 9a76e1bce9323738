"""Conversion of states, velocities, forces and mass matrices to and from other programs."""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import float_array, vector_leaf
from ..formulations import Relative
from ..joints.relative_pose import wrap_angle
from ..mechanics.kinematics.trees import body_twists
from ..mechanics.kinematics.twists import Motion
from ..native.ops import cross
from ..rotations.euler_map import euler_map
from ..rotations.matrix import product, relative, to_body, to_space
from ..rotations.so3 import exp
from ..rotations.spurrier_klumpp import spurrier_klumpp
from ..state import State
from .description import GROUND

if TYPE_CHECKING:
    from .model import Model

Program: TypeAlias = Literal["pinocchio", "mujoco"]
Vector: TypeAlias = Float[Array, "3"]
Matrix: TypeAlias = Float[Array, "3 3"]


class GroundFrame(eqx.Module):
    """A frame at rest: `point`, its origin, (3,) m; `orientation`, (4,), from frame to space."""

    name: str = eqx.field(static=True)
    point: Vector
    orientation: Float[Array, "4"]

    def __init__(self, name: str, point: Any, orientation: Any):
        self.name = name
        self.point = vector_leaf(point, "GroundFrame(point=...)")
        self.orientation = jnp.asarray(orientation, float)

    @property
    def body(self) -> str:
        """Name of the body: the ground."""
        return GROUND


class VelocityMap(eqx.Module):
    r"""Conversion from generalised velocities $\nu$ of the trees to those of another program.

    $v = B \nu$ and $\dot v = B \dot\nu + b$. The mass matrix $M$ and the bias forces $h$ of
    `model.mass_matrix` and `model.bias_forces` become $B^{-T} M B^{-1}$ and
    $B^{-T} (h - M B^{-1} b)$, generalised forces $B^{-T} \tau$.

    **Attributes:** `matrix`, $B$, (f, f); `bias`, $b$, (f,).
    """

    matrix: Float[Array, "f f"]
    bias: Float[Array, " f"]

    def velocities(self, nu: Float[Array, " f"]) -> Float[Array, " f"]:
        """Return the velocities of the other program."""
        return self.matrix @ nu

    def accelerations(self, nu_dot: Float[Array, " f"]) -> Float[Array, " f"]:
        """Return the accelerations of the other program from derivatives of `nu`."""
        return self.matrix @ nu_dot + self.bias

    def forces(self, tau: Float[Array, " f"]) -> Float[Array, " f"]:
        """Return the generalised forces of the other program."""
        return jnp.linalg.solve(self.matrix.T, tau)

    def forces_from(self, tau: Float[Array, " f"]) -> Float[Array, " f"]:
        """Return generalised forces on `nu` from those of the other program."""
        return self.matrix.T @ tau

    def mass_matrix(self, M: Float[Array, "f f"]) -> Float[Array, "f f"]:
        """Return the mass matrix of the other program."""
        half = jnp.linalg.solve(self.matrix.T, M)
        return jnp.linalg.solve(self.matrix.T, half.T).T

    def bias_forces(self, h: Float[Array, " f"], M: Float[Array, "f f"]) -> Float[Array, " f"]:
        """Return the bias forces of the other program; `M`, the mass matrix on `nu`."""
        return self.forces(h - M @ jnp.linalg.solve(self.matrix, self.bias))


class _Motion(NamedTuple):
    """Poses and velocities of frames, space components: origins, rotations, velocities."""

    x: Array
    R: Array
    v: Array
    w: Array


class _Joints(NamedTuple):
    """The tree joints of a file in the order of another program, stacked.

    For each joint the rows of its bodies, the ground last; its link frames on these bodies; `p0`,
    `R0`, frame of the child link in the parent's in the reference configuration; `axis` and
    `anchor` in the child's; `zero`, the file's coordinate in the reference configuration.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    counts: tuple[tuple[int, int], ...]
    parents: np.ndarray
    children: np.ndarray
    parent_frames: tuple[Array, Array]
    child_frames: tuple[Array, Array]
    p0: Float[Array, "J 3"]
    R0: Float[Array, "J 3 3"]
    axis: Float[Array, "J 3"]
    anchor: Float[Array, "J 3"]
    zero: Float[Array, " J"]

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of coordinates and of velocities."""
        return sum(nq for nq, _ in self.counts), sum(nv for _, nv in self.counts)

    @property
    def groups(self) -> dict[tuple[str, int], np.ndarray]:
        """Joints of each kind with equal numbers of coordinates."""
        keys = [(kind, nq) for kind, (nq, _) in zip(self.kinds, self.counts, strict=True)]
        return {key: np.flatnonzero([key == k for k in keys]) for key in dict.fromkeys(keys)}


def _counts(name: str, kind: str, is_continuous: bool, program: Program) -> tuple[int, int]:
    """Return the numbers of coordinates and velocities of a joint in another program."""
    if kind in ("revolute", "prismatic"):
        return (2 if is_continuous and program == "pinocchio" else 1), 1
    counts = {"spherical": (4, 3), "floating": (7, 6), "fixed": (0, 0)}
    if program == "pinocchio":
        counts["planar"] = 4, 3
    if kind not in counts:
        raise ValueError(f"The joint {name!r} is {kind}; {program} has no such joint.")
    return counts[kind]


def _joints(model: "Model", program: Program) -> _Joints:
    """Return the joints of the trees, in the order of the other program."""
    names, system = model.names, model.system
    order = names.depth_first if program == "pinocchio" else names.joints
    order = tuple(name for name in order if name not in names.closing)
    at = {name: k for k, name in enumerate(names.joints)}
    kinds = tuple(names.kinds[at[name]] for name in order)
    rows = {body.name: i for i, body in enumerate(system.bodies)} | {GROUND: system.num_bodies}
    ends = [names.ends[at[name]] for name in order]
    frames = [[model.frames[pair[k]] for pair in ends] for k in (0, 1)]
    bodies = [np.array([rows[frame.body] for frame in of_end]) for of_end in frames]
    on_body = [
        (
            jnp.stack([frame.point for frame in of_end]),
            jax.vmap(euler_map)(jnp.stack([frame.orientation for frame in of_end])),
        )
        for of_end in frames
    ]
    reference = system.reference_state()
    x, R = with_ground(reference.position, jax.vmap(euler_map)(reference.orientation))
    (x_p, R_p), (x_c, R_c) = (
        _place_frames(x, R, rows_of_end, *own)
        for rows_of_end, own in zip(bodies, on_body, strict=True)
    )
    axes, points = [], []
    for k, name in enumerate(order):
        joint: Any = system.joints[system.joint_index(name)]
        axis = next(
            (getattr(joint, field) for field in ("axis", "normal") if hasattr(joint, field)), None
        )
        axes.append(jnp.zeros(3) if axis is None else axis / jnp.sqrt(jnp.sum(axis * axis)))
        points.append(x_c[k] if joint.at_centre or kinds[k] == "prismatic" else joint.point)
    in_child = jax.vmap(to_body)
    return _Joints(
        order, kinds,
        tuple(
            _counts(name, kind, name in names.continuous, program)
            for name, kind in zip(order, kinds, strict=True)
        ),
        bodies[0], bodies[1], on_body[0], on_body[1],
        in_child(R_p, x_c - x_p), jax.vmap(relative)(R_p, R_c),
        in_child(R_c, jnp.stack(axes)), in_child(R_c, jnp.stack(points) - x_c),
        jnp.array([model.zeros[name] for name in order]),
    )  # fmt: skip


def with_ground(x: Float[Array, "L 3"], R: Float[Array, "L 3 3"]) -> tuple[Array, Array]:
    """Return positions and rotations with the ground as the last row."""
    return jnp.concatenate([x, jnp.zeros((1, 3))]), jnp.concatenate([R, jnp.eye(3)[None]])


def _place_frames(
    x: Array, R: Array, rows: np.ndarray, point: Array, own: Array
) -> tuple[Array, Array]:
    """Return origins and rotations of frames on bodies."""
    return x[rows] + jax.vmap(to_space)(R[rows], point), jax.vmap(product)(R[rows], own)


def _scatter(joints: _Joints, parts: list[Array], of: int) -> Array:
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
        _counts(name, kinds[name], name in names.continuous, program)
        for name in names.joints if name not in names.closing
    ]  # fmt: skip
    nq, nv = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    q = float_array(q, f"from_{program}(q)", (nq,))
    v = np.zeros(nv) if v is None else float_array(v, f"from_{program}(v)", (nv,))
    return _from_coordinates(model, program, jnp.asarray(q, float), jnp.asarray(v, float))


@eqx.filter_jit
def _from_coordinates(model: "Model", program: Program, q: Array, v: Array) -> State:
    joints = _joints(model, program)
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


def _compose(model: "Model", joints: _Joints, motion: _Motion) -> _Motion:
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


@eqx.filter_jit
def to_coordinates(
    model: "Model", program: Program, state: State
) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
    """Return coordinates and velocities of another program in a state."""
    joints = _joints(model, program)
    R_bodies = jax.vmap(euler_map)(state.orientation)
    w_bodies = jax.vmap(to_space)(R_bodies, state.angular_velocity)
    x_all, R_all = with_ground(state.position, R_bodies)
    v_all, w_all = (
        jnp.concatenate([rows, jnp.zeros((1, 3))]) for rows in (state.velocity, w_bodies)
    )

    def motion(rows, frames):
        x, R = _place_frames(x_all, R_all, rows, *frames)
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


@eqx.filter_jit
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
