"""The model of a case: a problem of the package, or bodies, joints and forces in tables."""

from typing import NamedTuple

from ... import bodies, forces, joints
from ...bodies import Body, FixedPointBody
from ...formulations import AbstractFormulation
from ...mechanics import System
from ...problems import find
from ...state import State
from .. import choices
from .inputs import Inputs
from .start import read_state
from .table import Table, array_of_tables, by_name

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


class Model(NamedTuple):
    """A formulation and the state at the first sample.

    Without a state the case says nothing about it; see `start_of_runs`.
    """

    formulation: AbstractFormulation
    state0: State | None


def read_model(top: Table, inputs: Inputs) -> Model:
    """The tables `[model]`, `[state]`, `[fixed_point_body]`, `[[body]]`, `[[joint]]`, `[[force]]`,
    `[[frame]]`.

    **Arguments:** `inputs`, which forces, joints and moments may name.
    **Errors:** `ValueError` naming the table.
    """
    table = top.table("model", {})
    state0: State | None = None
    given = [k for k in ("fixed_point_body", "body") if top.has(k)]
    if table.has("problem"):
        if given:
            table.fail(f"`problem` is a whole model; leave out `problem`, or [{given[0]}].")
        system, state0 = _problem(table)
    elif given == ["fixed_point_body"]:
        system = _fixed_point_body(top.table("fixed_point_body"), inputs)
    elif given == ["body"]:
        system = _system(top, inputs)
    else:
        table.fail(
            "a model is one of: `problem`, the name of a problem (`rigidjax list`); "
            "[fixed_point_body]; or [[body]] tables with [[joint]] and [[force]]"
            + (", and not two of them." if given else ".")
        )
    formulation = table.checked(
        choices.formulation,
        system,
        table.text("formulation", "null-space"),
        table.text("rotation", "quaternion"),
        table.text("rates", "body"),
        table.take("recharting", "true or false", True),
        table.take("index", "a whole number", 0),
    )
    table.done()
    if top.has("state"):
        state0 = read_state(formulation, top.table("state"))
    return Model(formulation, state0)


def _problem(table):
    build = table.checked(find, table.text("problem"))
    arguments = table.table("arguments", {})
    problem = arguments.build(build)
    return problem.system, problem.state0


def _fixed_point_body(table, inputs):
    parts = inputs.put(table)
    for key, kinds in (("potential", _POTENTIALS), ("moment", _MOMENTS)):
        if table.has(key):
            part = table.table(key)
            kind = part.pick("type", kinds)
            parts[key] = part.build(kind, skip=("function",))
    return table.build(FixedPointBody, **parts)


def _system(top, inputs):
    built = [_body(table) for table in array_of_tables(top, "body")]
    links = [_driven(table, _JOINTS, inputs) for table in array_of_tables(top, "joint")]
    loads = [_driven(table, _FORCES, inputs) for table in array_of_tables(top, "force")]
    frames = [table.build(bodies.Frame) for table in array_of_tables(top, "frame")]
    return top.checked(System, built, links, loads, frames)


def _body(table):
    if table.has("shape"):
        return table.build(table.pick("shape", _SHAPES))
    return table.build(Body)


def _driven(table, kinds, inputs):
    """A joint or a force, with inputs in the places of laws that it names."""
    kind = table.pick("type", kinds)
    return table.build(kind, skip=("motion",), **inputs.put(table, kind))
