"""The parameters of a case: `[[parameter]]`."""

import inspect
from typing import Any

from ...identification import (
    Bounded,
    Experiment,
    Free,
    InertiaTensor,
    Orientation,
    Parameter,
    Positive,
    PrincipalInertia,
)
from ...identification.units import UNITS, canonical
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


def read_parameters(top: Table, experiment: Experiment) -> tuple[Parameter, ...]:
    """The parameters, each looked up in an experiment.

    **Errors:** `ValueError` naming the table.
    """
    found = tuple(_parameter(t, experiment) for t in array_of_tables(top, "parameter"))
    if not found:
        top.fail("there is no [[parameter]]: what is to be fitted.")
    return found


def _parameter(table: Table, experiment: Experiment) -> Parameter:
    name = table.text("name")
    where = table.checked(find_leaf, table.text("path"), experiment)
    transform = _transform(table)
    per_run = table.take("per_run", "true or false", False)
    if per_run and where.steps[0] == "sensors":
        table.fail(
            "a parameter of a sensor cannot be `per_run` here: a `Fit` holds the sensors of the "
            "first run only. Give every run a case of its own, or write this in Python."
        )
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
        Parameter, name, where, transform, per_run=per_run, start=start, unit=unit, labels=labels
    )
    table.checked(parameter.component_labels, parameter.leaf(experiment).shape)
    return parameter


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
