"""Model of a case: a problem of the package, a model file, or tables of bodies and joints."""

import os
import pathlib
import warnings
from collections.abc import Collection, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from rich.markup import escape

from ... import bodies, forces, joints
from ...bodies import Body, FixedPointBody
from ...formulations import AbstractFormulation
from ...initial import jointed_state
from ...mechanics import System, has_joints
from ...models import Model, load
from ...problems import find
from ...state import State
from ..base import choices
from ..base.checks import check_readable
from ..base.choices import find_kinds
from ..base.messages import errors
from .inputs import Inputs
from .schema import (
    CaseTable,
    File,
    Flag,
    Integer,
    Number,
    Numbers,
    PartTable,
    Text,
    Texts,
    TypedTable,
    one_of,
    parse,
)

_SHAPES = {kind: getattr(Body, kind) for kind in "box cylinder sphere cone rod ellipsoid".split()}
# Suffixes by which a command recognises a model file; `load` rejects macros.
_SUFFIXES = (".urdf", ".sdf", ".xml", ".mjcf", ".xacro")


class ModelTable(CaseTable):
    """`[model]`: the source of a model, options of its loader, and the formulation."""

    problem: Text | None = None
    arguments: PartTable | None = None
    file: File | None = None
    fixed_base: Flag | None = None
    mimic: Flag = True
    lump_fixed: Flag = True
    meshes: Flag = False
    physical: Text = "keep"
    friction: Flag = True
    friction_velocity: Number | None = None
    stops: PartTable | None = None
    gravity: Numbers = None
    ignore: Texts = ()
    packages: Texts = ()
    formulation: Text = "null-space"
    rotation: Text = "quaternion"
    rates: Text = "body"
    recharting: Flag = True
    index: Integer = 0

    def load(self, folder: pathlib.Path, **defaults: Any) -> tuple[Model, dict[str, Any]]:
        """Return the loaded model file, and the options of `rj.models.load`.

        **Arguments:** `folder`, to which paths are relative; `defaults` of options.
        """
        keys = ("fixed_base", "mimic", "lump_fixed", "meshes", "physical", "friction_velocity")
        options = defaults | {
            k: v for k, v in self.given_values().items() if k in (*keys, "gravity")
        }
        if not self.friction:
            options["friction_velocity"] = None
        if self.stops is not None:
            options["stops"] = self.stops.build(joints.Stop)
        options["ignore"] = self.ignore
        options["packages"] = [folder / path for path in self.packages]
        return self.call(load_model, self.file, **options), options

    def formulate(self, system: System | FixedPointBody) -> AbstractFormulation:
        """Return the formulation of a system."""
        names = self.formulation, self.rotation, self.rates
        return self.call(choices.make_formulation, system, *names, self.recharting, self.index)


class StateTable(CaseTable):
    """`[state]`: the state at the first sample, by joints or by bodies."""

    joints: dict[str, Numbers] | None = None
    joint_rates: dict[str, Numbers] | None = None
    position: Numbers = None
    orientation: Numbers = None
    velocity: Numbers = None
    angular_velocity: Numbers = None
    angles: dict[str, Numbers] = {}

    def state(self, formulation: AbstractFormulation) -> State:
        """Return the state; omitted values are those of the reference configuration."""
        rows = self.given_values("joints", "joint_rates", "angles")
        if self.joints is not None or self.joint_rates is not None:
            if not has_joints(formulation.system):
                self.fail("`joints` is set, but this model has no joints.")
            for key in (*rows, *(["angles"] if self.angles else [])):
                self.fail(f"there is no `{key}` here, beside joints and joint_rates.")
            values = self.joints or {}, self.joint_rates or {}
            return self.call(jointed_state, formulation.system, *values)
        reference = formulation.multibody.reference_state()
        names = ("position", "orientation", "velocity", "angular_velocity")
        parts = {name: getattr(reference, name) for name in names} | rows
        return self.call(lambda: formulation.check_state(State(**parts, angles=self.angles)))


class BodyTable(PartTable):
    """`[[body]]`: arguments of `Body`, or of a shape."""

    shape: Annotated[str, one_of(_SHAPES)] | None = None


class ModelTables(CaseTable):
    """The tables of a case that describe its model."""

    model: ModelTable = Field(default_factory=ModelTable)
    fixed_point_body: PartTable | None = None
    body: list[BodyTable] = []
    joint: list[TypedTable] = []
    force: list[TypedTable] = []
    motor: list[PartTable] = []
    frame: list[PartTable] = []
    state: StateTable | None = None


