"""`rigidjax compare-fits`."""

import pathlib
from typing import Annotated

import typer
from rich.markup import escape

from ..identification import compare_models
from ..io.files import write_text
from .case import read_case
from .fitting import run_identification
from .messages import bad_input, console, print_outputs
from .options import Force
from .outputs import Output, check_outputs


def compare_fits(
    cases: Annotated[
        list[pathlib.Path], typer.Argument(help="Two or more cases with the same measurements.")
    ],
    folds: Annotated[
        int,
        typer.Option(help="Groups of runs that are left out in turn and predicted; 0 for none."),
    ] = 5,
    report: Annotated[
        pathlib.Path | None, typer.Option(help="Write the table into this file (.md, .txt).")
    ] = None,
    force: Force = False,
) -> None:
    """Fit several models to the same measurements, and say which one the data support.

    The cases differ in their models or parameters. The table has likelihoods, AIC, AICc and BIC,
    tests of nested models, and predictions of runs that are left out; see
    docs/model_comparison.md.

    Examples:

    `rigidjax compare-fits viscous.toml coulomb.toml`

    `rigidjax compare-fits viscous.toml coulomb.toml --folds 0 --report comparison.md`
    """
    with bad_input():
        if len(cases) < 2:
            raise ValueError("`compare-fits` needs two cases or more.")
        loaded = [read_case(case) for case in cases]
        inputs = [*cases, *(file for case in loaded for file in case.files)]
        check_outputs([Output("--report", report, (".md", ".txt"))], force, inputs)
        names = [case.stem for case in cases]
        names = names if len(set(names)) == len(names) else list(map(str, cases))
    target, fits = console(), []
    for name, case in zip(names, loaded, strict=True):
        arguments = (case.model, case.measurements, case.parameters)
        timed = run_identification(arguments, {"state0": case.state0, **case.options})
        fits.append(timed.fit)
        target.print(escape(f"{name}: {timed.fit!r}"), soft_wrap=True)
    with bad_input():
        comparison = compare_models(fits, names, folds=folds)
    target.print(escape(repr(comparison)), soft_wrap=True)
    if report is not None:
        write_text(report, comparison.to_markdown(), force)
    print_outputs({"report": report})
