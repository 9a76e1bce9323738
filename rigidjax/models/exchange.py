"""Conversion of states, and of velocities in a state, to those of other programs and back.

Coordinates and velocities of each tree joint are functions of those of the same joint here.
"""

import functools
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies.frame import Frame
from ..checks import float_array
from ..mechanics import System
from ..mechanics.kinematics.forward import state_of_joints
from ..mechanics.kinematics.poses import Twists, joint_coordinates, joint_frames_at, poses_of_state
from ..mechanics.kinematics.trees import generalised_velocities
from ..mechanics.stacked.system import prepare_system
from ..persistent_jit import persistent_jit
from ..rotations.conversion import spurrier_klumpp
from ..rotations.euler_map import euler_map
from ..rotations.matrix import product, relative, to_body, to_space
from ..rotations.so3 import dexp_inv, exp, log
from ..small_arrays import cross
from ..state import State
from .description import GROUND, GroundFrame

if TYPE_CHECKING:
    from .model import Model

Program: TypeAlias = Literal["pinocchio", "mujoco"]


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


class _Constants(NamedTuple):
    """Constants of a joint in the reference configuration of the file.

    `zero`, the file's coordinate; `axes`, of the child link, in the joint frame; `parent` and
    `child`, origins and axes of the links on their bodies; `pose` of the child link in the parent.
    """

    zero: Float[Array, ""]
    axes: Float[Array, "3 3"]
    parent: tuple[Array, Array]
    child: tuple[Array, Array]
    pose: tuple[Array, Array]


class _Group(NamedTuple):
    """Tree joints of one kind with equal numbers of coordinates, and the rows of their values.

    `q` and `v`, in the vectors of the other program; `own`, in those of the system.
    """

    kind: str
    constants: _Constants
    q: np.ndarray
    v: np.ndarray
    own: np.ndarray


def _count_coordinates(model: "Model", program: Program) -> dict[str, tuple[int, int]]:
    """Return the numbers of coordinates and velocities of the tree joints, in order.

    **Errors:** `ValueError` for a joint that the other program does not have.
    """
    names = model.names
    kinds = dict(zip(names.joints, names.kinds, strict=True))
    counts = {"prismatic": (1, 1), "spherical": (4, 3), "floating": (7, 6), "fixed": (0, 0)}
    if program == "pinocchio":
        counts["planar"] = 4, 3
    result = {}
    for name in names.depth_first if program == "pinocchio" else names.joints:
        kind = kinds[name]
        if name in names.closing:
            continue
        if kind == "revolute":
            result[name] = (2 if name in names.continuous and program == "pinocchio" else 1), 1
        elif kind not in counts:
            raise ValueError(f"The joint {name!r} is {kind}; {program} has no such joint.")
        else:
            result[name] = counts[kind]
    return result


def _group_joints(model: "Model", program: Program) -> list[_Group]:
    """Return the tree joints with coordinates, those of a kind together."""
    system = model.system
    body_of = {j: body for body, j in enumerate(system.topology.joints)}
    first = np.concatenate([[0], np.cumsum(system.rates_of_bodies)]).astype(int)
    kinds = dict(zip(model.names.joints, model.names.kinds, strict=True))
    groups: dict[tuple[str, int], list[tuple]] = {}
    first_q = first_v = 0
    for name, (nq, nv) in _count_coordinates(model, program).items():
        body = body_of[system.joint_index(name)]
        rows = (
            np.arange(first_q, first_q + nq), np.arange(first_v, first_v + nv),
            np.arange(first[body], first[body + 1]),
        )  # fmt: skip
        first_q, first_v = first_q + nq, first_v + nv
        if nv:
            groups.setdefault((kinds[name], nq), []).append((_find_constants(model, name), *rows))
    result = []
    for (kind, _), members in groups.items():
        constants, *rows = zip(*members, strict=True)
        stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *constants)
        result.append(_Group(kind, stacked, *map(np.stack, rows)))
    return result


