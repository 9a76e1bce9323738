"""Measurements from comma-separated files, checked line by line."""

import csv
import difflib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .measurements import Measurements
from .reading import Gaps, make_layout, make_run


def read_csv(
    path: str | os.PathLike[str],
    sensors: Mapping[Any, Sequence[str]],
    *,
    time: str = "time_s",
    run: str | None = None,
    noise: Mapping[Any, Any] | None = None,
    units: Mapping[Any, str] | None = None,
    orientation: Mapping[Any, str] | None = None,
    gaps: Gaps = "raise",
    delimiter: str = ",",
) -> list[Measurements]:
    """Read one or several runs from a file with a header line.

    **Arguments:**

    - `path`: the file, UTF-8, with a `delimiter` between cells and a decimal point in numbers.
    - `sensors`: for each sensor the names of its columns, in the order of its values.
    - `time`: column of the times, strictly increasing within a run.
    - `run`: column that says which run a line belongs to (any text); `None` for a single run.
    - `noise`: as in `Measurements`, in the units of the sensors.
    - `units`: of columns, or of all columns of a sensor, such as `{"t": "ms", gyro: "deg/s"}`
      (`"time"` also names the column of times); the units of the sensors, and seconds, if left
      out. Known are those in `rigidjax.identification.units.UNITS`.
    - `orientation`: how each `Attitude` is written: `"wxyz"` or `"xyzw"`, a quaternion with the
      scalar first or last; `"matrix"`, nine columns R11, R12, ..., R33; or an intrinsic Euler
      sequence such as `"ZYX"`, three angles in its order. All of them body to space.
    - `gaps`: `"raise"`, or `"mask"` to take empty cells and `nan` as samples that were not taken.

    Columns that are not named are not read.

    **Returns:** the runs, in the order in which they begin in the file.
    **Errors:** `ValueError`, with the file and the line, for missing or doubled columns, gaps, text
    in numbers, numbers that are not finite, and times out of order; for unknown units and an
    orientation whose convention is not stated; `OSError` if there is no file.
    """
    if len(delimiter) != 1:
        raise ValueError(f"`read_csv(delimiter=...)` must be one character; got {delimiter!r}.")
    layout = make_layout(sensors, time, units, orientation, gaps, "read_csv")
    groups: dict[str, list[tuple[int, list[float]]]] = {}
    for line, key, values in _rows(path, layout.names, run, gaps, delimiter):
        groups.setdefault(key, []).append((line, values))
    out = []
    for key, rows in groups.items():
        lines = [line for line, _ in rows]
        table = np.array([values for _, values in rows])
        out.append(make_run(layout, table, _places(path, lines), noise, key))
    return out


def _places(path, lines):
    return lambda k: f"{path}, line {lines[k]}"


def _rows(path, numbers, run, gaps, delimiter):
    """Line number, run and numbers of every line after the header."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
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
                    _number(path, line, name, cells[k], gaps)
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
    if len(header) == 1 and header != [name]:
        raise ValueError(
            f"{path}, line 1: there is one column only, {header[0]!r}. Say what is between "
            'columns, such as `delimiter=";"`.'
        )
    if not found:
        near = difflib.get_close_matches(name, header, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{path}, line 1: there is no column {name!r}; the columns are {header}.{hint}"
        )
    return found[0]


def _number(path, line, column, cell, gaps):
    text = cell.strip()
    if gaps == "mask" and text.lower() in ("", "nan"):
        return float("nan")
    hint = ' For a sample that was not taken, read with `gaps="mask"`.'
    if not text:
        raise ValueError(f"{path}, line {line}: column {column!r} is empty.{hint}")
    try:
        value = float(text)
    except ValueError:
        raise ValueError(
            f"{path}, line {line}: column {column!r} must be a number; got {text!r}."
        ) from None
    if not np.isfinite(value):
        hint = hint if np.isnan(value) else ""
        raise ValueError(
            f"{path}, line {line}: column {column!r} must be finite; got {text!r}.{hint}"
        )
    return value
