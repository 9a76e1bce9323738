"""Code of users in the command line: Python files, and installed packages that extend rigidjax."""

import functools
import importlib.metadata
import importlib.util
import pathlib
import sys
import traceback
import types
from typing import Any

from .checks import check_readable

# Group of the entry points that packages declare in their `pyproject.toml`.
_GROUP = "rigidjax"


@functools.cache
def import_plugin(file: pathlib.Path) -> types.ModuleType:
    """Import a Python file once; the classes that it defines are known by their names.

    It may import modules of its folder.

    **Errors:** `FileNotFoundError`; `ValueError` with the first error in the file and its line.
    """
    path = check_readable(file)
    sys.path.insert(0, str(path.parent.resolve()))
    spec: Any = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise ValueError(f"{path} is not a Python file; its name must end with .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # where dataclasses look up annotations
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path} cannot be imported: {_describe_error(error, path)}") from error
    return module


@functools.cache
def import_installed_plugins() -> None:
    """Import the modules that installed packages declare as entry points of the group `rigidjax`.

    **Errors:** `ValueError` naming the package whose module cannot be imported.
    """
    for entry in importlib.metadata.entry_points(group=_GROUP):
        try:
            entry.load()
        except Exception as error:
            package = "an installed package" if entry.dist is None else entry.dist.name
            raise ValueError(
                f"The plugin {entry.value!r} of {package} cannot be imported: "
                f"{type(error).__name__}: {error}. Repair or uninstall the package."
            ) from error


def _describe_error(error: Exception, path: pathlib.Path) -> str:
    """Return an error's type, the first line of its text, and the last line in the file `path`."""
    text = str(error).strip().partition("\n")[0]
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if pathlib.Path(f.filename).resolve() == path.resolve()]
    where = f" ({path}, line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {text}{where}."
