"""Forces of one kind, taken together: what is traced and compiled does not grow with them."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...bodies.frame import Frame
from ...forces.base import AbstractForce, Bodies, Kinematics, Loads, Mounts
from ...joints.replacing import replace_fields
from ...native.ops import segment_sum, stack_rows, take


class ForceGroup(eqx.Module):
    """Forces that differ in numbers and in the names of their bodies and joints alone.

    `force`, the first one, with the leaves of all stacked; `bodies`, those that each one acts on,
    stacked too, or all bodies of the system, once they are `attached`. Static: `count`, how many
    forces; `rows`, of the first bodies of all forces, of the second ones and so on, `None` for the
    ground; `joints`, names, and `frames`, those of the frames that stand for these bodies, `None`
    for a body itself, likewise; `frames` is empty without any.
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

    def attached(self, bodies: Bodies, frames: Sequence[Frame]) -> "ForceGroup":
        """The same forces, acting on these bodies of the system, all of them, or on their frames.

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
            mounts = [[_mount(mounted.get(name), bodies) for name in of] for of in self.frames]
            points, turns = (
                jnp.stack([jnp.stack([one[k] for one in column]) for column in mounts], axis=1)
                for k in (0, 1)
            )
            at = Mounts(points, turns)
            positions, rotations = jax.vmap(Mounts.frame_poses)(at, seen.positions, seen.rotations)
            seen = Bodies(seen.masses, positions, rotations, seen.is_ground, at)
        return replace_fields(self, bodies=seen)

    def seen(self, kinematics: Kinematics) -> Kinematics:
        """What each force sees of the motion, stacked; all of it where it acts on all bodies."""
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
        """Rows of the bodies of each force, (n, B, ...); all of them where it acts on all."""
        if self.acts_on_all:
            return values
        ground = jnp.broadcast_to(
            jnp.asarray(of_ground, values.dtype), (self.count, *np.shape(of_ground))
        )
        columns = [ground if rows is None else take(values, rows) for rows in self.rows]
        return jnp.stack(columns, axis=1)

    def over(self, function: Callable[..., Any], *seen: Any) -> Any:
        """`function(force, bodies, *seen)` of every force, stacked."""
        arguments = (self.force, self.bodies, *seen)
        if self.count == 1:
            # Without a batch of one: see `each`.
            force, others = _first(self.force), arguments[1:]
            found = function(force, *(others if self.acts_on_all else _first(others)))
            return jax.tree.map(lambda leaf: leaf[None], found)
        axes = (0, *[None if self.acts_on_all else 0] * (len(arguments) - 1))
        return jax.vmap(function, axes, axis_size=self.count)(*arguments)

    def summed(self, values: Float[Array, "n B *s"], num_bodies: int) -> Float[Array, "L *s"]:
        """Sums of what the forces do to each body of the system."""
        if self.acts_on_all:
            return values[0] if self.count == 1 else jnp.sum(values, axis=0)
        given = [k for k, rows in enumerate(self.rows) if rows is not None]
        if not given:
            return jnp.zeros((num_bodies, *values.shape[2:]), values.dtype)
        parts = jnp.concatenate([values[:, k] for k in given])
        return segment_sum(parts, [row for k in given for row in self.rows[k] or ()], num_bodies)

    def loads(
        self, t: Float[Array, ""], kinematics: Kinematics
    ) -> tuple[Float[Array, "L 3"] | None, Float[Array, "L 3"] | None]:
        """Forces, space components, and moments about the centres of mass, body components, on all
        bodies; `None` where no operation is to be spent on them."""

        def one(force, bodies, kinematics):
            return _loads(force, t, bodies, kinematics).wrenches(kinematics.rotations)

        forces, moments = self.over(one, self.seen(kinematics))
        L = len(kinematics.positions)
        return (
            None if forces is None else self.summed(forces, L),
            None if moments is None else self.summed(moments, L),
        )

    def virials(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, "L 3 3"]:
        r"""Symmetric part of $\sum f \otimes u$ of each body (see `SystemMechanics.virials`)."""

        def one(force, bodies, kinematics):
            return _loads(force, t, bodies, kinematics).virials(kinematics.rotations)

        return self.summed(self.over(one, self.seen(kinematics)), len(kinematics.positions))

    def potential_energy(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, ""]:
        """Sum of the potential energies."""

        def one(force, bodies, kinematics):
            return energy_of(force, t, bodies, kinematics)

        found = self.over(one, self.seen(kinematics))
        return found[0] if self.count == 1 else jnp.sum(found)


def group_forces(
    forces: Sequence[AbstractForce],
    names: Sequence[str],
    frames: Sequence[Frame],
    ends: dict[str, tuple[str, str]],
    kinds: dict[str, int],
) -> list[ForceGroup]:
    """Forces of the same kind and structure, together, not yet `attached`.

    **Arguments:** `forces`; `names` of the bodies; `frames` of the system; `ends`, the bodies
    that each joint connects, and `kinds`, the group that it is in, by its name.
    """
    row = {name: i for i, name in enumerate(names)}
    mounted = {frame.name for frame in frames}
    row |= {frame.name: row[frame.body] for frame in frames}
    members: dict[Any, list[AbstractForce]] = {}
    for force in forces:
        of_joints, all_ends = force.joint_names(), _ends(force, ends)
        given = [*force.body_names(), *of_joints]
        # What names bodies and joints, as long as nothing else has the same text.
        own = [
            field.name
            for field in dataclasses.fields(force)
            if isinstance(getattr(force, field.name), str) and getattr(force, field.name) in given
        ]
        own = own if len(own) == len(given) else []
        leaves, structure = jax.tree.flatten(replace_fields(force, **dict.fromkeys(own, "")))
        shapes = tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
        on_ground = tuple((name == "ground", name in mounted) for name in all_ends)
        at = tuple(kinds[name] for name in of_joints)
        members.setdefault((structure, tuple(own), shapes, on_ground, at), []).append(force)
    groups = []
    for group in members.values():
        structure = jax.tree.structure(group[0])
        columns = zip(*(jax.tree.leaves(force) for force in group), strict=True)
        force = jax.tree.unflatten(structure, [stack_rows(column) for column in columns])
        # The first bodies of all forces, then the second ones.
        bodies = list(zip(*(_ends(force, ends) for force in group), strict=True))
        rows = tuple(None if "ground" in of else tuple(row[name] for name in of) for of in bodies)
        at_frames = tuple(tuple(n if n in mounted else None for n in of) for of in bodies)
        groups.append(
            ForceGroup(
                force, None, len(group), rows,
                tuple(zip(*(force.joint_names() for force in group), strict=True)),
                at_frames if any(map(any, at_frames)) else (),
            )
        )  # fmt: skip
    return groups


def energy_of(force: AbstractForce, t, bodies: Bodies, kinematics: Kinematics):
    """The potential energy of a force where its bodies move so, which may have frames on them."""
    return force.potential_energy(t, bodies, _of_frames(bodies, kinematics))


def _of_frames(bodies: Bodies, kinematics: Kinematics) -> Kinematics:
    return kinematics if bodies.mounts is None else bodies.mounts.frame_kinematics(kinematics)


def _mount(frame: Frame | None, bodies: Bodies):
    """Origin and rotation of a frame in its body; of the body itself without one."""
    dtype = bodies.positions.dtype
    if frame is None:
        return jnp.zeros(3, dtype), jnp.eye(3, dtype=dtype)
    return frame.point.astype(dtype), frame.rotation.astype(dtype)


def _loads(force: AbstractForce, t, bodies: Bodies, kinematics: Kinematics) -> Loads:
    """What the law of a force returns, on the bodies; an error that names it for something else."""
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
    """Names of the bodies in the order of the rows of its loads."""
    pairs = [of_joints[name] for name in force.joint_names()]
    return [*force.body_names(), *(name for pair in pairs for name in pair)]


def _first(tree):
    """The first entry of every array."""
    return jax.tree.map(lambda leaf: leaf[0], tree)
