"""Model files on the command line."""

import os
import pathlib
import warnings
from collections.abc import Collection
from typing import Any

from rich.markup import escape

from ..models import Model, load
from .checks import check_readable
from .messages import errors

# Suffixes by which a command recognises a model file; `load` refuses macros with the remedy.
_SUFFIXES = (".urdf", ".sdf", ".xml", ".mjcf", ".xacro")


def is_model_file(name: str) -> bool:
    """Return whether an argument of a command is the path of a model file."""
    return pathlib.Path(name).suffix.lower() in _SUFFIXES


def load_model(
    path: str | os.PathLike[str],
    ignore: Collection[str] = (),
    show_warnings: bool = True,
    **options: Any,
) -> Model:
    """Load a model file; print warnings on the error stream, a line for each.

    **Arguments:** `path`; `ignore` and `options` of `rj.models.load`; `show_warnings`, which the
    report contains too.
    **Errors:** `ValueError` and `OSError` of `rj.models.load`.
    """
    check_readable(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = load(path, ignore, **options)
    for warning in caught if show_warnings else ():
        errors().print(f"[bold]Warning:[/] {escape(str(warning.message))}")
    return model
