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
from .options import PENDULUM_INERTIA, Force, ReportFile
from .outputs import FIGURE, REPORT, Output, check_outputs

# The case file, which `examples/racket` explains, and the measured tosses of the repository.
CASE = pathlib.Path(__file__).with_name("racket.toml")
_DATA_FILE = pathlib.Path("datasets", "racket_flips", "flips.csv")
# Standard deviations of `PENDULUM_INERTIA`, kg m^2. The axes are normal to the strings, across the
# handle, and along it.
PENDULUM_DEVIATION = (3.8e-3, 5.7e-3, 0.076e-3)


def fit(
    what: Annotated[str, typer.Argument(help="The data set to fit: racket.")] = "racket",
    data: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Measured rates, CSV with the columns trial, time_s, "
            "omega1_rad_s, omega2_rad_s, omega3_rad_s; by default the tosses in the repository."
        ),
    ] = None,
    inertia: Annotated[
        tuple[float, float, float],
        typer.Option(help="Initial moments I1 I2 I3, kg m^2; I3 is not fitted."),
    ] = PENDULUM_INERTIA,
    report: ReportFile = None,
    plot: Annotated[
        pathlib.Path | None, typer.Option(help="Draw measured and fitted rates into this file.")
    ] = None,
    force: Force = False,
) -> None:
    """Fit a tossed racket's inertia and drag to measured rates.

    The model is free rotation with quadratic drag. I1, I2, the drag coefficient and the initial
    rates of each toss are fitted to all tosses at once. The data determine only ratios of the
    moments, so that I3 must be known. The axes are those of the data set: 1 normal to the strings,
    2 across the handle, 3 along it.

    Examples:

    `rigidjax fit racket`

    `rigidjax fit racket --plot fit.png --report fit.md`

    `rigidjax fit racket --data my_tosses.csv --inertia 0.0200 0.0190 0.0014`
    """
    with bad_input():
        choices.pick("data set", what, ("racket",))
        for moment in inertia:
            checks.check_positive("--inertia", moment)
        case = racket_case(data, inertia)
        files = Output("--report", report, REPORT), Output("--plot", plot, FIGURE)
        check_outputs(files, force, case.files)
    with together():
        fit_racket(console(), case, report, plot, force)
    print_outputs({"report": report, "figure": plot})


def racket_case(
    data: pathlib.Path | None = None, inertia: Sequence[float] = PENDULUM_INERTIA
) -> Case:
    """Return the case with this initial inertia, and these data or those of the repository.

    **Errors:** `FileNotFoundError` if the data are not found.
    """
    path = data or CASE.resolve().parents[2] / _DATA_FILE
    if data is None and not path.is_file():
        raise FileNotFoundError(
            f"The measured tosses are not part of an installed package: there is no {path}. Get "
            f"{_DATA_FILE.as_posix()} from the source repository and name it with `--data FILE`."
        )
    checks.check_readable(path)
    changes = {"data": {"file": str(path.resolve())}, "fixed_point_body": {"inertia": [*inertia]}}
    return read_case(CASE, changes)


def fit_racket(
    target: Console,
    case: Case,
    report: pathlib.Path | None,
    plot: pathlib.Path | None,
    force: bool,
) -> None:
    """Run the fit, print its results, and write the requested files."""
    timed = run_identification((case.model, case.measurements, case.parameters), {})
    result = timed.fit
    print_summary(target, "Racket", timed, runs="toss")
    print_from_start(target, result, "kg m^2", 1e3, "g m^2")
    print_residuals(target, result)
    target.print(f"correlation of I1 and I2: {result.correlation('I1', 'I2'):+.5f}")
    print_verdict(target, result)
    if report is not None:
        result.report(report, force)
    if plot is not None:
        from .. import plotting

        known = tuple(case.model.multibody.bodies[0].inertia.tolist()) == PENDULUM_INERTIA
        figure = plotting.plot_fit(
            result,
            case.measurements,
            "Measured rates (dots), fitted free rotation with drag (lines)",
            moments=("I1", "I2"),
            prior=(PENDULUM_INERTIA[:2], PENDULUM_DEVIATION[:2]) if known else None,
        )
        plotting.save_figure(figure, plot, force)
