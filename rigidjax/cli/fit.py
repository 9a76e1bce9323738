"""`rigidjax fit`."""

import pathlib
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from ..io import together
from . import checks, choices
from .case import Case, read_case
from .fitting import (
    print_from_start,
    print_residuals,
    print_summary,
    print_verdict,
    run_identification,
)
from .messages import bad_input, console, print_outputs
from .options import Force, ReportFile
from .outputs import FIGURE, REPORT, Output, check_outputs

# The case, which `examples/racket` shows, and the measured tosses, which are in the repository.
CASE = pathlib.Path(__file__).with_name("racket.toml")
_FILE = pathlib.Path("datasets", "racket_flips", "flips.csv")
# Principal moments that the authors of the data measured on pendulums, kg m^2, about the normal of
# the strings, across and along the handle, and their standard deviations.
PENDULUM_INERTIA = (20.7e-3, 18.8e-3, 1.391e-3)
PENDULUM_DEVIATION = (3.8e-3, 5.7e-3, 0.076e-3)


def fit(
    what: Annotated[str, typer.Argument(help="What to fit: racket.")] = "racket",
    data: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Measured rates, CSV with the columns trial, time_s, "
            "omega1_rad_s, omega2_rad_s, omega3_rad_s; the tosses in the repository if not given."
        ),
    ] = None,
    inertia: Annotated[
        tuple[float, float, float],
        typer.Option(help="Moments I1 I2 I3 to start from, kg m^2; I3 is taken as known."),
    ] = PENDULUM_INERTIA,
    report: ReportFile = None,
    plot: Annotated[
        pathlib.Path | None, typer.Option(help="Draw measured and fitted rates into this file.")
    ] = None,
    force: Force = False,
) -> None:
    """Fit a tossed racket's inertia and drag to measured rates.

    Free rotation with quadratic drag: I1, I2, the drag coefficient and the start rates of each toss
    are fitted to all tosses at once. Such data tell no more than ratios of the moments, so I3 must
    be known. The axes are those of the data set: 1 normal to the strings, 2 across the handle, 3
    along it.

    Examples:

    `rigidjax fit racket`

    `rigidjax fit racket --plot fit.png --report fit.md`

    `rigidjax fit racket --data my_tosses.csv --inertia 0.0200 0.0190 0.0014`
    """
    with bad_input():
        choices.pick("data set", what, ("racket",))
        for moment in inertia:
            checks.positive("--inertia", moment)
        case = racket_case(data, inertia)
        files = Output("--report", report, REPORT), Output("--plot", plot, FIGURE)
        check_outputs(files, force, case.files)
    with together():
        fit_racket(console(), case, report, plot, force)
    print_outputs({"report": report, "figure": plot})


def racket_case(
    data: pathlib.Path | None = None, inertia: Sequence[float] = PENDULUM_INERTIA
) -> Case:
    """The case with these data, or those beside the package, and this inertia to start from.

    **Errors:** `FileNotFoundError` that asks for the data.
    """
    path = data or CASE.resolve().parents[2] / _FILE
    if data is None and not path.is_file():
        raise FileNotFoundError(
            f"The measured tosses are not part of an installed package: there is no {path}. Get "
            f"{_FILE.as_posix()} from the source repository and name it with `--data FILE`."
        )
    checks.readable(path)
    changes = {"data": {"file": str(path.resolve())}, "fixed_point_body": {"inertia": [*inertia]}}
    return read_case(CASE, changes)


def fit_racket(
    target: Console,
    case: Case,
    report: pathlib.Path | None,
    plot: pathlib.Path | None,
    force: bool,
) -> None:
    """Fit, print what came out, write what is asked for."""
    timed = run_identification((case.model, case.measurements, case.parameters), {})
    found = timed.fit
    print_summary(target, "Racket", timed, runs="toss")
    print_from_start(target, found, "kg m^2", 1e3, "g m^2")
    print_residuals(target, found)
    target.print(f"correlation of I1 and I2: {found.correlation('I1', 'I2'):+.5f}")
    print_verdict(target, found)
    if report is not None:
        found.report(report, force)
    if plot is not None:
        from .. import plotting

        known = tuple(case.model.multibody.bodies[0].inertia.tolist()) == PENDULUM_INERTIA
        figure = plotting.plot_fit(
            found,
            case.measurements,
            "Measured rates (dots), fitted free rotation with drag (lines)",
            moments=("I1", "I2"),
            prior=(PENDULUM_INERTIA[:2], PENDULUM_DEVIATION[:2]) if known else None,
        )
        plotting.save_figure(figure, plot, force)
