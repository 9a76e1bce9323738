"""Lines before the data of a comma-separated file: comments, names, units."""

import csv
import io
import itertools
import os
import pathlib
import re
from collections.abc import Sequence
from typing import NamedTuple, TextIO

from ...checks import did_you_mean
from .time_stamps import ISO
from .units import factor

# Delimiter that stands for any white space.
BLANKS = " "
_DELIMITERS = (",", ";", "\t", BLANKS)
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")
# Spellings of a missing sample, in lower case.
GAPS = frozenset(
    {"", "nan", "+nan", "-nan", "na", "n/a", "#n/a", "null", "none", "1.#qnan", "-1.#ind"}
)
_NO_UNIT = ("", "-", "--")


class Header(NamedTuple):
    """The lines before the data of a file.

    **Attributes:** `names` of the columns, and the `line` that contains them; `delimiter`; `units`
    by column, if a line below the names states them; `before`, the number of lines before the data;
    `first`, the cells of the first line of data, empty if there is none.
    """

    names: list[str]
    line: int
    delimiter: str
    units: dict[str, str]
    before: int
    first: list[str]


def read_header(
    path: object, data: bytes, numeric: Sequence[str], run: str | None, delimiter: str | None
) -> Header:
    """Read the lines before the data.

    The names are in the first line that is not a comment; or in the last comment before it, if it
    contains numbers. A delimiter that is not given is the one for which the wanted names are cells.

    **Arguments:** `data`, text in UTF-8; `numeric`, the columns with numbers that are read, times
    first; `run`, a column with text; `delimiter`, `None` to detect it.
    **Errors:** `ValueError` for an unknown unit, and for a file without names.
    """
    wanted = {*numeric, *([] if run is None else [run])}
    text = enumerate(open_text(data), start=1)
    lines = ((number, line) for number, line in text if line.strip() and line.lstrip()[0] != "#")
    number, line = next(lines, (1, ""))
    if not line:
        raise ValueError(f"{path}, line 1: there is no header with the names of the columns.")
    marks = _DELIMITERS if delimiter is None else (delimiter,)
    head = enumerate(itertools.islice(open_text(data), number - 1), start=1)
    for k, comment in [(k, x.strip(" \t\r\n#")) for k, x in head if x.strip()][-1:]:
        mark, names = _split_names(comment, marks, wanted)
        if wanted <= {*names} and any(all(map(_is_number, _split(line, m))) for m in marks):
            return Header(names, k, mark, {}, number - 1, _split(line, mark))
    mark, names = _split_names(line, marks, wanted)
    below = number
    if mark != BLANKS:
        # A name in quotation marks may extend over several lines.
        rest = itertools.chain([line], (x for _, x in text))
        reader = csv.reader(rest, delimiter=mark, skipinitialspace=True, strict=True)
        names = [name.strip() for name in next(reader)]
        below += reader.line_num - 1
    k, line = next(lines, (0, ""))
    first = _split(line, mark)
    units = _read_units(path, k, names, first, numeric)
    if units is None:
        return Header(names, number, mark, {}, k - 1 if k else below, first)
    return Header(names, number, mark, units, k, _split(next(lines, (0, ""))[1], mark))


def _is_number(cell: str) -> bool:
    return bool(cell.lower() in GAPS or _NUMBER.fullmatch(cell) or ISO.fullmatch(cell))


def _split(line: str, mark: str) -> list[str]:
    """Return the cells of a line."""
    reader = csv.reader([line], delimiter=mark, skipinitialspace=True)
    return line.split() if mark == BLANKS else [cell.strip() for cell in next(reader, [])]


def _split_names(line: str, marks: Sequence[str], wanted: set[str]) -> tuple[str, list[str]]:
    """Return the delimiter with most of the wanted names, the first of `marks` in doubt."""
    rows = [(mark, _split(line, mark)) for mark in marks]
    return max(rows, key=lambda row: len(wanted & {*row[1]}))


def _read_units(
    path: object, line: int, names: list[str], cells: list[str], wanted: Sequence[str]
) -> dict[str, str] | None:
    """Return the units that a line below the names states; `None` if it is data."""
    if len(cells) != len(names) or not set(wanted) <= set(names):
        return None
    cell_of = {name: cell.strip("[](){}") for name, cell in zip(names, cells, strict=True)}
    time = cell_of[wanted[0]]
    if time and _is_number(time):
        return None
    if all(cell in _NO_UNIT or _NUMBER.fullmatch(cell) for cell in cell_of.values()):
        return None
    units = {name: cell_of[name] for name in wanted if cell_of[name] not in _NO_UNIT}
    for name, unit in units.items():
        try:
            factor(unit)
        except ValueError as error:
            raise ValueError(
                f"{path}, line {line}: the line below the names is no line of data, and no line of "
                f"units: {unit!r} below {name!r}. {error}"
            ) from error
    return units


def load_text(path: str | os.PathLike[str]) -> bytes:
    """Return the text of a file in UTF-8 or UTF-16 as UTF-8, without a byte order mark."""
    data = pathlib.Path(path).read_bytes()
    encoding = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "UTF-8"
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in {encoding}: {error}.") from error


def open_text(data: bytes) -> TextIO:
    """Return a stream of text with unchanged line ends."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")


def column_index(path: object, header: Header, name: str) -> int:
    """Return the index of a column in a line; `ValueError` unless there is one with this name."""
    names, where = header.names, f"{path}, line {header.line}"
    if not any(names):
        raise ValueError(f"{where}: there is no header with the names of the columns.")
    if names.count(name) > 1:
        raise ValueError(f"{where}: there are {names.count(name)} columns called {name!r}.")
    if len(names) == 1 and names != [name]:
        raise ValueError(
            f"{where}: there is only one column, {names[0]!r}. State the delimiter of the columns, "
            'such as `delimiter=";"`.'
        )
    if name not in names:
        time = ' Name the column of the times: `time="..."`.' if name == "time_s" else None
        raise ValueError(
            f"{where}: there is no column {name!r}; the columns are {names}."
            + (time or did_you_mean(name, names))
        )
    return names.index(name)
