"""Documents as data: headings, paragraphs, lists and tables, which one writer per format writes."""

import csv
import dataclasses
import io
import json
import math
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .files import write_text


class Heading(NamedTuple):
    """The title of a document, with level 1, or of a section.

    `kind` is `"details"` for a section on a new page.
    """

    text: str
    level: int = 2
    kind: str = ""


class Paragraph(NamedTuple):
    """A paragraph; `kind` is `"verdict"`, `"caution"`, `"warning"`, `"failed"`, `"note"` or
    empty.
    """

    text: str
    kind: str = ""


class Bullets(NamedTuple):
    """A bulleted list; without items it is left out."""

    items: Sequence[str]


class Table(NamedTuple):
    """A table of texts; `kind` is `"texts"` if all columns are on the left."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    kind: str = "numbers"

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"| {' | '.join(map(str, row))} |" for row in (self.columns, *self.rows)]
        return "\n".join([lines[0], "|---" * len(self.columns) + "|", *lines[1:]])

    def __str__(self) -> str:
        """Return lines of columns that are aligned on the left."""
        rows = [list(map(str, row)) for row in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )


Block = Heading | Paragraph | Bullets | Table
_MARKDOWN = {
    "warning": "**Warning**: {}",
    **dict.fromkeys(("verdict", "caution", "failed"), "**{}**"),
}


def to_markdown(blocks: Iterable[Block]) -> str:
    """Return a document as Markdown."""
    parts = []
    for block in blocks:
        if isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {block.text}")
        elif isinstance(block, Paragraph):
            parts.append(_MARKDOWN.get(block.kind, "{}").format(block.text))
        elif isinstance(block, Table):
            parts.append(block.to_markdown())
        elif block.items:
            parts.append("\n".join(f"- {item}" for item in block.items))
    return "\n\n".join(parts) + "\n"


def to_plain(value: Any) -> Any:
    """Return records, arrays and mappings as plain values for JSON; infinite numbers as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def write_report_file(
    path: str | os.PathLike[str] | None,
    force: bool,
    document: Callable[[], Iterable[Block]],
    record: Callable[[], Mapping[str, Any]],
    table: Callable[[], Table],
) -> str:
    """Return a report as Markdown, or in the format of the ending of `path`, and write it there.

    The file is replaced atomically.

    **Arguments:** `path`, `None` for no file; `force`, whether to replace an existing file; `table`
    of the estimates, for CSV; `record` of all values, for JSON.
    **Errors:** `ValueError` for another ending than `.md`, `.txt`, `.json` or `.csv`;
    `FileExistsError` without `force`; `OSError` for a path that cannot be written.
    """
    suffix = ".md" if path is None else pathlib.Path(path).suffix.lower()
    formats = {
        ".md": lambda: to_markdown(document()),
        ".txt": lambda: to_markdown(document()),
        ".json": lambda: json.dumps(to_plain(record()), indent=2) + "\n",
        ".csv": lambda: _to_csv(table()),
    }
    if suffix not in formats:
        *others, last = formats
        raise ValueError(
            f"`report(path)` writes {', '.join(others)} or {last}; got {os.fspath(path or '')!r}. "
            "Change the ending (`rj.plotting` writes pages in HTML)."
        )
    content = formats[suffix]()
    if path is not None:
        write_text(path, content, force)
    return content


def _to_csv(table: Table) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([table.columns, *table.rows])
    return stream.getvalue()


# Significant digits of a standard deviation.
_DIGITS = 2


def estimate_text(value: float, std: float) -> str:
    """Format a value with the digits that its standard deviation justifies: 1.30008 for 6.6e-5.

    Six digits are used if the standard deviation is infinite or zero.
    """
    if not (math.isfinite(std) and std > 0 and math.isfinite(value)):
        return f"{value:.6g}"
    last = math.floor(math.log10(std)) - _DIGITS + 1
    if value == 0 or abs(value) < 0.5 * 10.0**last:
        return "0"
    # Double precision has at most 17 significant digits.
    digits = min(max(math.floor(math.log10(abs(value))) - last + 1, 1), 17)
    text = f"{value:#.{digits}g}"
    return text.removesuffix(".").replace(".e", "e")


def std_text(std: float) -> str:
    """Format a standard deviation with two digits."""
    return f"{std:.{_DIGITS}g}"


def interval_text(interval: tuple[float, float]) -> str:
    """Format an interval with the digits that its width justifies, such as `0.01770 to 0.01999`."""
    low, high = interval
    if not (math.isfinite(low) and math.isfinite(high)):
        return "not determined"
    half = 0.5 * (high - low)
    return f"{estimate_text(low, half)} to {estimate_text(high, half)}"
