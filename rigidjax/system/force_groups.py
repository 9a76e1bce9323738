"""Forces of one kind, evaluated together: what is traced and compiled does not grow with them."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies.body import Body
from ..forces.base import AbstractForce, JointKinematics, Kinematics
from ..joints import AbstractJoint
from ..joints.base import replaced
from .rows import take
from .topology import GROUND

# Forces of a kind from which on they are evaluated together: an acceleration of a chain of hinges
# with a spring and a damper on each takes XLA 260 us for 117 one by one at 10 bodies, 252 for 400
# at 30, where compiling it takes 6 s for 16.
_MANY = 24


class ForceGroup(NamedTuple):
    """Forces that differ in numbers and in the names of their bodies and joints alone.

    `force`, the first one, with the leaves of all stacked; `bodies`, (n, k), rows of the bodies
    that each one acts on; `joints`, names of the joints of each one.
    """

    force: AbstractForce
    bodies: np.ndarray
    joints: tuple[tuple[str, ...], ...]

    def wrenches(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> Float[Array, "L 6"]:
        """Sum of the wrenches on every body: forces in space, moments in body components."""
        return self.summed(lambda force, *seen: force.wrenches(t, *seen), bodies, kinematics)

    def summed(
        self, wrenches: Callable[..., Any], bodies: Sequence[Body], *arguments: Any
    ) -> Float[Array, "L 6"]:
        """Sum over the forces of `wrenches(force, bodies, *arguments)`.

        **Arguments:** `wrenches`, which returns one for each body; `bodies`, of the system;
        `arguments`, `Kinematics`, or arrays with a row for each body. The function sees those of
        the bodies that a force acts on.
        """
        n, k = self.bodies.shape
        # All under the names of the first one.
        of = [_stacked([bodies[i] for i in column]) for column in self.bodies.T]
        local = [self._local(argument) for argument in arguments]

        def one(force, of, local):
            pairs = wrenches(force, of, *local)
            zero = jnp.zeros(3, of[0].mass.dtype)
            return jnp.stack(
                [jnp.concatenate([zero if p is None else p for p in pair]) for pair in pairs]
            )

        found = eqx.filter_vmap(one)(self.force, of, local).reshape(n * k, 6)
        return jax.ops.segment_sum(found, self.bodies.ravel(), len(bodies))

    def _local(self, argument: Any) -> Any:
        """What the forces see of it, stacked."""
        if not isinstance(argument, Kinematics):
            rows = take(jnp.asarray(argument), self.bodies.ravel())
            return rows.reshape(*self.bodies.shape, *rows.shape[1:])
        members = list(zip(self.joints, self.bodies, strict=True))
        seen = {
            name: _stacked([_within(argument.joints[names[j]], own) for names, own in members])
            for j, name in enumerate(self.joints[0])
        }
        parts = (
            argument.positions, argument.rotations, argument.velocities, argument.angular_velocities
        )  # fmt: skip
        return Kinematics(*map(self._local, parts), joints=seen)


def group_forces(
    forces: Sequence[AbstractForce], bodies: Sequence[Body], joints: Sequence[AbstractJoint]
) -> tuple[list[ForceGroup], list[AbstractForce]]:
    """Groups of forces of a kind, and those of which there are few or whose names are elsewhere
    than in fields of their own."""
    rows = {body.name: i for i, body in enumerate(bodies)}
    by_name = {joint.name: joint for joint in joints}
    kinds: dict[Any, list[tuple[AbstractForce, list[int]]]] = {}
    others: list[AbstractForce] = []
    for force in forces:
        names = [*force.body_names(), *force.joint_names()]
        own = {
            field.name: ""
            for field in dataclasses.fields(force)
            if isinstance(getattr(force, field.name), str) and getattr(force, field.name) in names
        }
        if not names or len(own) != len(names) or len(set(names)) != len(names):
            others.append(force)
            continue
        pairs = [(by_name[name].parent, by_name[name].child) for name in force.joint_names()]
        ends = [*force.body_names(), *(end for pair in pairs for end in pair)]
        at = [rows[name] for name in dict.fromkeys(ends) if name != "ground"]
        slots = tuple(GROUND if name == "ground" else at.index(rows[name]) for name in ends)
        bare = replaced(force, **own)
        kind = (jax.tree.structure(bare), tuple(own), slots, _shapes(bare),
                tuple(_shapes(bodies[i]) for i in at),
                tuple(by_name[name].num_rates for name in force.joint_names()))  # fmt: skip
        kinds.setdefault(kind, []).append((force, at))
    groups = []
    for members in kinds.values():
        if len(members) < _MANY:
            others += [force for force, _ in members]
            continue
        first = members[0][0]
        leaves = [jax.tree.leaves(force) for force, _ in members]
        stacked = [
            jnp.stack([jnp.asarray(x) for x in column]) for column in zip(*leaves, strict=True)
        ]
        groups.append(
            ForceGroup(
                jax.tree.unflatten(jax.tree.structure(first), stacked),
                np.array([at for _, at in members], int),
                tuple(force.joint_names() for force, _ in members),
            )
        )
    return groups, others


def _shapes(module: Any) -> tuple[Any, ...]:
    return tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in jax.tree.leaves(module))


def _stacked(modules: Sequence[Any]) -> Any:
    """Modules as the first of them, with the leaves of all."""
    leaves = zip(*(jax.tree.leaves(module) for module in modules), strict=True)
    structure = jax.tree.structure(modules[0])
    return jax.tree.unflatten(structure, [jnp.stack(column) for column in leaves])


def _within(joint: JointKinematics, bodies: np.ndarray) -> JointKinematics:
    """A joint whose bodies are counted among a few."""
    place = {int(body): k for k, body in enumerate(bodies)} | {GROUND: GROUND}
    return replaced(joint, parent=place[joint.parent], child=place[joint.child])
