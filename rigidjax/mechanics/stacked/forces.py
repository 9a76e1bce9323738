"""Forces of one kind, stacked, so that traced code does not grow with their number."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...bodies.frame import Frame
from ...forces.base import AbstractForce, Bodies, Kinematics, Loads, Mounts
from ...joints.replacing import replace_fields
from ...signals.shared_tables import without_entries
from ...small_arrays import segment_sum, stack_rows, take


class ForceGroup(eqx.Module):
    """Forces that differ only in values and in the names of their bodies and joints.

    `force`, the first force with the leaves of all stacked; `bodies`, the bodies that each force
    acts on, stacked, or all bodies of the system; `None` until the group is attached. Static:
    `count`, number of forces; `rows`, of the first bodies of all forces, of the second bodies and
    so on, `None` for the ground; `joints`, names, in the same order; `frames`, names of the frames
    that forces act on, `None` for a body itself, empty without any frame.
    """

    force: AbstractForce
    bodies: Any
    count: int = eqx.field(static=True)
    rows: tuple[tuple[int, ...] | None, ...] = eqx.field(static=True)
    joints: tuple[tuple[str, ...], ...] = eqx.field(static=True)
    frames: tuple[tuple[str | None, ...], ...] = eqx.field(static=True)

    @property
    def acts_on_all(self) -> bool:
        """Whether each force acts on all bodies."""
        return not self.rows

    @property
    def is_linear(self) -> bool:
        """Whether the potential energy is linear in the positions of the bodies, or zero."""
        force = self.force
        return force.is_linear and not (force.has_potential and self.bodies.mounts is not None)

    def attach(self, bodies: Bodies, frames: Sequence[Frame]) -> "ForceGroup":
        """Return the forces attached to their bodies, to all bodies, or to frames.

        **Arguments:** `bodies`, in the reference configuration.
        """
        on_ground = tuple(rows is None for rows in self.rows)
        seen = Bodies(
            self.rows_of(bodies.masses, np.zeros(())),
            self.rows_of(bodies.positions, np.zeros(3)),
            self.rows_of(bodies.rotations, np.eye(3)),
            on_ground or bodies.is_ground,
        )
        if self.frames:
            mounted: dict[str | None, Frame] = {frame.name: frame for frame in frames}
            mounts = [
                [_mount(mounted.get(name), bodies) for name in column] for column in self.frames
            ]
            points, turns = (
                jnp.stack(
                    [jnp.stack([evaluate[k] for evaluate in column]) for column in mounts], axis=1
                )
                for k in (0, 1)
            )
            mount = Mounts(points, turns)
            positions, rotations = jax.vmap(Mounts.frame_poses)(
                mount, seen.positions, seen.rotations
            )
            seen = Bodies(seen.masses, positions, rotations, seen.is_ground, mount)
        return replace_fields(self, bodies=seen)

    def kinematics_of(self, kinematics: Kinematics) -> Kinematics:
        """Return the motion of the bodies of each force; of all bodies where it acts on all."""
        if self.acts_on_all:
            return replace_fields(kinematics, joints=())
        return Kinematics(
            self.rows_of(kinematics.positions, np.zeros(3)),
            self.rows_of(kinematics.rotations, np.eye(3)),
            self.rows_of(kinematics.velocities, np.zeros(3)),
            self.rows_of(kinematics.angular_velocities, np.zeros(3)),
            tuple(kinematics.joints.select(names) for names in self.joints),
        )

    def rows_of(self, values: Float[Array, "L *s"], of_ground: Any) -> Float[Array, "n B *s"]:
        """Return the rows of the bodies of each force, (n, B, ...), or all rows."""
        if self.acts_on_all:
            return values
        ground = jnp.broadcast_to(
            jnp.asarray(of_ground, values.dtype), (self.count, *np.shape(of_ground))
        )
        columns = [ground if rows is None else take(values, rows) for rows in self.rows]
        return jnp.stack(columns, axis=1)

    def map(self, function: Callable[..., Any], *seen: Any) -> Any:
        """Return `function(force, bodies, *seen)` of every force, stacked."""
        arguments = (self.force, self.bodies, *seen)
        if self.count == 1:
            # A single force needs no batch axis.
            force, others = _first(self.force), arguments[1:]
            values = function(force, *(others if self.acts_on_all else _first(others)))
            return jax.tree.map(lambda leaf: leaf[None], values)
        axes = (0, *[None if self.acts_on_all else 0] * (len(arguments) - 1))
        return jax.vmap(function, axes, axis_size=self.count)(*arguments)

    def sum_by_body(self, values: Float[Array, "n B *s"], num_bodies: int) -> Float[Array, "L *s"]:
        """Sum the effects of the forces on each body of the system."""
        if self.acts_on_all:
            return values[0] if self.count == 1 else jnp.sum(values, axis=0)
        named = [k for k, rows in enumerate(self.rows) if rows is not None]
        if not named:
            return jnp.zeros((num_bodies, *values.shape[2:]), values.dtype)
        parts = jnp.concatenate([values[:, k] for k in named])
        return segment_sum(parts, [row for k in named for row in self.rows[k] or ()], num_bodies)

    def loads(
        self, t: Scalar, kinematics: Kinematics
    ) -> tuple[Float[Array, "L 3"] | None, Float[Array, "L 3"] | None]:
        """Return forces, space components, and moments about the centres of mass, body components.

        `None` instead of an array of zeros.
        """

        def evaluate(force, bodies, kinematics):
            return _loads(force, t, bodies, kinematics).wrenches(kinematics.rotations)

        forces, moments = self.map(evaluate, self.kinematics_of(kinematics))
        L = len(kinematics.positions)
        return (
            None if forces is None else self.sum_by_body(forces, L),
            None if moments is None else self.sum_by_body(moments, L),
        )

    def virials(self, t: Scalar, kinematics: Kinematics) -> Float[Array, "L 3 3"]:
        r"""Return the symmetric part of $\sum f \otimes u$; see `loads.force_virials`."""

        def evaluate(force, bodies, kinematics):
            return _loads(force, t, bodies, kinematics).virials(kinematics.rotations)

        return self.sum_by_body(
            self.map(evaluate, self.kinematics_of(kinematics)), len(kinematics.positions)
        )

    def potential_energy(self, t: Scalar, kinematics: Kinematics) -> Scalar:
        """Return the sum of the potential energies."""

        def evaluate(force, bodies, kinematics):
            return energy_of(force, t, bodies, kinematics)

        values = self.map(evaluate, self.kinematics_of(kinematics))
        return values[0] if self.count == 1 else jnp.sum(values)


def group_forces(
    forces: Sequence[AbstractForce],
    names: Sequence[str],
    frames: Sequence[Frame],
    ends: dict[str, tuple[str, str]],
    kinds: dict[str, int],
) -> list[ForceGroup]:
    """Stack forces of the same kind and structure; the groups are not yet attached.

    **Arguments:** `forces`; `names` of the bodies; `frames` of the system; `ends`, the bodies
    that each joint connects, and `kinds`, the group of each joint, by its name.
    """
    row = {name: i for i, name in enumerate(names)}
    mounted = {frame.name for frame in frames}
    row |= {frame.name: row[frame.body] for frame in frames}
    members: dict[Any, list[AbstractForce]] = {}
    for force in forces:
        of_joints, all_ends = force.joint_names(), _ends(force, ends)
        named = [*force.body_names(), *of_joints]
        # Fields that name bodies and joints, unless another field has the same text.
        fields = {field.name: getattr(force, field.name) for field in dataclasses.fields(force)}
        name_fields = [name for name, value in fields.items() if _names_parts(value, named)]
        count = sum(1 if isinstance(fields[name], str) else len(named) for name in name_fields)
        name_fields = name_fields if count == len(named) else []
        leaves, structure = jax.tree.flatten(
            without_entries(replace_fields(force, **dict.fromkeys(name_fields, "")))
        )
        shapes = tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
        on_ground = tuple((name == "ground", name in mounted) for name in all_ends)
        mount = tuple(kinds[name] for name in of_joints)
        members.setdefault((structure, tuple(name_fields), shapes, on_ground, mount), []).append(
            force
        )
    groups = []
    for group in members.values():
        structure = jax.tree.structure(group[0])
        columns = zip(*(jax.tree.leaves(force) for force in group), strict=True)
        force = jax.tree.unflatten(structure, [stack_rows(column) for column in columns])
        # The first bodies of all forces, then the second ones.
        bodies = list(zip(*(_ends(force, ends) for force in group), strict=True))
        rows = tuple(
            None if "ground" in column else tuple(row[name] for name in column) for column in bodies
        )
        at_frames = tuple(tuple(n if n in mounted else None for n in column) for column in bodies)
        groups.append(
            ForceGroup(
                force, None, len(group), rows,
                tuple(zip(*(force.joint_names() for force in group), strict=True)),
                at_frames if any(map(any, at_frames)) else (),
            )
        )  # fmt: skip
    return groups


def _names_parts(value: Any, named: Sequence[str]) -> bool:
    """Return whether a field is one of these names, or the tuple of all of them."""
    if isinstance(value, tuple):
        return all(isinstance(name, str) for name in value) and value == tuple(named) != ()
    return isinstance(value, str) and value in named


def energy_of(force: AbstractForce, t: Scalar, bodies: Bodies, kinematics: Kinematics):
    """Return the potential energy of a force, which may act on frames of its bodies."""
    return force.potential_energy(t, bodies, _of_frames(bodies, kinematics))


def _of_frames(bodies: Bodies, kinematics: Kinematics) -> Kinematics:
    return kinematics if bodies.mounts is None else bodies.mounts.frame_kinematics(kinematics)


def _mount(frame: Frame | None, bodies: Bodies):
    """Return origin and rotation of a frame in its body; of the body itself without a frame."""
    dtype = bodies.positions.dtype
    if frame is None:
        return jnp.zeros(3, dtype), jnp.eye(3, dtype=dtype)
    return frame.point.astype(dtype), frame.rotation.astype(dtype)


def _loads(force: AbstractForce, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
    """Return the loads of a force on its bodies; raise an error that names a wrong law."""
    loads = force.loads(t, bodies, _of_frames(bodies, kinematics))
    name = f"`{type(force).__name__}.loads`"
    if not isinstance(loads, Loads):
        raise TypeError(f"{name} must return `rj.forces.Loads(...)`; got {type(loads).__name__}.")
    B = len(kinematics.positions)
    shapes = {"forces": (B, 3), "arms": (B, 3), "moments": (B, 3), "dyads": (B, 3, 3)}
    for part, shape in shapes.items():
        value = getattr(loads, part)
        if value is not None and np.shape(value) != shape:
            raise ValueError(
                f"{name} must return `{part}` of shape {shape}, a row for each body that it acts "
                f"on; got {np.shape(value)}."
            )
    return loads.on_bodies(bodies.mounts)


def _ends(force: AbstractForce, of_joints: dict[str, tuple[str, str]]) -> list[str]:
    """Return the names of the bodies in the order of the rows of the loads."""
    pairs = [of_joints[name] for name in force.joint_names()]
    return [*force.body_names(), *(name for pair in pairs for name in pair)]


def _first(tree: Any):
    """Return the first entry of every array."""
    return jax.tree.map(lambda leaf: leaf[0], tree)
