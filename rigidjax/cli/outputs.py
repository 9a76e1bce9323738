"""Checks of the files that a command writes, before any computation."""

import os
import pathlib
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from ..io import check_target
from ..plotting.style import figure_format, style

# Permitted suffixes by kind of file; figures have those of matplotlib.
NETCDF = (".nc", ".nc4", ".h5")
PAGE = (".html", ".htm")
REPORT = (".md", ".txt", ".json", ".csv")
FIGURE = ()


class Output(NamedTuple):
    """An output file: the option that names it, its path or `None`, and the permitted suffixes."""

    option: str
    path: pathlib.Path | None
    endings: tuple[str, ...]


_Files = TypeVar("_Files", bound=tuple[Any, ...])


def override_outputs(options: _Files, case: _Files) -> _Files:
    """Return the output files of the command line, and those of the case where it names none."""
    pairs = zip(options, case, strict=True)
    return type(case)(*(option if option is not None else other for option, other in pairs))


def check_outputs(
    files: Iterable[Output], force: bool, inputs: Iterable[str | os.PathLike[str]] = ()
) -> None:
    """Check that output files can be written, are distinct, and differ from all inputs.

    **Arguments:** `files`, of which those without a path are skipped; `force`, whether existing
    files may be replaced; `inputs`, files that the command reads, which are never replaced.
    **Raises:** `ValueError` for an input, a file that is named twice, and a wrong suffix;
    `FileExistsError` for an existing file without `force`; `OSError` for a path that cannot be
    written; `ModuleNotFoundError` for figures without matplotlib.
    """
    inputs, earlier = list(inputs), []
    for option, path, endings in files:
        if path is None:
            continue
        if any(_is_same(path, other) for other in inputs):
            raise ValueError(f"`{option} {path}` is an input. Choose another file.")
        if any(_is_same(path, other) for other in earlier):
            raise ValueError(f"Outputs must be different files; {path} is named twice.")
        earlier.append(path)
        if not path.is_dir():
            _check_ending(option, path, endings)
            if path.exists() and not force:
                raise FileExistsError(f"{path} exists; use --force to overwrite it.")
        check_target(path, force)


def _is_same(path: pathlib.Path, other: str | os.PathLike[str]) -> bool:
    """Return whether two paths name one file, also through links or on a case-insensitive disk."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    return path.exists() and os.path.exists(other) and os.path.samefile(path, other)


def _check_ending(option: str, path: pathlib.Path, endings: tuple[str, ...]) -> None:
    if endings == FIGURE:
        with style():
            figure_format(path)
    elif path.suffix.lower() not in endings:
        listed = " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
        raise ValueError(f"`{option}` writes {listed}; got {path}. Change the suffix.")
