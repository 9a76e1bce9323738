"""Reading of a complete case file."""

import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...formulations import AbstractFormulation
from ...identification import Experiment, Measurements, Parameter
from ...signals.inputs import with_inputs
from ...state import State
from ..model_files import is_model_file
from ..plugins import import_installed_plugins
from .data import read_common, read_data
from .inputs import read_inputs
from .intervals import IntervalMethods, read_intervals
from .method import SETTINGS, Outputs, read_method, read_outputs, read_run
from .model import read_model
from .parameters import read_parameters
from .start import check_start_is_observable, start_of_runs
from .table import CaseTable, read_toml, top_table

_TABLES = (
    "title",
    "model",
    "fixed_point_body",
    "body",
    "joint",
    "force",
    "motor",
    "frame",
    "state",
    "data",
    "input",
    "inputs",
    "sensor",
    "parameter",
    "method",
    "intervals",
    "run",
    "output",
)


class Case(NamedTuple):
    """Arguments of `rj.identify`, with title and text of the case file.

    `files` are the files that it refers to: measurements, and the model.
    """

    title: str
    text: str
    model: AbstractFormulation
    measurements: list[Measurements]
    parameters: tuple[Parameter, ...]
    state0: State | list[State] | None
    options: dict[str, Any]
    intervals: IntervalMethods
    outputs: Outputs
    files: tuple[str, ...]


class RunCase(NamedTuple):
    """Model, start and settings of one simulation, with title and text of the case file.

    `settings` are those of `[run]` and `[method]`: `t1` and `samples`, and arguments of
    `rj.simulate`; `inputs`, the values of its inputs by name. `files` are the files that the case
    refers to.
    """

    title: str
    text: str
    model: AbstractFormulation
    state0: State
    settings: dict[str, Any]
    inputs: dict[str, Any]
    files: tuple[str, ...]


def read_case(
    path: str | os.PathLike[str], changes: Mapping[str, Mapping[str, Any]] | None = None
) -> Case:
    """Read a case from a TOML file; nothing in it is executed.

    **Arguments:** `path`; `changes`, values that replace those of the file, by name of the table.
    **Errors:** `ValueError` that names the file and the table or line; `OSError` for files that
    cannot be read.
    """
    path = pathlib.Path(path)
    top, title, text = open_case(path, changes)
    common, cut = read_common(top, path.parent)
    inputs = read_inputs(top, path.parent, common)
    model = read_model(top, inputs, path.parent)
    formulation = with_inputs(*inputs.bind(top, model.formulation))
    options, outputs = read_method(top), read_outputs(top, path.parent)
    intervals = read_intervals(top)
    read_run(top)  # for `rigidjax run`
    data = read_data(top, path.parent, common)
    runs = [inputs.attach(top, run) for run in data.runs]
    if cut is not None:
        runs = cut.apply(runs, common.column, common.clock.read_column)
    sensors = runs[0].sensors
    for sensor in sensors:
        top.call(sensor.check, formulation)
    state0 = model.state0 or formulation.multibody.reference_state()
    parameters = read_parameters(top, Experiment(formulation, state0, sensors))
    _reject_rest(top)
    check_start_is_observable(top, formulation, sensors, parameters)
    return Case(
        title,
        text,
        formulation,
        runs,
        parameters,
        start_of_runs(top, formulation, runs, parameters, model.state0),
        options,
        intervals,
        outputs,
        _distinct(*data.files, *inputs.files, model.file),
    )


def read_run_case(
    path: str | os.PathLike[str], changes: Mapping[str, Mapping[str, Any]] | None = None
) -> RunCase:
    """Read the simulation that a case describes; its sensors and parameters are not used.

    A model file is a case with this model alone, from its reference configuration.

    **Arguments** and **errors:** as of `read_case`. Inputs have the samples of the first run.
    """
    path = pathlib.Path(path)
    top, title, text = open_case(path, changes)
    for key in ("sensor", "parameter", "intervals", "output"):
        top.values.pop(key, None)
    common, _ = read_common(top, path.parent)
    inputs = read_inputs(top, path.parent, common)
    model = read_model(top, inputs, path.parent)
    formulation, values = inputs.bind(top, model.formulation)
    settings = {k: v for k, v in read_method(top).items() if k in SETTINGS} | read_run(top)
    _reject_rest(top)
    state0 = model.state0 or formulation.multibody.reference_state()
    files = _distinct(str(path), *inputs.files, model.file)
    return RunCase(title, text, formulation, state0, settings, values, files)


def open_case(
    path: pathlib.Path, changes: Mapping[str, Mapping[str, Any]] | None
) -> tuple[CaseTable, str, str]:
    """Return the tables of a case with the given changes, its title and its text.

    **Errors:** as of `read_case`.
    """
    import_installed_plugins()
    if path.is_file() and is_model_file(str(path)):
        text = f"[model]\nfile = '{path.name}'\n"
        content: dict[str, Any] = {"model": path.name, "run": {"t1": 1.0}}
    else:
        content, text = read_toml(path)
    if isinstance(content.get("model"), str):
        content["model"] = {"file": content["model"]}
    changed = {key: {**content.get(key, {}), **new} for key, new in (changes or {}).items()}
    top = top_table(path, content | changed, _TABLES)
    return top, top.text("title", path.stem), text


def _reject_rest(top: CaseTable) -> None:
    for key in top.values:
        top.fail(f"[{key}] is not used by this kind of model; remove it.")


def _distinct(*files: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file for file in files if file is not None))
