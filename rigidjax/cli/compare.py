"""`rigidjax compare`."""

import math
import pathlib
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..formulations import AbstractFormulation
from ..problems import Comparison, Problem, Row, compare as compare_formulations, formulations
from . import checks, choices
from .messages import bad_input, console, errors, print_outputs
from .options import EndTime, Force, ProblemName, Settings, SolverName, WithProjection
from .outputs import FIGURE, Output, check_outputs


def compare(
    problem: ProblemName,
    solver: SolverName = "dopri5",
    rtol: Annotated[
        float, typer.Option(help="Relative tolerance, also taken as the absolute one.")
    ] = 1e-9,
    t1: EndTime = None,
    projection: WithProjection = True,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only formulations with this in their name; may be repeated."),
    ] = None,
    setting: Settings = None,
    plot: Annotated[
        pathlib.Path | None, typer.Option(help="Draw work against error into this file.")
    ] = None,
    force: Force = False,
) -> None:
    """Solve a problem in every formulation: work, errors and drifts in one table.

    Each formulation is run at four tolerances, from the one given to a thousand times it. The last
    column of the table says how many evaluations of the right-hand side it takes for the same
    error, relative to the first row.

    Examples:

    `rigidjax compare tennis_racket`

    `rigidjax compare heavy_top --solver dopri8 --rtol 1e-11 --plot work.png`

    `rigidjax compare heavy_top --no-projection --only quaternion --only directors`

    `rigidjax compare tennis_racket --set disturbance=1e-5 --rtol 1e-6`
    """
    with bad_input():
        example = choices.problem(problem, setting or ())
        method = choices.solver(solver)
        if not choices.is_adaptive(method):
            raise ValueError(
                f"`--solver {solver}` has no error estimate; a comparison is made at tolerances."
            )
        rtol = checks.tolerance("--rtol", rtol)
        end = example.t1 if t1 is None else checks.positive("--t1", t1)
        models = _chosen(example, only or ())
        check_outputs([Output("--plot", plot, FIGURE)], force)
    stream = errors()
    with stream.status(example.name) as status:
        comparison = compare_formulations(
            example,
            models,
            t1=end,
            solver=method,
            rtol=rtol,
            projection=projection,
            report=lambda label: status.update(f"{example.name}: {label}"),
        )
    how = f"{solver} at {rtol:g}, {'' if projection else 'no '}projection"
    title = f"{example.title}, {end:g} s, {how}"
    print_comparison(console(), comparison, title)
    if plot is not None:
        from .. import plotting

        plotting.save_figure(plotting.plot_comparison(comparison, title), plot, force)
    print_outputs({"figure": plot})


def _chosen(example: Problem, only: Sequence[str]) -> dict[str, AbstractFormulation]:
    """The formulations whose labels have any of these words, all without words."""
    models = formulations(example.system)
    for word in only:
        if not any(word.lower() in label.lower() for label in models):
            raise ValueError(
                f"No formulation has {word!r} in its name. There are: {'; '.join(models)}."
            )
    if not only:
        return models
    words = [word.lower() for word in only]
    return {x: m for x, m in models.items() if any(word in x.lower() for word in words)}


def print_comparison(target: Console, comparison: Comparison, title: str) -> None:
    """The table of a comparison, with what its numbers are; labels are `kind, coordinates`."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, header_style="bold"
    )
    table.add_column("\nformulation", no_wrap=True)
    moves = any(row.error_position > 0 for row in comparison.rows)
    for heading in (
        "un-\nknowns",
        "\nsteps",
        "evalu-\nations",
        "error\nin R",
        "error\nin rates",
        *(["error in\nposition"] if moves else []),
        "position\ndrift",
        "velocity\ndrift",
        "energy\ndrift",
        "relative\nwork",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    group = ""
    for row in comparison.rows:
        kind, _, name = row.label.partition(", ")
        if kind != group:
            group = kind
            table.add_row(kind)
        table.add_row(f"  {name}", *_cells(row, moves))
    target.print(table)
    target.print(
        f"All at the end. Errors: of entries of R and of body rates (rad/s)"
        f"{' and of centres of mass (m)' if moves else ''}, against {comparison.reference}. "
        "Drift: of the constraints, of their rates (1/s), of the energy "
        "(relative). Relative work: evaluations of the right-hand side for the same error, in "
        "units of the first row.",
        style="dim",
    )
    for row in comparison.rows:
        if row.failure:
            target.print(f"{row.label}: {row.failure}")
    for label, reason in comparison.left_out.items():
        target.print(f"{label}: left out. {reason}", style="dim", markup=False)


def _cells(row: Row, moves: bool) -> list[str]:
    minimal = row.position_drift == 0 and row.velocity_drift == 0
    drifts = ["-", "-"] if minimal else [_power(row.position_drift), _power(row.velocity_drift)]
    return [
        str(row.num_unknowns),
        str(row.num_steps),
        str(row.num_rhs),
        _power(row.error_rotation),
        _power(row.error_rate),
        *([_power(row.error_position)] if moves else []),
        *drifts,
        _power(row.energy_drift),
        "-" if math.isnan(row.work) else f"{row.work:.2f}",
    ]


def _power(value: float) -> str:
    return "failed" if math.isnan(value) else f"{value:.1e}"
