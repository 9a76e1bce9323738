"""Measurements from comma-separated files: pandas reads them, faults are named with their line."""

import csv
import functools
import io
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from ...extras import import_optional
from .csv_header import BLANKS, GAPS, Header, column_index, load_text, open_text, read_header
from .measurements import Measurements
from .reading import FileLayout, ReadOptions, make_layout, make_run
from .time_stamps import Stamps, detect_stamps
from .units import factor

# Lines that pandas parses at once, which bounds the memory for cells as text.
_CHUNK = 2**18
# The usual spellings; pandas does not ignore case.
_GAPS = sorted({f(gap) for gap in GAPS for f in (str.lower, str.upper, str.title)} | {"NaN"})
_SWAP_MARKS = str.maketrans(",.", ".,")
_COMMA = (
    " Where a comma is the decimal one, another character has to be between cells, such as a "
    "semicolon."
)
_DECIMAL = (
    " All numbers of a file must have the same decimal mark, and none of thousands; `decimal=` "
    "states it."
)


def read_csv(
    path: str | os.PathLike[str],
    sensors: Mapping[Any, Sequence[str]],
    *,
    time: str = "time_s",
    run: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    **options: Unpack[ReadOptions],
) -> list[Measurements]:
    """Read one or several runs from a file with a header line.

    Empty lines and comments, which begin with `#`, are skipped; the names may be in the last
    comment before the data. A line below the names may state units, also in brackets. Missing
    samples are empty cells, `nan`, `NA`, `N/A`, `null` and the like.

    Times may be numbers, or dates and times of ISO 8601 (`2026-01-31T13:45:00.5+01:00`, UTC without
    a zone). Stamps of ISO 8601, and those since 1970 in any unit, are counted from the first one in
    the file, exactly, which is `Measurements.time_zero`.

    **Arguments:**

    - `path`: the file, in UTF-8 or UTF-16.
    - `sensors`: for each sensor the names of its columns, in the order of its values.
    - `time`: column of the times, strictly increasing within a run.
    - `run`: column with a label of the run that a line belongs to (any text); `None` for a single
      run.
    - `noise`: as in `Measurements`, in the units of the sensors.
    - `units`: of columns, or of all columns of a sensor, such as `{"t": "ms", gyro: "deg/s"}`
      (`"time"` also names the column of times); by default the units of the sensors, and seconds.
      Known units are those in `rigidjax.identification.data.units.UNITS`.
    - `orientation`: format of each `Attitude`: `"wxyz"` or `"xyzw"`, a quaternion with the scalar
      first or last; `"matrix"`, nine columns R11, R12, ..., R33; or an intrinsic Euler sequence
      such as `"ZYX"`, three angles in its order. All of them map body to space.
    - `gaps`: `"raise"`, or `"mask"` to treat empty cells and `nan` as missing samples.
    - `every`: use one of this number of samples of each sensor, starting with the first; the others
      are left out, not averaged.
    - `delimiter`: between cells, `" "` for any white space; `None` to detect it among comma,
      semicolon, tab and white space from the column names in the header.
    - `decimal`: `"."` or `","` in numbers; `None` to detect it from the numbers, which must agree.
    - `time_zero`: the `time_zero` of a run from another file with the same clock, to be 0 s here
      too.

    Columns that are not named are not read.

    **Returns:** the runs, in the order in which they begin in the file.
    **Errors:** `ValueError`, with the file and the line, for missing or duplicate columns, gaps,
    text in numbers, numbers that are not finite, and times out of order; for a mixture of decimal
    commas and points, units that are unknown or contradict each other, stamps that cannot be
    seconds and have no unit, and an orientation whose convention is not stated; `OSError` if there
    is no file.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"`read_csv(delimiter=...)` must be one character; got {delimiter!r}.")
    if decimal not in (None, ",", ".") or (decimal == "," and delimiter == ","):
        raise ValueError(
            '`read_csv(decimal=...)` is "." or, with another delimiter than a comma, ","; got '
            f"{decimal!r}."
        )
    layout = make_layout(sensors, time, options, "read_csv")
    header = read_header(path, load_text(path), layout.names, run, delimiter)
    stated = _merge_units(path, header, layout, dict(options.get("units") or {}))
    layout = make_layout(sensors, time, options | {"units": stated}, "read_csv")
    columns = [column_index(path, header, name) for name in layout.names]
    key = None if run is None else column_index(path, header, run)
    stamps = None
    if len(header.first) > columns[0]:
        first, is_stated = header.first[columns[0]], time in stated or "time" in stated
        zero = options.get("time_zero")
        try:
            stamps = detect_stamps(first, time, layout.time_factor, is_stated, zero)
        except ValueError as error:
            raise ValueError(f"{path}, line {header.before + 1}: {error}") from None
    file = _File(path, header, columns, key, stamps)
    runs: dict[str, int] = {}
    table, run_of_row = _read_table(file, decimal, runs)
    wrong = np.isinf(table) if layout.gaps == "mask" else ~np.isfinite(table)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        _raise_wrong_cell(file, row, columns[column])
    zero = None if stamps is None else stamps.time_zero
    result = []
    for name, k in runs.items():
        rows = np.flatnonzero(run_of_row == k)
        place = functools.partial(_locate_row, file, rows)
        result.append(make_run(layout, table[rows], place, options.get("noise"), name, zero))
    return result


class _File(NamedTuple):
    """Format of a file: indices of the `columns` that are read, times first, and of the `run`.

    `stamps` is the format of times that are not plain numbers.
    """

    path: str | os.PathLike[str]
    header: Header
    columns: list[int]
    run: int | None
    stamps: Stamps | None

    @property
    def numeric(self) -> list[int]:
        """Columns with plain numbers."""
        return self.columns[self.stamps is not None :]

    @property
    def delimiter(self) -> str:
        """Delimiter of `read_lines`, one byte long as pandas needs it."""
        return self.header.delimiter if self.header.delimiter.isascii() else "\x1f"

    @property
    def dialect(self) -> dict[str, Any]:
        """Further options that pandas and Python's module csv share."""
        is_split = self.delimiter == BLANKS
        quoting = csv.QUOTE_NONE if is_split else csv.QUOTE_MINIMAL
        return {"quoting": quoting, "skipinitialspace": True}

    def read_lines(self) -> bytes:
        """Read the lines below the header, from the end of its last line on.

        Comments, and lines without any value, are emptied; other lines keep their numbers. White
        space that delimits is one blank.
        """
        data, mark = load_text(self.path), self.header.delimiter.encode()
        before = itertools.islice(open_text(data), self.header.before)
        data = data[sum(len(line.encode()) for line in before) - 1 :]
        # pandas misreads an empty line before an empty cell where lines end with \r.
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        no_values = rb"\n(?:(?:[ \t]|%s)+|[ \t]*#[^\n]*)(?=\n|\Z)" % re.escape(mark)
        data = re.sub(no_values, b"\n", data)
        if mark.decode() == BLANKS:
            data = b"\n".join(b" ".join(line.split()) for line in data.splitlines())
        return data.replace(mark, self.delimiter.encode())

    def rows(self, lines: bytes) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the cells of each line with data.

        **Errors:** `ValueError` for a line whose cells are not as many as the names, and for
        quotation marks that are not closed.
        """
        size, offset = len(self.header.names), self.header.before - 1
        reader = csv.reader(open_text(lines), delimiter=self.delimiter, strict=True, **self.dialect)
        try:
            for cells in filter(None, reader):
                line = offset + reader.line_num
                if len(cells) == size + 1 and not cells[-1].strip():
                    cells.pop()
                if len(cells) != size:
                    hint = _COMMA if len(cells) > size and self.delimiter == "," else ""
                    raise ValueError(
                        f"{self.path}, line {line}: {len(cells)} cells under {size} names.{hint}"
                    )
                yield line, cells
        except csv.Error as error:
            raise ValueError(f"{self.path}, line {offset + reader.line_num}: {error}.") from error


def _read_table(
    file: _File, decimal: str | None, runs: dict[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of a file, (T, columns), and the index of the run of each line, (T,).

    A gap is NaN, and a cell without a number is infinite. The function adds the names of runs to
    `runs`.
    """
    lines = file.read_lines() if file.header.first else b""
    if not lines.strip():
        raise ValueError(f"{file.path} has no line of data after its header.")
    has_comma = any("," in cell for k, cell in enumerate(file.header.first) if k in file.numeric)
    marks = (",", ".") if has_comma else (".", ",")
    if decimal is not None or file.delimiter == ",":
        marks = (decimal or ".",)
    tables = []
    for mark in marks:
        table, run_of_row = _read_with_decimal(file, lines, mark, runs)
        wrong = np.isinf(table).any(axis=1)
        if not wrong.any():
            return table, run_of_row
        tables.append((wrong.argmax(), table, run_of_row))
    # No mark fits all numbers: choose the one with which more of the first lines can be read.
    return max(tables, key=lambda item: item[0])[1:]


