"""Checks of numbers and paths given on the command line; all raise `ValueError` or `OSError`."""

import math
import os
import pathlib

import jax.numpy as jnp


def tolerance(option: str, value: float) -> float:
    """A tolerance that double precision can reach."""
    smallest = 10 * float(jnp.finfo(jnp.float64).eps)
    if not value >= smallest:
        raise ValueError(
            f"`{option} {value:g}` is below what double precision reaches; give at least "
            f"{smallest:.1e}."
        )
    if not value < 1:
        raise ValueError(f"`{option} {value:g}` is no tolerance; give a number below 1.")
    return value


def positive(option: str, value: float) -> float:
    """A positive number."""
    if not 0 < value < math.inf:
        raise ValueError(f"`{option} {value:g}` must be positive.")
    return value


def readable(path: str | os.PathLike[str]) -> pathlib.Path:
    """A file that is there."""
    found = pathlib.Path(path)
    if not found.is_file():
        raise FileNotFoundError(f"There is no file {found}.")
    return found
