"""Writing of reports as Markdown, JSON or CSV."""

import csv
import io
import json
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from ..io.files import write_text


def write_report_file(
    path: str | os.PathLike[str] | None,
    force: bool,
    text: Callable[[], str],
    record: Callable[[], dict[str, Any]],
    table: Callable[[], Sequence[Sequence[Any]]],
) -> str:
    """Return a report as Markdown, or in the format of the ending of `path`, and write it there.

    The file is replaced atomically.

    **Arguments:** `path`, `None` for no file; `force`, whether to replace an existing file; `text`
    and `record`, functions that return the report as Markdown and as plain values for JSON;
    `table`, a function that returns rows for CSV, the heading first.
    **Errors:** `ValueError` for another ending than `.md`, `.txt`, `.json` or `.csv`;
    `FileExistsError` without `force`; `OSError` for a path that cannot be written.
    """
    if path is None:
        return text()
    suffix = pathlib.Path(path).suffix.lower()
    formats = {
        ".md": text,
        ".txt": text,
        ".json": lambda: json.dumps(record(), indent=2) + "\n",
        ".csv": lambda: _csv_text(table()),
    }
    if suffix not in formats:
        *others, last = formats
        raise ValueError(
            f"`report(path)` writes {', '.join(others)} or {last}; got {os.fspath(path)!r}. Change "
            "the ending."
        )
    content = formats[suffix]()
    write_text(path, content, force)
    return content


def _csv_text(rows: Sequence[Sequence[Any]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()
