"""Parameters of a case: `[[parameter]]`."""

import inspect
from typing import Any

from ... import identification
from ...identification import (
    AbstractPrior,
    AbstractTransform,
    Experiment,
    Parameter,
    Unconstrained,
    start_state,
)
from ...identification.data.units import UNITS, canonical
from ...identification.parameters import insert_start_change, materialise_parameters
from ..kinds import find_kinds, option_name
from .paths import find_leaf
from .table import CaseTable, array_of_tables

# The `path` that selects `rj.identification.start_state`.
_START_STATE = "start_state"


def read_parameters(top: CaseTable, experiment: Experiment) -> tuple[Parameter, ...]:
    """Read the parameters; their paths are resolved in an experiment.

    **Errors:** `ValueError` naming the table.
    """
    parameters = tuple(_parameter(t, experiment) for t in array_of_tables(top, "parameter"))
    if not parameters:
        top.fail("there is no [[parameter]]; add one for each quantity to be fitted.")
    return parameters


def _parameter(table: CaseTable, experiment: Experiment) -> Parameter:
    name, path = table.text("name"), table.text("path")
    prior = _prior(table)
    if path == _START_STATE:
        return _start_state(table, experiment, name, prior)
    where = table.call(find_leaf, path, experiment)
    tied = [table.call(find_leaf, other, experiment) for other in table.texts("tied", ())]
    transform = _transform(table)
    per_run = table.take("per_run", "true or false", False)
    start = table.numbers("start", None)
    unit, labels = table.text("unit", ""), table.texts("labels", None)
    table.reject_unknown()
    name_of_unit = table.call(canonical, unit)
    for units in UNITS.values():
        if units.get(name_of_unit, 1.0) != 1.0:
            si_unit = next(iter(units))
            table.fail(
                f"`unit` is a label, and estimates are in SI units and radians: write {si_unit!r} "
                f"for {unit!r}, and `start` in {si_unit!r}."
            )
    parameter = table.call(
        Parameter, name, where, transform, tied=tied, per_run=per_run, start=start, unit=unit,
        labels=labels, prior=prior,
    )  # fmt: skip
    whole = table.call(materialise_parameters, experiment, [parameter])
    shape = table.call(parameter.leaf, whole).shape
    table.call(parameter.component_labels, shape)
    if prior is not None:
        table.call(prior.check_leaf, name, transform, shape)
    return parameter


def _start_state(table: CaseTable, experiment: Experiment, name: str, prior: Any) -> Parameter:
    options = {
        key: table.take(key, "true or false", True) for key in ("positions", "rates", "per_run")
    }
    table.reject_unknown()
    parameter = table.call(
        start_state, experiment.model, experiment.state0, name=name, prior=prior, **options
    )
    if prior is not None:
        shape = parameter.leaf(insert_start_change(experiment, [parameter])).shape
        table.call(prior.check_leaf, name, parameter.transform, shape)
    return parameter


def _prior(table: CaseTable) -> Any:
    if not table.has("prior"):
        return None
    part = table.table("prior")
    return part.build(part.pick("type", _by_option(AbstractPrior)))


def _transform(table: CaseTable) -> Any:
    kinds = {"free": Unconstrained, **_by_option(AbstractTransform)}
    kind = table.pick("transform", kinds, "free")
    readers = {
        "which": table.integers,
        "fixed": table.texts,
        "lower": table.numbers,
        "upper": table.numbers,
    }
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        required = parameter.default is parameter.empty
        if required or table.has(name):
            arguments[name] = readers[name](name)
    return table.call(kind, **arguments)


def _by_option(base: type) -> dict[str, Any]:
    kinds = find_kinds(base, identification)
    return {option_name(kind): kind for kind in kinds.values()}
