"""Measurements from named arrays, as files in binary formats hold them."""

import functools
import os
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Unpack

import numpy as np

from ...checks import did_you_mean
from .measurements import Measurements
from .reading import FileLayout, ReadOptions, make_layout, make_run, raise_gaps
from .time_stamps import LEAST_STAMP, detect_stamps, seconds_of_date

_ITEM = re.compile(r"(.+)\[(\d+)\]")


def read_arrays(
    path: str | os.PathLike[str],
    arrays: Mapping[str, np.ndarray],
    sensors: Mapping[Any, str | Sequence[str]],
    *,
    time: str,
    run: str | None = None,
    since: str = "",
    **options: Unpack[ReadOptions],
) -> list[Measurements]:
    """Return the runs of a file whose arrays are in memory.

    **Arguments:** `path`, for messages; `arrays` by name, (T,) or (T, n); `sensors`, for each
    sensor the name of one array with all its values, or a list of names, where `"q[2]"` is column 2
    of the array q; `time`, an array of times (T,), or a number, the time between samples; `since`,
    the date from which stamps are counted, 1970 if empty; the others as in `read_csv`.
    **Errors:** `ValueError` with the file and the array.
    """
    units = dict(options.get("units") or {})
    times, count = _read_times(path, arrays, time)
    names, stated = {}, {}
    for sensor, given in sensors.items():
        is_array = isinstance(given, str)
        names[sensor] = _expand_names(path, arrays, given) if is_array else list(given)
        if is_array and given in units:
            stated |= dict.fromkeys(names[sensor], units.pop(given))
    if count is None:
        first = next(iter(names.values()))[0]
        count = len(_find_column(path, arrays, first))
        times = times * np.arange(count)
    layout = make_layout(names, time, options | {"units": {**units, **stated}}, "read")
    times, zero = _count_from_zero(path, layout, times, units, options.get("time_zero"), since)
    columns = [times]
    for name in layout.names[1:]:
        values = _find_column(path, arrays, name)
        if len(values) != count:
            raise ValueError(
                f"{path}: the array {name!r} has {len(values)} samples, {time!r} has {count}."
            )
        columns.append(_as_numbers(path, name, values))
    table = np.stack(columns, axis=1)
    labels, indices = _labels_of_runs(path, arrays, run, count)
    runs = []
    for k, label in enumerate(labels):
        rows = np.flatnonzero(indices == k)
        where = f"{path}, run {label}" if run is not None else str(path)
        if layout.gaps == "raise":
            raise_gaps(where, table[rows], layout.names)
        place = functools.partial("{}, sample {}".format, where)
        runs.append(make_run(layout, table[rows], place, options.get("noise"), label, zero))
    return runs


def _find_array(
    path: Any, arrays: Mapping[str, np.ndarray], name: str
) -> tuple[np.ndarray, int | None]:
    """Return the array of a name such as `"q"` or `"q[2]"`, and the index of a column."""
    match = None if name in arrays else _ITEM.fullmatch(name)
    name, column = (name, None) if match is None else (match[1], int(match[2]))
    if name not in arrays:
        known = list(arrays)
        raise ValueError(
            f"{path}: there is no array {name!r}; there are {known}." + did_you_mean(name, known)
        )
    values = np.asarray(arrays[name])
    # Row and column vectors, as MATLAB writes them.
    return values.ravel() if values.ndim == 2 and 1 in values.shape else values, column


def _find_column(path: Any, arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Return the array (T,) of a name, such as `"q"` or `"q[2]"`."""
    values, column = _find_array(path, arrays, name)
    if column is not None and values.ndim == 2 and column < values.shape[1]:
        return values[:, column]
    if column is not None or values.ndim != 1:
        raise ValueError(
            f"{path}: {name!r} is no column of numbers; the array has shape {values.shape}. Name "
            'one of its columns, counted from 0, such as "q[2]".'
        )
    return values


def _expand_names(path: Any, arrays: Mapping[str, np.ndarray], name: str) -> list[str]:
    values, column = _find_array(path, arrays, name)
    if column is not None or values.ndim == 1:
        return [name]
    if values.ndim != 2:
        raise ValueError(f"{path}: the array {name!r} must have shape (T, n); got {values.shape}.")
    return [f"{name}[{k}]" for k in range(values.shape[1])]


def _as_numbers(path: Any, name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "fiu":
        raise ValueError(f"{path}: the array {name!r} must hold real numbers; got {values.dtype}.")
    values = values.astype(float)
    if np.isinf(values).any():
        raise ValueError(f"{path}: the array {name!r} holds infinite numbers.")
    return values


def _read_times(
    path: Any, arrays: Mapping[str, np.ndarray], time: str
) -> tuple[np.ndarray, int | None]:
    """Return the times and their number, or the time between samples and `None`."""
    values, _ = _find_array(path, arrays, time)
    if values.size == 1:
        period = float(values.reshape(()))
        if not 0 < period < np.inf:
            raise ValueError(
                f"{path}: {time!r} is one number, the time between samples, which must be "
                f"positive; got {period:g}."
            )
        return np.asarray(period), None
    return _find_column(path, arrays, time), len(values)


def _count_from_zero(
    path: Any,
    layout: FileLayout,
    times: np.ndarray,
    units: Mapping[Any, str],
    time_zero: str | None,
    since: str,
) -> tuple[np.ndarray, str | None]:
    """Return times in their unit, counted from `time_zero` or the first one if they are stamps."""
    is_stated, scale = layout.time in units or "time" in units, layout.time_factor
    if times.dtype.kind == "M":
        if is_stated:
            raise ValueError(
                f"{path}: {layout.time!r} holds dates, which have no unit; leave its unit out."
            )
        if np.isnat(times).any():
            raise ValueError(f"{path}: {layout.time!r} has gaps (NaT).")
        times, scale, is_stated = times.astype("datetime64[ns]").astype(np.int64), 1e-9, True
    elif times.dtype.kind not in "iu":
        times = _as_numbers(path, layout.time, times)
    if not np.isfinite(times[0]):
        return times.astype(float), None
    first = times[0].item()
    plain = times.astype(float) * (scale / layout.time_factor), None
    if time_zero is None and abs(first) * scale < LEAST_STAMP:
        return plain
    stamp = Decimal(repr(first)) + seconds_of_date(since) / Decimal(repr(scale))
    try:
        stamps = detect_stamps(str(stamp), layout.time, scale, is_stated, time_zero)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if stamps is None:
        return plain
    relative = (times - times[0]).astype(float) + float(stamp - stamps.zero)
    return relative * (scale / layout.time_factor), stamps.time_zero


def _labels_of_runs(
    path: Any, arrays: Mapping[str, np.ndarray], run: str | None, count: int
) -> tuple[list[str], np.ndarray]:
    """Return the labels of the runs in their order, and the index of the run of each sample."""
    if run is None:
        return [""], np.zeros(count, int)
    values = _find_column(path, arrays, run)
    if len(values) != count:
        raise ValueError(
            f"{path}: the array of runs {run!r} has {len(values)} entries for {count} samples."
        )
    found: dict[str, int] = {}
    indices = [found.setdefault(str(x).strip(), len(found)) for x in values.tolist()]
    return list(found), np.array(indices)
