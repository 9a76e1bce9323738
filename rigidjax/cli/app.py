"""The command-line application and its commands."""

import os
import pathlib
from typing import Annotated

import jax
import typer

from ..interrupts import exit_on_signals
from .compare import compare
from .demo import demo
from .describe import describe
from .fit import fit
from .identify import identify_case
from .listing import list_problems
from .messages import bad_input
from .model import describe_model
from .plugins import import_installed_plugins, import_plugin
from .regress import regress_case
from .run import run
from .sweep import sweep
from .view import view_files

app = typer.Typer(
    name="rigidjax",
    help=(
        "Simulate rotating rigid bodies in every formulation, compare formulations, and fit "
        "inertia to measured rates. All in double precision.\n\n"
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


app.command("list")(list_problems)
app.command("run")(run)
app.command("describe")(describe)
app.command("model")(describe_model)
app.command("compare")(compare)
app.command("fit")(fit)
app.command("identify")(identify_case)
app.command("regress")(regress_case)
app.command("view")(view_files)
app.command("sweep")(sweep)
app.command("demo")(demo)


def main() -> None:
    """Run the console script."""
    exit_on_signals()
    app()
