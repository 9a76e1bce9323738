"""Joints of the trees of a model in the order of another program."""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..rotations.euler_map import euler_map
from ..rotations.matrix import product, relative, to_body, to_space
from .description import GROUND

if TYPE_CHECKING:
    from .model import Model

Program: TypeAlias = Literal["pinocchio", "mujoco"]


class TreeJoints(NamedTuple):
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
    def groups(self) -> dict[tuple[str, int], np.ndarray]:
        """Joints of each kind with equal numbers of coordinates."""
        keys = [(kind, nq) for kind, (nq, _) in zip(self.kinds, self.counts, strict=True)]
        return {key: np.flatnonzero([key == k for k in keys]) for key in dict.fromkeys(keys)}


def count_coordinates(
    name: str, kind: str, is_continuous: bool, program: Program
) -> tuple[int, int]:
    """Return the numbers of coordinates and velocities of a joint in another program."""
    if kind in ("revolute", "prismatic"):
        return (2 if is_continuous and program == "pinocchio" else 1), 1
    counts = {"spherical": (4, 3), "floating": (7, 6), "fixed": (0, 0)}
    if program == "pinocchio":
        counts["planar"] = 4, 3
    if kind not in counts:
        raise ValueError(f"The joint {name!r} is {kind}; {program} has no such joint.")
    return counts[kind]


def order_tree_joints(model: "Model", program: Program) -> TreeJoints:
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
        place_frames(x, R, rows_of_end, *own)
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
    return TreeJoints(
        order, kinds,
        tuple(
            count_coordinates(name, kind, name in names.continuous, program)
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


def place_frames(
    x: Array, R: Array, rows: np.ndarray, point: Array, own: Array
) -> tuple[Array, Array]:
    """Return origins and rotations of frames on bodies."""
    return x[rows] + jax.vmap(to_space)(R[rows], point), jax.vmap(product)(R[rows], own)
