"""`rigidjax identify`."""

import pathlib
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from .. import io
from ..identification import Fit, IdentificationError, IntervalTable, Measurements, fitted_runs
from ..identification.experiment.simulation import Settings
from ..identification.result.report import text_hash
from ..plotting.style import style
from ..state import State
from .base import checks
from .base.checks import NETCDF, PAGE, REPORT, Output, check_outputs
from .base.messages import bad_input, console, fail, print_outputs
from .case import Case, read_case
from .case.settings import Outputs
from .fitting import (
    compute_intervals,
    print_estimates,
    print_intervals,
    print_residuals,
    print_summary,
    print_verdict,
    run_identification,
)
from .options import Force, ReportFile
from .progress import show_spinner


def identify_case(
    case: Annotated[pathlib.Path, typer.Argument(help="The case, a file in TOML.")],
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Write everything into this NetCDF file.")
    ] = None,
    html: Annotated[
        pathlib.Path | None, typer.Option(help="Write a page with figures into this HTML file.")
    ] = None,
    report: ReportFile = None,
    previous: Annotated[
        pathlib.Path | None,
        typer.Option(help="Print and report the changes since this earlier report (.json)."),
    ] = None,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(help="A run that is not fitted but predicted; may be repeated."),
    ] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(help="A parameter whose profile likelihood is computed; may be repeated."),
    ] = None,
    intervals: Annotated[
        list[str] | None,
        typer.Option(
            help="Further intervals: profile or posterior; may be repeated. The case can set them "
            "in [intervals]."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Fit the parameters of a model to measurements, all described in one file.

    The case names the model (a problem, or bodies, joints and forces), the data with their units,
    the parameters and the method; see docs/case_files.md. The exit code is 1 if the fit did not
    converge, which the written files also state. The model may use any formulation, such as
    `formulation = "relative"` for joint coordinates, which is fast for open chains.

    Examples:

    `rigidjax identify examples/racket/racket.toml`

    `rigidjax identify case.toml --html fit.html --out fit.nc --force`

    `rigidjax identify case.toml --intervals profile --intervals posterior --html fit.html`

    `rigidjax identify case.toml --hold-out "run 3" --profile damping --previous old.json`
    """
    with bad_input():
        loaded = read_case(case)
        methods = loaded.intervals.add(intervals or (), profile or ())
        outputs = loaded.outputs.override(netcdf=out, html=html, report=report)
        files = (
            Output("--out", outputs.netcdf, NETCDF),
            Output("--html", outputs.html, PAGE),
            Output("--report", outputs.report, REPORT),
        )
        inputs = [case, *loaded.files, *([] if previous is None else [previous])]
        check_outputs(files, force, inputs)
        if previous is not None:
            checks.check_readable(previous)
        loaded, held_out = split_runs(loaded, hold_out or ())
        if outputs.html is not None:
            # Raises without matplotlib, before the fit starts.
            with style():
                pass
    target = console()
    timed = run_identification(
        (loaded.model, loaded.measurements, loaded.parameters),
        {"state0": loaded.state0, "throw": False, **loaded.options},
    )
    computed = compute_intervals(timed.fit, methods)
    print_summary(target, loaded.title, timed)
    print_estimates(target, timed.fit, computed.table)
    print_intervals(target, computed)
    print_residuals(target, timed.fit)
    print_verdict(target, timed.fit, whiteness=True)
    with io.together():
        write_outputs(loaded, timed.fit, computed.table, outputs, force, inputs, previous)
    print_outputs({"report": outputs.report, "everything": outputs.netcdf, "page": outputs.html})
    try:
        if held_out[0]:
            target.print(escape(repr(timed.fit.validate(*held_out))))
        if previous is not None:
            target.print(escape(timed.fit.changes_since(previous).sentence))
    except (ValueError, IdentificationError) as error:
        fail(str(error))
    failures = [*computed.failures]
    if not timed.fit.converged:
        failures.append(
            f"The fit did not converge: {timed.fit.result}. Its values are not estimates."
        )
    if failures:
        fail(" ".join(failures), code=1)


def split_runs(
    loaded: Case, names: Sequence[str]
) -> tuple[Case, tuple[list[Measurements], State | list[State] | None]]:
    """Return the case without the runs of these names, and these runs with their start states.

    **Errors:** `ValueError` for a name that is no run, and if no run is left.
    """
    runs, state0 = loaded.measurements, loaded.state0
    known = [run.name for run in runs]
    if missing := [name for name in names if name not in known]:
        raise ValueError(f"`--hold-out {missing[0]}`: there is no such run. There are: {known}.")
    if len(names) >= len(runs):
        raise ValueError("`--hold-out` leaves no run to fit.")

    def select(is_held: bool) -> tuple[list[Measurements], State | list[State] | None]:
        chosen = [k for k, name in enumerate(known) if (name in names) == is_held]
        starts = [state0[k] for k in chosen] if isinstance(state0, list) else state0
        return [runs[k] for k in chosen], starts

    measurements, starts = select(False)
    return loaded._replace(measurements=measurements, state0=starts), select(True)


def write_outputs(
    loaded: Case,
    found: Fit,
    table: IntervalTable,
    outputs: Outputs,
    force: bool,
    inputs: Sequence[str | pathlib.Path],
    previous: pathlib.Path | None,
) -> None:
    """Write the requested files; `inputs` are the files that the fit was made from."""
    if outputs.report is not None:
        found.report(outputs.report, force, previous, table)
    if outputs.netcdf is None and outputs.html is None:
        return
    settings: Any = {k: v for k, v in loaded.options.items() if k in Settings.__annotations__}
    with show_spinner("predicting and writing"):
        runs = fitted_runs(found, loaded.measurements, **settings)
        predicted = [run.values for run in runs]
        if outputs.netcdf is not None:
            attributes = {
                "title": loaded.title,
                "case": loaded.text,
                "case_sha256": text_hash(loaded.text),
                "data_files": "\n".join(loaded.files),
                "settings": ", ".join(f"{k}={v!r}" for k, v in loaded.options.items()),
            }
            data = io.fit_to_dataset(found, loaded.measurements, predicted, attributes)
            io.save(data, outputs.netcdf, force)
        if outputs.html is not None:
            from .. import plotting
            from ..viewer import view_fit

            has_motion = np.isfinite(runs[0].states.orientation[0]).all()
            plotting.write_fit_page(
                found,
                loaded.measurements,
                predicted,
                outputs.html,
                title=loaded.title,
                case=loaded.text,
                files=inputs,
                intervals=table,
                motion=view_fit(found, loaded.measurements[0], runs[0]) if has_motion else None,
                force=force,
            )
