"""Checks of numbers, and of the files of a command, before any computation."""

import math
import os
import pathlib
import sys
from collections.abc import Iterable
from typing import NamedTuple

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
    from ...io import check_target  # late, because it imports JAX

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
        from ...plotting.style import figure_format, style

        with style():
            figure_format(path)
    elif path.suffix.lower() not in endings:
        listed = " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
        raise ValueError(f"`{option}` writes {listed}; got {path}. Change the suffix.")


def check_tolerance(option: str, value: float) -> float:
    """Return a tolerance that double precision can reach."""
    smallest = 10 * sys.float_info.epsilon
    if not value >= smallest:
        raise ValueError(
            f"`{option} {value:g}` is below what double precision reaches; use at least "
            f"{smallest:.1e}."
        )
    if not value < 1:
        raise ValueError(f"`{option} {value:g}` is not a tolerance; use a number below 1.")
    return value


def check_positive(option: str, value: float) -> float:
    """Return a positive finite number."""
    if not 0 < value < math.inf:
        raise ValueError(f"`{option} {value:g}` must be positive.")
    return value


def check_readable(path: str | os.PathLike[str]) -> pathlib.Path:
    """Return the path of an existing file."""
    file = pathlib.Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"There is no file {file}.")
    return file
