"""`rigidjax model`."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from ..bodies import Body
from ..bodies.inertia import principal_euler_values
from ..mechanics import System
from ..models import JointLimits, Model
from ..models.check import compare
from .base.checks import PAGE, Output, check_outputs
from .base.choices import make_problem, pick
from .base.messages import bad_input, console, fail, print_outputs
from .case import read_run_case
from .case.model import is_model_file, load_model
from .options import Force

# Largest deviation, relative to the largest entry, up to which two programs agree.
_TOLERANCE = 1e-10
_ACTUATOR_KEYS = ("name", "joint", "kind", "gear", "control_range", "force_range")
# The programs of `--check`, with their packages and the suffixes of the files that they read.
_PROGRAMS = {
    "pinocchio": ("pip install pin", (".urdf",)),
    "mujoco": ("pip install mujoco", (".urdf", ".xml", ".mjcf")),
}


def describe_model(
    name: Annotated[
        str,
        typer.Argument(
            help="A model: URDF, SDF or MJCF; a case in TOML; or a problem, see `rigidjax list`."
        ),
    ],
    html: Annotated[
        pathlib.Path | None,
        typer.Option(help="Write a page with bodies, joints, forces, and a view."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            help="An unsupported feature to leave out, as the error names it; repeatable."
        ),
    ] = None,
    fixed_base: Annotated[
        bool | None,
        typer.Option(
            "--fixed-base/--floating-base",
            help="Fix the base to the ground or let it float; by default as the file says.",
        ),
    ] = None,
    mimic: Annotated[bool, typer.Option(help="Couple the joints with `<mimic>`.")] = True,
    physical: Annotated[
        str, typer.Option(help="Inertias that no body has: keep, nearest or error.")
    ] = "keep",
    check: Annotated[
        str | None,
        typer.Option(help="Compare at 20 random states with pinocchio or mujoco, if installed."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    force: Force = False,
) -> None:
    """Show a model: tree, masses, inertias, joints, actuators, and how its file was translated.

    For a case or a problem the tree is printed; `--html` shows the rest, also for a model file.
    With `--check` the exit code is 1 if mass matrix, bias forces or accelerations deviate by more
    than 1e-10, relative to their largest entry.

    Examples:

    `rigidjax model arm.urdf`

    `rigidjax model four_bar --html four_bar.html`

    `rigidjax model panda.urdf --ignore dynamics/D --ignore dynamics/K --check pinocchio`
    """
    file = pathlib.Path(name)
    with bad_input():
        is_problem = not (file.suffix == ".toml" or is_model_file(name))
        check_outputs([Output("--html", html, PAGE)], force, [] if is_problem else [name])
        if file.suffix == ".toml" or is_problem:
            if ignore or fixed_base is not None or check is not None or as_json:
                raise ValueError(
                    "`--ignore`, `--fixed-base`, `--check` and `--json` need a model file."
                )
            _show(name, is_problem, html, force)
            return
        program: Any = None if check is None else pick("program", check, _PROGRAMS)
        if program is not None and file.suffix.lower() not in _PROGRAMS[program][1]:
            suffixes = ", ".join(_PROGRAMS[program][1])
            raise ValueError(f"`--check {program}` reads {suffixes} files; got {file}.")
        kind: Any = pick("treatment of inertias", physical, ("keep", "nearest", "error"))
        model = load_model(
            file, ignore or (), show_warnings=False, fixed_base=fixed_base, mimic=mimic,
            physical=kind, **({} if html is None else {"meshes": True}),
        )  # fmt: skip
    deviations = None
    if program is not None:
        with bad_input():
            try:
                deviations = compare(model, program, file)
            except ModuleNotFoundError as error:
                fail(f"`--check {program}`: {error}; {_PROGRAMS[program][0]}.")
    facts = _facts(model, file)
    if deviations is not None:
        values = {k: v if math.isfinite(v) else None for k, v in deviations._asdict().items()}
        facts["deviations"] = {"program": program, **values}
    if as_json:
        typer.echo(json.dumps(facts, indent=1, allow_nan=False))
    else:
        _print(model, facts)
    if html is not None:
        _write_page(model.system, html, force, title=file.stem, files=[file])
    if deviations is not None and not all(value <= _TOLERANCE for value in deviations):
        fail(f"The model deviates from {program} by more than {_TOLERANCE:g}.", code=1)


def _show(name: str, is_problem: bool, html: pathlib.Path | None, force: bool) -> None:
    """Print the tree of a problem or a case, and write its page."""
    if is_problem:
        problem = make_problem(name)
        shown, title, state, files = problem.system, problem.title, problem.state0, ()
    else:
        case = read_run_case(name)
        shown, title, state, files = case.model, case.title, None, case.files
    system: Any = getattr(shown, "system", shown)
    target = console()
    target.print(f"[bold]{escape(title)}[/]")
    if isinstance(system, System):
        target.print(f"{system.summary}\n{system.draw()}", markup=False)
    else:
        target.print(repr(system), markup=False)
    if html is not None:
        _write_page(shown, html, force, state=state, title=title, files=files)


def _write_page(shown: Any, html: pathlib.Path, force: bool, **options: Any) -> None:
    from ..plotting import write_model_page

    write_model_page(shown, html, force=force, **options)
    print_outputs({"page": html})


def _facts(model: Model, file: pathlib.Path) -> dict[str, Any]:
    """Return the output of the command as values that JSON can express."""
    names = model.names
    tree = dict(zip(names.joints, zip(names.kinds, names.ends, strict=True), strict=True))
    return {
        "file": str(file),
        "degrees_of_freedom": model.system.num_dof,
        "mass": float(sum(body.mass for body in model.system.bodies)),
        "bodies": [_body_facts(body) for body in model.system.bodies],
        "joints": [
            {
                "name": joint.name,
                "kind": tree[joint.name][0],
                "parent": tree[joint.name][1][0],
                "child": tree[joint.name][1][1],
                "closes_loop": joint.name in names.closing,
                **_limit_facts(model, joint.name),
                "damping": _constants(joint, "damping"),
                "armature": _constants(joint, "armature"),
                "friction": _constants(joint.friction, "coulomb"),
            }
            for joint in model.system.joints
        ],
        "couplings": [coupling.name for coupling in model.system.constraints],
        "actuators": [
            {key: getattr(actuator, key) for key in _ACTUATOR_KEYS} for actuator in model.actuators
        ],
        "frames": {name: frame.body for name, frame in model.frames.items()},
        "report": [dataclasses.asdict(entry) for entry in model.report.entries],
    }


def _body_facts(body: Body) -> dict[str, Any]:
    values = np.sort(np.asarray(principal_euler_values(body.inertia)))
    # Tolerates the rounding of flat bodies and rods, as `load` does.
    is_physical = bool(values[0] >= -32 * np.finfo(float).eps * np.abs(values).sum())
    return {
        "name": body.name,
        "mass": float(body.mass),
        "principal_euler_values": values.tolist(),
        "is_physical": is_physical,
    }


def _limit_facts(model: Model, name: str) -> dict[str, Any]:
    """Return the limits of a joint in coordinates of the file; `None` where there are none."""
    limits, zero = model.limits.get(name, JointLimits()), model.zeros[name]
    position = limits.position
    return {
        "position": None if position is None else [_finite(x + zero) for x in position],
        "rate": _finite(limits.rate),
        "effort": _finite(limits.effort),
    }


def _finite(value: float | None) -> float | None:
    """Return a limit, or `None` for an infinite one."""
    return value if value is not None and math.isfinite(value) else None


def _constants(owner: Any, name: str) -> list[float]:
    """Return a constant of every coordinate of a joint; none where the owner has no such field."""
    value = getattr(owner, name, None)
    return [] if value is None else np.ravel(value).tolist()


def _print(model: Model, facts: dict[str, Any]) -> None:
    target = console()
    count = facts["degrees_of_freedom"]
    target.print(
        f"[bold]{escape(facts['file'])}[/]: {escape(model.system.summary)}, {count} degrees of "
        f"freedom, {facts['mass']:g} kg"
    )
    target.print(model.system.draw(), markup=False)
    rows = [
        (
            body["name"], f"{body['mass']:g}",
            *(f"{value:.4g}" for value in body["principal_euler_values"]),
            "" if body["is_physical"] else "not physical",
        )
        for body in facts["bodies"]
    ]  # fmt: skip
    _print_table(("body", "mass kg", "principal Euler values kg m^2", "", "", ""), rows)
    rows = [
        (
            joint["name"], joint["kind"], _range(joint["position"]), _number(joint["rate"]),
            _number(joint["effort"]), _join_numbers(joint["damping"]),
            _join_numbers(joint["armature"]), _join_numbers(joint["friction"]),
        )
        for joint in facts["joints"]
    ]  # fmt: skip
    heads = ("joint", "kind", "limits", "rate", "effort", "damping", "armature", "friction")
    _print_table(heads, rows)
    if facts["actuators"]:
        rows = [
            (*names, f"{gear:g}", _range(control), _range(force))
            for *names, gear, control, force in map(dict.values, facts["actuators"])
        ]
        _print_table(("actuator", "joint", "kind", "gear", "control", "force"), rows)
    target.print(str(model.report), markup=False)
    if "deviations" in facts:
        deviations = dict(facts["deviations"])
        program = deviations.pop("program")
        texts = [
            f"{name.replace('_', ' ')} {'undefined' if value is None else f'{value:.1e}'}"
            for name, value in deviations.items()
        ]
        target.print(f"deviations from {program}, without friction and stops of joints, relative:")
        target.print(f"  {', '.join(texts)}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _join_numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _range(limits: Sequence[float | None] | None) -> str:
    if limits is None:
        return ""
    return " to ".join("open" if value is None else f"{value:g}" for value in limits)


def _print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(box=None, header_style="bold")
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*map(escape, row))
    console().print(table)
