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
from .time_stamps import _ISO
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


def split_cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line."""
    if delimiter == BLANKS:
        return line.split()
    return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])


def is_comment(line: str) -> bool:
    """Return whether a line has no data: it is empty, or begins with `#`."""
    return not line.strip() or line.lstrip().startswith("#")


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
    wanted = [*numeric, *([] if run is None else [run])]
    text = open_text(data)
    lines = enumerate(text, start=1)
    comment, skipped = None, 0
    for number, line in lines:
        if not is_comment(line):
            break
        skipped = number
        comment = (number, line.strip().lstrip("#").strip()) if line.strip() else comment
    else:
        raise ValueError(f"{path}, line 1: there is no header with the names of the columns.")
    candidates = _DELIMITERS if delimiter is None else (delimiter,)
    if comment is not None and _is_numeric(line, candidates):
        for mark in candidates:
            names = [name.strip() for name in split_cells(comment[1], mark)]
            if set(wanted) <= set(names):
                return Header(names, comment[0], mark, {}, skipped, split_cells(line, mark))
    mark = _find_delimiter(line, candidates, wanted)
    # A name in quotation marks may extend over several lines.
    counted = itertools.chain([line], (rest for _, rest in lines))
    if mark == BLANKS:
        names, size = line.split(), 1
    else:
        reader = csv.reader(counted, delimiter=mark, skipinitialspace=True, strict=True)
        names = next(reader)
        size = reader.line_num
    names, before = [name.strip() for name in names], number + size - 1
    first: list[str] = []
    for _, line in lines:
        if not is_comment(line):
            first = split_cells(line, mark)
            break
        before += 1
    units = _read_units(path, before + 1, names, first, numeric)
    if units is None:
        return Header(names, number, mark, {}, before, first)
    following = (x for x in text if not is_comment(x))
    return Header(names, number, mark, units, before + 1, split_cells(next(following, ""), mark))


def _is_numeric(line: str, candidates: Sequence[str]) -> bool:
    cells = [[c.strip() for c in split_cells(line, mark)] for mark in candidates]
    return any(
        all(c.lower() in GAPS or _NUMBER.fullmatch(c) or _ISO.fullmatch(c) for c in row)
        for row in cells
    )


def _find_delimiter(line: str, candidates: Sequence[str], wanted: Sequence[str]) -> str:
    rows = {mark: [name.strip() for name in split_cells(line, mark)] for mark in candidates}
    for mark, names in rows.items():
        if set(wanted) <= set(names):
            return mark
    # For the error message: the delimiter with most of the wanted names, or else most columns.
    return max(rows, key=lambda mark: (len(set(wanted) & set(rows[mark])), mark == ","))


def _read_units(
    path: object, line: int, names: list[str], cells: list[str], wanted: Sequence[str]
) -> dict[str, str] | None:
    """Return the units that a line below the names states; `None` if it is data."""
    cells = [cell.strip() for cell in cells]
    if len(cells) != len(names) or not set(wanted) <= set(names):
        return None
    cell_of = {name: cell.strip("[](){}") for name, cell in zip(names, cells, strict=True)}
    time = cell_of[wanted[0]]
    if time.lower() in GAPS - {""} or _NUMBER.fullmatch(time) or _ISO.fullmatch(time):
        return None
    if all(cell in _NO_UNIT or _NUMBER.fullmatch(cell) for cell in cell_of.values()):
        return None
    units = {}
    for name in wanted:
        if cell_of[name] in _NO_UNIT:
            continue
        try:
            factor(cell_of[name])
        except ValueError as error:
            raise ValueError(
                f"{path}, line {line}: the line below the names is no line of data, and no line of "
                f"units: {cell_of[name]!r} below {name!r}. {error}"
            ) from error
        units[name] = cell_of[name]
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
            f"{where}: there is one column only, {names[0]!r}. Say what is between columns, such "
            'as `delimiter=";"`.'
        )
    if name not in names:
        raise ValueError(
            f"{where}: there is no column {name!r}; the columns are {names}."
            + did_you_mean(name, names)
        )
    return names.index(name)
