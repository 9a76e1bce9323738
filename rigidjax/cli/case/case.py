"""Reading of a complete case file."""

import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from pydantic import Field

from ...formulations import AbstractFormulation
from ...identification import Experiment, Measurements, Parameter
from ...signals.inputs import Input, with_inputs
from ...signals.signal import Signal
from ...state import State
from ..base.plugins import import_installed_plugins
from .data import DataTable, Reader, SensorTable, read_data
from .inputs import InputEntry, Inputs, read_inputs
from .model import CaseModel, ModelTables, is_model_file, read_model
from .parameters import ParameterTable, read_parameters
from .schema import Text, parse, read_toml
from .settings import IntervalMethods, MethodTable, Outputs, RunTable
from .start import check_start_is_observable, start_of_runs


class CaseFile(ModelTables):
    """A whole case file."""

    title: Text
    data: DataTable = Field(default_factory=DataTable)
    input: list[InputEntry] = []
    inputs: dict[str, InputEntry] = {}
    sensor: list[SensorTable] = []
    parameter: list[ParameterTable] = []
    method: MethodTable = Field(default_factory=MethodTable)
    intervals: IntervalMethods = Field(default_factory=IntervalMethods)
    run: RunTable = Field(default_factory=RunTable)
    output: Outputs = Field(default_factory=Outputs)


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


class ExportCase(NamedTuple):
    """Title of a case, its model, other arguments of `rj.export`, and the files that it names."""

    title: str
    model: AbstractFormulation
    arguments: dict[str, Any]
    files: tuple[str, ...]


def read_case(
    path: str | os.PathLike[str], changes: Mapping[str, Mapping[str, Any]] | None = None
) -> Case:
    """Read a case from a TOML file; nothing in it is executed.

    **Arguments:** `path`, of a TOML file; `changes`, values that replace those of the file, by name
    of the table.
    **Errors:** `ValueError` that names the file and the table or line; `OSError` for files that
    cannot be read.
    """
    top, text, reader, inputs, model = _open(pathlib.Path(path), changes)
    formulation = with_inputs(*inputs.bind(top, model.formulation))
    runs, data_files = read_data(top, top.sensor, reader)
    runs = reader.cut([inputs.attach(top, run) for run in runs])
    sensors = runs[0].sensors
    for sensor in sensors:
        top.call(sensor.check, formulation)
    state0 = model.state0 or formulation.multibody.reference_state()
    parameters = read_parameters(top, top.parameter, Experiment(formulation, state0, sensors))
    check_start_is_observable(top, formulation, sensors, parameters)
    return Case(
        top.title,
        text,
        formulation,
        runs,
        parameters,
        start_of_runs(top, formulation, runs, parameters, model.state0),
        top.method.given_values(),
        top.intervals,
        top.output,
        _distinct(*data_files, *inputs.files, model.file),
    )


def read_run_case(
    path: str | os.PathLike[str], changes: Mapping[str, Mapping[str, Any]] | None = None
) -> RunCase:
    """Read the simulation that a case describes; its sensors and parameters are not used.

    A model file is a case with this model alone, from its reference configuration.

    **Arguments** and **errors:** as of `read_case`. Inputs have the samples of the first run.
    """
    left_out = ("sensor", "parameter", "intervals", "output")
    top, text, _, inputs, model = _open(pathlib.Path(path), changes, left_out)
    formulation, values = inputs.bind(top, model.formulation)
    settings = top.method.run_settings() | top.run.given_values()
    state0 = model.state0 or formulation.multibody.reference_state()
    files = _distinct(str(path), *inputs.files, model.file)
    return RunCase(top.title, text, formulation, state0, settings, values, files)


def read_export_case(path: str | os.PathLike[str]) -> ExportCase:
    """Read the model, inputs, sensors and parameters of a case, or a model file.

    Sensors need no data. Numbers in `[inputs]` are defaults; tables of samples are not used.

    **Errors:** as of `read_case`.
    """
    top, _, _, inputs, model = _open(pathlib.Path(path), None, ("intervals", "output"))
    formulation, values = inputs.bind(top, model.formulation)
    formulation = _with_defaults(formulation, values)
    settings = top.method.run_settings() | top.run.given_values()
    sensors = [table.sensor() for table in top.sensor]
    for sensor in sensors:
        top.call(sensor.check, formulation)
    state0 = model.state0 or formulation.multibody.reference_state()
    parameters = ()
    if top.parameter:
        experiment = Experiment(formulation, state0, tuple(sensors))
        parameters = read_parameters(top, top.parameter, experiment)
    arguments = {k: v for k, v in settings.items() if k not in ("t1", "samples")}
    arguments |= {"state0": state0, "outputs": sensors, "parameters": parameters}
    files = _distinct(str(path), *inputs.files, model.file)
    return ExportCase(top.title, formulation, arguments, files)


class _Opened(NamedTuple):
    """A case file, its text, the reader of its data, its inputs and its model."""

    top: CaseFile
    text: str
    reader: Reader
    inputs: Inputs
    model: CaseModel


def _open(
    path: pathlib.Path,
    changes: Mapping[str, Mapping[str, Any]] | None,
    left_out: tuple[str, ...] = (),
) -> _Opened:
    """Return the parts that all commands use, without the tables `left_out`."""
    import_installed_plugins()
    if path.is_file() and is_model_file(str(path)):
        text = f"[model]\nfile = '{path.name}'\n"
        content: dict[str, Any] = {"model": {"file": path.name}, "run": {"t1": 1.0}}
    else:
        content, text = read_toml(path)
    content = {"title": path.stem} | content
    for key, new in (changes or {}).items():
        if isinstance(content.setdefault(key, {}), dict):
            content[key] = {**content[key], **new}
    named = content.get("inputs")
    if isinstance(named, dict):
        tables = {k: v if isinstance(v, dict) else {"value": v} for k, v in named.items()}
        content["inputs"] = tables
    content = {key: value for key, value in content.items() if key not in left_out}
    top = parse(CaseFile, content, str(path), path.parent)
    reader = Reader(top.data)
    inputs = read_inputs(top.input, top.inputs, reader)
    return _Opened(top, text, reader, inputs, read_model(top, inputs, path.parent))


def _with_defaults(model: AbstractFormulation, values: dict[str, Any]) -> AbstractFormulation:
    """Return the model with numbers as the defaults of its inputs."""

    def replace(leaf: Any) -> Any:
        value = values.get(leaf.name) if isinstance(leaf, Input) else None
        if value is None or isinstance(value, Signal):
            return leaf
        return leaf.replace(default=jnp.asarray(value, float))

    return jax.tree.map(replace, model, is_leaf=lambda x: isinstance(x, Input))


def _distinct(*files: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file for file in files if file is not None))
