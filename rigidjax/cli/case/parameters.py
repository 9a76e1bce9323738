"""Parameters of a case, `[[parameter]]`, and their paths, which are resolved without `eval`."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax

from ... import identification
from ...checks import did_you_mean
from ...identification import (
    AbstractPrior,
    AbstractTransform,
    Experiment,
    Parameter,
    Unconstrained,
    start_state,
)
from ...identification.data.units import UNITS, canonical
from ...identification.experiment.left_out import materialise_leaves, zero_of_field
from ...identification.experiment.parameters import insert_start_change, materialise_parameters
from ..base import choices
from ..base.choices import find_kinds, option_name
from .schema import (
    CaseTable,
    Flag,
    Integers,
    Numbers,
    Text,
    Texts,
    TypedTable,
    build,
    check_keys,
    locate_errors,
)

# The `path` that selects `rj.identification.start_state`, and the keys that go with it.
_START_STATE = "start_state"
_START_KEYS = ("name", "path", "prior", "positions", "rates", "per_run")


class ParameterTable(CaseTable):
    """`[[parameter]]`: arguments of `Parameter`, of its transform, or of `start_state`."""

    name: Text
    path: Text
    tied: Texts = ()
    per_run: Flag | None = None
    start: Numbers = None
    unit: Text = ""
    labels: Texts | None = None
    prior: TypedTable | None = None
    transform: Text = "free"
    which: Integers | None = None
    fixed: Texts | None = None
    lower: Numbers = None
    upper: Numbers = None
    positions: Flag | None = None
    rates: Flag | None = None

    def parameter(self, experiment: Experiment) -> Parameter:
        """Return the parameter; paths are resolved in an experiment."""
        prior = None
        if self.prior is not None:
            prior = self.prior.build(self.prior.kind(_by_option(AbstractPrior)))
        if self.path == _START_STATE:
            return self._start_state(experiment, prior)
        with locate_errors(self.where):
            known = type(self).model_fields.keys() - {"positions", "rates"}
            check_keys(self.given_values(), known)
            where = find_leaf(self.path, experiment)
            tied = [find_leaf(other, experiment) for other in self.tied]
        kinds = {"free": Unconstrained, **_by_option(AbstractTransform)}
        kind = kinds[self.call(choices.pick, "`transform`", self.transform, kinds)]
        limits = {k: v for k, v in self.given_values().items() if k in _OF_TRANSFORMS}
        transform = build(kind, limits, self.where)
        self._check_unit()
        with locate_errors(self.where):
            parameter = Parameter(
                self.name, where, transform, tied=tied, per_run=bool(self.per_run),
                start=self.start, unit=self.unit, labels=self.labels, prior=prior,
            )  # fmt: skip
            shape = parameter.leaf(materialise_parameters(experiment, [parameter])).shape
            parameter.component_labels(shape)
            if prior is not None:
                prior.check_leaf(self.name, transform, shape)
        return parameter

    def _check_unit(self) -> None:
        name = self.call(canonical, self.unit)
        for units in UNITS.values():
            if units.get(name, 1.0) != 1.0:
                si_unit = next(iter(units))
                self.fail(
                    "`unit` is a label, and estimates are in SI units and radians: write "
                    f"{si_unit!r} for {self.unit!r}, and `start` in {si_unit!r}."
                )

    def _start_state(self, experiment: Experiment, prior: Any) -> Parameter:
        with locate_errors(self.where):
            check_keys(self.given_values(), _START_KEYS)
            options = self.given_values("name", "path", "prior")
            parameter = start_state(
                experiment.model, experiment.state0, name=self.name, prior=prior, **options
            )
            if prior is not None:
                shape = parameter.leaf(insert_start_change(experiment, [parameter])).shape
                prior.check_leaf(self.name, parameter.transform, shape)
        return parameter


_OF_TRANSFORMS = ("which", "fixed", "lower", "upper")


def read_parameters(
    top: CaseTable, tables: Sequence[ParameterTable], experiment: Experiment
) -> tuple[Parameter, ...]:
    """Read the parameters; their paths are resolved in an experiment.

    **Errors:** `ValueError` naming the table.
    """
    if not tables:
        top.fail("there is no [[parameter]]; add one for each quantity to be fitted.")
    return tuple(table.parameter(experiment) for table in tables)


def _by_option(base: type) -> dict[str, Any]:
    kinds = find_kinds(base, identification)
    return {option_name(kind): kind for kind in kinds.values()}


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
