"""`rigidjax run`."""

import pathlib
from collections.abc import Iterable
from typing import Annotated, Any

import jax
import numpy as np
import typer
from rich.table import Table

from .. import io
from ..mechanics import has_joints
from ..problems import Problem
from ..problems.comparison import errors_against
from ..results import SimulationError
from ..simulate.simulate import simulate
from ..simulate.solution import Solution
from . import checks, choices
from .messages import bad_input, console, fail, print_outputs
from .options import EndTime, Force, ProblemName, Settings, SolverName, WithProjection
from .outputs import FIGURE, NETCDF, Output, check_outputs
from .progress import progress_bar


def run(
    problem: ProblemName,
    rotation: Annotated[
        str,
        typer.Option(
            help="quaternion, directors, rotation-vector, rodrigues, conformal, linear, or Euler "
            "angles as zxz, zyx, ..."
        ),
    ] = "quaternion",
    formulation: Annotated[
        str, typer.Option(help="null-space, absolute, euler-parameters, hamiltonian.")
    ] = "null-space",
    rates: Annotated[
        str, typer.Option(help="Angular velocity as an unknown: body or space components.")
    ] = "body",
    index: Annotated[
        int,
        typer.Option(help="Differentiation index 0 to 3 of absolute and euler-parameters."),
    ] = 0,
    solver: SolverName = "dopri8",
    rtol: Annotated[
        float | None, typer.Option(help="Relative tolerance of the step size; by default 1e-9.")
    ] = None,
    atol: Annotated[
        float | None, typer.Option(help="Absolute tolerance; by default the relative one.")
    ] = None,
    dt: Annotated[
        float | None, typer.Option(help="A fixed step in s, instead of tolerances.")
    ] = None,
    t1: EndTime = None,
    samples: Annotated[
        int, typer.Option(help="Number of saved times, including both ends.")
    ] = 1001,
    projection: WithProjection = True,
    recharting: Annotated[
        bool, typer.Option(help="Change charts before minimal coordinates become singular.")
    ] = True,
    setting: Settings = None,
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Write the trajectory to this NetCDF file.")
    ] = None,
    plot: Annotated[
        pathlib.Path | None, typer.Option(help="Draw the motion into this file (.png, .pdf, ...).")
    ] = None,
    force: Force = False,
    progress: Annotated[
        bool | None,
        typer.Option(help="Show a progress bar; by default on a terminal, for long runs."),
    ] = None,
) -> None:
    """Simulate a problem; print its final state, errors and work.

    Examples:

    `rigidjax run heavy_top`

    `rigidjax run heavy_top --rotation directors --out top.nc --plot top.png`

    `rigidjax run tennis_racket --set disturbance=1e-5 --solver dopri5 --rtol 1e-7`

    `rigidjax run free_body --formulation absolute --dt 1e-3 --no-projection`

    `rigidjax run heavy_top --formulation absolute --index 3 --solver radau5 --rtol 1e-7`

    `rigidjax run four_bar --solver energy-momentum --dt 1e-3`
    """
    with bad_input():
        example = choices.make_problem(problem, setting or ())
        model = choices.make_formulation(
            example.system, formulation, rotation, rates, recharting, index
        )
        method = choices.make_solver(solver)
        if dt is None and rtol is None:
            rtol = _RTOL
        rtol = None if rtol is None else checks.check_tolerance("--rtol", rtol)
        atol = rtol if atol is None else checks.check_tolerance("--atol", atol)
        rtol = atol if rtol is None else rtol
        end = example.t1 if t1 is None else checks.check_positive("--t1", t1)
        if dt is None and not choices.is_adaptive(method):
            raise ValueError(
                f"`--solver {solver}` has no error estimate: set a fixed step with --dt."
            )
        if dt is not None and end / checks.check_positive("--dt", dt) > _MAX_STEPS:
            raise ValueError(f"`--dt {dt:g}` gives more than {_MAX_STEPS} steps; use a larger one.")
        if samples < 2:
            raise ValueError(f"`--samples {samples}` must be 2 or more.")
        files = Output("--out", out, NETCDF), Output("--plot", plot, FIGURE)
        check_outputs(files, force)
    with bad_input(), progress_bar(example.name, progress) as meter:
        try:
            solution = simulate(
                model,
                example.state0,
                end,
                ts=np.linspace(0.0, end, samples),
                solver=method,
                dt=dt,
                **({} if rtol is None else {"rtol": rtol, "atol": atol}),
                projection=projection,
                progress=meter,
                max_steps=_MAX_STEPS,
            )
        except SimulationError as error:
            fail(str(error), code=1)
    control = f"step {dt:g} s" if dt is not None else f"rtol {rtol:g}, atol {atol:g}"
    method_text = f"{solver}, {control}"
    _report(example, solution, method_text)
    with io.together():
        if out is not None:
            labels = {"title": example.title, "source": example.source, "solver": method_text}
            io.save(io.to_dataset(solution, labels), out, force)
        if plot is not None:
            from .. import plotting

            plotting.save_figure(plotting.plot_motion(solution, example.title), plot, force)
    print_outputs({"trajectory": out, "figure": plot})


