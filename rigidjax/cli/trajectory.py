"""`rigidjax trajectory`."""

import pathlib
from typing import Annotated

import typer

from .case.trajectory import read_trajectory_case
from .messages import bad_input, console, print_outputs
from .options import Force
from .outputs import Output, check_outputs
from .progress import show_spinner


def trajectory(
    case: Annotated[pathlib.Path, typer.Argument(help="The case, a file in TOML.")],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(help="Write one period into this CSV file: positions to torques."),
    ] = None,
    rate: Annotated[float, typer.Option(help="Samples per second in the file, Hz.")] = 100.0,
    force: Force = False,
) -> None:
    """Design a periodic motion within limits that determines the inertial parameters of a robot.

    The case has the model, and in `[trajectory]` the period and the limits of every coordinate; see
    docs/experiment_design.md. Record torques during this motion, and use `rigidjax regress`.

    Example: `rigidjax trajectory arm.toml --out excitation.csv`
    """
    with bad_input():
        loaded = read_trajectory_case(case)
        check_outputs([Output("--out", out, (".csv",))], force, [case, *loaded.files])
    with bad_input(), show_spinner("design"):
        found = loaded.design()
    console().print(f"{loaded.title}: {found!r}", markup=False)
    if out is not None:
        with bad_input():
            found.to_csv(out, rate, force)
    print_outputs({"trajectory": out})
