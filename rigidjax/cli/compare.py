"""`rigidjax list` and `rigidjax compare`."""

import inspect
import math
import pathlib
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..formulations import AbstractFormulation
from ..problems import (
    Comparison,
    Problem,
    Row,
    all as all_problems,
    compare as compare_formulations,
    formulations,
)
from .base import checks, choices
from .base.checks import FIGURE, Output, check_outputs
from .base.messages import bad_input, console, errors, print_outputs
from .options import SOLVERS, Force, Settings

_REFERENCES = {
    "closed form": "motion in closed form",
    "an integration with 40 digits": "end state to 40 digits",
    "": "no stored reference",
}


def list_problems() -> None:
    """List the problems, their reference solutions, and the sources of their data.

    Example: `rigidjax list`
    """
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, build in all_problems().items():
        problem = build()
        parts = [f"{problem.t1:g} s", _REFERENCES[problem.known]]
        parts += [
            f"--set {key}={p.default:g}"
            if isinstance(p.default, float)
            else f"--set {key}={p.default}"
            for key, p in inspect.signature(build).parameters.items()
        ]
        table.add_row(name, problem.title)
        table.add_row("", f"[dim]{problem.source}; {'; '.join(parts)}[/]")
    console().print(table)


def compare(
    problem: Annotated[str, typer.Argument(help="A problem; see `rigidjax list`.")],
    solver: Annotated[str, typer.Option(help=f"{SOLVERS}.")] = "dopri5",
    rtol: Annotated[
        float, typer.Option(help="Relative tolerance, also used as the absolute one.")
    ] = 1e-9,
    t1: Annotated[
        float | None, typer.Option(help="End time in s; by default that of the problem.")
    ] = None,
    projection: Annotated[
        bool, typer.Option(help="Project onto the constraints after every step.")
    ] = True,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only formulations whose name contains this; may be repeated."),
    ] = None,
    setting: Settings = None,
    plot: Annotated[
        pathlib.Path | None, typer.Option(help="Draw work against error into this file.")
    ] = None,
    force: Force = False,
) -> None:
    """Solve a problem in every formulation and print work, errors and drifts in one table.

    Each formulation is run at four tolerances, from the given one to 1000 times as large. The last
    column of the table is the number of evaluations of the right-hand side for the same error,
    relative to the first row.

    Examples:

    `rigidjax compare tennis_racket`

    `rigidjax compare heavy_top --solver dopri8 --rtol 1e-11 --plot work.png`

    `rigidjax compare heavy_top --no-projection --only quaternion --only directors`

    `rigidjax compare tennis_racket --set disturbance=1e-5 --rtol 1e-6`
    """
    with bad_input():
        example = choices.make_problem(problem, setting or ())
        method = choices.make_solver(solver)
        if not choices.is_adaptive(method):
            raise ValueError(
                f"`--solver {solver}` has no error estimate, which a comparison needs. Use an "
                "adaptive solver such as dopri5."
            )
        rtol = checks.check_tolerance("--rtol", rtol)
        end = example.t1 if t1 is None else checks.check_positive("--t1", t1)
        models = _select_models(example, only or ())
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
    method_text = f"{solver} at {rtol:g}, {'' if projection else 'no '}projection"
    title = f"{example.title}, {end:g} s, {method_text}"
    print_comparison(console(), comparison, title)
    if plot is not None:
        from .. import plotting

        plotting.save_figure(plotting.plot_comparison(comparison, title), plot, force)
    print_outputs({"figure": plot})


def _select_models(example: Problem, only: Sequence[str]) -> dict[str, AbstractFormulation]:
    """Return the formulations whose labels contain any of the words, without words all."""
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
    """Print the table of a comparison and its legend; labels are `kind, coordinates`."""
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
        table.add_row(f"  {name}", *_format_cells(row, moves))
    target.print(table)
    target.print(
        f"All values are those at the end. Errors: of entries of R and of body rates (rad/s)"
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
        target.print(f"{label}: omitted. {reason}", style="dim", markup=False)


def _format_cells(row: Row, moves: bool) -> list[str]:
    minimal = row.position_drift == 0 and row.velocity_drift == 0
    drifts = [row.position_drift, row.velocity_drift]
    drifts = ["-", "-"] if minimal else [_format(drift) for drift in drifts]
    return [
        str(row.num_unknowns),
        str(row.num_steps),
        str(row.num_rhs),
        _format(row.error_rotation),
        _format(row.error_rate),
        *([_format(row.error_position)] if moves else []),
        *drifts,
        _format(row.energy_drift),
        "-" if math.isnan(row.work) else f"{row.work:.2f}",
    ]


def _format(value: float) -> str:
    return "failed" if math.isnan(value) else f"{value:.1e}"
