"""Reading of a complete case file."""

import os
import pathlib
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...formulations import AbstractFormulation
from ...identification import Experiment, Measurements, Parameter
from ...state import State
from .data import read_common, read_data
from .inputs import read_inputs
from .method import Outputs, read_method, read_outputs
from .model import read_model
from .parameters import read_parameters
from .start import check_start_is_observable, start_of_runs
from .table import CaseTable

_TABLES = (
    "title",
    "model",
    "fixed_point_body",
    "body",
    "joint",
    "force",
    "frame",
    "state",
    "data",
    "input",
    "sensor",
    "parameter",
    "method",
    "output",
)


class Case(NamedTuple):
    """Arguments of `rj.identify`, with title and text of the case file.

    `files` are the files with the measurements.
    """

    title: str
    text: str
    model: AbstractFormulation
    measurements: list[Measurements]
    parameters: tuple[Parameter, ...]
    state0: State | list[State] | None
    options: dict[str, Any]
    outputs: Outputs
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
    if not path.is_file():
        raise FileNotFoundError(f"There is no case {path}.")
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}.") from error
    changed = {key: {**content[key], **values} for key, values in (changes or {}).items()}
    top = CaseTable(content | changed, str(path))
    top.requested |= set(_TABLES)
    top.reject_unknown()
    title = top.text("title", path.stem)
    common = read_common(top, path.parent)
    inputs = read_inputs(top, path.parent, common)
    model = read_model(top, inputs)
    options, outputs = read_method(top), read_outputs(top, path.parent)
    data = read_data(top, path.parent, common)
    runs = [inputs.attach(top, run) for run in data.runs]
    sensors = data.runs[0].sensors
    for sensor in sensors:
        top.call(sensor.check, model.formulation)
    state0 = model.state0 or model.formulation.multibody.reference_state()
    parameters = read_parameters(top, Experiment(model.formulation, state0, sensors))
    for key in top.values:
        top.fail(f"[{key}] is not used by this kind of model; remove it.")
    check_start_is_observable(top, model.formulation, sensors, parameters)
    return Case(
        title,
        text,
        model.formulation,
        runs,
        parameters,
        start_of_runs(top, model.formulation, data.runs, parameters, model.state0),
        options,
        outputs,
        tuple(dict.fromkeys((*data.files, *inputs.files))),
    )
