"""A system in other units, in another frame, with other names and another order."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.joints.replacing import rename_joint
from rigidjax.rotations.euler_map import euler_map
from rigidjax.rotations.so3 import multiply


def change_values(tree: Any, rule: Callable) -> Any:
    """A system or a state, every number of which is `rule(module, name, value)`."""
    if isinstance(tree, (tuple, list)):
        return type(tree)(change_values(item, rule) for item in tree)
    if not isinstance(tree, eqx.Module):
        return tree
    names = [field.name for field in dataclasses.fields(tree) if not field.metadata.get("static")]
    names = [
        name for name in names if jax.tree.leaves(eqx.filter(getattr(tree, name), eqx.is_array))
    ]
    if not names:
        return tree

    def value(name):
        old = getattr(tree, name)
        return rule(tree, name, np.asarray(old)) if eqx.is_array(old) else change_values(old, rule)

    return eqx.tree_at(lambda t: [getattr(t, n) for n in names], tree, [value(n) for n in names])


class Units(NamedTuple):
    """How many of the new units a metre, a kilogram and a second are."""

    metre: float = 1.0
    kilogram: float = 1.0
    second: float = 1.0

    def of(self, length: int, mass: int, time: int) -> float:
        """The factor of a quantity of these dimensions."""
        return self.metre**length * self.kilogram**mass * self.second**time


# Dimensions of numbers by their names: powers of length, mass, time; all others have none.
LENGTH = (1, 0, 0)
DIMENSIONS = {
    "mass": (0, 1, 0), "inertia": (2, 1, 0), "position": LENGTH, "velocity": (1, 0, -1),
    "angular_velocity": (0, 0, -1), "rate": (0, 0, -1), "point": LENGTH, "pitch": LENGTH,
    "parent_point": LENGTH, "child_point": LENGTH, "a_point": LENGTH, "b_point": LENGTH,
    "length": LENGTH, "vector": (1, 0, -2), "weight_moment": (2, 1, -2),
}  # fmt: skip


def in_units(tree: Any, units: Units) -> Any:
    """A system or a state in other units."""

    def rule(module, name, value):
        return value * units.of(*DIMENSIONS.get(name, (0, 0, 0)))

    return change_values(tree, rule)


class Frame(NamedTuple):
    """Pose of a frame in another one: a unit quaternion and a shift, m."""

    turn: Any = (1.0, 0.0, 0.0, 0.0)
    shift: Any = (0.0, 0.0, 0.0)

    @property
    def matrix(self) -> np.ndarray:
        return np.asarray(euler_map(jnp.asarray(self.turn)))


POINTS = ("position", "point", "parent_point", "child_point", "a_point", "b_point")
VECTORS = ("velocity", "axis", "axis1", "axis2", "normal", "vector")


def in_frame(tree: Any, frame: Frame) -> Any:
    """A system or a state turned and shifted."""
    R, turn = frame.matrix, jnp.asarray(frame.turn)

    def rule(module, name, value):
        if name in POINTS:
            return value @ R.T + np.asarray(frame.shift)
        if name in VECTORS:
            return value @ R.T
        if name == "orientation":
            return np.asarray(jnp.vectorize(multiply, signature="(4),(4)->(4)")(turn, value))
        return value

    return change_values(tree, rule)


def stack_trees(trees: list) -> Any:
    """Systems or states of the same structure as one, with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *trees)


def lane(tree: Any, k: int) -> Any:
    """Return one entry of stacked trees."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[k], tree)


def replace_fields(module: Any, **new: Any) -> Any:
    """A module with other fields, unchecked; static ones too."""
    clone = object.__new__(type(module))
    for field in dataclasses.fields(module):
        object.__setattr__(clone, field.name, new.get(field.name, getattr(module, field.name)))
    return clone


def reorder(system: rj.System, state: rj.State, seed: int):
    """Bodies, joints and forces in another order under other names, and the order of the bodies."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(system.num_bodies)
    names = {body.name: f"b{rng.integers(10**9)}" for body in system.bodies}
    called = {joint.name: f"j{rng.integers(10**9)}" for joint in system.joints}
    new = {**names, "ground": "ground"}
    bodies = [replace_fields(system.bodies[i], name=names[system.bodies[i].name]) for i in order]
    joints = [rename_joint(j, called[j.name], new[j.parent], new[j.child]) for j in system.joints]
    forces = [
        replace_fields(
            force, **{k: new[getattr(force, k)] for k in ("a", "b", "body") if hasattr(force, k)}
        )
        for force in system.forces
    ]
    mixed = lambda items: [items[i] for i in rng.permutation(len(items))]  # noqa: E731
    system = rj.System(bodies, mixed(joints), mixed(forces))
    return system, jax.tree.map(lambda leaf: leaf[order], state), order, called
