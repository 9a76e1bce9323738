"""`rigidjax run`."""

import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import jax
import numpy as np
import typer
from rich.table import Table

from .. import io
from ..formulations import AbstractFormulation
from ..mechanics import has_joints
from ..problems import Problem
from ..problems.comparison import errors_against
from ..results import SimulationError
from ..simulate.simulate import simulate
from ..simulate.solution import Solution
from ..viewer import view
from .base import checks, choices
from .base.checks import FIGURE, NETCDF, PAGE, Output, check_outputs
from .base.choices import option_name
from .base.messages import bad_input, console, fail, print_outputs
from .case import read_run_case
from .case.model import ModelTable, is_model_file
from .case.schema import parse
from .case.settings import RunTable
from .options import FORMULATIONS, ROTATIONS, SOLVERS, Force, Settings
from .progress import progress_bar


def run(
    names: Annotated[
        list[str],
        typer.Argument(
            help="A problem, see `rigidjax list`; a case in TOML; a URDF, SDF or MJCF file; or "
            "trajectories in NetCDF, as `--out` writes."
        ),
    ],
    rotation: Annotated[
        str | None, typer.Option(help=f"By default quaternion; {ROTATIONS}.")
    ] = None,
    formulation: Annotated[
        str | None, typer.Option(help=f"By default null-space; {FORMULATIONS}.")
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(help="Angular velocity as an unknown: body (default) or space components."),
    ] = None,
    index: Annotated[
        int | None,
        typer.Option(help="Differentiation index 0 to 3 of absolute and euler-parameters."),
    ] = None,
    solver: Annotated[str | None, typer.Option(help=f"{SOLVERS}; by default dopri8.")] = None,
    rtol: Annotated[
        float | None, typer.Option(help="Relative tolerance of the step size; by default 1e-9.")
    ] = None,
    atol: Annotated[
        float | None, typer.Option(help="Absolute tolerance; by default the relative one.")
    ] = None,
    dt: Annotated[
        float | None, typer.Option(help="A fixed step in s, instead of tolerances.")
    ] = None,
    t1: Annotated[
        float | None,
        typer.Option(
            help="End time in s; by default that of the problem or case, 1 s of a model file."
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(help="Number of saved times, including both ends; by default 1001."),
    ] = None,
    projection: Annotated[
        bool | None,
        typer.Option(help="Project onto the constraints after every step; by default yes."),
    ] = None,
    recharting: Annotated[
        bool | None,
        typer.Option(
            help="Change charts before minimal coordinates become singular; by default yes."
        ),
    ] = None,
    setting: Settings = None,
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Write the trajectory to this NetCDF file.")
    ] = None,
    plot: Annotated[
        pathlib.Path | None, typer.Option(help="Draw the motion into this file (.png, .pdf, ...).")
    ] = None,
    html: Annotated[
        pathlib.Path | None, typer.Option(help="Write a page with the motion in three dimensions.")
    ] = None,
    force: Force = False,
    progress: Annotated[
        bool | None,
        typer.Option(help="Show a progress bar; by default on a terminal, for long runs."),
    ] = None,
) -> None:
    """Simulate a problem, a case or a model file; print its final state, errors and work.

    A case is a file in TOML with a model, `[state]`, `[[motor]]`, `[[force]]`, `[inputs]` and
    `[run]`; see docs/robots.md. Options override its values. A model file starts from its
    reference configuration. Trajectories are not computed, but drawn together on one page.

    Examples:

    `rigidjax run heavy_top`

    `rigidjax run heavy_top --rotation directors --out top.nc --plot top.png`

    `rigidjax run tennis_racket --set disturbance=1e-5 --solver dopri5 --rtol 1e-7`

    `rigidjax run free_body --formulation absolute --dt 1e-3 --no-projection`

    `rigidjax run heavy_top --formulation absolute --index 3 --solver radau5 --rtol 1e-7`

    `rigidjax run four_bar --solver energy-momentum --dt 1e-3`

    `rigidjax run case.toml --t1 2 --out run.nc`

    `rigidjax run arm.urdf --html arm.html`

    `rigidjax run exact.nc coarse.nc --html both.html`
    """
    form = _options_given(
        formulation=formulation, rotation=rotation, rates=rates, recharting=recharting, index=index
    )
    given = _options_given(
        solver=solver, rtol=rtol, atol=atol, dt=dt, t1=t1, samples=samples, projection=projection
    )
    with bad_input():
        if any(pathlib.Path(name).suffix.lower() in NETCDF for name in names):
            others = _options_given(out=out, plot=plot, set=setting)
            show_trajectories(names, html, force, [*form, *given, *others])
            return
        if len(names) > 1:
            raise ValueError(f"Only trajectories in NetCDF are shown together; got {names}.")
        try:
            options = parse(RunTable, given, "").given_values()
        except ValueError as error:
            raise ValueError(re.sub(r"^`(?=[a-z])", "`--", str(error))) from None
        if is_model_file(names[0]) and (out is not None or html is not None):
            form["meshes"] = True  # for the pages
        example, model, settings, values, read_files = load_task(names[0], setting or (), form)
        settings = {"samples": 1001, "projection": True, **settings, **options}
        method = settings.get("solver") or choices.make_solver("dopri8")
        solver, dt = option_name(type(method)), settings.get("dt")
        rtol, atol = settings.get("rtol"), settings.get("atol")
        if dt is None and rtol is None:
            rtol = _RTOL
        atol, rtol = rtol if atol is None else atol, atol if rtol is None else rtol
        end = settings.get("t1") or example.t1
        if not end:
            raise ValueError(f"{names[0]} has no end time: set `t1` in its table [run], or `--t1`.")
        if dt is None and not choices.is_adaptive(method):
            raise ValueError(
                f"`--solver {solver}` has no error estimate: set a fixed step with --dt."
            )
        if dt is not None and end / dt > MAX_STEPS:
            raise ValueError(f"`--dt {dt:g}` gives more than {MAX_STEPS} steps; use a larger one.")
        files = (
            Output("--out", out, NETCDF),
            Output("--plot", plot, FIGURE),
            Output("--html", html, PAGE),
        )
        check_outputs(files, force, read_files)
    with bad_input(), progress_bar(example.name, progress) as meter:
        try:
            solution = simulate(
                model,
                example.state0,
                end,
                ts=np.linspace(0.0, end, settings["samples"]),
                solver=method,
                dt=dt,
                **({} if rtol is None else {"rtol": rtol, "atol": atol}),
                projection=settings["projection"],
                progress=meter,
                max_steps=settings.get("max_steps", MAX_STEPS),
                inputs=values,
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
        if html is not None:
            view(solution, title=example.title).save(html, force)
    print_outputs({"trajectory": out, "figure": plot, "page": html})


def _options_given(**options: Any) -> dict[str, Any]:
    """Return the options that the command line contains."""
    return {name: value for name, value in options.items() if value is not None}


def show_trajectories(
    names: Sequence[str], html: pathlib.Path | None, force: bool, options: Sequence[str]
) -> None:
    """Write a page with stored trajectories, by default beside the first file.

    **Arguments:** `options` of simulations, which are refused.
    """
    if options:
        raise ValueError(f"`--{options[0]}` is for simulations; {names[0]} is a stored trajectory.")
    files = [checks.check_readable(name) for name in names]
    for file in files:
        if file.suffix.lower() not in NETCDF:
            raise ValueError(f"{file} is not a trajectory in NetCDF ({', '.join(NETCDF)}).")
    target = files[0].with_suffix(".html") if html is None else html
    check_outputs([Output("--html", target, PAGE)], force, files)
    data = [io.load(file) for file in files]
    title = str(data[0].attrs.get("title", ""))
    view(*data, labels=[file.stem for file in files], title=title).save(target, force)
    print_outputs({"page": target})


class Task(NamedTuple):
    """A problem, its formulation, settings and inputs of its run, and the files that contain it."""

    problem: Problem
    model: AbstractFormulation
    settings: Mapping[str, Any]
    inputs: Mapping[str, Any]
    files: tuple[str, ...] = ()


def load_task(name: str, settings: Iterable[str], form: dict[str, Any]) -> Task:
    """Return the problem, case or model file of a name.

    **Arguments:** `settings`, those of `--set`; `form`, options of the formulation that were given.
    """
    if not (name.endswith(".toml") or is_model_file(name)):
        example = choices.make_problem(name, settings)
        table = parse(ModelTable, form, "")
        return Task(example, table.formulate(example.system), {}, {})
    if settings:
        raise ValueError("`--set` changes problems; change a case in its file.")
    case = read_run_case(name, {"model": form} if form else None)
    title, end = case.title, case.settings.get("t1", 0.0)
    example = Problem(title, title, case.model.system, case.state0, end, name)
    return Task(example, case.model, case.settings, case.inputs, case.files)


MAX_STEPS = 10_000_000
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
