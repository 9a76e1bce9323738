"""Arrays of a model or an experiment: their names and paths, and those that are left out.

A model stores some as plain numbers, and leaves some out because they are zero.
"""

import dataclasses
import difflib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..bodies import FixedPointBody
from ..checks import did_you_mean, find_duplicates
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
            "`Absolute` has the masses of the bodies alone: joints have no `armature` in it. Use "
            "`NullSpace` or `Relative`."
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


_PART = re.compile(r'\.?([A-Za-z]\w*)|\.(\d+)|\[(\d+)\]|\["([^"\]]+)"\]')


@dataclasses.dataclass(frozen=True)
class LeafPath:
    """A path as a callable on an experiment; equal paths compare equal."""

    steps: tuple[str | int, ...]

    def __str__(self) -> str:
        return ".".join(map(str, self.steps))

    def __call__(self, experiment: Any) -> Any:
        node = experiment
        for step in self.steps:
            node = node[step] if isinstance(step, int) else getattr(node, step)
        return node


def find_leaf(path: str, root: Any, given: str = "") -> LeafPath:
    """Resolve the name or the path of an array of a model or an experiment.

    A name is that of a part and a field: `hinge.damping`, `arm.mass`, `gyroscope.bias`,
    `Spring.stiffness`. Parts are bodies, joints, constraints, forces, frames and sensors; a
    force is called by its type, or by its type and its joint, body or frame, `Motor hinge`; a
    sensor also by its quantity alone; a `FixedPointBody` is called `body`.

    A path such as `model.system.bodies.arm.mass` names every step: a field of the preceding
    object, or an item by its index (from 0) or its name, `bodies["rod 1"]`.

    **Arguments:** `root`, a formulation or an `Experiment`; `given`, the argument, for messages.
    **Errors:** `ValueError` for a path that cannot be parsed, does not exist (with the existing
    names and the most similar ones), or does not end at an array of real numbers.
    """
    given = given or f"`path = {path!r}`"
    first = re.split(r"[.\[]", path, maxsplit=1)[0]
    if first not in _names(root):
        return _find_named(path, root, given)
    return LeafPath(_follow(root, (), _split(path, given), given))


def _find_named(path: str, root: Any, given: str) -> LeafPath:
    """Resolve a name that begins with that of a part, the longest if there are several."""
    parts = [part for part in named_parts(root) if f"{path}.".startswith(f"{part[0]}.")]
    longest = max((len(name) for name, _ in parts), default=0)
    parts = [(name, steps) for name, steps in parts if len(name) == longest]
    error = None
    for name, steps in parts:
        rest = path[len(name) + 1 :]
        try:
            return LeafPath(_follow(root, steps, _split(rest, given) if rest else [], given))
        except ValueError as reason:
            error = error or reason
    if error is not None:
        raise error
    near = difflib.get_close_matches(path, leaf_names(root), n=4, cutoff=0.4)
    hint = f" Similar names: {', '.join(map(repr, near))}." if near else ""
    raise ValueError(
        f"{given} begins with no part of the model; there are: "
        f"{', '.join(dict.fromkeys(repr(name) for name, _ in named_parts(root)))}.{hint}"
    )


def replace_named(model: Any, values: Mapping[str, Any]) -> Any:
    """Return a model with new values of named arrays; see `AbstractFormulation.replace`."""
    wheres = [find_leaf(name, model, f"`replace({name!r})`") for name in values]
    if twice := find_duplicates(str(where) for where in wheres):
        raise ValueError(f"`replace` takes each array once; got {twice} more than once.")
    model, leaves = materialise_leaves(model, wheres), []
    for (name, value), where in zip(values.items(), wheres, strict=True):
        old = where(model)
        new = jnp.asarray(value)
        if new.shape not in ((), old.shape):
            raise ValueError(
                f"`replace({name!r})` takes shape {old.shape}, or a number; got {new.shape}."
            )
        leaves.append(jnp.broadcast_to(new, old.shape).astype(old.dtype))
    return eqx.tree_at(lambda m: [where(m) for where in wheres], model, leaves) if values else model


