"""The files that a command writes; checked before any work is done for them."""

import os
import pathlib
from collections.abc import Iterable
from typing import NamedTuple

from ..io import check_target
from ..plotting.style import figure_format, style

# Endings by what is written; figures have those that matplotlib knows.
NETCDF = (".nc", ".nc4", ".h5")
PAGE = (".html", ".htm")
REPORT = (".md", ".txt", ".json")
FIGURE = ()


class Output(NamedTuple):
    """A file: the option that names it, the path if there is one, the endings that it may have."""

    option: str
    path: pathlib.Path | None
    endings: tuple[str, ...]


def check_outputs(
    files: Iterable[Output], force: bool, inputs: Iterable[str | os.PathLike[str]] = ()
) -> None:
    """Files that may be written, each another one, and none of them an input.

    **Arguments:** `files`, of which those without a path are left out; `force`, existing ones may
    be replaced; `inputs`, what the command reads, which is kept even so.
    **Raises:** `ValueError` for an input, a file that is named twice, and the ending of another
    format; `FileExistsError` without `force`; `OSError` for a path that cannot be written;
    `ModuleNotFoundError` for figures without matplotlib.
    """
    inputs, earlier = list(inputs), []
    for option, path, endings in files:
        if path is None:
            continue
        if any(_is_same(path, other) for other in inputs):
            raise ValueError(f"`{option} {path}` is an input, which is kept. Name another file.")
        if any(_is_same(path, other) for other in earlier):
            raise ValueError(f"Outputs must be different files; {path} is named twice.")
        earlier.append(path)
        if not path.is_dir():
            _check_ending(option, path, endings)
            if path.exists() and not force:
                raise FileExistsError(f"{path} exists; give --force to overwrite it.")
        check_target(path, force)


def _is_same(path: pathlib.Path, other: str | os.PathLike[str]) -> bool:
    """Whether two names are of one file, also through links and in other letters' case."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    return path.exists() and os.path.exists(other) and os.path.samefile(path, other)


def _check_ending(option: str, path: pathlib.Path, endings: tuple[str, ...]) -> None:
    if endings == FIGURE:
        with style():
            figure_format(path)
    elif path.suffix.lower() not in endings:
        listed = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise ValueError(f"`{option}` writes {listed}; got {path}. Change the ending.")
