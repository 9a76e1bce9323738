"""Measurements from comma-separated files, checked line by line."""

import csv
import difflib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .measurements import Measurements


def read_csv(
    path: str | os.PathLike[str],
    sensors: Mapping[Any, Sequence[str]],
    *,
    time: str = "time_s",
    run: str | None = None,
    noise: Mapping[Any, Any] | None = None,
) -> list[Measurements]:
    """Read one or several runs from a file with a header line.

    **Arguments:**

    - `path`: the file, UTF-8, comma-separated.
    - `sensors`: for each sensor the names of its columns, in the order of its values.
    - `time`: column of the times, s, strictly increasing within a run.
    - `run`: column that says which run a line belongs to (any text); `None` for a single run.
    - `noise`: as in `Measurements`.

    Numbers must be in the units of the sensors. Columns that are not named are not read.

    **Returns:** the runs, in the order in which they begin in the file.
    **Errors:** `ValueError`, with the file and the line, for missing or doubled columns, gaps, text
    in numbers, numbers that are not finite, and times out of order; `OSError` if there is no file.
    """
    for sensor, columns in sensors.items():
        size = int(np.prod(sensor.value_shape))
        if isinstance(columns, str) or len(columns) != size:
            raise ValueError(
                f"`read_csv(sensors=...)` must name {size} columns for the sensor "
                f"{sensor.name!r}; got {columns!r}."
            )
    numbers = [time, *(name for columns in sensors.values() for name in columns)]
    rows = _rows(path, numbers, run)
    groups: dict[str, list[tuple[int, list[float]]]] = {}
    for line, key, values in rows:
        groups.setdefault(key, []).append((line, values))
    return [_one_run(path, key, rows, sensors, time, noise) for key, rows in groups.items()]


def _rows(path, numbers, run):
    """Line number, run and numbers of every line after the header."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            where = [_column(path, header, name) for name in numbers]
            key = None if run is None else _column(path, header, run)
            out = []
            for cells in reader:
                line = reader.line_num
                if not cells:
                    raise ValueError(f"{path}, line {line}: the line is empty. Remove it.")
                if len(cells) != len(header):
                    raise ValueError(
                        f"{path}, line {line}: {len(cells)} cells under {len(header)} names."
                    )
                values = [
                    _number(path, line, name, cells[k])
                    for name, k in zip(numbers, where, strict=True)
                ]
                out.append((line, "" if key is None else cells[key].strip(), values))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not text in UTF-8: {error}.") from error
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error}.") from error
    if not out:
        raise ValueError(f"{path} has no line of data after its header.")
    return out


def _column(path, header, name):
    if not any(header):
        raise ValueError(f"{path}, line 1: there is no header with the names of the columns.")
    found = [k for k, column in enumerate(header) if column == name]
    if len(found) > 1:
        raise ValueError(f"{path}, line 1: there are {len(found)} columns called {name!r}.")
    if not found:
        near = difflib.get_close_matches(name, header, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{path}, line 1: there is no column {name!r}; the columns are {header}.{hint}"
        )
    return found[0]


def _number(path, line, column, cell):
    text = cell.strip()
    if not text:
        raise ValueError(f"{path}, line {line}: column {column!r} is empty.")
    try:
        value = float(text)
    except ValueError:
        raise ValueError(
            f"{path}, line {line}: column {column!r} must be a number; got {text!r}."
        ) from None
    if not np.isfinite(value):
        raise ValueError(f"{path}, line {line}: column {column!r} must be finite; got {text!r}.")
    return value


def _one_run(path, key, rows, sensors, time, noise):
    lines = [line for line, _ in rows]
    table = np.array([values for _, values in rows])
    of_run = f" of run {key}" if key else ""
    if len(table) < 2:
        raise ValueError(f"{path}, line {lines[0]}: there is only one sample{of_run}.")
    late = np.flatnonzero(np.diff(table[:, 0]) <= 0)
    if late.size:
        k = late[0] + 1
        raise ValueError(
            f"{path}, line {lines[k]}: the times{of_run} must increase, column {time!r} goes from "
            f"{table[k - 1, 0]:g} (line {lines[k - 1]}) to {table[k, 0]:g}."
        )
    values, begin = {}, 1
    for sensor, columns in sensors.items():
        part = table[:, begin : begin + len(columns)]
        values[sensor] = part.reshape(len(table), *sensor.value_shape)
        begin += len(columns)
    return Measurements(table[:, 0], values, noise, name=key)
