"""Model of a case: a problem of the package, a model file, or tables of bodies and joints."""

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ... import bodies, forces, joints
from ...bodies import Body, FixedPointBody
from ...formulations import AbstractFormulation
from ...mechanics import System
from ...models import Model
from ...problems import find
from ...state import State
from .. import choices
from ..kinds import find_kinds
from ..model_files import load_model
from .inputs import Inputs
from .start import read_state
from .table import CaseTable, array_of_tables

_SHAPES = {kind: getattr(Body, kind) for kind in "box cylinder sphere cone rod ellipsoid".split()}


class CaseModel(NamedTuple):
    """A formulation, the state at the first sample, and the model file if there is one.

    The state is `None` if the case does not define it; see `start_of_runs`.
    """

    formulation: AbstractFormulation
    state0: State | None
    file: str | None


def read_model(top: CaseTable, inputs: Inputs, folder: pathlib.Path) -> CaseModel:
    """Read `[model]`, `[state]`, `[fixed_point_body]` and the tables of bodies and joints.

    These are `[[body]]`, `[[joint]]`, `[[force]]`, `[[motor]]` and `[[frame]]`.

    **Arguments:** `inputs`, whose names forces, joints and moments may contain; `folder`, to which
    the path of a model file is relative.
    **Errors:** `ValueError` naming the table; `OSError` for a model file that cannot be read.
    """
    table = top.table("model", {})
    state0, file = None, None
    kinds = [k for k in ("fixed_point_body", "body") if top.has(k)]
    if table.has("problem"):
        others = ["`file`"] * table.has("file") + [f"[{kind}]" for kind in kinds]
        if others:
            table.fail(f"`problem` is a complete model; remove `problem` or {others[0]}.")
        system, state0 = _problem(table)
    elif table.has("file"):
        if "fixed_point_body" in kinds:
            table.fail("`file` is a model; remove `file` or [fixed_point_body].")
        file = folder / table.text("file")
        system = _system(top, inputs, read_model_file(table, file, folder)[0].system)
    elif kinds == ["fixed_point_body"]:
        system = _fixed_point_body(top.table("fixed_point_body"), inputs)
    elif kinds == ["body"]:
        system = _system(top, inputs)
    else:
        table.fail(
            "a model is one of: `problem`, the name of a problem (`rigidjax list`); `file`, a "
            "URDF, SDF or MJCF file; [fixed_point_body]; or [[body]] tables with [[joint]] and "
            "[[force]]" + (", and not two of them." if kinds else ".")
        )
    formulation = table.call(
        choices.make_formulation,
        system,
        table.text("formulation", "null-space"),
        table.text("rotation", "quaternion"),
        table.text("rates", "body"),
        table.take("recharting", "true or false", True),
        table.take("index", "an integer", 0),
    )
    table.reject_unknown()
    if top.has("state"):
        state0 = read_state(formulation, top.table("state"))
    return CaseModel(formulation, state0, None if file is None else str(file))


def _problem(table: CaseTable) -> tuple[System | FixedPointBody, State]:
    build = table.call(find, table.text("problem"))
    arguments = table.table("arguments", {})
    problem = arguments.build(build)
    return problem.system, problem.state0


def _fixed_point_body(table: CaseTable, inputs: Inputs) -> FixedPointBody:
    parts = inputs.put(table, "moment")
    for key, base in (("potential", bodies.AbstractPotential), ("moment", bodies.AbstractMoment)):
        if table.has(key):
            part = table.table(key)
            parts[key] = part.build(part.pick("type", find_kinds(base, bodies)))
    return table.build(FixedPointBody, **parts)


def read_model_file(
    table: CaseTable,
    file: pathlib.Path,
    folder: pathlib.Path,
    defaults: Mapping[str, Any] | None = None,
) -> tuple[Model, dict[str, Any]]:
    """Return a loaded model file, and the options of `rj.models.load` that `[model]` states.

    **Arguments:** `defaults` of options.
    """
    options: dict[str, Any] = dict(defaults or {}) | {
        key: table.take(key, "true or false")
        for key in ("fixed_base", "mimic", "lump_fixed", "meshes")
        if table.has(key)
    }
    if table.has("physical"):
        options["physical"] = table.text("physical")
    if table.has("friction_velocity"):
        options["friction_velocity"] = table.number("friction_velocity")
    if table.has("friction") and not table.take("friction", "true or false"):
        options["friction_velocity"] = None
    if table.has("stops"):
        options["stops"] = table.table("stops").build(joints.Stop)
    if table.has("gravity"):
        options["gravity"] = table.numbers("gravity")
    options["ignore"] = table.texts("ignore", ())
    options["packages"] = [folder / path for path in table.texts("packages", ())]
    return table.call(load_model, file, **options), options


def _system(top: CaseTable, inputs: Inputs, loaded: System | None = None) -> System:
    """Return the system of the tables, which add to a loaded one."""
    joint_kinds = find_kinds(joints.AbstractJoint, joints)
    joint_kinds |= find_kinds(joints.AbstractConstraint, joints)
    force_kinds = find_kinds(forces.AbstractForce, forces)
    parts = [_body(table) for table in array_of_tables(top, "body")]
    links = [inputs.build(t, t.pick("type", joint_kinds)) for t in array_of_tables(top, "joint")]
    loads = [inputs.build(t, t.pick("type", force_kinds)) for t in array_of_tables(top, "force")]
    loads += [inputs.build(t, forces.Motor) for t in array_of_tables(top, "motor")]
    frames = [table.build(bodies.Frame) for table in array_of_tables(top, "frame")]
    if loaded is None:
        return top.call(System, parts, links, loads, frames)
    if any(isinstance(load, forces.Gravity) for load in loads):
        top.fail("a model file has gravity; set `gravity` in [model] instead of a [[force]].")
    return top.call(
        System,
        [*loaded.bodies, *parts],
        [*loaded.joints, *loaded.constraints, *links],
        [*loaded.forces, *loads],
        [*loaded.frames, *frames],
        closing=loaded.closing,
    )


def _body(table: CaseTable) -> Body:
    if table.has("shape"):
        return table.build(table.pick("shape", _SHAPES))
    return table.build(Body)
