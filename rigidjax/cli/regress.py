"""`rigidjax regress`."""

import pathlib
import warnings
from typing import Annotated, Any

import numpy as np
import typer

from ..identification import (
    ConsistencyError,
    ConsistentRegression,
    Regression,
    consistent_regression,
    essential_regression,
    regress,
)
from ..identification.regression.regressor import with_constants
from ..identification.regression.report import (
    as_document,
    as_record,
    body_texts,
    consistent_record,
    consistent_section,
    essential_section,
    essential_text,
    list_removed,
    numbers_table,
    size_text,
    term_texts,
)
from ..identification.result.report import origin_rows, text_hash
from ..io import together
from ..io.document import Block, Bullets, Heading, write_report_file
from ..models import update
from .base.checks import REPORT, Output, check_outputs
from .base.messages import bad_input, console, fail, print_outputs
from .case.regression import (
    RegressionCase,
    RegressionOutputs,
    check_model_output,
    read_regression_case,
)
from .options import Force, ReportFile
from .progress import show_spinner

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
        outputs = loaded.outputs.override(report=report, csv=csv, model=model)
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
    for line in _summary_lines(loaded, linear, essential, consistent):
        target.print(line, markup=False)
    with bad_input(), together():
        _write(loaded, outputs, linear, essential, consistent, force)
    print_outputs(dict(outputs))


def _summary_lines(
    case: RegressionCase,
    linear: Regression,
    essential: Regression | None,
    consistent: ConsistentRegression | None,
) -> list[str]:
    """Return the lines that the command prints."""
    data, shown = linear.data, linear if essential is None else essential
    parts = 100 * linear.rms / np.sqrt(np.mean(data.torques**2, axis=0))
    lines = [
        f"{case.title}: {size_text(linear)}",
        str(linear.verdict),
        *(f"Warning: {text}" for text in linear.warnings),
        *shown.estimate_lines,
        "residual torque, rms in % of that of the torque: "
        + ", ".join(f"{joint} {x:.1f}" for joint, x in zip(data.joints, parts, strict=True)),
    ]
    if essential is not None:
        lines.append(essential_text(linear, essential))
    if consistent is not None:
        lines += [*body_texts(consistent), *term_texts(consistent)]
    return lines


def _write(
    case: RegressionCase,
    outputs: RegressionOutputs,
    linear: Regression,
    essential: Regression | None,
    consistent: ConsistentRegression | None,
    force: bool,
) -> None:
    origin = origin_rows([("Case", f"SHA-256 {text_hash(case.text)}")], case.files)

    def document() -> list[Block]:
        parts = as_document(linear)
        parts += [] if essential is None else essential_section(linear, essential)
        parts += [] if consistent is None else consistent_section(consistent)
        return [*parts, Heading("Data"), Bullets([f"{key}: {value}" for key, value in origin])]

    def record() -> dict[str, Any]:
        values: dict[str, Any] = {"title": case.title, "regression": as_record(linear)}
        if essential is not None:
            left_out = list_removed(linear, essential)
            values["essential"] = as_record(essential) | {"left_out": left_out}
        if consistent is not None:
            values["consistent"] = consistent_record(consistent)
        return values | {"data": dict(origin)}

    table = numbers_table(linear, essential)
    for path in filter(None, (outputs.report, outputs.csv)):
        write_report_file(path, force, document, record, lambda: table)
    if outputs.model is not None and consistent is not None:
        values = consistent.terms
        if case.path.suffix.lower() == ".urdf":
            # A URDF has no element for the inertia of a rotor.
            values = {k: v for k, v in values.items() if not k.endswith(".rotor")}
        velocity = case.options.get("friction_velocity", _VELOCITY)
        system = with_constants(consistent.system, values, velocity)
        with warnings.catch_warnings():
            # Reading the file for the first time has already reported on it.
            warnings.simplefilter("ignore")
            update(case.path, system, outputs.model, **case.options)
