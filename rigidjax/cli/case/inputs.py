"""Inputs of the model of a case: `[[input]]`, from columns of the data or as a Fourier series."""

import inspect
import pathlib
from typing import Any, ClassVar, NamedTuple, get_args

import equinox as eqx
import numpy as np

from ...identification import Measurements
from ...identification.data.inputs import check_inputs
from ...identification.data.units import factor
from ...sensors.base import AbstractReading
from ...signals.fourier import FourierSeries
from ...signals.signal import Extrapolation, Interpolation, Signal
from .. import choices
from ..kinds import takes_function
from .data import Source, read_series
from .table import CaseTable, array_of_tables


class Inputs(NamedTuple):
    """Inputs of a case.

    **Attributes:** `laws` by name, with the samples of the first run; `tables`, samples of all runs
    by name of the input and of the run; `files`.
    """

    laws: dict[str, Any]
    tables: dict[str, dict[str, tuple[Any, Any]]]
    files: tuple[str, ...]

    def build(self, table: CaseTable, kind: Any) -> Any:
        """Build a joint or a force; arguments that may be functions may name inputs as laws."""
        parameters = inspect.signature(kind).parameters
        laws = self.put(table, *(name for name in parameters if takes_function(parameters[name])))
        return table.build(kind, **laws)

    def put(self, table: CaseTable, *keys: str) -> dict[str, Any]:
        """Remove those of the keys that name inputs from a table; return the laws by key."""
        laws = {}
        for key in keys:
            if isinstance(table.values.get(key), str):
                name = table.text(key)
                if not self.laws:
                    table.fail(
                        f"`{key} = {name!r}` must be the name of an [[input]], and there is none. "
                        "Other laws are functions; write such a case in Python."
                    )
                laws[key] = self.laws[table.call(choices.pick, f"`{key}`", name, self.laws)]
        return laws

    def attach(self, top: CaseTable, run: Measurements) -> Measurements:
        """Return a run with its samples of the inputs."""
        samples = {}
        for name, tables in self.tables.items():
            if run.name not in tables:
                top.fail(
                    f"[[input]] {name!r} has no run {run.name!r}, which the sensors have; it has "
                    f"{', '.join(map(repr, tables))}."
                )
            samples[name] = tables[run.name]
        inputs = top.call(check_inputs, samples)
        return eqx.tree_at(lambda m: m.inputs, run, inputs, is_leaf=lambda x: x is run.inputs)


def read_inputs(top: CaseTable, folder: pathlib.Path, common: Source) -> Inputs:
    """Read the inputs of a case.

    **Arguments:** `folder`, to which file names are relative; `common`, the default source of
    samples.
    **Errors:** `ValueError` naming the table, or file and line; `OSError` for a missing file.
    """
    laws, tables, files = {}, {}, []
    for table in array_of_tables(top, "input"):
        name = table.text("name")
        if name in laws:
            table.fail(f"there are two inputs called {name!r}.")
        if table.pick("type", {"signal": False, "fourier": True}, "signal"):
            laws[name] = table.build(FourierSeries)
            continue
        tables[name], file = _samples(table, folder, common)
        files.append(file)
        laws[name] = _signal(table, name, next(iter(tables[name].values())))
    return Inputs(laws, tables, tuple(dict.fromkeys(files)))


def _samples(
    table: CaseTable, folder: pathlib.Path, common: Source
) -> tuple[dict[str, tuple[Any, Any]], str]:
    """Read times and values of every run; return also their file."""
    columns = table.texts("columns")
    if len(columns) not in (1, 3):
        table.fail(f"`columns` must be one, or three of a vector; got {list(columns)}.")
    scale = table.call(factor, table.text("unit", ""))
    samples: dict[str, tuple[Any, Any]] = {}
    runs, file = read_series(table, folder, common, _Columns(len(columns)), columns)
    for run in runs:
        valid = np.asarray(run.mask[0]).all(axis=1)
        samples[run.name] = np.asarray(run.ts)[valid], scale * np.asarray(run.values[0])[valid]
    return samples, file


def _signal(table: CaseTable, name: str, first: tuple[Any, Any]) -> Signal:
    options: dict[str, Any] = {}
    for key, kind, default in (
        ("interpolation", Interpolation, "linear"),
        ("extrapolation", Extrapolation, "error"),
    ):
        options[key] = table.pick(key, {k: k for k in get_args(kind)}, default)
    for key in ("gain", "delay", "bias"):
        if table.has(key):
            options[key] = table.numbers(key)
    table.reject_unknown()
    return table.call(Signal, *first, name=name, **options)


class _Columns(AbstractReading):
    """A scalar or a vector that is read from columns like a sensor."""

    count: int = eqx.field(static=True)
    unit: ClassVar[str] = "1"

    def __init__(self, count: int):
        self.count = count

    @property
    def channels(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return ("x", "y", "z")[: self.count]

    @property
    def value_shape(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return () if self.count == 1 else (self.count,)

    @property
    def name(self) -> str:
        return "input"

    def check(self, model: Any) -> None:
        return None

    def predict(self, model: Any, t: Any, y: Any) -> Any:
        raise NotImplementedError("an input is given, not measured")
