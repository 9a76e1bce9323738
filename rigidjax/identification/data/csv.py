"""Measurements from comma-separated files, checked line by line."""

import array
import contextlib
import csv
import functools
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...checks import did_you_mean
from .measurements import Measurements
from .reading import Gaps, make_layout, make_run

# Bytes that are read at once, and the spellings of a sample that was not taken.
_PART = 2**24
_GAPS = ("", "nan", "NaN", "NAN")

# Quotation marks, and words that pandas takes for numbers.
_ODD = (b'"', b"true", b"True", b"TRUE", b"false", b"False", b"FALSE")


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
    every: int = 1,
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
      out. Known are those in `rigidjax.identification.data.units.UNITS`.
    - `orientation`: how each `Attitude` is written: `"wxyz"` or `"xyzw"`, a quaternion with the
      scalar first or last; `"matrix"`, nine columns R11, R12, ..., R33; or an intrinsic Euler
      sequence such as `"ZYX"`, three angles in its order. All of them body to space.
    - `gaps`: `"raise"`, or `"mask"` to take empty cells and `nan` as samples that were not taken.
    - `every`: of so many samples of each sensor one is used, the first ones included; the others
      are left out, not averaged.

    Columns that are not named are not read.

    **Returns:** the runs, in the order in which they begin in the file.
    **Errors:** `ValueError`, with the file and the line, for missing or doubled columns, gaps, text
    in numbers, numbers that are not finite, and times out of order; for unknown units and an
    orientation whose convention is not stated; `OSError` if there is no file.
    """
    if len(delimiter) != 1:
        raise ValueError(f"`read_csv(delimiter=...)` must be one character; got {delimiter!r}.")
    layout = make_layout(sensors, time, units, orientation, gaps, every, "read_csv")
    runs: dict[str, int] = {}
    blocks = list(_blocks(path, layout.names, run, gaps, delimiter, runs))
    if not runs:
        raise ValueError(f"{path} has no line of data after its header.")
    lines, which, table = (np.concatenate(part) for part in zip(*blocks, strict=True))
    del blocks
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(len(runs)), side="right")
    parts = np.split(order, ends[:-1]) if len(runs) > 1 else [slice(None)]
    return [
        make_run(layout, table[rows], functools.partial(_place, path, lines[rows]), noise, name)
        for name, rows in zip(runs, parts, strict=True)
    ]


def _place(path, lines, k):
    return f"{path}, line {lines[k]}"


class _Block(NamedTuple):
    """Lines of a file: their numbers, the run of each (a number of its own), the cells read."""

    lines: np.ndarray
    runs: np.ndarray
    table: np.ndarray


class _Format(NamedTuple):
    """How the lines of a file are written; `columns` and `run` are places in a line."""

    path: str | os.PathLike[str]
    header: list[str]
    names: list[str]
    columns: list[int]
    run: int | None
    gaps: Gaps
    delimiter: str


def _blocks(path, names, run, gaps, delimiter, runs: dict[str, int]) -> Iterator[_Block]:
    """The file in parts; `runs` gets the names of the runs with their numbers.

    Plain parts are read by pandas. From the first that is not, on (it has a quotation mark, or
    something is wrong in it), line by line, to say what is wrong and where.
    """
    with open(path, encoding="utf-8-sig", newline="") as text, open(path, "rb") as file:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        with _named_errors(path, lambda: reader.line_num):
            header = [name.strip() for name in next(reader, [])]
        columns = [_column(path, header, name) for name in names]
        key = None if run is None else _column(path, header, run)
        form = _Format(path, header, names, columns, key, gaps, delimiter)
        line = reader.line_num + 1
        begin = b"".join(file.readline() for _ in range(reader.line_num))
        if not (_has_plain_ends(begin) and delimiter.isascii()):
            yield _line_by_line(form, reader, 0, runs)
            return
        while part := file.read(_PART) + file.readline():
            block = _plain(form, part, line, runs)
            if block is None:
                file.seek(-len(part), os.SEEK_CUR)
                rest = io.TextIOWrapper(file, encoding="utf-8", newline="")
                reader = csv.reader(rest, delimiter=delimiter, strict=True)
                yield _line_by_line(form, reader, line - 1, runs)
                return
            yield block
            line += len(block.lines)


def _plain(form: _Format, part: bytes, line: int, runs: dict[str, int]) -> _Block | None:
    """A part of whole lines, the first of which is `line`; `None` if it is not plain."""
    import pandas

    if any(word in part for word in _ODD) or not _is_regular(form, part):
        return None
    wanted = form.columns if form.run is None else [*form.columns, form.run]
    kinds: dict[Any, Any] = dict.fromkeys(form.columns, "float64")
    # Later ones round every number correctly, and warn of this option.
    is_early = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    exact: dict[str, Any] = {"float_precision": "round_trip"} if is_early else {}
    try:
        part.decode()
        frame = pandas.read_csv(
            io.BytesIO(part),
            sep=form.delimiter,
            header=None,
            names=range(len(form.header)),
            usecols=wanted,
            dtype=kinds if form.run is None else {**kinds, form.run: str},
            na_values=dict.fromkeys(form.columns, _GAPS) if form.gaps == "mask" else {},
            keep_default_na=False,
            quoting=csv.QUOTE_NONE,
            **exact,
        )
    except ValueError:  # Read line by line, it is found out where and why.
        return None
    table = np.stack([frame[k].to_numpy() for k in form.columns], axis=1)
    wrong = np.isinf(table) if form.gaps == "mask" else ~np.isfinite(table)
    if len(table) != part.count(b"\n") + (part[-1:] != b"\n") or wrong.any():
        return None
    if form.run is None:
        which = np.full(len(table), runs.setdefault("", 0))
    else:
        codes, found = pandas.factorize(frame[form.run])
        which = np.array([runs.setdefault(str(x).strip(), len(runs)) for x in found])[codes]
    return _Block(np.arange(line, line + len(table)), which, table)


def _has_plain_ends(part: bytes) -> bool:
    return part.count(b"\r") == part.count(b"\r\n")


def _is_regular(form: _Format, part: bytes) -> bool:
    """Whether all lines have plain ends and as many cells as the header."""
    if not _has_plain_ends(part):
        return False
    cells = np.frombuffer(part, np.uint8)
    ends = np.flatnonzero(cells == ord("\n"))
    between = np.searchsorted(ends, np.flatnonzero(cells == ord(form.delimiter)))
    lines = len(ends) + (not part.endswith(b"\n"))
    return bool(np.all(np.bincount(between, minlength=lines) == len(form.header) - 1))


def _line_by_line(form: _Format, reader, before: int, runs: dict[str, int]) -> _Block:
    """All that is left, checked cell by cell; `before`, how many lines came before it."""
    lines, which, table = array.array("q"), array.array("q"), array.array("d")
    pairs = list(zip(form.names, form.columns, strict=True))
    with _named_errors(form.path, lambda: before + reader.line_num):
        for cells in reader:
            line = before + reader.line_num
            if not cells:
                raise ValueError(f"{form.path}, line {line}: the line is empty. Remove it.")
            if len(cells) != len(form.header):
                raise ValueError(
                    f"{form.path}, line {line}: {len(cells)} cells under {len(form.header)} names."
                )
            for name, k in pairs:
                table.append(_number(form.path, line, name, cells[k], form.gaps))
            lines.append(line)
            key = "" if form.run is None else cells[form.run].strip()
            which.append(runs.setdefault(key, len(runs)))
    shape = (len(lines), len(form.columns))
    return _Block(np.array(lines), np.array(which), np.array(table).reshape(shape))


@contextlib.contextmanager
def _named_errors(path, line: Callable[[], int]) -> Iterator[None]:
    """Errors of decoding and of quotation marks, with the file and the line."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: {error}.") from error
    except csv.Error as error:
        raise ValueError(f"{path}, line {line()}: {error}.") from error


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
        raise ValueError(
            f"{path}, line 1: there is no column {name!r}; the columns are {header}."
            + did_you_mean(name, header)
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
