"""Models of cases for export: arguments of `rj.export`."""

import os
import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...formulations import AbstractFormulation
from ...identification import Experiment
from ...signals.inputs import Input
from ...signals.signal import Signal
from .case import open_case
from .data import read_common, read_sensor
from .inputs import read_inputs
from .method import SETTINGS, read_method, read_run
from .model import read_model
from .parameters import read_parameters
from .table import array_of_tables


class ExportCase(NamedTuple):
    """Title of a case, its model, other arguments of `rj.export`, and the files that it names."""

    title: str
    model: AbstractFormulation
    arguments: dict[str, Any]
    files: tuple[str, ...]


def read_export_case(path: str | os.PathLike[str]) -> ExportCase:
    """Read the model, inputs, sensors and parameters of a case, or a model file.

    Sensors need no data. Numbers in `[inputs]` are defaults; tables of samples are not used.

    **Errors:** `ValueError` that names the file and the table; `OSError` for files that cannot be
    read.
    """
    path = pathlib.Path(path)
    top, title, _ = open_case(path, None)
    for key in ("intervals", "output"):
        top.values.pop(key, None)
    common, _ = read_common(top, path.parent)
    inputs = read_inputs(top, path.parent, common)
    model = read_model(top, inputs, path.parent)
    formulation, values = inputs.bind(top, model.formulation)
    formulation = _with_defaults(formulation, values)
    settings = {k: v for k, v in read_method(top).items() if k in SETTINGS} | read_run(top)
    sensors = [read_sensor(t, path.parent) for t in array_of_tables(top, "sensor")]
    for sensor in sensors:
        top.call(sensor.check, formulation)
    state0 = model.state0 or formulation.multibody.reference_state()
    parameters = ()
    if top.has("parameter"):
        parameters = read_parameters(top, Experiment(formulation, state0, tuple(sensors)))
    arguments = {k: v for k, v in settings.items() if k not in ("t1", "samples")}
    arguments |= {"state0": state0, "outputs": sensors, "parameters": parameters}
    files = str(path), *inputs.files, *([] if model.file is None else [model.file])
    return ExportCase(title, formulation, arguments, files)


def _with_defaults(model: AbstractFormulation, values: dict[str, Any]) -> AbstractFormulation:
    """Return the model with numbers as the defaults of its inputs."""

    def replace(leaf: Any) -> Any:
        value = values.get(leaf.name) if isinstance(leaf, Input) else None
        if value is None or isinstance(value, Signal):
            return leaf
        return leaf.replace(default=jnp.asarray(value, float))

    return jax.tree.map(replace, model, is_leaf=lambda x: isinstance(x, Input))
