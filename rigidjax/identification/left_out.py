"""Parameters that the model holds as a plain number, or left out because they are zero."""

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..forces import Drag
from ..formulations import AbstractAbsolute
from ..joints import AbstractJoint
from ..mechanics import System
from ..sensors import Gyroscope
from ..signals.signal import Signal


@dataclasses.dataclass(frozen=True)
class LeafMark:
    """Stands for a leaf of an experiment, by its number; nothing can be computed with it."""

    number: int


def _is_none(leaf: Any) -> bool:
    return leaf is None


def with_zeros(experiment: Any, picked: Iterable[Callable[[Any], Any]]) -> Any:
    """Return an experiment in which everything that is picked is an array.

    A coefficient that was left out of the model, as a damping of zero is, becomes an array of
    zeros; a plain number or NumPy array becomes an array of JAX.

    **Arguments:** `picked`, functions of an experiment, such as `Parameter.where`.
    **Errors:** `ValueError` for what was left out and has no value of zero, and for an armature
    that the system or its formulation cannot have.
    """
    missing = [where for where in picked if _is_plain(_pick(where, experiment))]
    if not missing:
        return experiment
    pairs, tree = jax.tree_util.tree_flatten_with_path(experiment, is_leaf=_is_none)
    leaves = [leaf for _, leaf in pairs]
    marked, has_armature = jax.tree.unflatten(tree, map(LeafMark, range(len(leaves)))), False
    for where in missing:
        mark = _pick(where, marked)
        if not isinstance(mark, LeafMark):
            continue  # A function of a leaf: `Parameter.leaf` says so.
        path, leaf = pairs[mark.number]
        owner, field = functools.reduce(_child, path[:-1], experiment), path[-1]
        if leaf is None:
            name = getattr(field, "name", str(field))
            zero = zero_of(owner, name)
            if zero is None:
                raise ValueError(
                    f"A parameter picks `{name}` of the {_described(owner)}, which was left out "
                    f"(`None`). Give it a value in `{type(owner).__name__}({name}=...)`."
                )
            leaves[mark.number], has_armature = zero, has_armature or name == "armature"
        else:
            leaves[mark.number] = jnp.asarray(leaf, float)
    found = jax.tree.unflatten(tree, leaves)
    if has_armature:
        _check_armature(found.model)
    return found


@functools.singledispatch
def zero_of(owner: Any, field: str) -> Array | None:
    """Return the zero that a field stands for where it was left out, or `None` without any."""
    return None


@zero_of.register
def _of_joint(owner: AbstractJoint, field: str) -> Array | None:
    return jnp.zeros(owner.num_undriven_rates) if field in ("damping", "armature") else None


@zero_of.register
def _of_drag(owner: Drag, field: str) -> Array | None:
    return jnp.zeros(())


@zero_of.register(Signal)
@zero_of.register(Gyroscope)
def _of_delayed(owner: Signal | Gyroscope, field: str) -> Array | None:
    return jnp.zeros(()) if field == "delay" else None


def _check_armature(model: Any) -> None:
    """Raise `ValueError` for an armature where none may be, which constructors refuse."""
    system = model.multibody
    System(system.bodies, (*system.joints, *system.constraints), system.forces, system.frames)
    if isinstance(model, AbstractAbsolute):
        raise ValueError(
            "`Absolute` has the masses of the bodies alone; the `armature` of a joint cannot be "
            "fitted with it. Use `NullSpace` or `Relative`."
        )


def _pick(where: Callable[[Any], Any], experiment: Any) -> Any:
    try:
        return where(experiment)
    except (AttributeError, IndexError, KeyError, TypeError):
        return experiment


def _is_plain(leaf: Any) -> bool:
    """Whether a leaf was left out, or is made of numbers but no array of JAX for real numbers."""
    if leaf is None:
        return True
    numbers = isinstance(leaf, int | float | np.ndarray | np.generic | jax.Array)
    return numbers and not eqx.is_inexact_array(leaf) and np.asarray(leaf).dtype.kind in "iuf"


def _child(owner: Any, key: Any) -> Any:
    if isinstance(key, jax.tree_util.GetAttrKey):
        return getattr(owner, key.name)
    return owner[key.idx if isinstance(key, jax.tree_util.SequenceKey) else key.key]


def _described(owner: Any) -> str:
    name = getattr(owner, "name", None)
    return type(owner).__name__ + (f" {name!r}" if isinstance(name, str) and name else "")
