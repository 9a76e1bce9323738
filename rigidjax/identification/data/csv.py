"""Measurements from comma-separated files, checked line by line."""

import array
import contextlib
import csv
import functools
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

import numpy as np

from ...checks import did_you_mean
from ...extras import import_optional
from .csv_header import BLANKS, GAPS, Header, convert_to_utf8, is_comment, open_text, read_header
from .measurements import Measurements
from .reading import FileLayout, Gaps, make_layout, make_run
from .time_stamps import Stamps, detect_stamps, relative_times
from .units import factor

# Bytes that are read at once, and spellings of a missing sample.
_PART = 2**24
_GAPS = sorted({f(gap) for gap in GAPS for f in (str.lower, str.upper)} | {"NaN", "None", "Null"})
_BLANK = re.compile(rb"(?:^|\n)[ \t\r]*\n|\n[ \t\r]+\Z")
_WITH_COMMA = re.compile(r"[+-]?\d*,\d*([eE][+-]?\d+)?")
_COMMA = (
    " Where a comma is the decimal one, another character has to be between cells, such as a "
    "semicolon."
)

# Quotation marks, and words that pandas parses as numbers.
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
    delimiter: str | None = None,
    decimal: str | None = None,
    time_zero: str | None = None,
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
    layout = make_layout(sensors, time, units, orientation, gaps, every, "read_csv")
    form, data = _detect_format(path, layout, units or {}, run, delimiter, decimal, time_zero)
    if form.header.units:
        stated = _merge_units(path, form.header, layout, dict(units or {}))
        layout = make_layout(sensors, time, stated, orientation, gaps, every, "read_csv")
    runs: dict[str, int] = {}
    blocks = list(_read_blocks(form, data, runs))
    if not runs:
        raise ValueError(f"{path} has no line of data after its header.")
    lines, which, table = (np.concatenate(part) for part in zip(*blocks, strict=True))
    del blocks
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(len(runs)), side="right")
    parts = np.split(order, ends[:-1]) if len(runs) > 1 else [slice(None)]
    zero = None if form.stamps is None else form.stamps.time_zero
    return [
        make_run(
            layout,
            table[rows],
            functools.partial(_locate_row, path, lines[rows]),
            noise,
            name,
            zero,
        )
        for name, rows in zip(runs, parts, strict=True)
    ]


def _detect_format(
    path: Any,
    layout: FileLayout,
    units: Mapping[Any, str],
    run: str | None,
    delimiter: str | None,
    decimal: str | None,
    time_zero: str | None,
) -> tuple["_Format", bytes | None]:
    """Return the format of a file, from its first lines, and its text in UTF-8 if in UTF-16."""
    with open(path, "rb") as file:
        mark = file.read(2)
        data = (
            convert_to_utf8(path, mark + file.read())
            if mark in (b"\xff\xfe", b"\xfe\xff")
            else None
        )
    names = layout.names
    opened = open(path, encoding="utf-8-sig", newline="") if data is None else open_text(data)
    with opened as text, _errors_with_location(path, lambda: 1):
        header = read_header(path, text, names, run, delimiter)
    columns = [_column_index(path, header, name) for name in names]
    key = None if run is None else _column_index(path, header, run)
    stamps = None
    if len(header.first) > columns[0]:
        unit = header.units.get(layout.time)
        is_stated = layout.time in units or "time" in units or unit is not None
        seconds = layout.time_factor if unit is None else factor(unit, "time")
        first = header.first[columns[0]]
        try:
            stamps = detect_stamps(first, layout.time, seconds, is_stated, time_zero)
        except ValueError as error:
            raise ValueError(f"{path}, line {header.before + 1}: {error}") from None
    return _Format(path, header, names, columns, key, layout.gaps, stamps, decimal, {}), data


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


def _locate_row(path: str | os.PathLike[str], lines: np.ndarray, k: int) -> str:
    return f"{path}, line {lines[k]}"


class _Block(NamedTuple):
    """Lines of a file: their numbers, the index of the run of each, and the cells read."""

    lines: np.ndarray
    runs: np.ndarray
    table: np.ndarray


class _Format(NamedTuple):
    """Format of the lines of a file.

    **Attributes:** `columns` and `run` are indices of cells in a line; `stamps`, the format of
    times that are not plain numbers; `decimal`, "," or "." if known; `seen`, the first lines with a
    decimal comma and with a decimal point.
    """

    path: str | os.PathLike[str]
    header: Header
    names: list[str]
    columns: list[int]
    run: int | None
    gaps: Gaps
    stamps: Stamps | None
    decimal: str | None
    seen: dict[str, int]