def _find_constants(model: "Model", name: str) -> _Constants:
    system, names = model.system, model.names
    joint: Any = system.joints[system.joint_index(name)]
    zero, at = jnp.asarray(model.zeros[name], float), names.joints.index(name)
    if names.kinds[at] in ("revolute", "prismatic"):
        none = jnp.zeros(3), jnp.eye(3)
        return _Constants(zero, none[1], none, none, none)
    ends = [model.frames[end] for end in names.ends[at]]
    (x_p, R_p), (x_c, R_c) = (_place(system, frame) for frame in ends)
    parent, child = ((frame.point, euler_map(frame.orientation)) for frame in ends)
    pose = to_body(R_p, x_c - x_p), relative(R_p, R_c)
    return _Constants(zero, relative(joint.frame(), R_c), parent, child, pose)


def _place(system: System, frame: Frame | GroundFrame) -> tuple[Array, Array]:
    """Return origin and axes of a frame in space, in the reference configuration."""
    point, axes = frame.point, euler_map(frame.orientation)
    if frame.body == GROUND:
        return point, axes
    body = system.bodies[system.locate(frame.body)[0]]
    R = euler_map(body.orientation)
    return body.position + to_space(R, point), product(R, axes)


def from_coordinates(model: "Model", program: Program, q: Any, v: Any) -> State:
    """Return the state with coordinates and velocities of another program."""
    nq, nv = np.sum([(0, 0), *_count_coordinates(model, program).values()], axis=0).tolist()
    q = float_array(q, f"from_{program}(q)", (nq,))
    v = np.zeros(nv) if v is None else float_array(v, f"from_{program}(v)", (nv,))
    return _from_coordinates(model, program, jnp.asarray(q, float), jnp.asarray(v, float))


@persistent_jit
def _from_coordinates(model: "Model", program: Program, q: Array, v: Array) -> State:
    c = nu = jnp.zeros(sum(model.system.rates_of_bodies), q.dtype)
    for group in _group_joints(model, program):
        own = jax.vmap(functools.partial(_convert_from, group.kind, program))(
            group.constants, q[group.q], v[group.v]
        )
        c, nu = (x.at[group.own].set(new) for x, new in zip((c, nu), own, strict=True))
    return state_of_joints(prepare_system(model.system), jnp.zeros((), q.dtype), c, nu)


def _convert_from(
    kind: str, program: Program, of: _Constants, q: Array, v: Array
) -> tuple[Array, Array]:
    """Return the coordinates and rates of a joint from those of another program."""
    if kind == "planar":
        angle = jnp.arctan2(q[3], q[2])
        shift = to_space(of.axes, jnp.stack([q[0], q[1], jnp.zeros_like(angle)]))
        x, y, _ = jnp.unstack(to_space(of.axes, jnp.stack([v[0], v[1], jnp.zeros_like(angle)])))
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        return jnp.append(shift[:2], angle), jnp.stack([cos * x - sin * y, sin * x + cos * y, v[2]])
    if kind in ("spherical", "floating"):
        p = q[-4:] if program == "mujoco" else jnp.roll(q[-4:], 1)
        R = euler_map(p / jnp.sqrt(jnp.sum(p * p)))
        if kind == "spherical":
            Q = product(product(of.axes, R), of.axes.T)
            return log(Q), to_space(of.axes, v)
        x, rate = q[:3], v[:3]
        if program == "pinocchio":
            # Its pose counts from that in the file, and its velocity is in axes of the link.
            x, R = of.pose[0] + to_space(of.pose[1], x), product(of.pose[1], R)
            rate = to_space(R, rate)
        (x_p, B_p), (x_c, B_c) = of.parent, of.child
        Q, w = product(product(B_p, R), B_c.T), to_space(B_c, v[3:])
        d = x_p + to_space(B_p, x) - to_space(Q, x_c)
        d_rate = to_space(B_p, rate) - to_space(Q, cross(w, x_c))
        return jnp.concatenate([d, log(Q)]), jnp.concatenate([d_rate, w])
    coordinate = q[0] if len(q) == 1 else jnp.arctan2(q[1], q[0])
    return (coordinate - of.zero)[None], v


