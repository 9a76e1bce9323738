"""`rigidjax identify`."""

import hashlib
import pathlib
from typing import Annotated, Any

import numpy as np
import typer

from .. import io
from ..identification import Fit, fitted_runs
from ..identification.simulation import Settings
from ..plotting.style import style
from .case import Case, read_case
from .case.method import Outputs
from .fitting import (
    print_estimates,
    print_residuals,
    print_summary,
    print_verdict,
    run_identification,
)
from .messages import bad_input, console, fail, print_outputs
from .options import Force, ReportFile
from .outputs import NETCDF, PAGE, REPORT, Output, check_outputs
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
    force: Force = False,
) -> None:
    """Fit the parameters of a model to measurements, all described in one file.

    The case names the model (a problem, or bodies, joints and forces), the data with their units,
    the parameters and the method; see docs/identification.md. The exit code is 1 if the fit did not
    converge, which the written files also state.

    Examples:

    `rigidjax identify examples/racket/racket.toml`

    `rigidjax identify case.toml --html fit.html --out fit.nc --force`
    """
    with bad_input():
        loaded = read_case(case)
        options = Outputs(out, html, report)
        outputs = Outputs(
            *(a if a is not None else b for a, b in zip(options, loaded.outputs, strict=True))
        )
        files = (
            Output("--out", outputs.netcdf, NETCDF),
            Output("--html", outputs.html, PAGE),
            Output("--report", outputs.report, REPORT),
        )
        check_outputs(files, force, [case, *loaded.files])
        if outputs.html is not None:
            # Raises without matplotlib, before the fit starts.
            with style():
                pass
    target = console()
    timed = run_identification(
        (loaded.model, loaded.measurements, loaded.parameters),
        {"state0": loaded.state0, "throw": False, **loaded.options},
    )
    print_summary(target, loaded.title, timed)
    print_estimates(target, timed.fit)
    print_residuals(target, timed.fit)
    print_verdict(target, timed.fit, whiteness=True)
    with io.together():
        write_outputs(loaded, timed.fit, outputs, force)
    print_outputs({"report": outputs.report, "everything": outputs.netcdf, "page": outputs.html})
    if not timed.fit.converged:
        fail(f"The fit did not converge: {timed.fit.result}. Its values are not estimates.", code=1)


def write_outputs(loaded: Case, found: Fit, outputs: Outputs, force: bool) -> None:
    """Write the requested files."""
    if outputs.report is not None:
        found.report(outputs.report, force)
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
                "case_sha256": hashlib.sha256(loaded.text.encode()).hexdigest(),
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
                motion=view_fit(found, loaded.measurements[0], runs[0]) if has_motion else None,
                force=force,
            )
