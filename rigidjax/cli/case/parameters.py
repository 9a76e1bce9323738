"""The parameters of a case: `[[parameter]]`."""

import inspect
from typing import Any

from ...identification import (
    Bounded,
    Experiment,
    Free,
    GaussianPrior,
    InertiaTensor,
    LogDetPrior,
    Orientation,
    Parameter,
    Positive,
    PrincipalInertia,
    start_state,
)
from ...identification.data.units import UNITS, canonical
from ...identification.parameters import insert_start_change, materialise_parameters
from .paths import find_leaf
from .table import Table, array_of_tables

_TRANSFORMS = {
    "free": Free,
    "positive": Positive,
    "bounded": Bounded,
    "principal-inertia": PrincipalInertia,
    "inertia-tensor": InertiaTensor,
    "orientation": Orientation,
}
_PRIORS = {"gaussian": GaussianPrior, "log-det": LogDetPrior}
# The `path` of the start of any system, as `rj.identification.start_state`.
_START_STATE = "start_state"


def read_parameters(top: Table, experiment: Experiment) -> tuple[Parameter, ...]:
    """The parameters, each looked up in an experiment.

    **Errors:** `ValueError` naming the table.
    """
    found = tuple(_parameter(t, experiment) for t in array_of_tables(top, "parameter"))
    if not found:
        top.fail("there is no [[parameter]]: what is to be fitted.")
    return found


def _parameter(table: Table, experiment: Experiment) -> Parameter:
    name, path = table.text("name"), table.text("path")
    prior = _prior(table)
    if path == _START_STATE:
        return _start_state(table, experiment, name, prior)
    where = table.checked(find_leaf, path, experiment)
    tied = [table.checked(find_leaf, other, experiment) for other in table.texts("tied", ())]
    transform = _transform(table)
    per_run = table.take("per_run", "true or false", False)
    start = table.numbers("start", None)
    unit, labels = table.text("unit", ""), table.texts("labels", None)
    table.done()
    name_of_unit = table.checked(canonical, unit)
    for units in UNITS.values():
        if units.get(name_of_unit, 1.0) != 1.0:
            own = next(iter(units))
            table.fail(
                f"`unit` is a label, and estimates are in SI units and radians: write {own!r} for "
                f"{unit!r}, and `start` in {own!r}."
            )
    parameter = table.checked(
        Parameter, name, where, transform, tied=tied, per_run=per_run, start=start, unit=unit,
        labels=labels, prior=prior,
    )  # fmt: skip
    whole = table.checked(materialise_parameters, experiment, [parameter])
    shape = table.checked(parameter.leaf, whole).shape
    table.checked(parameter.component_labels, shape)
    if prior is not None:
        table.checked(prior.check_leaf, name, transform, shape)
    return parameter


def _start_state(table: Table, experiment: Experiment, name: str, prior: Any) -> Parameter:
    options = {
        key: table.take(key, "true or false", True) for key in ("positions", "rates", "per_run")
    }
    table.done()
    parameter = table.checked(
        start_state, experiment.model, experiment.state0, name=name, prior=prior, **options
    )
    if prior is not None:
        shape = parameter.leaf(insert_start_change(experiment, [parameter])).shape
        table.checked(prior.check_leaf, name, parameter.transform, shape)
    return parameter


def _prior(table: Table) -> Any:
    if not table.has("prior"):
        return None
    part = table.table("prior")
    return part.build(part.pick("type", _PRIORS))


def _transform(table: Table) -> Any:
    kind = table.pick("transform", _TRANSFORMS, "free")
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
    return table.checked(kind, **arguments)
