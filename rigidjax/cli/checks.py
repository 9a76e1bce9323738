"""Checks of numbers and paths on the command line, which raise `ValueError` or `OSError`."""

import math
import os
import pathlib
import sys


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
