"""Options of fits and runs, and output files of a case: `[method]`, `[run]` and `[output]`."""

import pathlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ... import identification
from ...identification import AbstractLoss
from ...identification.fit.options import METHODS
from ...identification.statistics.estimate_covariance import METHODS as COVARIANCE_METHODS
from .. import checks, choices
from ..kinds import find_kinds
from .table import CaseTable

# Options of `[method]` that are also settings of a run.
SETTINGS = ("solver", "rtol", "atol", "projection", "max_steps")


class Outputs(NamedTuple):
    """Output files; `None` for files that are not written."""

    netcdf: pathlib.Path | None
    html: pathlib.Path | None
    report: pathlib.Path | None


def read_method(top: CaseTable) -> dict[str, Any]:
    """Read options of `rj.identify` from `[method]`.

    **Errors:** `ValueError` naming the table.
    """
    table = top.table("method", {})
    options: dict[str, Any] = {}
    if table.has("solver"):
        solver = table.call(choices.make_solver, table.text("solver"))
        if not choices.is_adaptive(solver):
            table.fail("`solver` must have an error estimate, which controls its steps.")
        options["solver"] = solver
    options |= _read_numbers(table, ("rtol", "atol"), checks.check_tolerance)
    options |= _read_numbers(table, ("tolerance", "start_spread"), checks.check_positive)
    if table.has("horizons"):
        options["horizons"] = table.take("horizons", "an array")
    for key in ("max_iterations", "max_steps", "starts", "segments"):
        if table.has(key):
            options[key] = table.take(key, "an integer")
            if options[key] < 1:
                table.fail(f"`{key}` must be 1 or more; got {options[key]}.")
    if table.has("method"):
        options["method"] = table.pick("method", {name: name for name in METHODS})
    if table.has("process_noise"):
        options["process_noise"] = _read_process_noise(table.table("process_noise"))
    if table.has("loss"):
        options["loss"] = table.pick("loss", find_kinds(AbstractLoss, identification))()
    if table.has("noise"):
        by_sensor = isinstance(table.values["noise"], dict)
        options["noise"] = table.take("noise", "a table") if by_sensor else table.text("noise")
    if table.has("covariance"):
        names = ("sandwich", *COVARIANCE_METHODS)
        options["covariance"] = table.pick("covariance", {name: name for name in names})
    if table.has("seed"):
        options["seed"] = table.take("seed", "an integer")
    if table.has("projection"):
        options["projection"] = table.take("projection", "true or false")
    table.reject_unknown()
    return options


def _read_process_noise(table: CaseTable) -> dict[str, Any]:
    """Return standard deviations by name, `None` for the text "estimated"."""

    def read(key, value):
        if isinstance(value, list):
            return [read(key, entry) for entry in value]
        if value == "estimated":
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        table.fail(f'`{key}` must be a number, "estimated" or an array of them; got {value!r}.')

    return {key: read(key, value) for key, value in table.values.items()}


def _read_numbers(
    table: CaseTable, keys: Iterable[str], check: Callable[[str, float], float]
) -> dict[str, float]:
    """Return the numbers of a table that are given, checked."""
    return {key: table.call(check, key, table.number(key)) for key in keys if table.has(key)}


def read_run(top: CaseTable) -> dict[str, Any]:
    """Read `[run]`: end time, number of samples and settings of a simulation.

    **Errors:** `ValueError` naming the table.
    """
    table = top.table("run", {})
    settings: dict[str, Any] = {}
    if table.has("solver"):
        settings["solver"] = table.call(choices.make_solver, table.text("solver"))
    settings |= _read_numbers(table, ("t1", "dt"), checks.check_positive)
    settings |= _read_numbers(table, ("rtol", "atol"), checks.check_tolerance)
    if table.has("samples"):
        settings["samples"] = table.take("samples", "an integer")
    if table.has("projection"):
        settings["projection"] = table.take("projection", "true or false")
    table.reject_unknown()
    return settings


def read_outputs(top: CaseTable, folder: pathlib.Path) -> Outputs:
    """Read the output files from `[output]`, relative to the folder of the case."""
    table = top.table("output", {})
    paths = [table.text(key, None) for key in Outputs._fields]
    table.reject_unknown()
    return Outputs(*(None if path is None else folder / path for path in paths))
