"""`rigidjax regress`."""

import pathlib
import warnings
from typing import Annotated

import typer

from ..identification import (
    ConsistencyError,
    ConsistentRegression,
    Regression,
    consistent_regression,
    essential_regression,
    regress,
)
from ..identification.regression.link_frames import with_constants
from ..io import together
from ..io.files import write_text
from ..models import update
from .case.regression import (
    RegressionCase,
    RegressionOutputs,
    check_model_output,
    read_regression_case,
)
from .messages import bad_input, console, fail, print_outputs
from .options import Force, ReportFile
from .outputs import REPORT, Output, check_outputs, override_outputs
from .progress import show_spinner
from .regression_report import as_csv, as_json, as_markdown, summary_lines

# Velocity at which Coulomb friction of the fitted model is smooth, the default of `load`.
_VELOCITY = 0.01


def regress_case(
    case: Annotated[pathlib.Path, typer.Argument(help="The case, a file in TOML.")],
    csv: Annotated[
        pathlib.Path | None, typer.Option(help="Write the base parameters into this CSV file.")
    ] = None,
    model: Annotated[
        pathlib.Path | None,
        typer.Option(help="Write the model file with the consistent bodies and frictions."),
    ] = None,
    report: ReportFile = None,
    force: Force = False,
) -> None:
    """Find the inertial parameters of a robot from recorded positions and torques of its joints.

    The case names the model file (URDF, SDF or MJCF), the recordings with gears and units, the
    filter and the friction terms; see docs/regression.md. Without the motion of every joint, or
    with closed loops, use `rigidjax identify`.

    Examples:

    `rigidjax regress examples/arm/arm.toml`

    `rigidjax regress case.toml --report arm.md --model arm_fitted.urdf`
    """
    with bad_input():
        loaded = read_regression_case(case)
        outputs = override_outputs(RegressionOutputs(report, csv, model), loaded.outputs)
        files = (
            Output("--report", outputs.report, REPORT),
            Output("--csv", outputs.csv, (".csv",)),
            Output("--model", outputs.model, (loaded.path.suffix.lower(),)),
        )
        check_outputs(files, force, [case, *loaded.files])
        if outputs.model is not None:
            check_model_output(outputs.model, loaded)
    with bad_input(), show_spinner("regression"):
        linear = regress(loaded.data, **loaded.settings)
        essential = None
        if loaded.essential is not None:
            essential = essential_regression(linear, least=loaded.essential)
    try:
        consistent = (
            None
            if loaded.consistent is None
            else consistent_regression(linear, prior=loaded.prior, weight=loaded.consistent)
        )
    except ConsistencyError as error:
        fail(str(error), code=1)
    except ValueError as error:
        fail(str(error))
    target = console()
    for line in summary_lines(loaded, linear, essential, consistent):
        target.print(line, markup=False)
    with bad_input(), together():
        _write(loaded, outputs, linear, essential, consistent, force)
    print_outputs(outputs._asdict())


def _write(
    loaded: RegressionCase,
    outputs: RegressionOutputs,
    linear: Regression,
    essential: Regression | None,
    consistent: ConsistentRegression | None,
    force: bool,
) -> None:
    if outputs.report is not None:
        write = as_json if outputs.report.suffix.lower() == ".json" else as_markdown
        write_text(outputs.report, write(loaded, linear, essential, consistent), force)
    if outputs.csv is not None:
        write_text(outputs.csv, as_csv(linear, essential), force)
    if outputs.model is not None and consistent is not None:
        values = consistent.terms
        if loaded.path.suffix.lower() == ".urdf":
            # A URDF has no element for the inertia of a rotor.
            values = {k: v for k, v in values.items() if not k.endswith(".rotor")}
        velocity = loaded.options.get("friction_velocity", _VELOCITY)
        system = with_constants(consistent.system, values, velocity)
        with warnings.catch_warnings():
            # The file that is read again has been reported on.
            warnings.simplefilter("ignore")
            update(loaded.path, system, outputs.model, **loaded.options)