def named_parts(root: Any) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Yield names of the parts of a model or an experiment, with the steps that lead to each."""
    before: tuple[str | int, ...] = ()
    if hasattr(root, "sensors"):
        for k, sensor in enumerate(root.sensors):
            yield from ((name, ("sensors", k)) for name in {sensor.name, _quantity(sensor, root)})
        before, root = ("model",), root.model
    system = root.system
    if isinstance(system, FixedPointBody):
        yield "body", (*before, "system")
        return
    for kind in ("bodies", "joints", "constraints", "forces", "frames"):
        items = getattr(system, kind)
        names = [_name(item) for item in items]
        for k, (name, item) in enumerate(zip(names, items, strict=True)):
            steps = (*before, "system", kind, k)
            if names.count(name) == 1:
                yield name, steps
            if kind == "forces" and _name_on_part(item):
                yield _name_on_part(item), steps


def leaf_names(root: Any) -> list[str]:
    """Return the names `part.field` of all arrays of a model or an experiment."""
    return [
        f"{name}.{field}"
        for name, steps in named_parts(root)
        for field in _names(LeafPath(steps)(root))
    ]


def _quantity(sensor: Any, root: Any) -> str:
    """Return the first word of the name of a sensor if no other sensor has it, else its name."""
    words = [other.name.split(" of ")[0] for other in root.sensors]
    word = sensor.name.split(" of ")[0]
    return word if words.count(word) == 1 else sensor.name


def _follow(
    root: Any, steps: tuple[str | int, ...], parts: list[str], given: str
) -> tuple[str | int, ...]:
    """Return the steps to an array: those to a part, then the named parts of a path."""
    node, before = LeafPath(steps)(root), _name(LeafPath(steps)(root)) if steps else ""
    for part in parts:
        step = _resolve(node, part, given, before)
        node = node[step] if isinstance(step, int) else getattr(node, step)
        steps = (*steps, step)
        before = f"{before}.{part}" if before else part
    if node is None:
        where = LeafPath(steps)
        node = where(materialise_leaves(root, [where]))
    if not eqx.is_inexact_array(node):
        names = _names(node)
        raise ValueError(
            f"{given} must end at an array of numbers; {before or 'it'} is {type(node).__name__}"
            + (f". Continue with one of: {', '.join(names)}." if names else ".")
        )
    return steps


def _split(path: str, given: str) -> list[str]:
    parts, end = [], 0
    while end < len(path):
        match = _PART.match(path, end)
        if match is None or (end == 0) == path[end].startswith((".", "[")):
            raise ValueError(
                f"{given} cannot be read at {path[end:]!r}; write it as arm.mass or "
                "model.system.bodies.arm.mass, with names and numbers between dots."
            )
        parts.append(next(group for group in match.groups() if group is not None))
        end = match.end()
    return parts


def _resolve(node: Any, part: str, given: str, before: str) -> str | int:
    """Return the field or index of `node` that a part of the path names."""
    names = _names(node)
    if isinstance(node, tuple | list):
        if part.isdigit() and int(part) < len(node):
            return int(part)
        indices = [k for k, name in enumerate(names) if name == part]
        indices = indices or [k for k, item in enumerate(node) if _name_on_part(item) == part]
        if len(indices) == 1:
            return indices[0]
        if indices:
            raise ValueError(
                f"{given}: {before} has {len(indices)} called {part!r}; select one by "
                f"its number, {' or '.join(map(str, indices))}{_by_part(node, indices)}."
            )
    elif part in names:
        return part
    hint = did_you_mean(part, names)
    existing = f"there are: {', '.join(names)}" if names else "it has no parts"
    raise ValueError(f"{given}: {before or 'the experiment'} has no {part!r}; {existing}.{hint}")


def _names(node: Any) -> list[str]:
    """Return the names of the parts of `node`: fields with arrays, or names of items."""
    if isinstance(node, tuple | list):
        return [_name(item) for item in node]
    if not isinstance(node, eqx.Module):
        return []
    return [f.name for f in dataclasses.fields(node) if _has_arrays(node, f.name)]


def _has_arrays(node: Any, name: str) -> bool:
    """Return whether a field contains arrays, or was omitted and represents zero."""
    value = getattr(node, name)
    if value is None:
        return zero_of_field(node, name) is not None
    return any(map(eqx.is_inexact_array, jax.tree.leaves(value)))


def _name_on_part(item: Any) -> str:
    """Return type and joint, body or frame of a force, such as `"Motor hinge"`.

    The text is empty for a force on several bodies.
    """
    part = getattr(item, "joint", getattr(item, "body", None))
    return f"{type(item).__name__} {part}" if isinstance(part, str) else ""


def _by_part(node: Any, indices: list[int]) -> str:
    names = [repr(_name_on_part(node[k])) for k in indices if _name_on_part(node[k])]
    return f", or as one of {', '.join(names)}" if len(names) == len(indices) else ""


def _name(item: Any) -> str:
    """Return the name of a body, joint or sensor, or the type of a force."""
    name = getattr(item, "name", None)
    return name if isinstance(name, str) else type(item).__name__