@persistent_jit
def to_coordinates(
    model: "Model", program: Program, state: State
) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
    """Return coordinates and velocities of another program in a state."""
    c, nu = _find_coordinates(model.system, state)
    size = [sum(pair) for pair in zip(*_count_coordinates(model, program).values(), strict=True)]
    q, v = (jnp.zeros(count, c.dtype) for count in size)
    for group in _group_joints(model, program):
        of_joint = functools.partial(_convert_to, group.kind, program, group.q.shape[1])
        parts = jax.vmap(of_joint)(group.constants, c[group.own], nu[group.own])
        q, v = q.at[group.q].set(parts[0]), v.at[group.v].set(parts[1])
    return q, v


def _find_coordinates(
    system: System, state: State
) -> tuple[Float[Array, " f"], Float[Array, " f"]]:
    """Return coordinates and rates of the tree joints of a system; see `state_of_joints`."""
    prepared = prepare_system(system)
    frames = joint_frames_at(prepared, poses_of_state(prepared, state))
    found, twists = (
        joint_coordinates(prepared, frames),
        Twists(state.velocity, state.angular_velocity),
    )
    c = jnp.concatenate([found[j] for j in system.topology.joints if j is not None])
    return c, generalised_velocities(prepared, jnp.zeros((), c.dtype), frames, twists)


def _convert_to(
    kind: str, program: Program, count: int, of: _Constants, c: Array, nu: Array
) -> tuple[Array, Array]:
    """Return the coordinates, `count`, and velocities of another program for a joint."""
    if kind == "planar":
        cos, sin, zero = jnp.cos(c[2]), jnp.sin(c[2]), jnp.zeros_like(c[2])
        shift = to_body(of.axes, jnp.stack([c[0], c[1], zero]))
        rate = jnp.stack([cos * nu[0] + sin * nu[1], cos * nu[1] - sin * nu[0], zero])
        v = jnp.append(to_body(of.axes, rate)[:2], nu[2])
        return jnp.stack([shift[0], shift[1], cos, sin]), v
    if kind in ("spherical", "floating"):
        Q, q, v = exp(c[-3:]), jnp.zeros(0, c.dtype), jnp.zeros(0, c.dtype)
        if kind == "spherical":
            R, w = relative(of.axes, product(Q, of.axes)), to_body(of.axes, nu)
        else:
            (x_p, B_p), (x_c, B_c) = of.parent, of.child
            R, w = relative(B_p, product(Q, B_c)), to_body(B_c, nu[3:])
            q = to_body(B_p, c[:3] + to_space(Q, x_c) - x_p)
            v = to_body(B_p, nu[:3] + to_space(Q, cross(nu[3:], x_c)))
            if program == "pinocchio":
                v = to_body(R, v)
                q, R = to_body(of.pose[1], q - of.pose[0]), relative(of.pose[1], R)
        p = spurrier_klumpp(R)
        p = p if program == "mujoco" else jnp.roll(p, -1)
        return jnp.concatenate([q, p]), jnp.concatenate([v, w])
    coordinate = c[0] + of.zero
    if count == 2:
        return jnp.stack([jnp.cos(coordinate), jnp.sin(coordinate)]), nu
    return coordinate[None], nu


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
    c, nu = _find_coordinates(model.system, state)
    B, b = jnp.zeros((len(nu), len(nu)), c.dtype), jnp.zeros_like(nu)
    for group in _group_joints(model, program):
        of_joint = functools.partial(_differentiate_velocities, group.kind, program)
        blocks, bias = jax.vmap(of_joint)(group.constants, c[group.own], nu[group.own])
        B = B.at[group.v[:, :, None], group.own[:, None, :]].set(blocks)
        b = b.at[group.v].set(bias)
    return VelocityMap(B, b)


def _differentiate_velocities(
    kind: str, program: Program, of: _Constants, c: Array, nu: Array
) -> tuple[Array, Array]:
    """Return the Jacobian of a joint's velocities in its rates, and their change at constant rates.

    Rates of lengths and angles are among `nu`, those of a rotation vector follow from the last
    three.
    """

    def velocities(c: Array, nu: Array) -> Array:
        return _convert_to(kind, program, 1, of, c, nu)[1]

    c_dot = nu
    if kind in ("spherical", "floating"):
        c_dot = jnp.concatenate([nu[:-3], dexp_inv(c[-3:], nu[-3:])])
    bias = jax.jvp(lambda c: velocities(c, nu), (c,), (c_dot,))[1]
    return jax.jacfwd(lambda nu: velocities(c, nu))(nu), bias
