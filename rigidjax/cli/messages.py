"""What the command line says, and how it ends on bad input."""

import contextlib
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from . import choices

# What the tables need. A narrower terminal breaks the lines, but nothing is left out.
_WIDTH = 112


def console() -> Console:
    """Where results go."""
    return Console(highlight=False, width=max(Console().width, _WIDTH))


def errors() -> Console:
    """Where messages about what went wrong go."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def fail(message: str, code: int = 2) -> NoReturn:
    """End the program with a message; code 2 is bad input, 1 a computation that failed."""
    errors().print(f"[bold red]Error:[/] {escape(in_shell(message))}")
    raise typer.Exit(code)


def in_shell(message: str) -> str:
    """A message of the library without what can be done in Python only, names as in a shell."""

    def name(found: re.Match[str]) -> str:
        kind, called = found.groups()
        return f"{f'the {kind} ' if kind else ''}`{_names().get(called, called)}`"

    message = re.sub(r" `throw=False` [^.]*\.", "", message)
    message = re.sub(r"`(?:(\w+)=)?rj\.(?:\w+\.)*(\w+)\([^`]*\)`", name, message)
    return message.replace("`recharting=True`", "`--recharting`")


def _names() -> dict[str, str]:
    """Names in a shell by those of classes."""
    named = [
        kind
        for known in (choices.FORMULATIONS, choices.SOLVERS, choices.ROTATIONS)
        for kind in known.items()
    ]
    return {kind.__name__: name for name, kind in named}


def print_outputs(files: Mapping[str, pathlib.Path | None]) -> None:
    """Say what was written where, by what it is; files without a path were not."""
    for name, path in files.items():
        if path is not None:
            console().print(f"{name}: {path}", markup=False)


@contextlib.contextmanager
def bad_input() -> Iterator[None]:
    """Errors raised inside are about what the user gave: a message and exit code 2, no traceback.

    Only for the checks of arguments, which raise before any computation.
    """
    try:
        yield
    except (ValueError, OSError, ModuleNotFoundError) as error:
        fail(str(error))
