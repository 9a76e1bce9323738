"""The command-line application and its commands."""

import ast
import functools
import gc
import importlib
import os
import pathlib
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ..interrupts import exit_on_signals, shows_help
from . import options
from .base.messages import bad_input, fail
from .base.plugins import import_installed_plugins, import_plugin

app = typer.Typer(
    name="rigidjax",
    help=(
        "Simulate rigid bodies and mechanisms in every formulation, compare formulations, and fit "
        "parameters to measurements. All in double precision.\n\n"
        "Example: rigidjax compare tennis_racket"
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _print_version(requested: bool) -> None:
    if requested:
        from .._version import __version__

        typer.echo(f"rigidjax {__version__}")
        raise typer.Exit


@app.callback()
def _configure_jax(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    plugin: Annotated[
        list[pathlib.Path] | None,
        typer.Option(
            help="A Python file with classes that extend rigidjax, see docs/extending.md."
        ),
    ] = None,
) -> None:
    if shows_help():
        return
    # Imported here so that help appears at once.
    import jax

    # The library never changes `jax.config`; the command line is an application and may.
    jax.config.update("jax_enable_x64", True)
    folder = cache_folder(os.environ.get("JAX_COMPILATION_CACHE_DIR"))
    jax.config.update("jax_compilation_cache_dir", folder)
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        # A command compiles many small functions, which together take a noticeable time.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    with bad_input():
        import_installed_plugins()
        for file in plugin or ():
            import_plugin(file)


def cache_folder(folder: str | None) -> str:
    """Return the folder of JAX's persistent cache, by default in the user's cache."""
    if folder is not None:
        return folder
    base = os.environ.get("XDG_CACHE_HOME")
    return str(pathlib.Path(base or pathlib.Path.home() / ".cache") / "rigidjax" / "jax")


def read_command(module: str, name: str) -> Callable[..., Any]:
    """Return a command whose module, and with it JAX, is imported when the command runs.

    Options, defaults and help are those of the function `name` in the source of the module. Its
    annotations may contain names of `pathlib`, `typing`, `typer` and `options` only.
    """
    source = pathlib.Path(__file__).with_name(f"{module}.py")
    nodes = ast.parse(source.read_text("utf-8"), source).body
    (function,) = (n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == name)
    function.body = function.body[:1]  # the docstring
    names = {"Annotated": Annotated, "pathlib": pathlib, "typer": typer, **vars(options)}
    exec(compile(ast.Module([function], []), source, "exec"), names)

    @functools.wraps(names[name])
    def run(**arguments: Any) -> None:
        getattr(importlib.import_module(f".{module}", __package__), name)(**arguments)

    return run


for _command, _module, _function in (
    ("list", "compare", "list_problems"),
    ("run", "run", "run"),
    ("model", "model", "describe_model"),
    ("compare", "compare", "compare"),
    ("identify", "identify", "identify_case"),
    ("regress", "regress", "regress_case"),
    ("export", "export", "export_case"),
    ("demo", "demo", "demo"),
):
    app.command(_command)(read_command(_module, _function))


def _refuse(old: str, new: str) -> None:
    """Add a hidden command of an older version, which names the present one."""

    def refuse() -> None:
        fail(f"`rigidjax {old}` is gone: use `rigidjax {new}`.")

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(old, hidden=True, context_settings=anything)(refuse)


for _old, _new in (
    ("describe", "model NAME --html PAGE"),
    ("view", "run TRAJECTORY.nc --html PAGE"),
    ("fit", "demo"),
):
    _refuse(_old, _new)


def main() -> None:
    """Run the console script."""
    exit_on_signals()
    # Tracing makes many objects, but little garbage: searches for it took an eighth of the time.
    gc.set_threshold(100_000, 50, 100)
    try:
        app(prog_name="rigidjax")
    finally:
        # At exit Python would search all objects once more.
        gc.freeze()
