"""What drives the model of a case: `[[input]]`, from columns of the data or as a Fourier series."""

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
from .data import Source, read_series
from .table import Table, array_of_tables

# Keys of a force, a joint or a body with a fixed point that take the name of an input.
_LAWS = ("moment", "torque", "force", "motion")


class Inputs(NamedTuple):
    """Laws by name, with the tables of the first run in them; tables of all runs by name; files."""

    laws: dict[str, Any]
    tables: dict[str, dict[str, tuple[Any, Any]]]
    files: tuple[str, ...]

    def put(self, table: Table, kind: Any = None) -> dict[str, Any]:
        """Laws that a table names, by the key, for the arguments of `kind`; taken out of it."""
        known = _LAWS if kind is None else inspect.signature(kind).parameters
        found = {}
        for key in _LAWS:
            if key in known and isinstance(table.values.get(key), str):
                name = table.text(key)
                if not self.laws:
                    table.fail(
                        f"`{key} = {name!r}` is taken for the name of an [[input]], and there is "
                        "none. Laws of another kind are functions: write such a case in Python."
                    )
                found[key] = self.laws[table.checked(choices.pick, f"`{key}`", name, self.laws)]
        return found

    def into(self, top: Table, run: Measurements) -> Measurements:
        """A run with its own tables."""
        own = {}
        for name, tables in self.tables.items():
            if run.name not in tables:
                top.fail(
                    f"[[input]] {name!r} has no run {run.name!r}, which the sensors have; it has "
                    f"{', '.join(map(repr, tables))}."
                )
            own[name] = tables[run.name]
        inputs = top.checked(check_inputs, own)
        return eqx.tree_at(lambda m: m.inputs, run, inputs, is_leaf=lambda x: x is run.inputs)


def read_inputs(top: Table, folder: pathlib.Path, common: Source) -> Inputs:
    """The inputs of a case.

    **Arguments:** `folder`, to which file names are relative; `common`, where samples are if an
    input does not say so.
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
    table: Table, folder: pathlib.Path, common: Source
) -> tuple[dict[str, tuple[Any, Any]], str]:
    """Times and values of every run, and the file they are from."""
    columns = table.texts("columns")
    if len(columns) not in (1, 3):
        table.fail(f"`columns` must be one column, or three of a vector; got {list(columns)}.")
    scale = table.checked(factor, table.text("unit", ""))
    found: dict[str, tuple[Any, Any]] = {}
    runs, file = read_series(table, folder, common, _Columns(len(columns)), columns)
    for run in runs:
        there = np.asarray(run.mask[0]).all(axis=1)
        found[run.name] = np.asarray(run.ts)[there], scale * np.asarray(run.values[0])[there]
    return found, file


def _signal(table: Table, name: str, first: tuple[Any, Any]) -> Signal:
    options: dict[str, Any] = {}
    for key, kind, default in (
        ("interpolation", Interpolation, "linear"),
        ("extrapolation", Extrapolation, "error"),
    ):
        options[key] = table.pick(key, {k: k for k in get_args(kind)}, default)
    for key in ("gain", "delay", "bias"):
        if table.has(key):
            options[key] = table.numbers(key)
    table.done()
    return table.checked(Signal, *first, name=name, **options)


class _Columns(AbstractReading):
    """A number or a vector, to be read as those of sensors are."""

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
