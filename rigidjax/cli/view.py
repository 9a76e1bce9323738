"""`rigidjax view`."""

import pathlib
from typing import Annotated

import typer

from ..viewer import view
from ..viewer.page import THEMES
from .choices import pick
from .messages import bad_input, print_outputs
from .options import Force
from .outputs import PAGE, Output, check_outputs


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
    theme: Annotated[str, typer.Option(help=f"{', '.join(THEMES)}.")] = "auto",
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
        target = files[0].with_suffix(".html") if out is None else out
        check_outputs([Output("--out", target, PAGE)], force, files)
        data = [load(path) for path in files]
        if title is None:
            title = str(data[0].attrs.get("title", ""))
        labels = [path.stem for path in files]
        page = view(*data, labels=labels, title=title, theme=theme)
    page.save(target, force)
    print_outputs({"page": target})
