"""Inputs of the model of a case: `[inputs]` and `[[input]]`, bound to names in its laws."""

import inspect
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

import equinox as eqx
import jax
import numpy as np

from ...checks import common_dtype, did_you_mean
from ...identification import Measurements
from ...identification.data.inputs import check_inputs
from ...identification.data.units import factor
from ...signals.fourier import FourierSeries
from ...signals.inputs import Input, check_value, inputs_of
from ...signals.signal import Extrapolation, Interpolation, Signal
from .. import choices
from ..kinds import takes_function
from .data import ReadColumns, Source, read_series
from .table import CaseTable, array_of_tables


class Inputs(NamedTuple):
    """Inputs of a case.

    **Attributes:** `laws` by name, with the samples of the first run; `tables`, samples of all runs
    by name of the input and of the run; `files`; `places`, the table of each input, for messages;
    `uses`, the table that names an input, by name, as the case is read.
    """

    laws: dict[str, Any]
    tables: dict[str, dict[str, tuple[Any, Any]]]
    files: tuple[str, ...]
    places: dict[str, CaseTable]
    uses: dict[str, CaseTable]

    def build(self, table: CaseTable, kind: Any) -> Any:
        """Build a joint or a force; arguments that may be functions may name inputs as laws."""
        parameters = inspect.signature(kind).parameters
        laws = self.put(table, *(name for name in parameters if takes_function(parameters[name])))
        return table.build(kind, **laws)

    def put(self, table: CaseTable, *keys: str) -> dict[str, Any]:
        """Remove those of the keys that name inputs from a table; return the laws by key.

        `"u"` stands for the law of an input, `{ input = "u" }` for an `rj.Input` of this name.
        """
        laws = {}
        for key in keys:
            value = table.values.get(key)
            if isinstance(value, dict) and "type" not in value:
                laws[key] = self._named_input(table, key)
            elif isinstance(value, str):
                laws[key] = self._law(table, key)
        return laws

    def _named_input(self, table: CaseTable, key: str) -> Input:
        part = table.table(key)
        name, size = part.text("input"), part.take("size", "an integer", None)
        default, entry = part.numbers("default", None), part.take("entry", "an integer", None)
        part.reject_unknown()
        law = part.call(Input, name, size, default)
        self.uses.setdefault(name, table)
        return law if entry is None else part.call(law.__getitem__, entry)

    def _law(self, table: CaseTable, key: str) -> Any:
        name = table.text(key)
        if not self.laws:
            table.fail(
                f"`{key} = {name!r}` must be the name of an [[input]], and there is none. "
                "Other laws are functions; write such a case in Python."
            )
        law = self.laws[table.call(choices.pick, f"`{key}`", name, self.laws)]
        self.uses.setdefault(name, table)
        if isinstance(law, Signal) and law.values.shape[1:] not in ((), (3,)):
            count = law.values.shape[1]
            self.places[name].fail(
                f"`columns` must be one, or three of a vector; got {count}. One of them is the law "
                f'`{key} = {{ input = "{name}", size = {count}, entry = 0 }}`.'
            )
        return law

    def bind(self, top: CaseTable, model: Any) -> tuple[Any, dict[str, Any]]:
        """Return the model, with Fourier series as laws, and values and signals of its inputs.

        **Errors:** `ValueError` for an input that no law of the model names, for one that has
        neither a value nor a default, and for another shape than that of the law.
        """
        for name, place in self.places.items():
            if name not in self.uses:
                place.fail(
                    f"no law of the model names the input {name!r}, as in "
                    f'`torque = {{ input = "{name}" }}`.' + did_you_mean(name, self.uses)
                )
        known, values, dtype = top.call(inputs_of, model), {}, common_dtype(model)
        for name, target in known.items():
            law = self.laws.get(name)
            if law is None and target.default is None:
                self.uses[name].fail(
                    f"the input {name!r} has neither a value nor a default. Give it one in "
                    f"[inputs], `{name} = 0.0`, or here, "
                    f'`{{ input = "{name}", default = 0.0 }}`.'
                )
            elif isinstance(law, FourierSeries) and law.offset.shape != target.shape:
                self.places[name].fail(
                    f"the series has the shape {law.offset.shape}, but the input {name!r} of the "
                    f"model has the shape {target.shape}."
                )
            elif law is not None and not isinstance(law, FourierSeries):
                check = self.places[name].call
                values[name] = check(check_value, law, target, "inputs", dtype)

        def replace(leaf):
            law = self.laws.get(leaf.name) if isinstance(leaf, Input) else None
            if not isinstance(law, FourierSeries):
                return leaf
            k = leaf.entry
            if k is None:
                return law
            return FourierSeries(law.frequency, law.sine[:, k], law.cosine[:, k], law.offset[k])

        return jax.tree.map(replace, model, is_leaf=lambda x: isinstance(x, Input)), values

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
    laws, tables, files, places = {}, {}, [], {}
    for name, table in _input_tables(top):
        if name in laws:
            table.fail(f"there are two inputs called {name!r}.")
        places[name] = table
        kind = table.pick("type", {"signal": False, "fourier": True}, "signal")
        if table.has("value"):
            laws[name] = table.call(np.asarray, table.numbers("value"), float)
            table.reject_unknown()
        elif kind:
            laws[name] = table.build(FourierSeries)
        else:
            tables[name], file = _samples(table, folder, common)
            files.append(file)
            laws[name] = _signal(table, name, next(iter(tables[name].values())))
    return Inputs(laws, tables, tuple(dict.fromkeys(files)), places, {})


def _input_tables(top: CaseTable) -> Iterator[tuple[str, CaseTable]]:
    """Yield names and tables of inputs: of every [[input]], and of every key of [inputs]."""
    for table in array_of_tables(top, "input"):
        yield table.text("name"), table
    values = top.table("inputs", {})
    for name, value in values.values.items():
        fields = value if isinstance(value, dict) else {"value": value}
        yield name, CaseTable(fields, f"{values.where}, {name!r}")


def _samples(
    table: CaseTable, folder: pathlib.Path, common: Source
) -> tuple[dict[str, tuple[Any, Any]], str]:
    """Read times and values of every run; return also their file."""
    columns = table.texts("columns")
    if not columns:
        table.fail("`columns` must name at least one column.")
    scale = table.call(factor, table.text("unit", ""))
    samples: dict[str, tuple[Any, Any]] = {}
    runs, file = read_series(table, folder, common, ReadColumns(len(columns)), columns)
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
