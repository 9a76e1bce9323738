"""Paths of parameters: dotted paths into an experiment, resolved without `eval`."""

import dataclasses
import re
from typing import Any

import equinox as eqx
import jax

from ...checks import did_you_mean
from ...identification.left_out import materialise_leaves, zero_of_field

_PART = re.compile(r'\.?([A-Za-z]\w*)|\.(\d+)|\[(\d+)\]|\["([^"\]]+)"\]')


@dataclasses.dataclass(frozen=True)
class LeafPath:
    """A path as a callable on an experiment; equal paths compare equal."""

    steps: tuple[str | int, ...]

    def __call__(self, experiment: Any) -> Any:
        node = experiment
        for step in self.steps:
            node = node[step] if isinstance(step, int) else getattr(node, step)
        return node


def find_leaf(path: str, experiment: Any) -> LeafPath:
    """Resolve a path to an array, such as `model.system.bodies.arm.mass`.

    A part of the path is a field of the preceding object, or selects one of several bodies, joints,
    forces or sensors, by its index (from 0) or its name. A force is selected by its type, if it is
    the only force of this type, or by its type and its joint, body or frame:
    `forces["DCMotor hinge"]`. A name that is not an identifier is written `bodies["rod 1"]`.

    **Errors:** `ValueError` for a path that cannot be parsed, does not exist (with the existing
    names and the most similar one), or does not end at an array of numbers.
    """
    steps: list[str | int] = []
    node, before = experiment, ""
    for part in _split(path):
        step = _resolve(node, part, path, before)
        node = node[step] if isinstance(step, int) else getattr(node, step)
        steps.append(step)
        before = f"{before}.{part}" if before else part
    if node is None:
        node = materialise_leaves(experiment, [LeafPath(tuple(steps))])
        node = LeafPath(tuple(steps))(node)
    if not eqx.is_inexact_array(node):
        names = _names(node)
        raise ValueError(
            f"`path = {path!r}` must end at an array of numbers; {before or 'it'} is "
            f"{type(node).__name__}"
            + (f". Continue with one of: {', '.join(names)}." if names else ".")
        )
    return LeafPath(tuple(steps))


def _split(path: str) -> list[str]:
    parts, end = [], 0
    while end < len(path):
        match = _PART.match(path, end)
        if match is None or (end == 0) == path[end].startswith((".", "[")):
            raise ValueError(
                f"`path = {path!r}` cannot be read at {path[end:]!r}; write it as "
                "model.system.bodies.arm.mass, with names and numbers between dots."
            )
        parts.append(next(group for group in match.groups() if group is not None))
        end = match.end()
    return parts


def _resolve(node: Any, part: str, path: str, before: str) -> str | int:
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
                f"`path = {path!r}`: {before} has {len(indices)} called {part!r}; select one by "
                f"its number, {' or '.join(map(str, indices))}{_by_part(node, indices)}."
            )
    elif part in names:
        return part
    hint = did_you_mean(part, names)
    existing = f"there are: {', '.join(names)}" if names else "it has no parts"
    raise ValueError(
        f"`path = {path!r}`: {before or 'the experiment'} has no {part!r}; {existing}.{hint}"
    )


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
