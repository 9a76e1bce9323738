"""Messages of the command line, and its exit on bad input."""

import contextlib
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape

# Width of the tables. A narrower terminal wraps the lines, but no column is dropped.
_WIDTH = 112


def console() -> Console:
    """Return the console for results."""
    return Console(highlight=False, width=max(Console().width, _WIDTH))


def errors() -> Console:
    """Return the console for errors and progress."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def fail(message: str, code: int = 2) -> NoReturn:
    """Exit with a message; code 2 means bad input, 1 a failed computation."""
    errors().print(f"[bold red]Error:[/] {escape(translate_message(message))}")
    raise typer.Exit(code)


def translate_message(message: str) -> str:
    """Return a message of the library without hints for Python, with command-line names."""

    def name(match: re.Match[str]) -> str:
        kind, class_name = match.groups()
        return f"{f'the {kind} ' if kind else ''}`{_option_names().get(class_name, class_name)}`"

    message = re.sub(r" `throw=False` [^.]*\.", "", message)
    message = re.sub(r"`(?:(\w+)=)?rj\.(?:\w+\.)*(\w+)\([^`]*\)`", name, message)
    return message.replace("`recharting=True`", "`--recharting`")


def _option_names() -> dict[str, str]:
    """Return names on the command line by names of classes."""
    # Imported here because it imports JAX.
    from . import choices

    kinds = choices.formulation_kinds() | choices.solver_kinds() | choices.rotation_kinds()
    return {kind.__name__: name for name, kind in kinds.items() if isinstance(kind, type)}


def print_outputs(files: Mapping[str, pathlib.Path | None]) -> None:
    """Print the paths of written files with their descriptions; skip files without a path."""
    for name, path in files.items():
        if path is not None:
            console().print(f"{name}: {path}", markup=False)


@contextlib.contextmanager
def bad_input() -> Iterator[None]:
    """Turn errors about the user's input into a message and exit code 2, without a traceback.

    Use this context only for checks of arguments, which raise before any computation.
    """
    try:
        yield
    except (ValueError, OSError, ModuleNotFoundError) as error:
        fail(str(error))
