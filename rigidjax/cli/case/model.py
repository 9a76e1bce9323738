"""CaseModel of a case: a problem of the package, or bodies, joints and forces in tables."""

from typing import Any, NamedTuple

from ... import bodies, forces, joints
from ...bodies import Body, FixedPointBody
from ...formulations import AbstractFormulation
from ...mechanics import System
from ...problems import find
from ...state import State
from .. import choices
from .inputs import Inputs
from .start import read_state
from .table import CaseTable, array_of_tables, by_name

_JOINTS = by_name(
    joints.Coupling,
    joints.Cylindrical,
    joints.Distance,
    joints.Free,
    joints.Planar,
    joints.Prismatic,
    joints.Revolute,
    joints.Screw,
    joints.Spherical,
    joints.Universal,
    joints.Weld,
)
_FORCES = by_name(
    forces.Bushing,
    forces.Drag,
    forces.Gravity,
    forces.Motor,
    forces.PointForce,
    forces.Spring,
    forces.Torque,
    forces.TorsionSpring,
)
_SHAPES = by_name(Body.box, Body.cylinder, Body.sphere, Body.cone, Body.rod, Body.ellipsoid)
_POTENTIALS = by_name(bodies.AxialGravityPotential, bodies.GravityPotential)
_MOMENTS = by_name(bodies.ConstantMoment, bodies.LinearDrag, bodies.QuadraticDrag)


class CaseModel(NamedTuple):
    """A formulation and the state at the first sample.

    The state is `None` if the case does not define it; see `start_of_runs`.
    """

    formulation: AbstractFormulation
    state0: State | None


def read_model(top: CaseTable, inputs: Inputs) -> CaseModel:
    """Read `[model]`, `[state]`, `[fixed_point_body]` and the tables of bodies and joints.

    These are `[[body]]`, `[[joint]]`, `[[force]]` and `[[frame]]`.

    **Arguments:** `inputs`, whose names forces, joints and moments may contain.
    **Errors:** `ValueError` naming the table.
    """
    table = top.table("model", {})
    state0: State | None = None
    kinds = [k for k in ("fixed_point_body", "body") if top.has(k)]
    if table.has("problem"):
        if kinds:
            table.fail(f"`problem` is a complete model; remove `problem` or [{kinds[0]}].")
        system, state0 = _problem(table)
    elif kinds == ["fixed_point_body"]:
        system = _fixed_point_body(top.table("fixed_point_body"), inputs)
    elif kinds == ["body"]:
        system = _system(top, inputs)
    else:
        table.fail(
            "a model is one of: `problem`, the name of a problem (`rigidjax list`); "
            "[fixed_point_body]; or [[body]] tables with [[joint]] and [[force]]"
            + (", and not two of them." if kinds else ".")
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
    return CaseModel(formulation, state0)


def _problem(table: CaseTable) -> tuple[System | FixedPointBody, State]:
    build = table.call(find, table.text("problem"))
    arguments = table.table("arguments", {})
    problem = arguments.build(build)
    return problem.system, problem.state0


def _fixed_point_body(table: CaseTable, inputs: Inputs) -> FixedPointBody:
    parts = inputs.put(table)
    for key, kinds in (("potential", _POTENTIALS), ("moment", _MOMENTS)):
        if table.has(key):
            part = table.table(key)
            kind = part.pick("type", kinds)
            parts[key] = part.build(kind, skip=("function",))
    return table.build(FixedPointBody, **parts)


def _system(top: CaseTable, inputs: Inputs) -> System:
    parts = [_body(table) for table in array_of_tables(top, "body")]
    links = [_build_with_inputs(t, _JOINTS, inputs) for t in array_of_tables(top, "joint")]
    loads = [_build_with_inputs(t, _FORCES, inputs) for t in array_of_tables(top, "force")]
    frames = [table.build(bodies.Frame) for table in array_of_tables(top, "frame")]
    return top.call(System, parts, links, loads, frames)


def _body(table: CaseTable) -> Body:
    if table.has("shape"):
        return table.build(table.pick("shape", _SHAPES))
    return table.build(Body)


def _build_with_inputs(table: CaseTable, kinds: dict[str, Any], inputs: Inputs) -> Any:
    """Build a joint or a force whose keys may name inputs as laws."""
    kind = table.pick("type", kinds)
    return table.build(kind, skip=("motion",), **inputs.put(table, kind))
