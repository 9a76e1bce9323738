"""Leaves that a model stores as plain numbers, or leaves out because they are zero."""

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
from ..joints import AbstractJoint
from ..mechanics import System


@dataclasses.dataclass(frozen=True)
class LeafMark:
    """Placeholder for a leaf of an experiment, identified by its index."""

    number: int


def mark_leaves(experiment: Any, is_leaf: Any = None) -> tuple[list[tuple[Any, Any]], Any]:
    """Return the paths and leaves of an experiment, and the experiment with a mark for each."""
    pairs, tree = jax.tree_util.tree_flatten_with_path(experiment, is_leaf=is_leaf)
    return pairs, jax.tree.unflatten(tree, map(LeafMark, range(len(pairs))))


def materialise_leaves(experiment: Any, picked: Iterable[Callable[[Any], Any]]) -> Any:
    """Return an experiment in which every picked leaf is an array.

    A coefficient that the model leaves out, such as a zero damping, becomes an array of zeros; a
    plain number or NumPy array becomes a JAX array.

    **Arguments:** `picked`, functions of an experiment, such as `Parameter.where`.
    **Errors:** `ValueError` for a leaf that is left out and has no zero value, and for an armature
    that the system or its formulation does not support.
    """
    missing = [where for where in picked if _is_plain(_try_pick(where, experiment))]
    if not missing:
        return experiment
    pairs, marked = mark_leaves(experiment, is_leaf=lambda leaf: leaf is None)
    leaves, has_armature = [leaf for _, leaf in pairs], False
    for where in missing:
        mark = _try_pick(where, marked)
        if not isinstance(mark, LeafMark):
            continue  # `where` alters the leaf: `Parameter.leaf` reports it.
        path, leaf = pairs[mark.number]
        owner, field = functools.reduce(_child, path[:-1], experiment), path[-1]
        if leaf is None:
            name = getattr(field, "name", str(field))
            zero = zero_of_field(owner, name)
            if zero is None:
                raise ValueError(
                    f"A parameter picks `{name}` of the {_describe(owner)}, which was left out "
                    f"(`None`). Give it a value in `{type(owner).__name__}({name}=...)`."
                )
            leaves[mark.number], has_armature = zero, has_armature or name == "armature"
        else:
            leaves[mark.number] = jnp.asarray(leaf, float)
    new = jax.tree.unflatten(jax.tree.structure(marked), leaves)
    if has_armature:
        _check_armature(getattr(new, "model", new))
    return new


def zero_of_field(owner: Any, field: str) -> Array | None:
    """Return the zero that a field has if it is left out, or `None` if there is none."""
    if isinstance(owner, AbstractJoint) and field in ("damping", "armature"):
        return jnp.zeros(owner.num_undriven_rates)
    return jnp.zeros(()) if field == "delay" or isinstance(owner, Drag) else None


def _check_armature(model: Any) -> None:
    """Raise `ValueError` for an armature that the constructors would reject."""
    system = model.multibody
    System(
        system.bodies,
        (*system.joints, *system.constraints),
        system.forces,
        system.frames,
        closing=system.closing,
    )
    if not model.takes_armature:
        raise ValueError(
            "`Absolute` has the masses of the bodies alone; the `armature` of a joint cannot be "
            "fitted with it. Use `NullSpace` or `Relative`."
        )


def _try_pick(where: Callable[[Any], Any], experiment: Any) -> Any:
    try:
        return where(experiment)
    except (AttributeError, IndexError, KeyError, TypeError):
        return experiment


def _is_plain(leaf: Any) -> bool:
    """Return whether a leaf is left out, or is a number that is not a JAX array of reals."""
    if leaf is None:
        return True
    is_numeric = isinstance(leaf, int | float | np.ndarray | np.generic | jax.Array)
    return is_numeric and not eqx.is_inexact_array(leaf) and np.asarray(leaf).dtype.kind in "iuf"


def _child(owner: Any, key: Any) -> Any:
    if isinstance(key, jax.tree_util.GetAttrKey):
        return getattr(owner, key.name)
    return owner[key.idx if isinstance(key, jax.tree_util.SequenceKey) else key.key]


def _describe(owner: Any) -> str:
    name = getattr(owner, "name", None)
    return type(owner).__name__ + (f" {name!r}" if isinstance(name, str) and name else "")
