"""Arguments and options that several commands share."""

import pathlib
from typing import Annotated

import typer

from . import choices

ProblemName = Annotated[str, typer.Argument(help="A problem; see `rigidjax list`.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the problem, such as disturbance=1e-3."),
]
SolverName = Annotated[str, typer.Option(help=f"{', '.join(choices.solver_kinds())}.")]
EndTime = Annotated[
    float | None, typer.Option(help="End time in s; by default that of the problem.")
]
WithProjection = Annotated[
    bool, typer.Option(help="Project onto the constraints after every step.")
]
ReportFile = Annotated[
    pathlib.Path | None, typer.Option(help="Write the whole report (.md, .txt, .json, .csv).")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
