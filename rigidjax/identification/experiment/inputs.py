"""Measured inputs of runs: tables for the signals and inputs of a model, one per run."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...signals.inputs import inputs_of, with_inputs
from ...signals.shared_tables import number_tables
from ...signals.signal import Signal, signals_of, with_signals

if TYPE_CHECKING:
    from .parameters import Experiment, Parameter

# Relative margin beyond a run within which a table leaves no room for a delay.
_ROOM = 1e-9


class InputTable(eqx.Module):
    """Table of a `Signal` for one run, padded by infinite times if other runs have longer tables.

    `ts` (K,) s, `values` (K, *shape), `slopes` of a spline.
    """

    ts: Array
    values: Array
    slopes: Array | None


def check_inputs(inputs: Mapping[str, Any] | None) -> dict[str, tuple[Array, Array]]:
    """Return times and values by the names of signals and inputs.

    **Errors:** `TypeError` and `ValueError` for other inputs.
    """
    checked = {}
    for name, pair in dict(inputs or {}).items():
        if not isinstance(name, str) or not name:
            raise TypeError(
                "The keys of `Measurements(inputs=...)` are names of signals or inputs; got "
                f"{name!r}."
            )
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(
                f"`Measurements(inputs=...)` takes a pair (ts, values) for {name!r}; got "
                f"{type(pair).__name__}."
            )
        try:
            signal = Signal(*pair)
        except ValueError as error:
            raise ValueError(f"`Measurements(inputs=...)`, {name!r}: {error}") from error
        checked[name] = signal.ts, signal.values
    return checked


def bind_measured(model: Any, inputs: Mapping[str, tuple[Array, Array]]) -> Any:
    """Return the model with a linear signal of the same name for every measured `rj.Input`.

    **Arguments:** `inputs`, of the first run; those of signals of the model have no effect here.
    **Errors:** `ValueError` for values of another shape than that of the input, and for an input
    that is neither measured nor has a default.
    """
    known = inputs_of(model)
    if not known:
        return model
    signals = {}
    for name, target in known.items():
        if name in inputs:
            signals[name] = Signal(*inputs[name], name=name)
            _check_shape(name, signals[name].values, target.shape)
        elif target.default is None:
            raise ValueError(
                f"`Measurements(inputs=...)` has no values of the input {name!r}, which has no "
                f"default. Add `{{{name!r}: (ts, values)}}`, or give `Input(default=...)`."
            )
    return number_tables(with_inputs(model, signals))


def make_tables(model: Any, inputs: Sequence[dict[str, Any]]) -> dict[str, InputTable]:
    """Return the inputs of all runs, with a leading run axis.

    **Errors:** `ValueError` for runs with different inputs, for a name that no signal of the model
    has, and values of another shape.
    """
    names = list(inputs[0])
    if any(set(run_inputs) != set(names) for run_inputs in inputs):
        raise ValueError(
            "All runs must have the same `Measurements(inputs=...)`; got "
            f"{' and '.join(sorted({str(sorted(run_inputs)) for run_inputs in inputs}))}."
        )
    return {
        name: _stack_tables(_find_signal(model, name), [run_inputs[name] for run_inputs in inputs])
        for name in names
    }


def _find_signal(model: Any, name: str) -> Signal:
    signals = signals_of(model)
    matches = [signal for signal in signals if signal.name == name]
    if not matches:
        known = sorted({*inputs_of(model), *(signal.name for signal in signals if signal.name)})
        raise ValueError(
            f"`Measurements(inputs=...)` names {name!r}, but no `Signal` or `Input` of the model "
            f"has this name; there are {known}. Give it one: `rj.Signal(..., name={name!r})`."
        )
    if len({(s.interpolation, s.shape_of_table) for s in matches}) > 1:
        raise ValueError(
            f"The signals called {name!r} must be alike, in interpolation and shape of values, to "
            "have one input."
        )
    return matches[0]


def pad_rows(array: Any, length: int, mode: Any = "edge", **options: Any) -> np.ndarray:
    """Pad an array to `length` rows, as `numpy.pad` does."""
    array = np.asarray(array)
    width = [(0, length - len(array))] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, width, mode, **options)


def _stack_tables(signal: Signal, pairs: Sequence[tuple[Array, Array]]) -> InputTable:
    length, tables = max(len(ts) for ts, _ in pairs), []
    for ts, values in pairs:
        _check_shape(signal.name, values, signal.shape_of_table)
        run_signal = Signal(ts, values, signal.interpolation)
        tables.append(
            (
                pad_rows(run_signal.ts, length, "constant", constant_values=np.inf),
                pad_rows(run_signal.values, length),
                None if run_signal.slopes is None else pad_rows(run_signal.slopes, length),
            )
        )
    dtype = signal.values.dtype
    ts, values, slopes = zip(*tables, strict=True)
    slopes = None if slopes[0] is None else jnp.asarray(np.stack(slopes), dtype)
    return InputTable(
        jnp.asarray(np.stack(ts), dtype), jnp.asarray(np.stack(values), dtype), slopes
    )


def _check_shape(name: str, values: Array, shape: tuple[int, ...]) -> None:
    """Raise `ValueError` unless a table has samples of this shape."""
    if values.shape[1:] != shape:
        expected = ", ".join(["K", *map(str, shape)])
        raise ValueError(
            f"`Measurements(inputs=...)`: values of {name!r} must have shape ({expected}), as in "
            f"the model; got {values.shape}."
        )


def insert_tables(model: Any, tables: Mapping[str, InputTable]) -> Any:
    """Return the model with the tables of one run in its signals of these names."""
    if not tables:
        return model

    def replace_table(signal: Signal):
        table = tables.get(signal.name)
        if table is None:
            return signal
        values, slopes = table.values, table.slopes
        if signal.entry is not None:
            k, _ = signal.entry
            values, slopes = values[:, k], None if slopes is None else slopes[:, k]
        return signal.replace(ts=table.ts, values=values, slopes=slopes)

    return with_signals(model, replace_table)


def check_coverage(
    experiments: Sequence["Experiment"],
    parameters: Sequence["Parameter"],
    spans: Sequence[tuple[float, float]],
    names: Sequence[str],
) -> None:
    """Raise `ValueError` for a run that leaves the table of a signal, at once or in the fit.

    **Arguments:** `experiments`, one per run, with their tables; `spans`, first and last time of
    the runs, s; `names` of the runs.
    """
    if not signals_of(experiments[0].model):
        return
    counter = itertools.count()
    marked = jax.tree.map(lambda _: next(counter), experiments[0])
    fitted = {where(marked) for p in parameters for where in (p.where, *p.tied)}
    marks = signals_of(marked.model)
    for experiment, (begin, end), run in zip(experiments, spans, names, strict=True):
        for signal, mark in zip(signals_of(experiment.model), marks, strict=True):
            signal.check_reach(f"The run {run}", begin, end)
            first, last = (float(t) for t in signal.span())
            room = min(begin - first, last - end)
            moves = mark.delay is not None and mark.delay in fitted
            if moves and signal.extrapolation == "error" and room <= _ROOM * (end - begin):
                raise ValueError(
                    f"The delay of {signal.label} is fitted, but its table begins or ends with the "
                    f"run {run}: any delay leads beyond it. Give the table more samples, or "
                    '`extrapolation="constant"` or `"zero"`.'
                )
