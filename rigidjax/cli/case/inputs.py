"""Inputs of the model of a case: `[inputs]` and `[[input]]`, bound to names in its laws."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, get_args

import equinox as eqx
import jax
import numpy as np

from ...checks import common_dtype, did_you_mean
from ...identification import Measurements
from ...identification.data.units import factor
from ...identification.experiment.inputs import check_inputs
from ...signals.fourier import FourierSeries
from ...signals.inputs import Input, check_value, inputs_of
from ...signals.signal import Extrapolation, Interpolation, Signal
from ..base import choices
from ..base.choices import takes_function
from .data import ReadColumns, Reader, SourceTable
from .schema import CaseTable, Integer, Numbers, PartTable, Text, Texts, check_keys, one_of, parse


class InputEntry(SourceTable):
    """`[[input]]`, or an entry of `[inputs]`: a value, a Fourier series, or columns of samples."""

    name: Text | None = None
    type: Annotated[str, one_of(("signal", "fourier"))] = "signal"
    value: Numbers = None
    columns: Texts = ()
    unit: Text = ""
    interpolation: Annotated[str, one_of(get_args(Interpolation))] = "linear"
    extrapolation: Annotated[str, one_of(get_args(Extrapolation))] = "error"
    gain: Numbers = None
    delay: Numbers = None
    bias: Numbers = None


class NamedInputTable(CaseTable):
    """`{ input = "u" }`, an `rj.Input` as the law of a joint or a force."""

    input: Text
    size: Integer | None = None
    default: Numbers = None
    entry: Integer | None = None


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

    def build(self, table: PartTable, kind: Any) -> Any:
        """Build a joint or a force; arguments that may be functions may name inputs as laws."""
        parameters = inspect.signature(kind).parameters
        laws = self.laws_of(table, *(n for n in parameters if takes_function(parameters[n])))
        return table.build(kind, **laws)

    def laws_of(self, table: PartTable, *keys: str) -> dict[str, Any]:
        """Return the laws of those of the keys that name inputs.

        `"u"` stands for the law of an input, `{ input = "u" }` for an `rj.Input` of this name.
        """
        laws = {}
        for key in keys:
            value = table.arguments.get(key)
            if isinstance(value, dict) and "type" not in value:
                part = parse(NamedInputTable, value, f"{table.where}, [{key}]")
                law = part.call(Input, part.input, part.size, part.default)
                self.uses.setdefault(part.input, table)
                laws[key] = law if part.entry is None else part.call(law.__getitem__, part.entry)
            elif isinstance(value, str):
                laws[key] = self._law(table, key, value)
        return laws

    def _law(self, table: PartTable, key: str, name: str) -> Any:
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


def read_inputs(
    tables: Sequence[InputEntry], named: Mapping[str, InputEntry], reader: Reader
) -> Inputs:
    """Read the inputs of a case.

    **Arguments:** `tables`, [[input]]; `named`, [inputs]; `reader` of samples.
    **Errors:** `ValueError` naming the table, or file and line; `OSError` for a missing file.
    """
    laws, samples, files, places = {}, {}, [], {}
    pairs = [(table.name, table) for table in tables] + list(named.items())
    for name, table in pairs:
        if name is None:
            table.fail("`name` is missing, a text.")
        if name in laws:
            table.fail(f"there are two inputs called {name!r}.")
        places[name] = table
        keys = [*table.given_values("name", "type"), *table.arguments]
        if table.value is not None:
            table.call(check_keys, keys, ("value",))
            laws[name] = table.call(np.asarray, table.value, float)
        elif table.type == "fourier":
            table.call(check_keys, keys, inspect.signature(FourierSeries).parameters)
            laws[name] = table.build(FourierSeries)
        else:
            table.call(check_keys, keys, InputEntry.model_fields)
            samples[name], file = _samples(table, reader)
            files.append(file)
            first = next(iter(samples[name].values()))
            options = table.given_values(
                "name", "type", "columns", "unit", *SourceTable.model_fields
            )
            laws[name] = table.call(Signal, *first, name=name, **options)
    return Inputs(laws, samples, tuple(dict.fromkeys(files)), places, {})


def _samples(
    table: InputEntry, reader: Reader
) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], str]:
    """Read times and values of every run; return also their file."""
    if not table.columns:
        table.fail("`columns` must name at least one column.")
    scale = table.call(factor, table.unit)
    samples = {}
    runs, file = reader.series(table, ReadColumns(len(table.columns)), table.columns)
    for run in runs:
        valid = np.asarray(run.mask[0]).all(axis=1)
        samples[run.name] = np.asarray(run.ts)[valid], scale * np.asarray(run.values[0])[valid]
    return samples, file