def _read_blocks(form: _Format, data: bytes | None, runs: dict[str, int]) -> Iterator[_Block]:
    """Yield the file in parts, and add the names of the runs with their indices to `runs`.

    Plain parts are parsed by pandas. From the first other part on (with a quotation mark or an
    error), the file is parsed line by line, to locate errors.

    **Arguments:** `data`, the file in UTF-8 if it has another encoding.
    """
    with open(form.path, "rb") if data is None else io.BytesIO(data) as file:
        begin = b"".join(file.readline() for _ in range(form.header.before))
        delimiter, line = form.header.delimiter, form.header.before + 1
        if not _has_plain_ends(begin) or delimiter == BLANKS or not delimiter.isascii():
            file.seek(0)
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            for _ in range(form.header.before):
                text.readline()
            yield _parse_lines(form, text, form.header.before, runs)
            return
        while part := file.read(_PART) + file.readline():
            block = _parse_plain(form, part, line, runs)
            if block is None:
                file.seek(-len(part), os.SEEK_CUR)
                rest = io.TextIOWrapper(file, encoding="utf-8", newline="")
                yield _parse_lines(form, rest, line - 1, runs)
                return
            yield block
            line += part.count(b"\n")


def _parse_plain(form: _Format, part: bytes, line: int, runs: dict[str, int]) -> _Block | None:
    """Parse a part of whole lines that begins at `line`; return `None` if it is not plain."""
    pandas = import_optional("pandas", "CSV files")

    numbers, part = _strip_comments(part, line)
    if not part:
        return _Block(numbers, np.zeros(0, int), np.zeros((0, len(form.columns))))
    if any(word in part for word in _ODD) or not _is_regular(form, part):
        return None
    has_comma = form.header.delimiter != "," and b"," in part
    decimal = form.decimal or ("," if has_comma else ".")
    exact_times = () if form.stamps is None else (form.columns[0],)
    wanted = form.columns if form.run is None else [*form.columns, form.run]
    kinds: dict[Any, Any] = dict.fromkeys(form.columns, "float64")
    kinds |= dict.fromkeys(exact_times, str)
    # Later versions round every number correctly, and warn about this option.
    is_early = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    exact: dict[str, Any] = {"float_precision": "round_trip"} if is_early else {}
    try:
        part.decode()
        frame = pandas.read_csv(
            io.BytesIO(part),
            sep=form.header.delimiter,
            header=None,
            names=range(len(form.header.names)),
            usecols=wanted,
            dtype=kinds if form.run is None else {**kinds, form.run: str},
            na_values=dict.fromkeys(form.columns, _GAPS) if form.gaps == "mask" else {},
            keep_default_na=False,
            quoting=csv.QUOTE_NONE,
            decimal=decimal,
            **exact,
        )
        columns = [frame[k].to_numpy() for k in form.columns]
        if form.stamps is not None:
            texts = ["" if x is np.nan else str(x) for x in columns[0]]
            columns[0] = relative_times(form.stamps, texts)
    except ValueError:  # Parsing line by line locates and explains the error.
        return None
    table = np.stack(columns, axis=1)
    wrong = np.isinf(table) if form.gaps == "mask" else ~np.isfinite(table)
    if len(table) != len(numbers) or wrong.any():
        return None
    if decimal == "," or np.any(np.nan_to_num(table[:, form.stamps is not None :]) % 1):
        form.seen.setdefault(decimal, line)
    if len(form.seen) > 1:
        return None
    if form.run is None:
        run_indices = np.full(len(table), runs.setdefault("", 0))
    else:
        codes, labels = pandas.factorize(frame[form.run])
        run_indices = np.array([runs.setdefault(str(x).strip(), len(runs)) for x in labels])[codes]
    return _Block(numbers, run_indices, table)


def _strip_comments(part: bytes, line: int) -> tuple[np.ndarray, bytes]:
    """Return the numbers of the lines with data in a part, and the part without the others."""
    count = part.count(b"\n") + (part[-1:] not in (b"\n", b""))
    numbers = np.arange(line, line + count)
    if b"#" not in part and not _BLANK.search(part):
        return numbers, part
    lines = part.split(b"\n")[:count]
    data_lines = [k for k, x in enumerate(lines) if x.strip() and not x.lstrip().startswith(b"#")]
    return numbers[data_lines], b"\n".join(lines[k] for k in data_lines)


def _has_plain_ends(part: bytes) -> bool:
    return part.count(b"\r") == part.count(b"\r\n")


def _is_regular(form: _Format, part: bytes) -> bool:
    """Return whether all lines have plain ends and as many cells as the header."""
    if part.endswith(b"\r"):
        part = part[:-1]
    if not _has_plain_ends(part):
        return False
    cells = np.frombuffer(part, np.uint8)
    ends = np.flatnonzero(cells == ord("\n"))
    between = np.searchsorted(ends, np.flatnonzero(cells == ord(form.header.delimiter)))
    lines = len(ends) + (not part.endswith(b"\n"))
    return bool(np.all(np.bincount(between, minlength=lines) == len(form.header.names) - 1))


