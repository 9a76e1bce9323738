"""`rigidjax fit`."""

import pathlib
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..identification import Fit
from ..identification.statistics.digits import estimate_text, std_text
from ..io import together
from . import checks, choices
from .case import Case, read_case
from .fitting import print_residuals, print_summary, print_verdict, run_identification
from .messages import bad_input, console, print_outputs
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
    report: Annotated[
        pathlib.Path | None, typer.Option(help="Write the whole report (.md, .txt, .json).")
    ] = None,
    plot: Annotated[
        pathlib.Path | None, typer.Option(help="Draw measured and fitted rates into this file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
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
        check_outputs(files, force, [data_path(data)])
    target = console()
    found = run_fit(target, case)
    with together():
        if report is not None:
            found.report(report, force)
        if plot is not None:
            from .. import plotting

            plotting.save_figure(draw(found, case, inertia), plot, force)
    print_outputs({"report": report, "figure": plot})


def data_path(path: pathlib.Path | None = None) -> pathlib.Path:
    """The measured tosses: `path`, or `datasets/racket_flips/flips.csv` beside the package.

    **Errors:** `FileNotFoundError` that asks for the file.
    """
    if path is not None:
        if not path.is_file():
            raise FileNotFoundError(f"There is no file {path}.")
        return path
    beside = pathlib.Path(__file__).resolve().parents[2] / _FILE
    if not beside.is_file():
        raise FileNotFoundError(
            f"The measured tosses are not part of an installed package: there is no {beside}. Get "
            f"{_FILE.as_posix()} from the source repository and name it with `--data FILE`."
        )
    return beside


def racket_case(
    data: pathlib.Path | None = None, inertia: Sequence[float] = PENDULUM_INERTIA
) -> Case:
    """The case with these data and this inertia to start from; I3 is kept."""
    file = str(data_path(data).resolve())
    return read_case(CASE, {"data": {"file": file}, "fixed_point_body": {"inertia": list(inertia)}})


def run_fit(target: Console, case: Case) -> Fit:
    """Fit, and print what came out."""
    timed = run_identification((case.model, case.measurements, case.parameters), {})
    print_summary(target, "Racket", timed, runs="toss")
    _print_moments(target, timed.fit)
    print_residuals(target, timed.fit)
    target.print(f"correlation of I1 and I2: {timed.fit.correlation('I1', 'I2'):+.5f}")
    print_verdict(target, timed.fit)
    return timed.fit


def draw(found: Fit, case: Case, inertia: tuple[float, float, float]):
    """The figure of a fit, with the pendulum values if it started from them."""
    from .. import plotting

    known = inertia == PENDULUM_INERTIA
    return plotting.plot_fit(
        found,
        case.measurements,
        "Measured rates (dots), fitted free rotation with drag (lines)",
        moments=("I1", "I2"),
        prior=(inertia[:2], PENDULUM_DEVIATION[:2]) if known else None,
    )


def _print_moments(target: Console, found: Fit) -> None:
    """Moments and drag in g m^2, without the start rates."""
    table = Table(box=None, header_style="bold")
    table.add_column("parameter")
    for heading in ("estimate", "std", "started from"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    std = found.std
    rows = zip(found.labels, found.values, found.starts, found.units, strict=True)
    for label, value, start, unit in rows:
        if unit == "kg m^2":
            own = 1e3 * std[label]
            text = estimate_text(1e3 * float(value), own)
            table.add_row(label, text, std_text(own), f"{1e3 * start:.4g}", "g m^2")
    target.print(table)
