"""`rigidjax view`."""

import pathlib
from typing import Annotated

import typer

from ..viewer import view
from ..viewer.page import THEMES
from .choices import pick
from .messages import bad_input, print_outputs
from .options import Force
from .outputs import NETCDF, PAGE, Output, check_outputs

# Remedies for files that this command does not read, by suffix.
_REMEDIES = {
    ".html": "Open a page in a browser.",
    ".htm": "Open a page in a browser.",
    ".toml": "Run a case with `rigidjax run CASE --html PAGE`.",
    ".urdf": "Show a model with `rigidjax run MODEL --html PAGE`.",
}


def view_files(
    files: Annotated[
        list[pathlib.Path], typer.Argument(help="Trajectories in NetCDF, as `run --out` writes.")
    ],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(help="The page to write; by default named after the first file."),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="A heading; by default the title of the first file.")
    ] = None,
    theme: Annotated[str, typer.Option(help="auto, light or dark.")] = "auto",
    force: Force = False,
) -> None:
    """Show trajectories in three dimensions, in one self-contained HTML page.

    Several trajectories are drawn together.

    Examples:

    `rigidjax run heavy_top --out top.nc && rigidjax view top.nc --out top.html`

    `rigidjax view exact.nc coarse.nc --out both.html`
    """
    from ..io import load

    with bad_input():
        theme = pick("theme", theme, THEMES)
        for file in files:
            _check_trajectory(file)
        target = files[0].with_suffix(".html") if out is None else out
        check_outputs([Output("--out", target, PAGE)], force, files)
        data = [load(path) for path in files]
        if title is None:
            title = str(data[0].attrs.get("title", ""))
        labels = [path.stem for path in files]
        page = view(*data, labels=labels, title=title, theme=theme)
    page.save(target, force)
    print_outputs({"page": target})


def _check_trajectory(file: pathlib.Path) -> None:
    """Raise `ValueError` for a file that is no NetCDF file."""
    suffix = file.suffix.lower()
    if suffix not in NETCDF:
        remedy = _REMEDIES.get(suffix, "")
        raise ValueError(
            f"`rigidjax view` reads trajectories in NetCDF ({', '.join(NETCDF)}), as `rigidjax "
            f"run --out` writes; got {file}.{' ' * bool(remedy)}{remedy}"
        )
