"""`rigidjax demo`."""

import pathlib
from typing import Annotated

import diffrax
import numpy as np
import typer

from .. import io
from ..formulations import NullSpace
from ..problems import compare, formulations, tennis_racket
from ..simulate.simulate import simulate
from .case import Case
from .compare import print_comparison
from .fit import fit_racket, racket_case
from .messages import bad_input, console, errors, fail
from .outputs import FIGURE, NETCDF, REPORT, Output, check_outputs

# Files that are written, with the permitted suffixes of their kind.
FILES = {
    "racket_motion.png": FIGURE,
    "racket_motion.nc": NETCDF,
    "racket_comparison.png": FIGURE,
    "racket_fit.png": FIGURE,
    "racket_fit.md": REPORT,
}

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
    with bad_input():
        case = racket_case(data)
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fail(f"Cannot make the folder {out}: {error.strerror}.")
        files = [Output("--out", out / name, FILES[name]) for name in FILES]
        check_outputs(files, True, case.files)
    with io.together():
        _demonstrate(out, case)
    target = console()
    target.rule("[bold]Written")
    for name in FILES:
        target.print(f"{out / name}")


def _demonstrate(out: pathlib.Path, case: Case) -> None:
    from .. import plotting

    names = list(FILES)
    target = console()
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
    plotting.save_figure(plotting.plot_motion(solution, racket.title), out / names[0], force=True)
    io.save(
        io.to_dataset(solution, {"title": racket.title, "source": racket.source}),
        out / names[1],
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
    plotting.save_figure(plotting.plot_comparison(comparison, title), out / names[2], force=True)
    target.rule("[bold]3. A real racket: inertia and drag from measured rates")
    fit_racket(target, case, out / names[4], out / names[3], force=True)
