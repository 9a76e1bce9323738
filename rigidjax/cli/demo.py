"""`rigidjax demo`."""

import contextlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.console import Console

from .messages import bad_input, console, errors, fail

# Files that are written.
FILES = (
    "racket_motion.png",
    "racket_motion.nc",
    "racket_comparison.png",
    "racket_fit.png",
    "racket_fit.md",
)

# Compared formulations: of each kind, and with each kind of rotation.
COMPARED = (
    "null space, quaternion",
    "null space, directors",
    "null space, Euler angles ZXZ",
    "null space, rotation vector",
    "absolute, directors",
    "Hamiltonian, quaternion",
)


def demo(
    out: Annotated[
        pathlib.Path, typer.Option(help="Folder of the figures; existing ones are overwritten.")
    ] = pathlib.Path("out"),
    data: Annotated[
        pathlib.Path | None,
        typer.Option(help="Measured tosses; by default those in the repository."),
    ] = None,
) -> None:
    """Simulate a racket that flips, compare formulations, fit a real one; draw figures.

    Examples:

    `rigidjax demo`

    `rigidjax demo --out figures`
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"Cannot make the folder {out}: {error.strerror}.")
    target = console()
    files = [out / name for name in FILES]
    with _fit_racket(files, data, target) as process:
        _check_files(files, data)
        from ..io import together  # late, for it imports JAX

        with together():
            _compare_formulations(files, target)
        target.rule("[bold]3. A real racket: inertia and drag from measured rates")
        with errors().status("fitting"):
            printed, messages = process.communicate()
    if process.returncode != 0:
        sys.stderr.write(messages)
        raise typer.Exit(process.returncode)
    # Without the names of the files, which follow.
    target.file.write(printed.partition("report: ")[0])
    target.rule("[bold]Written")
    for file in files:
        target.print(f"{file}")


@contextlib.contextmanager
def _fit_racket(
    files: Sequence[pathlib.Path], data: pathlib.Path | None, target: Console
) -> Iterator[subprocess.Popen[str]]:
    """Fit the racket in a process of its own, while this one imports and compares."""
    command = [sys.executable, "-m", "rigidjax", "fit", "racket", "--force"]
    command += ["--plot", str(files[3]), "--report", str(files[4])]
    command += [] if data is None else ["--data", str(data)]
    look = {"COLUMNS": str(target.width)} | ({"FORCE_COLOR": "1"} if target.is_terminal else {})
    with subprocess.Popen(
        command,
        env=os.environ | look,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _check_files(files: Sequence[pathlib.Path], data: pathlib.Path | None) -> None:
    from .fit import racket_case
    from .outputs import FIGURE, NETCDF, REPORT, Output, check_outputs

    kinds = {".png": FIGURE, ".nc": NETCDF, ".md": REPORT}
    outputs = [Output("--out", file, kinds[file.suffix]) for file in files]
    with bad_input():
        check_outputs(outputs, True, racket_case(data).files)


def _compare_formulations(files: Sequence[pathlib.Path], target: Console) -> None:
    import diffrax
    import numpy as np

    from .. import io, plotting
    from ..formulations import NullSpace
    from ..problems import compare, formulations, tennis_racket
    from ..simulate.simulate import simulate
    from .compare import print_comparison

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
