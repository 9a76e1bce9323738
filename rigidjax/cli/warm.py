"""`rigidjax warm`."""

import time
from typing import Annotated

import jax
import numpy as np
import typer
from rich.table import Table

from ..results import SimulationError
from ..simulate.simulate import simulate
from . import checks, choices
from .messages import bad_input, console, errors, fail
from .options import FORMULATIONS, ROTATIONS, SOLVERS
from .run import MAX_STEPS, load_task


def warm(
    names: Annotated[
        list[str],
        typer.Argument(help="Problems, see `rigidjax list`; cases in TOML; URDF, SDF, MJCF files."),
    ],
    solver: Annotated[
        list[str] | None,
        typer.Option(help=f"{SOLVERS}; may be repeated; by default dopri8, or that of the case."),
    ] = None,
    formulation: Annotated[
        str | None, typer.Option(help=f"By default null-space; {FORMULATIONS}.")
    ] = None,
    rotation: Annotated[
        str | None, typer.Option(help=f"By default quaternion; {ROTATIONS}.")
    ] = None,
    dt: Annotated[
        float | None, typer.Option(help="A fixed step in s, for solvers without an error estimate.")
    ] = None,
    samples: Annotated[int, typer.Option(min=2, help="Number of saved times.")] = 1001,
) -> None:
    """Compile the kernels of models and solvers into the cache, so that first runs start sooner.

    Each model is run with each solver as by `rigidjax run`, and as by `rj.simulate` in a script.
    Kernels depend on the number of saved times, but neither on values of parameters nor on times
    and tolerances.

    Examples:

    `rigidjax warm heavy_top four_bar --solver dopri8 --solver radau5`

    `rigidjax warm arm.toml`
    """
    with bad_input():
        if dt is not None:
            checks.check_positive("--dt", dt)
        form = {"formulation": formulation, "rotation": rotation}
        form = {key: value for key, value in form.items() if value is not None}
        tasks = [load_task(name, (), form) for name in names]
        methods = {name: choices.make_solver(name) for name in solver or ()}
        for name, method in methods.items():
            if dt is None and not choices.is_adaptive(method):
                raise ValueError(f"`--solver {name}` has no error estimate: set a step with --dt.")
    table = Table("model", "solver", "backend", "first runs", box=None)
    for task in tasks:
        case_solver = task.settings.get("solver", choices.make_solver("dopri8"))
        end, step = task.problem.t1 or 1.0, task.settings.get("dt") if dt is None else dt
        for name, method in (methods or {type(case_solver).__name__: case_solver}).items():
            begin = time.perf_counter()
            # The limit of steps is a constant of the kernel.
            limit = {"max_steps": task.settings.get("max_steps", MAX_STEPS)}
            with errors().status(f"{task.problem.name}: {name}"):
                try:
                    of_command, of_script = (
                        simulate(
                            task.model, task.problem.state0, end, ts=np.linspace(0.0, end, samples),
                            solver=method, dt=step, inputs=task.inputs,
                            projection=task.settings.get("projection", True), **options,
                        )
                        for options in (limit, {})
                    )  # fmt: skip
                except SimulationError as error:
                    fail(f"{task.problem.name}, {name}: {error}", code=1)
                jax.block_until_ready((of_script.ys, of_command.states, of_command.energy))
            seconds = time.perf_counter() - begin
            backend = str(of_script.stats["backend"])
            table.add_row(task.problem.name, name, backend, f"{seconds:.1f} s")
    console().print(table)
