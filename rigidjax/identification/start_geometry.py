"""Start states that follow the geometry of a model while this is fitted."""

from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..formulations import AbstractFormulation, Relative
from ..initial import JointStart
from ..initial.consistent import nearest_state
from ..mechanics import System, has_joints
from ..rotations import Quaternion
from ..state import State
from .left_out import LeafMark

# Fields of joints on which neither poses nor velocities depend.
_OF_FORCES = ("damping", "armature")
# Part of the size of a mechanism to which loops are closed.
_CLOSED = 1e-8


def moves_start(experiment: Any, picked: Iterable[Callable[[Any], Any]]) -> bool:
    """Return whether states that joints allow depend on what is picked.

    These are positions and orientations of bodies, everything in joints but dampings and
    armatures, constraints, and prescribed motions. A `JointStart` follows by itself.
    """
    model = experiment.model
    if isinstance(model, JointStart) or not has_joints(model.system):
        return False
    pairs, tree = jax.tree_util.tree_flatten_with_path(experiment)
    marked = jax.tree.unflatten(tree, map(LeafMark, range(len(pairs))))
    found = [where(marked) for where in picked]
    paths = [pairs[mark.number][0] for mark in found if isinstance(mark, LeafMark)]
    return any(_is_geometry([getattr(key, "name", None) for key in path]) for path in paths)


def _is_geometry(names: list[str | None]) -> bool:
    """Whether a path through fields, `None` for items of tuples, leads to geometry."""
    if names[0] != "model":
        return False
    for k, name in enumerate(names):
        if name == "bodies":
            return names[k + 2] in ("position", "orientation")
        if name == "joints":
            return names[k + 2] not in _OF_FORCES
        if name in ("constraints", "frames"):
            return True
    return False


def state_at_joints(
    reference: AbstractFormulation, model: AbstractFormulation, state: State, t: Float[Array, ""]
) -> tuple[State, Bool[Array, ""]]:
    """Return the state of a model with the joint coordinates of a state of another geometry.

    Of the joints of the spanning tree, with their rates; free bodies keep their poses and twists;
    prescribed joints are where their motion wants them. Loops are then closed by the least change
    of the state. Differentiable by the numbers of the model, the state and the time.

    **Arguments:** `reference`, the model whose joints allow `state`; `model`, the same model with
    other numbers; `t`, s.
    **Returns:** the state, and whether the loops could be closed.
    """
    t = jnp.asarray(t, state.position.dtype)
    systems: list[System] = [reference.multibody, model.multibody]
    before, after = (Relative(s, Quaternion(), recharting=False) for s in systems)
    found = after.decode(t, before.pack(state.normalized(), None, t))
    if not (systems[1].closes or systems[1].velocity_constraints):
        return found, jnp.array(True)
    closed, position, velocity = nearest_state(systems[1], found, t)
    okay = (jnp.max(position) < _CLOSED) & (jnp.max(velocity) < _CLOSED)
    # A trial that cannot be closed starts where nothing raises; it counts as failed.
    return jax.tree.map(lambda new, old: jnp.where(okay, new, old), closed, found), okay


@eqx.filter_jit
def start_of_prescribed(model: AbstractFormulation, state: State, t: Float[Array, ""]) -> State:
    """Return a state with prescribed joints where their motion wants them at a time, s."""
    return state_at_joints(model, model, state, t)[0]
