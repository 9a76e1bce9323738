"""`rigidjax export`."""

import pathlib
from typing import Annotated

import typer

from .. import exporting
from ..exporting.export import choose_platforms
from .base.checks import Output, check_outputs
from .base.messages import bad_input, print_outputs
from .case import read_export_case
from .options import Force
from .progress import show_spinner


def export_case(
    case: Annotated[
        pathlib.Path, typer.Argument(help="A case in TOML, or a URDF, SDF or MJCF file.")
    ],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(help="An FMU (.fmu), or the header of a C library (.h); by default an FMU."),
    ] = None,
    fmi: Annotated[
        str | None, typer.Option(help="Version of the FMU: 2.0, the default, or 3.0.")
    ] = None,
    platform: Annotated[
        list[str] | None,
        typer.Option(
            help="x86_64-linux, aarch64-linux, x86_64-windows, aarch64-windows, x86_64-darwin or "
            "aarch64-darwin; may be repeated. By default that of this machine."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write the model of a case as a Functional Mock-up Unit or as a C library.

    Inputs of the model are inputs, sensors are outputs, and parameters can be changed; `[run]` has
    the solver and its steps. See docs/export.md.

    Examples:

    `rigidjax export arm.toml --fmi 3.0`

    `rigidjax export arm.toml --out arm.h --platform aarch64-linux`
    """
    with bad_input():
        path = pathlib.Path(f"{case.stem}.fmu") if out is None else out
        choose_platforms(path, fmi, platform)
        loaded = read_export_case(case)
        check_outputs([Output("--out", path, (".fmu", ".h"))], force, loaded.files)
    with bad_input(), show_spinner("export"):
        exporting.export(
            loaded.model, path, fmi_version=fmi, platforms=platform, **loaded.arguments
        )
    print_outputs({"FMU" if path.suffix == ".fmu" else "C library": path})
