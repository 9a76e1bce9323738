"""Writing of reports as Markdown or JSON."""

import json
import os
import pathlib
from collections.abc import Callable
from typing import Any

from ..io.files import write_text


def write_report_file(
    path: str | os.PathLike[str] | None,
    force: bool,
    text: Callable[[], str],
    record: Callable[[], dict[str, Any]],
) -> str:
    """Return a report as Markdown, or as JSON if `path` ends in `.json`, and write it to `path`.

    The file is replaced atomically.

    **Arguments:** `path`, `None` for no file; `force`, whether to replace an existing file; `text`
    and `record`, functions that return the report as Markdown and as plain values.
    **Errors:** `ValueError` for another ending than `.md`, `.txt`, `.json`; `FileExistsError`
    without `force`; `OSError` for a path that cannot be written.
    """
    if path is None:
        return text()
    suffix = pathlib.Path(path).suffix.lower()
    if suffix not in (".md", ".txt", ".json"):
        raise ValueError(
            f"`report(path)` writes .md, .txt or .json; got {os.fspath(path)!r}. Change the ending."
        )
    content = json.dumps(record(), indent=2) + "\n" if suffix == ".json" else text()
    write_text(path, content, force)
    return content
