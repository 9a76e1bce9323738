"""`rigidjax identify`."""

import hashlib
import pathlib
from typing import Annotated, Any

import typer

from .. import io
from ..identification import Fit, predictions
from . import checks
from .case import Case, read_case
from .case.method import Outputs
from .fitting import (
    print_estimates,
    print_residuals,
    print_summary,
    print_verdict,
    run_identification,
    working,
)
from .messages import bad_input, console, fail

_REPORTS = (".md", ".txt", ".json")


def identify_case(
    case: Annotated[pathlib.Path, typer.Argument(help="The case, a file in TOML.")],
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Write everything into this NetCDF file.")
    ] = None,
    html: Annotated[
        pathlib.Path | None, typer.Option(help="Write a page with figures into this HTML file.")
    ] = None,
    report: Annotated[
        pathlib.Path | None, typer.Option(help="Write the report as text (.md, .txt, .json).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Fit the parameters of a model to measurements, all described in one file.

    The case names the model (a problem, or bodies, joints and forces), the data with their units,
    the parameters and the method; see docs/identification.md. Ends with code 1 if there is no
    optimum: what is written then says so.

    Examples:

    `rigidjax identify examples/racket/racket.toml`

    `rigidjax identify case.toml --html fit.html --out fit.nc --force`
    """
    with bad_input():
        if html is not None:
            _check_figures()
        loaded = read_case(case)
        given = Outputs(out, html, report)
        outputs = Outputs(
            *(a if a is not None else b for a, b in zip(given, loaded.outputs, strict=True))
        )
        _check_outputs(outputs, force)
    target = console()
    timed = run_identification(
        (loaded.model, loaded.measurements, loaded.parameters),
        {"state0": loaded.state0, "throw": False, **loaded.options},
    )
    print_summary(target, loaded.title, timed)
    print_estimates(target, timed.fit)
    print_residuals(target, timed.fit)
    print_verdict(target, timed.fit, whiteness=True)
    for name, path in write(loaded, timed.fit, outputs, force):
        target.print(f"{name}: {path}")
    if not timed.fit.converged:
        fail(f"The fit did not converge: {timed.fit.result}. Its numbers are no estimates.", code=1)


def write(loaded: Case, found: Fit, outputs: Outputs, force: bool) -> list[tuple[str, Any]]:
    """Write the files that are asked for.

    **Returns:** what was written, each with its path.
    """
    written = []
    if outputs.report is not None:
        found.report(outputs.report, force)
        written.append(("report", outputs.report))
    if outputs.netcdf is None and outputs.html is None:
        return written
    how = {k: v for k, v in loaded.options.items() if k in _OF_SIMULATION}
    with working("predicting and writing"):
        predicted = predictions(found, loaded.measurements, **how)
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
            written.append(("everything", outputs.netcdf))
        if outputs.html is not None:
            from .. import plotting

            plotting.write_fit_page(
                found,
                loaded.measurements,
                predicted,
                outputs.html,
                title=loaded.title,
                case=loaded.text,
                force=force,
            )
            written.append(("page", outputs.html))
    return written


_OF_SIMULATION = ("solver", "rtol", "atol", "projection", "max_steps")


def _check_outputs(outputs: Outputs, force: bool) -> None:
    if outputs.html is not None:
        _check_figures()
    if outputs.report is not None and outputs.report.suffix.lower() not in _REPORTS:
        raise ValueError(f"`--report` writes .md, .txt or .json; got {outputs.report}.")
    given = [path.resolve() for path in outputs if path is not None]
    if len(set(given)) < len(given):
        raise ValueError("Outputs must be different files.")
    for path in outputs:
        checks.output(path, force)


def _check_figures() -> None:
    """Raise `ModuleNotFoundError` without matplotlib, before any work."""
    from ..plotting.style import style

    with style():
        pass