def _read_with_decimal(
    file: _File, lines: bytes, decimal: str, runs: dict[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    pandas = import_optional("pandas", "CSV files")

    last, count, has_gaps = len(file.header.names) - 1, 0, False
    texts = {file.columns[0], last, *([] if file.run is None else [file.run])} - {*file.numeric}
    # Later versions round every number correctly, and warn about this option.
    is_early = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    exact: dict[str, Any] = {"float_precision": "round_trip"} if is_early else {}
    blocks, run_indices = [], []
    try:
        with pandas.read_csv(
            io.BytesIO(lines),
            sep=file.delimiter,
            header=None,
            names=range(last + 1),
            usecols=sorted({*file.numeric, *texts}),
            index_col=False,
            dtype=dict.fromkeys(texts, str),
            na_values=dict.fromkeys(file.numeric, _GAPS),
            keep_default_na=False,
            decimal=decimal,
            low_memory=False,
            chunksize=_CHUNK,
            **file.dialect,
            **exact,
        ) as chunks:
            for chunk in chunks:
                parts = [_to_numbers(chunk[k], decimal) for k in file.numeric]
                if file.stamps is not None:
                    parts.insert(0, _to_times(file, chunk[file.columns[0]]))
                blocks.append(np.stack(parts, axis=1))
                labels = [""] * len(chunk) if file.run is None else chunk[file.run]
                run_indices += [runs.setdefault(x.strip(), len(runs)) for x in labels]
                has_gaps |= bool((chunk[last].isna() | (chunk[last] == "")).any())
                count += len(chunk)
    except pandas.errors.ParserError as error:
        for _ in file.rows(lines):
            pass
        raise ValueError(f"{file.path}: {error}") from error
    # pandas fills short lines with empty cells, and leaves out cells beyond the last name.
    if has_gaps or b'"' in lines or lines.count(file.delimiter.encode()) != last * count:
        for _ in file.rows(lines):
            pass
    return np.concatenate(blocks), np.array(run_indices)


def _to_numbers(cells: Any, decimal: str) -> np.ndarray:
    """Return the values of a column: NaN for a gap, infinite for a cell without a number."""
    if cells.dtype.kind in "iuf":
        return cells.to_numpy(float)
    return np.array([_to_number(str(cell), decimal) for cell in cells])


def _to_number(text: str, decimal: str) -> float:
    if text.strip().lower() in GAPS:
        return np.nan
    try:
        return float(text.translate(_SWAP_MARKS) if decimal == "," else text)
    except ValueError:
        return np.inf


def _to_times(file: _File, cells: Any) -> np.ndarray:
    assert file.stamps is not None
    times = np.empty(len(cells))
    for k, (row, text) in enumerate(cells.items()):
        try:
            times[k] = file.stamps.relative(text)
        except ValueError as error:
            line, _ = _find_row(file, row)
            name = file.header.names[file.columns[0]]
            raise ValueError(f"{file.path}, line {line}: column {name!r}: {error}.") from None
    return times


def _find_row(file: _File, row: int) -> tuple[int, list[str]]:
    """Return the number and the cells of a line of data."""
    return next(itertools.islice(file.rows(file.read_lines()), int(row), None))


def _locate_row(file: _File, rows: np.ndarray, k: int) -> str:
    return f"{file.path}, line {_find_row(file, rows[k])[0]}"


def _raise_wrong_cell(file: _File, row: int, column: int) -> None:
    """Raise `ValueError` for a cell with a gap, or without a finite number."""
    line, cells = _find_row(file, row)
    text, name = cells[column].strip(), file.header.names[column]
    where = f"{file.path}, line {line}: column {name!r}"
    if text.lower() in GAPS:
        what = f"must be finite; got {text!r}" if text else "is empty"
        raise ValueError(
            f'{where} {what}. For a sample that was not taken, read with `gaps="mask"`.'
        )
    hint = _DECIMAL if file.delimiter != "," and re.search("[,.]", text) else ""
    raise ValueError(f"{where} must be a finite number; got {text!r}.{hint}")


def _merge_units(
    path: Any, header: Header, layout: FileLayout, units: dict[Any, str]
) -> dict[Any, str]:
    """Return the units of the columns, from the call and from the line below the names.

    **Errors:** `ValueError` where the two contradict each other.
    """
    sensor_of = {name: columns.sensor for columns in layout.sensors for name in columns.names}
    for name, unit in header.units.items():
        keys = (name, "time" if name == layout.time else sensor_of[name])
        given = next((units[key] for key in keys if key in units), None)
        if given is not None and factor(given) != factor(unit):
            raise ValueError(
                f"{path}, line {header.before}: the column {name!r} is in {unit!r}, and `units` "
                f"says {given!r}."
            )
        if given is None:
            units[name] = unit
    return units
