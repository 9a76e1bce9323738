"""`rigidjax demo`."""

import pathlib
from collections.abc import Sequence
from typing import Annotated

import diffrax
import numpy as np
import typer
from rich.console import Console

from .. import io, plotting
from ..formulations import NullSpace
from ..problems import compare, formulations, tennis_racket
from ..simulate.simulate import simulate
from .base import checks
from .base.checks import FIGURE, NETCDF, REPORT, Output, check_outputs
from .base.messages import bad_input, console, errors, fail
from .case import Case, read_case
from .compare import print_comparison
from .fitting import (
    print_from_start,
    print_residuals,
    print_summary,
    print_verdict,
    run_identification,
)
from .options import PENDULUM_INERTIA

# Files that are written.
FILES = (
    "racket_motion.png",
    "racket_motion.nc",
    "racket_comparison.png",
    "racket_fit.png",
    "racket_fit.md",
)

# Formulations that are compared: one of each kind, and one with each kind of rotation.
COMPARED = (
    "null space, quaternion",
    "null space, directors",
    "null space, Euler angles ZXZ",
    "null space, rotation vector",
    "absolute, directors",
    "Hamiltonian, quaternion",
)
# The case file, which `examples/racket` explains, and the measured tosses of the repository.
CASE = pathlib.Path(__file__).with_name("racket.toml")
_DATA_FILE = pathlib.Path("datasets", "racket_flips", "flips.csv")
# Standard deviations of `PENDULUM_INERTIA`, kg m^2. The axes are normal to the strings, across the
# handle, and along it.
PENDULUM_DEVIATION = (3.8e-3, 5.7e-3, 0.076e-3)


def demo(
    out: Annotated[
        pathlib.Path, typer.Option(help="Folder of the figures; existing ones are overwritten.")
    ] = pathlib.Path("out"),
    data: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Measured rates, CSV with the columns trial, time_s, omega1_rad_s, "
            "omega2_rad_s, omega3_rad_s; by default the tosses in the repository."
        ),
    ] = None,
    inertia: Annotated[
        tuple[float, float, float],
        typer.Option(help="Initial moments I1 I2 I3 of the fit, kg m^2; I3 is not fitted."),
    ] = PENDULUM_INERTIA,
) -> None:
    """Simulate a racket that flips, compare formulations, fit a real one; draw figures.

    The model of the fit is free rotation with quadratic drag. I1, I2, the drag coefficient and the
    initial rates of each toss are fitted to all tosses at once. The data determine only ratios of
    the moments, so that I3 must be known. The axes are those of the data set: 1 normal to the
    strings, 2 across the handle, 3 along it.

    Examples:

    `rigidjax demo`

    `rigidjax demo --out figures --data my_tosses.csv --inertia 0.0200 0.0190 0.0014`
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"Cannot make the folder {out}: {error.strerror}.")
    files, target = [out / name for name in FILES], console()
    with bad_input():
        for moment in inertia:
            checks.check_positive("--inertia", moment)
        case = racket_case(data, inertia)
        kinds = {".png": FIGURE, ".nc": NETCDF, ".md": REPORT}
        outputs = [Output("--out", file, kinds[file.suffix]) for file in files]
        check_outputs(outputs, True, case.files)
    with io.together():
        _compare_formulations(files, target)
        target.rule("[bold]3. A real racket: inertia and drag from measured rates")
        _fit_racket(case, files, target)
    target.rule("[bold]Written")
    for file in files:
        target.print(f"{file}")


def racket_case(
    data: pathlib.Path | None = None, inertia: Sequence[float] = PENDULUM_INERTIA
) -> Case:
    """Return the case with this initial inertia, and these data or those of the repository.

    **Errors:** `FileNotFoundError` if the data are not found.
    """
    path = data or CASE.resolve().parents[2] / _DATA_FILE
    if data is None and not path.is_file():
        raise FileNotFoundError(
            f"The measured tosses are not part of an installed package: there is no {path}. Get "
            f"{_DATA_FILE.as_posix()} from the source repository and name it with `--data FILE`."
        )
    checks.check_readable(path)
    changes = {"data": {"file": str(path.resolve())}, "fixed_point_body": {"inertia": [*inertia]}}
    return read_case(CASE, changes)


def _compare_formulations(files: Sequence[pathlib.Path], target: Console) -> None:
    racket = tennis_racket()
    target.rule("[bold]1. A racket flips")
    solution = simulate(
        NullSpace(racket.system),
        racket.state0,
        racket.t1,
        ts=np.linspace(0.0, racket.t1, 2001),
        rtol=1e-11,
        atol=1e-11,
    )
    rate = np.asarray(solution.states.angular_velocity)[:, 0, 0]
    flips = np.asarray(solution.ts)[1:][np.diff(np.sign(rate)) != 0]
    target.print(
        f"{racket.title}: it flips {len(flips)} times in {racket.t1:g} s, at "
        + ", ".join(f"{t:.2f}" for t in flips)
        + " s."
    )
    plotting.save_figure(plotting.plot_motion(solution, racket.title), files[0], force=True)
    io.save(
        io.to_dataset(solution, {"title": racket.title, "source": racket.source}),
        files[1],
        force=True,
    )
    models = formulations(racket.system)
    target.rule(f"[bold]2. This motion in {len(COMPARED)} formulations")
    with errors().status(racket.name) as status:
        comparison = compare(
            racket,
            {label: models[label] for label in COMPARED},
            solver=diffrax.Dopri5(),
            report=lambda label: status.update(f"{racket.name}: {label}"),
        )
    title = f"{racket.title}, {racket.t1:g} s, dopri5 at 1e-09, projection"
    print_comparison(target, comparison, title)
    target.print(f"`rigidjax compare {racket.name}` compares all {len(models)}.")
    plotting.save_figure(plotting.plot_comparison(comparison, title), files[2], force=True)


def _fit_racket(case: Case, files: Sequence[pathlib.Path], target: Console) -> None:
    timed = run_identification((case.model, case.measurements, case.parameters), {})
    result = timed.fit
    print_summary(target, "Racket", timed, runs="toss")
    print_from_start(target, result, "kg m^2", 1e3, "g m^2")
    print_residuals(target, result)
    target.print(f"correlation of I1 and I2: {result.correlation('I1', 'I2'):+.5f}")
    print_verdict(target, result)
    known = tuple(case.model.multibody.bodies[0].inertia.tolist()) == PENDULUM_INERTIA
    figure = plotting.plot_fit(
        result,
        case.measurements,
        "Measured rates (dots), fitted free rotation with drag (lines)",
        moments=("I1", "I2"),
        prior=(PENDULUM_INERTIA[:2], PENDULUM_DEVIATION[:2]) if known else None,
    )
    plotting.save_figure(figure, files[3], force=True)
    result.report(files[4], force=True)