_MAX_STEPS = 10_000_000
_RTOL = 1e-9

# Number of bodies that are printed.
_MAX_BODIES = 3


def _report(problem: Problem, solution: Solution, method_text: str) -> None:
    states, model = solution.states, solution.model
    end = float(solution.ts[-1])
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column()
    table.add_row("problem", f"{problem.title}; {problem.source}")
    table.add_row("formulation", f"{choices.describe(model)}; {model.num_unknowns} unknowns")
    table.add_row("solver", method_text)
    counts = ("num_steps", "num_rejected_steps", "num_rhs")
    stats = {name: int(solution.stats[name]) for name in counts}
    table.add_row(
        "work",
        f"{stats['num_steps']} steps ({stats['num_rejected_steps']} rejected), "
        f"{stats['num_rhs']} evaluations of the right-hand side",
    )
    rows = min(states.orientation.shape[1], _MAX_BODIES)
    moves = model.multibody.translates
    for i in range(rows):
        body = f" of {model.multibody.bodies[i].name}" if moves else ""
        position = _format_vector(states.position[-1, i])
        orientation = _format_vector(states.orientation[-1, i])
        rates = _format_vector(states.angular_velocity[-1, i])
        if moves:
            table.add_row(f"position{body} at {end:g} s", position + "  m")
        time = "" if moves else f" at {end:g} s"
        table.add_row(f"orientation{body}{time}", orientation + "  quaternion")
        table.add_row(f"angular velocity{body}", rates + "  rad/s, body")
    if rows < states.orientation.shape[1]:
        table.add_row("", f"and {states.orientation.shape[1] - rows} more bodies; see --out")
    initial = float(solution.energy[0])
    change = abs(float(solution.energy[-1]) - initial)
    relative = f"{change / abs(initial):.1e} of {initial:.6g} J" if initial else f"{change:.1e} J"
    table.add_row("change of energy", relative)
    if model.rotation.num_constraints > 0 or has_joints(model.system):
        position, velocity = float(solution.position_drift[-1]), float(solution.velocity_drift[-1])
        table.add_row("drift", f"{position:.1e} in position, {velocity:.1e} /s in velocity")
    table.add_row("error at the end", _describe_error(problem, solution))
    console().print(table)


def _describe_error(problem: Problem, solution: Solution) -> str:
    """Describe the errors at the end against the reference solution."""
    end = solution.ts[-1:]
    if not problem.known or (not problem.has_reference and float(end[0]) != problem.t1):
        return "no reference for this end time" if problem.known else "no reference"
    states = jax.tree.map(lambda leaf: leaf[-1:], solution.states)
    expected = problem.reference(end)
    rotation, rate = errors_against(states, expected)
    words = [f"{float(rotation):.1e} in R, {float(rate):.1e} rad/s in the rates"]
    if solution.model.layout.translates:
        error = float(np.max(np.abs(states.position - expected.position)))
        words.append(f"{error:.1e} m in position")
    return f"{', '.join(words)}, against {problem.known}"


def _format_vector(values: Iterable[Any]) -> str:
    return "  ".join(f"{float(v):+.10f}" for v in values)
