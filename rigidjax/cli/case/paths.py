"""Where a parameter is: a dotted path into an experiment, looked up and never evaluated."""

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
    """A path as a function of an experiment; equal paths are equal functions."""

    steps: tuple[str | int, ...]

    def __call__(self, experiment: Any) -> Any:
        found = experiment
        for step in self.steps:
            found = found[step] if isinstance(step, int) else getattr(found, step)
        return found


def find_leaf(path: str, experiment: Any) -> LeafPath:
    """The array that a path such as `model.system.bodies.arm.mass` names.

    A part is a field of what is before it; or of several bodies, joints, forces or sensors one, by
    its number (from 0) or its name (of a force: its type, if there is only one such). A name that
    is no word is written `bodies["rod 1"]`.

    **Errors:** `ValueError` for a path that cannot be read, leads nowhere (with what there is, and
    the nearest name), or does not end at an array of numbers.
    """
    steps: list[str | int] = []
    found, before = experiment, ""
    for part in _parts(path):
        step = _step(found, part, path, before)
        found = found[step] if isinstance(step, int) else getattr(found, step)
        steps.append(step)
        before = f"{before}.{part}" if before else part
    if found is None:
        found = materialise_leaves(experiment, [LeafPath(tuple(steps))])
        found = LeafPath(tuple(steps))(found)
    if not eqx.is_inexact_array(found):
        names = _names(found)
        raise ValueError(
            f"`path = {path!r}` must end at an array of numbers; {before or 'it'} is "
            f"{type(found).__name__}"
            + (f". Go on with one of: {', '.join(names)}." if names else ".")
        )
    return LeafPath(tuple(steps))


def _parts(path):
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


def _step(found, part, path, before) -> str | int:
    names = _names(found)
    if isinstance(found, tuple | list):
        if part.isdigit() and int(part) < len(found):
            return int(part)
        called = [k for k, name in enumerate(names) if name == part]
        if len(called) == 1:
            return called[0]
        if called:
            raise ValueError(
                f"`path = {path!r}`: {before} has {len(called)} called {part!r}; take one by its "
                f"number, {' or '.join(map(str, called))}."
            )
    elif part in names:
        return part
    hint = did_you_mean(part, names)
    there = f"there are: {', '.join(names)}" if names else "nothing is inside of it"
    raise ValueError(
        f"`path = {path!r}`: {before or 'the experiment'} has no {part!r}; {there}.{hint}"
    )


def _names(found: Any) -> list[str]:
    """What can be named inside of something: fields with arrays in them, or names of items."""
    if isinstance(found, tuple | list):
        return [_name(item) for item in found]
    if not isinstance(found, eqx.Module):
        return []
    return [f.name for f in dataclasses.fields(found) if _has_numbers(found, f.name)]


def _has_numbers(found: Any, name: str) -> bool:
    """Whether there are arrays in a field, or it was left out and stands for zero."""
    value = getattr(found, name)
    if value is None:
        return zero_of_field(found, name) is not None
    return any(map(eqx.is_inexact_array, jax.tree.leaves(value)))


def _name(item: Any) -> str:
    """The name of a body, joint or sensor; of a force its type."""
    name = getattr(item, "name", None)
    return name if isinstance(name, str) else type(item).__name__
