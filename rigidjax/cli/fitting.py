"""Shared parts of the commands that fit: progress, failures, intervals, and printed results."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import rich.table
from rich.console import Console
from rich.markup import escape

from ..identification import (
    Fit,
    IdentificationError,
    IntervalTable,
    Posterior,
    Profile,
    identify,
    interval_table,
)
from ..identification.result.report import estimates_table, whiteness_texts
from ..identification.search.least_squares import on_iteration
from ..io.document import Table, estimate_text, std_text
from .base.messages import fail
from .case.settings import IntervalMethods
from .progress import fit_progress, show_spinner


class Timed(NamedTuple):
    """A fit and its duration, s."""

    fit: Fit
    seconds: float


def run_identification(arguments: Sequence[Any], options: Mapping[str, Any]) -> Timed:
    """Call `rj.identify` and report iterations on the error stream; exit if it raises.

    **Arguments:** `arguments` and `options` of `rj.identify`.
    """
    begin = time.monotonic()
    try:
        with fit_progress() as tell, on_iteration(tell):
            found = identify(*arguments, **options)
    except IdentificationError as error:
        fail(str(error), code=1)
    except ValueError as error:
        # The data do not permit a fit, for example too few samples for the parameters.
        fail(str(error))
    return Timed(found, time.monotonic() - begin)


def print_summary(target: Console, title: str, timed: Timed, runs: str = "run") -> None:
    """Print the verdict on the intervals, the numbers of data and parameters, and the outcome."""
    found = timed.fit
    style = "bold red" if found.verdict.is_warning else "bold green"
    target.print(f"[{style}]{escape(str(found.verdict))}[/]")
    count = len(found.run_names)
    plural = {"run": "runs", "toss": "tosses"}[runs]
    target.print(
        f"[bold]{escape(title)}, {count} {runs if count == 1 else plural}[/]: "
        f"{found.num_residuals} sampled values, {len(found.labels)} parameters; "
        f"{escape(found.result)} after {sum(found.iterations)} iterations, {timed.seconds:.1f} s"
    )


def print_estimates(target: Console, found: Fit, table: IntervalTable) -> None:
    """Print a table of all estimates with the intervals to use."""
    _print_table(target, estimates_table(found, table))


def print_from_start(target: Console, found: Fit, unit: str, scale: float, shown: str) -> None:
    """Print a table of the estimates in one unit, scaled to another, and their initial values."""
    rows = []
    for label, value, start, unit_of_label in zip(
        found.labels, found.values, found.starts, found.units, strict=True
    ):
        if unit_of_label == unit:
            std = scale * found.std[label]
            text = estimate_text(scale * float(value), std)
            rows.append((label, text, std_text(std), f"{scale * start:.4g}", shown))
    headings = ("parameter", "estimate", "std", "started from", "unit")
    _print_table(target, Table(headings, rows))


def _print_table(target: Console, table: Table) -> None:
    grid = rich.table.Table(box=None, header_style="bold")
    for name in table.columns:
        grid.add_column(name, justify="left" if name in ("parameter", "unit") else "right")
    for row in table.rows:
        grid.add_row(*map(escape, row))
    target.print(grid)


def print_residuals(target: Console, found: Fit) -> None:
    """Print the root mean square of the residuals of every sensor, over all runs and by run."""
    for sensor in found.sensors:
        by_run = found.rms_by_run[sensor.name]
        sensor_text = "" if len(found.sensors) == 1 else f" of the {sensor.name}"
        target.print(
            escape(
                f"residual{sensor_text}: {found.rms[sensor.name]:.4g} "
                f"{found.sensor_units[sensor.name]} rms over all; "
                + ", ".join(f"{name}: {value:.3g}" for name, value in by_run.items())
            )
        )


def print_verdict(target: Console, found: Fit, whiteness: bool = False) -> None:
    """Print which parameters the data determine, and the notes of the fit."""
    tests = whiteness_texts(found) if whiteness else []
    for warning in found.warnings:
        target.print(f"[bold]Warning[/]: {escape(warning)}")
    for message in (*found.identifiability.messages, *tests, *found.notes):
        target.print(f"- {escape(message)}")


class Intervals(NamedTuple):
    """Intervals by all methods, and why the failed ones failed."""

    table: IntervalTable
    profiles: list[Profile]
    posterior: Posterior | None
    failures: list[str]


def compute_intervals(fit: Fit, methods: IntervalMethods) -> Intervals:
    """Compute the intervals of a fit; a method that fails is reported and left out."""
    failures: list[str] = []

    def attempt(name: str, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        try:
            with show_spinner(name):
                return [function(*arguments)]
        except (ValueError, RuntimeError, ImportError) as error:
            failures.append(f"{name}: {error}")
            return []

    chosen = methods.profile or ()
    names = fit.labels if chosen is True else tuple(dict.fromkeys(chosen))
    profiles = [p for name in names for p in attempt(f"profile of {name}", fit.profile, name)]
    posterior = None
    if methods.posterior:
        key = jax.random.key(methods.seed)
        sampled = attempt("posterior", fit.posterior, key, methods.posterior)
        posterior = sampled[0] if sampled else None
    table = interval_table(fit, profiles=profiles, posterior=posterior)
    return Intervals(table, profiles, posterior, failures)


def print_intervals(target: Console, computed: Intervals) -> None:
    """Print the intervals by all methods side by side, and the results of each method."""
    found = (*computed.profiles, computed.posterior)
    results = [result for result in found if result is not None]
    if results:
        target.print(escape(repr(computed.table)), soft_wrap=True)
    for result in results:
        target.print(escape(repr(result)), soft_wrap=True)
