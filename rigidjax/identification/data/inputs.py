"""Measured inputs of runs: tables of their own for the signals of a model."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...signals.signal import Signal, signals_of, with_signals

if TYPE_CHECKING:
    from ..parameters import Experiment, Parameter

# A table that ends where a run does, relative to its length, has no room for a delay.
_ROOM = 1e-9


class InputTable(eqx.Module):
    """What a run has of a `Signal` for itself; padded by infinite times if there are runs beside.

    `ts` (K,) s, `values` (K, *shape), `slopes` of a spline.
    """

    ts: Array
    values: Array
    slopes: Array | None


def check_inputs(inputs: Mapping[str, Any] | None) -> dict[str, tuple[Array, Array]]:
    """Times and values by the names of signals. **Errors:** `TypeError`, `ValueError`."""
    found = {}
    for name, pair in dict(inputs or {}).items():
        if not isinstance(name, str) or not name:
            raise TypeError(
                f"The keys of `Measurements(inputs=...)` are names of signals; got {name!r}."
            )
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(
                f"`Measurements(inputs=...)` takes a pair (ts, values) for the signal {name!r}; "
                f"got {type(pair).__name__}."
            )
        try:
            signal = Signal(*pair)
        except ValueError as error:
            raise ValueError(f"`Measurements(inputs=...)`, {name!r}: {error}") from error
        found[name] = signal.ts, signal.values
    return found


def make_tables(model: Any, inputs: Sequence[dict[str, Any]]) -> dict[str, InputTable]:
    """The inputs of all runs side by side, with the runs in front of every array.

    **Errors:** `ValueError` for runs with other inputs than the first one, for a name that no
    signal of the model has, and values of another shape.
    """
    names = list(inputs[0])
    if any(set(one) != set(names) for one in inputs):
        raise ValueError(
            "All runs must have the same `Measurements(inputs=...)`; got "
            f"{' and '.join(sorted({str(sorted(one)) for one in inputs}))}."
        )
    return {
        name: _stack_tables(_find_signal(model, name), [one[name] for one in inputs])
        for name in names
    }


def _find_signal(model, name):
    signals = signals_of(model)
    found = [signal for signal in signals if signal.name == name]
    if not found:
        known = sorted({signal.name for signal in signals if signal.name})
        raise ValueError(
            f"`Measurements(inputs=...)` names {name!r}, but no `Signal` of the model has this "
            f"name; there are {known}. Give it one: `rj.Signal(..., name={name!r})`."
        )
    if len({(s.interpolation, s.values.shape[1:]) for s in found}) > 1:
        raise ValueError(
            f"The signals called {name!r} must be alike, in interpolation and shape of values, to "
            "have one input."
        )
    return found[0]


def pad_rows(array: Any, length: int, mode: Any = "edge", **options: Any) -> np.ndarray:
    """An array with so many rows, the further ones as `numpy.pad` makes them."""
    array = np.asarray(array)
    width = [(0, length - len(array))] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, width, mode, **options)


def _stack_tables(signal, pairs):
    length, tables = max(len(ts) for ts, _ in pairs), []
    for ts, values in pairs:
        if values.shape[1:] != signal.values.shape[1:]:
            raise ValueError(
                f"`Measurements(inputs=...)`: values of {signal.name!r} must have shape "
                f"{('K', *signal.values.shape[1:])}, as in the model; got {values.shape}."
            )
        own = Signal(ts, values, signal.interpolation)
        tables.append(
            (
                pad_rows(own.ts, length, "constant", constant_values=np.inf),
                pad_rows(own.values, length),
                None if own.slopes is None else pad_rows(own.slopes, length),
            )
        )
    dtype = signal.values.dtype
    ts, values, slopes = zip(*tables, strict=True)
    slopes = None if slopes[0] is None else jnp.asarray(np.stack(slopes), dtype)
    return InputTable(
        jnp.asarray(np.stack(ts), dtype), jnp.asarray(np.stack(values), dtype), slopes
    )


def insert_tables(model: Any, tables: Mapping[str, InputTable]) -> Any:
    """The model with the tables of one run in its signals of these names."""
    if not tables:
        return model

    def replaced(signal: Signal):
        table = tables.get(signal.name)
        if table is None:
            return signal
        return eqx.tree_at(
            lambda s: (s.ts, s.values, s.slopes),
            signal,
            (table.ts, table.values, table.slopes),
            is_leaf=lambda leaf: leaf is None,
        )

    return with_signals(model, replaced)


def check_coverage(
    experiments: Sequence["Experiment"],
    parameters: Sequence["Parameter"],
    spans: Sequence[tuple[float, float]],
    names: Sequence[str],
) -> None:
    """Raise `ValueError` for a run that leaves the table of a signal, at once or in the fit.

    **Arguments:** an experiment for each run, with its own tables; `spans`, first and last time of
    the runs, s; `names` of the runs.
    """
    if not signals_of(experiments[0].model):
        return
    numbers = itertools.count()
    marked = jax.tree.map(lambda _: next(numbers), experiments[0])
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