def _parse_lines(form: _Format, text: TextIO, before: int, runs: dict[str, int]) -> _Block:
    """Parse all remaining lines cell by cell; `before`, the number of lines before them."""
    lines, run_indices, table = array.array("q"), array.array("q"), array.array("d")
    pairs, count = list(zip(form.names, form.columns, strict=True)), len(form.header.names)
    reader = _Cells(text, form.header.delimiter)
    with _errors_with_location(form.path, lambda: before + reader.line_num):
        for cells in reader:
            line = before + reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) == count + 1 and not cells[-1].strip():
                cells = cells[:-1]
            if len(cells) != count:
                hint = _COMMA if len(cells) > count and form.header.delimiter == "," else ""
                raise ValueError(
                    f"{form.path}, line {line}: {len(cells)} cells under {count} names.{hint}"
                )
            for name, k in pairs:
                table.append(_parse_cell(form, line, name, cells[k], k == form.columns[0]))
            lines.append(line)
            key = "" if form.run is None else cells[form.run].strip()
            run_indices.append(runs.setdefault(key, len(runs)))
    shape = (len(lines), len(form.columns))
    return _Block(np.array(lines, int), np.array(run_indices, int), np.array(table).reshape(shape))


class _Cells:
    """Iterator over the cells of lines that are not comments; `line_num` numbers the last line."""

    def __init__(self, text: TextIO, delimiter: str):
        self._lines = (self._count_line(line) for line in text)
        self.line_num = 0
        options: Any = {"delimiter": delimiter, "skipinitialspace": True, "strict": True}
        is_split = delimiter == BLANKS
        self._rows = map(str.split, self._lines) if is_split else csv.reader(self._lines, **options)

    def _count_line(self, line: str) -> str:
        self.line_num += 1
        return "\n" if is_comment(line) else line

    def __iter__(self) -> Iterator[list[str]]:
        return iter(self._rows)


@contextlib.contextmanager
def _errors_with_location(path: str | os.PathLike[str], line: Callable[[], int]) -> Iterator[None]:
    """Add the file and the line to errors of decoding and of quotation marks."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: {error}.") from error
    except csv.Error as error:
        raise ValueError(f"{path}, line {line()}: {error}.") from error


def _column_index(path: Any, header: Header, name: str) -> int:
    names, line = header.names, header.line
    if not any(names):
        raise ValueError(f"{path}, line 1: there is no header with the names of the columns.")
    indices = [k for k, column in enumerate(names) if column == name]
    if len(indices) > 1:
        raise ValueError(f"{path}, line {line}: there are {len(indices)} columns called {name!r}.")
    if len(names) == 1 and names != [name]:
        raise ValueError(
            f"{path}, line {line}: there is one column only, {names[0]!r}. Say what is between "
            'columns, such as `delimiter=";"`.'
        )
    if not indices:
        raise ValueError(
            f"{path}, line {line}: there is no column {name!r}; the columns are {names}."
            + did_you_mean(name, names)
        )
    return indices[0]


def _parse_cell(form: _Format, line: int, column: str, cell: str, is_time: bool) -> float:
    """Return the number in a cell.

    **Errors:** `ValueError` with the line and the column.
    """
    text, where = cell.strip(), f"{form.path}, line {line}: column {column!r}"
    if text.lower() in GAPS:
        if form.gaps == "mask":
            return float("nan")
        what = f"must be finite; got {text!r}" if text else "is empty"
        raise ValueError(
            f'{where} {what}. For a sample that was not taken, read with `gaps="mask"`.'
        )
    if is_time and form.stamps is not None:
        try:
            return form.stamps.relative(text)
        except ValueError as error:
            raise ValueError(f"{where}: {error}.") from None
    number = text
    if form.header.delimiter != "," and _WITH_COMMA.fullmatch(text) and form.decimal != ".":
        number = text.replace(",", ".")
        form.seen.setdefault(",", line)
    elif "." in text:
        form.seen.setdefault(".", line)
    try:
        value = float(number)
    except ValueError:
        raise ValueError(f"{where} must be a number; got {text!r}.") from None
    if len(form.seen) > 1 or (form.decimal is not None and form.decimal not in form.seen):
        _raise_decimals(form, where, text)
    if not np.isfinite(value):
        raise ValueError(f"{where} must be finite; got {text!r}.")
    return value


def _raise_decimals(form: _Format, where: str, text: str) -> None:
    """Raise `ValueError` for mixed decimal commas and points, or those that `decimal` excludes."""
    if not form.seen:
        return
    if len(form.seen) > 1:
        raise ValueError(
            f"{where} is {text!r}; the file has decimal commas (line {form.seen[',']}) and decimal "
            f"points (line {form.seen['.']}), so that a comma may be one of thousands. Write "
            'numbers in one way, or say `decimal=","` or `"."`.'
        )
    raise ValueError(f"{where} is {text!r}, where `decimal={form.decimal!r}` was said.")