class CaseModel(NamedTuple):
    """A formulation, the state at the first sample, and the model file if there is one.

    The state is `None` if the case does not define it; see `start_of_runs`.
    """

    formulation: AbstractFormulation
    state0: State | None
    file: str | None


def read_model(top: ModelTables, inputs: Inputs, folder: pathlib.Path) -> CaseModel:
    """Read the model.

    **Arguments:** `inputs`, whose names forces, joints and moments may contain; `folder`, to which
    paths are relative.
    **Errors:** `ValueError` naming the table; `OSError` for a model file that cannot be read.
    """
    table, body, state0 = top.model, top.fixed_point_body, None
    kinds = [f"[{k}]" for k in ("fixed_point_body", "body") if k in top.model_fields_set]
    unused = ["body", "joint", "force", "motor", "frame"]
    if table.problem is not None:
        others = ["`file`"] * (table.file is not None) + kinds
        if others:
            table.fail(f"`problem` is a complete model; remove `problem` or {others[0]}.")
        make = table.call(find, table.problem)
        problem = make() if table.arguments is None else table.arguments.build(make)
        system, state0 = problem.system, problem.state0
    elif table.file is not None:
        if body is not None:
            table.fail("`file` is a model; remove `file` or [fixed_point_body].")
        system, unused = _system(top, inputs, table.load(folder)[0].system), []
    elif body is not None and len(kinds) == 1:
        system = _fixed_point_body(body, inputs)
    elif len(kinds) == 1:
        system, unused = _system(top, inputs), []
    else:
        table.fail(
            "a model is one of: `problem`, the name of a problem (`rigidjax list`); `file`, a "
            "URDF, SDF or MJCF file; [fixed_point_body]; or [[body]] tables with [[joint]] and "
            "[[force]]" + (", and not two of them." if kinds else ".")
        )
    formulation = table.formulate(system)
    for key in unused:
        if getattr(top, key):
            top.fail(f"[{key}] is not used by this kind of model; remove it.")
    if top.state is not None:
        state0 = top.state.state(formulation)
    file = None if table.file is None else str(table.file)
    return CaseModel(formulation, state0, file)


def _fixed_point_body(table: PartTable, inputs: Inputs) -> FixedPointBody:
    parts = inputs.laws_of(table, "moment")
    for key, base in (("potential", bodies.AbstractPotential), ("moment", bodies.AbstractMoment)):
        value = table.arguments.get(key)
        if value is not None and key not in parts:
            if not isinstance(value, Mapping):
                table.fail(f"`{key}` must be a table; got {value!r}.")
            part = parse(TypedTable, value, f"{table.where}, [{key}]")
            parts[key] = part.build(part.kind(find_kinds(base, bodies)))
    return table.build(FixedPointBody, **parts)


def _system(top: ModelTables, inputs: Inputs, loaded: System | None = None) -> System:
    """Return the system of the tables, which add to a loaded one."""
    joint_kinds = find_kinds(joints.AbstractJoint, joints)
    joint_kinds |= find_kinds(joints.AbstractConstraint, joints)
    force_kinds = find_kinds(forces.AbstractForce, forces)
    parts = [
        t.build(
            Body if t.shape is None else _SHAPES[t.call(choices.pick, "`shape`", t.shape, _SHAPES)]
        )
        for t in top.body
    ]
    links = [inputs.build(t, t.kind(joint_kinds)) for t in top.joint]
    loads = [inputs.build(t, t.kind(force_kinds)) for t in top.force]
    loads += [inputs.build(t, forces.Motor) for t in top.motor]
    frames = [t.build(bodies.Frame) for t in top.frame]
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


def is_model_file(name: str) -> bool:
    """Return whether an argument of a command is the path of a model file."""
    return pathlib.Path(name).suffix.lower() in _SUFFIXES


def load_model(
    path: str | os.PathLike[str],
    ignore: Collection[str] = (),
    show_warnings: bool = True,
    **options: Any,
) -> Model:
    """Load a model file; print warnings on the error stream, a line for each.

    **Arguments:** `path`; `ignore` and `options` of `rj.models.load`; `show_warnings`, which the
    report contains too.
    **Errors:** `ValueError` and `OSError` of `rj.models.load`.
    """
    check_readable(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = load(path, ignore, **options)
    for warning in caught if show_warnings else ():
        errors().print(f"[bold]Warning:[/] {escape(str(warning.message))}")
    return model
