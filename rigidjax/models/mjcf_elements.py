"""Elements of a compiled MJCF file besides bodies, joints, sites and actuators.

Equalities become closed loops and couplings; others are accounted for.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from .description import (
    IDENTITY,
    CouplingData,
    Description,
    JointRecord,
    Placement,
    TendonData,
    from_quaternion,
    make_unique,
)
from .mjcf_compiled import CompiledModel
from .report import Report

# Sizes of a model that count elements without effect on the motion of rigid bodies.
_WITHOUT_MEANING = {
    "ngeom": ("<geom>", "geoms: shapes; contacts are not simulated"),
    "npair": ("<pair>", "pairs of geoms; contacts are not simulated"),
    "nexclude": ("<exclude>", "excluded pairs of bodies; contacts are not simulated"),
    "nhfield": ("<hfield>", "height fields; contacts are not simulated"),
    "nmesh": ("<mesh>", "meshes, of geoms"),
    "nskin": ("<skin>", "skins"),
    "ncam": ("<camera>", "cameras"),
    "nlight": ("<light>", "lights"),
    "ntex": ("<texture>", "textures"),
    "nmat": ("<material>", "materials"),
    "nsensor": ("<sensor>", "sensors"),
    "nkey": ("<key>", "keyframes; `Model.from_mujoco` takes their coordinates"),
    "nnumeric": ("<numeric>", "numbers of a user"),
    "ntext": ("<text>", "texts of a user"),
    "ntuple": ("<tuple>", "tuples of a user"),
}
_TENDON_FORCES = ("armature", "frictionloss", "stiffnesspoly", "dampingpoly",
                  "springyield")  # fmt: skip
_SOFT = "rigid here; its `solref` and `solimp` have no meaning"


def find_reference_configuration(compiled: CompiledModel) -> Any:
    """Return an `MjData` at `qpos0`, with joints that an equality fixes at their fixed coordinates.

    Loops and couplings of two joints may be violated there; `close_loops` closes them.
    """
    model = compiled.model
    data = compiled.mujoco.MjData(model)
    for e in range(model.neq):
        if is_active(compiled, e) and len(terms := _coefficients_of_equality(compiled, e)) == 1:
            ((j, coefficient),) = terms.items()
            at = model.jnt_qposadr[j]
            data.qpos[at] = model.qpos0[at] + model.eq_data[e, 0] / coefficient
    compiled.mujoco.mj_kinematics(model, data)
    return data


def is_active(compiled: CompiledModel, e: int) -> bool:
    """Return whether the file makes an equality active from the start."""
    return bool(compiled.model.eq_active0[e]) and not compiled.disables("EQUALITY")


def add_equalities(
    compiled: CompiledModel, data: Any, joints: list[JointRecord], description: Description
) -> None:
    """Add the equalities as joints that close loops, and as couplings.

    **Arguments:** `data`, in the reference configuration; `joints` of the file.
    """
    model, report = compiled.model, description.report
    taken = {joint.name for joint in description.joints}
    for e in range(model.neq):
        kind = compiled.word("mjtEq", model.eq_type[e])
        given = compiled.name("equality", e)
        line = compiled.line_in_section("equality", e) or compiled.line(given, kind)
        equality = _Equality(e, kind, make_unique(given or f"{kind} {e}", taken), line)
        subject = f"{kind} {equality.name!r}"
        if not is_active(compiled, e):
            report.add("no meaning", subject, "is not active", equality.line)
        elif kind in ("connect", "weld"):
            _add_loop(compiled, data, equality, description)
        elif kind in ("joint", "tendon"):
            _add_coupling(compiled, joints, equality, description)
        else:
            report.refuse(
                f"equality {kind}", subject, f"an equality {kind} is not supported", equality.line
            )


class _Equality(NamedTuple):
    row: int
    kind: str
    name: str
    line: int

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.name!r}"


def _add_loop(
    compiled: CompiledModel, data: Any, equality: _Equality, description: Description
) -> None:
    """Add a `connect` or `weld` as a joint that closes a loop."""
    model, report, e = compiled.model, description.report, equality.row
    ends = [int(model.eq_obj1id[e]), int(model.eq_obj2id[e])]
    values = model.eq_data[e]
    if compiled.word("mjtObj", model.eq_objtype[e]) == "site":
        sides = [compiled.site_placement(data, site) for site in ends]
        ends = [int(model.site_bodyid[site]) for site in ends]
    else:
        # The anchor on the second body comes first in a weld.
        anchors = values[:3], values[3:6]
        relative = [IDENTITY.rotation, IDENTITY.rotation]
        if equality.kind == "weld":
            anchors = anchors[::-1]
            relative[0] = from_quaternion(np.zeros(3), values[6:10]).rotation
        sides = [
            compiled.placement(data, b).then(Placement(np.array(anchor), rotation))
            for b, anchor, rotation in zip(ends, anchors, relative, strict=True)
        ]
    parent, child = (compiled.bodies[b] for b in ends)
    if model.body_weldid[ends[0]] == model.body_weldid[ends[1]]:
        text = f"connects {parent!r} and {child!r}, which are fixed to each other"
        report.add("no meaning", equality.subject, text, equality.line)
        return
    if ends[1] == 0:
        parent, child = child, parent
        sides.reverse()
    kind, gap = "fixed", sides[1].then(sides[0].inverse())
    if equality.kind == "connect" or values[10] == 0:
        # A weld with `torquescale` zero leaves rotations free.
        kind, gap = "spherical", Placement(sides[1].position - sides[0].position, np.eye(3))
    description.joints.append(
        JointRecord(
            equality.name, kind, parent, child, sides[0].position, closes_loop=True, gap=gap,
            line=equality.line,
        )
    )  # fmt: skip
    text = f"{kind} joint between {parent!r} and {child!r}, {_SOFT}"
    report.add("translated", equality.subject, text, equality.line)


def _add_coupling(
    compiled: CompiledModel,
    joints: list[JointRecord],
    equality: _Equality,
    description: Description,
) -> None:
    """Add an equality of joints or tendons as a coupling of two joints, or a joint that is held."""
    model, report, e = compiled.model, description.report, equality.row
    values = model.eq_data[e]
    higher = tuple(map(float, values[2:5])) if model.eq_obj2id[e] >= 0 else ()
    if any(higher) and equality.kind == "tendon":
        report.refuse(
            "polynomial equality", equality.subject,
            f"`polycoef` {' '.join(f'{value:g}' for value in values[:5])} is not linear",
            equality.line,
        )  # fmt: skip
        return
    if any(higher):
        ends = [int(model.eq_obj1id[e]), int(model.eq_obj2id[e])]
        (joint, start), (by, start_by) = (
            (joints[j], joints[j].zero - float(model.qpos0[model.jnt_qposadr[j]])) for j in ends
        )
        polynomial = Polynomial(values[:5])(Polynomial([start_by, 1.0])) - start
        offset, ratio, *higher = map(float, polynomial.coef)
        description.couplings.append(
            CouplingData(
                joint.name, by.name, ratio, equality.name, equality.line, offset, tuple(higher)
            )
        )
        text = f"`PolynomialCoupling` of {joint.name!r} with {by.name!r}, {_SOFT}"
        report.add("translated", equality.subject, text, equality.line)
        return
    coefficients = _coefficients_of_equality(compiled, e)
    # The equation is one of displacements from `qpos0`.
    offset = float(values[0]) - sum(
        value * (joints[j].zero - float(model.qpos0[model.jnt_qposadr[j]]))
        for j, value in coefficients.items()
    )
    terms = [(joints[j], value) for j, value in coefficients.items()]
    if len(terms) == 1:
        ((held, _),) = terms
        description.joints.append(
            JointRecord(
                equality.name, "fixed", held.parent, held.child, held.point, closes_loop=True,
                line=equality.line,
            )
        )  # fmt: skip
        text = f"the joint {held.name!r} is held at {held.zero:g}"
    elif len(terms) == 2:
        (joint, own), (by, other) = terms
        coupling = CouplingData(
            joint.name, by.name, -other / own, equality.name, equality.line, offset / own
        )
        description.couplings.append(coupling)
        text = f"`Coupling` of {joint.name!r} with {coupling.ratio:g} times {by.name!r}"
    else:
        report.refuse(
            "equality of several joints", equality.subject,
            f"an equality of {len(terms)} joints is not supported; two can be coupled",
            equality.line,
        )  # fmt: skip
        return
    report.add("translated", equality.subject, f"{text}, {_SOFT}", equality.line)


def _coefficients_of_equality(compiled: CompiledModel, e: int) -> dict[int, float]:
    """Return the joints of an equality of joints or tendons, with their coefficients.

    The sum of coefficients times displacements from `qpos0` is the constant of the equality.
    """
    model = compiled.model
    kind = compiled.word("mjtEq", model.eq_type[e])
    if kind not in ("joint", "tendon"):
        return {}
    result: dict[int, float] = {}
    for object_id, factor in (
        (int(model.eq_obj1id[e]), 1.0), (int(model.eq_obj2id[e]), -float(model.eq_data[e, 1])),
    ):  # fmt: skip
        for j, own in _coefficients(compiled, kind, object_id).items():
            result[j] = result.get(j, 0.0) + factor * own
    return {j: value for j, value in result.items() if value}


def _coefficients(compiled: CompiledModel, kind: str, index: int) -> dict[int, float]:
    """Return the joints of a joint or fixed tendon with their coefficients."""
    model = compiled.model
    if index < 0:
        return {}
    if kind == "joint":
        return {index: 1.0}
    result: dict[int, float] = {}
    first = int(model.tendon_adr[index])
    for k in range(first, first + int(model.tendon_num[index])):
        if compiled.word("mjtWrap", model.wrap_type[k]) != "joint":
            return {}
        j = int(model.wrap_objid[k])
        result[j] = result.get(j, 0.0) + float(model.wrap_prm[k])
    return result


def account_for_rest(
    compiled: CompiledModel, joints: list[JointRecord], description: Description
) -> None:
    """Add tendons, report elements without meaning here and refuse unsupported ones.

    **Arguments:** `joints` of the file.
    """
    model, report = compiled.model, description.report
    integrator = compiled.word("mjtIntegrator", model.opt.integrator)
    report.add(
        "no meaning", "<option>",
        f"time step {model.opt.timestep:g} s, integrator {integrator}, solver of contacts",
    )  # fmt: skip
    for field, (subject, text) in _WITHOUT_MEANING.items():
        count = getattr(model, field)
        if count:
            report.add("no meaning", subject, f"{count} {text}")
    if model.opt.density or model.opt.viscosity:
        report.refuse(
            "fluid", "<option>",
            f"forces of a medium of density {model.opt.density:g} kg/m^3 and viscosity "
            f"{model.opt.viscosity:g} Pa s are not supported",
            compiled.line("density", "option") or compiled.line("viscosity", "option"),
        )  # fmt: skip
    elif np.any(model.opt.wind):
        report.add("no meaning", "<option>", "wind without a medium")
    if model.nflex:
        report.refuse("flex", "<flex>", f"{model.nflex} deformable bodies are not supported")
    if model.nplugin:
        report.refuse("plugin", "<plugin>", f"{model.nplugin} plugins are not supported")
    _account_for_bodies(compiled, report)
    _account_for_sleep(compiled, report)
    _add_tendons(compiled, joints, description)


def _account_for_bodies(compiled: CompiledModel, report: Report) -> None:
    """Refuse compensation of gravity, and mocap bodies that guide others."""
    model = compiled.model
    guides = _bodies_of_equalities(compiled) | {
        int(model.body_rootid[b]) for b in range(model.nbody) if model.body_dofnum[b]
    }
    for b in range(1, model.nbody):
        name = compiled.bodies[b]
        subject, line = f"body {name!r}", compiled.line(name, "body")
        if model.body_gravcomp[b]:
            text = "compensation of gravity is not supported"
            report.refuse("gravcomp", subject, text, line)
        if model.body_mocapid[b] >= 0:
            if b in guides:
                text = "a mocap body that guides other bodies is not supported"
                report.refuse("mocap", subject, text, line)
            else:
                text = "mocap body, fixed to the ground; nothing is attached to it"
                report.add("translated", subject, text, line)


def _account_for_sleep(compiled: CompiledModel, report: Report) -> None:
    """Refuse bodies that stay where they are until something wakes them."""
    model = compiled.model
    flag = getattr(compiled.mujoco.mjtEnableBit, "mjENBL_SLEEP", 0)  # not in MuJoCo 3.3
    for tree in range(model.ntree) if model.opt.enableflags & flag else ():
        if compiled.word("mjtSleepPolicy", model.tree_sleep_policy[tree]) == "init":
            name = compiled.bodies[model.tree_bodyadr[tree]]
            text = "a body that starts asleep is not supported"
            report.refuse("sleep", f"body {name!r}", text, compiled.line(name, "body"))


def _bodies_of_equalities(compiled: CompiledModel) -> set[int]:
    """Return the bodies that active equalities connect."""
    model = compiled.model
    result: set[int] = set()
    for e in range(model.neq):
        kind = compiled.word("mjtObj", model.eq_objtype[e])
        if is_active(compiled, e) and kind in ("body", "site"):
            ids = [int(model.eq_obj1id[e]), int(model.eq_obj2id[e])]
            result |= {int(model.site_bodyid[k]) for k in ids} if kind == "site" else set(ids)
    return result


def _add_tendons(
    compiled: CompiledModel, joints: list[JointRecord], description: Description
) -> None:
    """Add the springs and dampers of tendons; refuse other forces and paths around bodies."""
    model, report = compiled.model, description.report
    for k in range(model.ntendon):
        given = compiled.name("tendon", k)
        subject = f"tendon {given or k!r}"
        line = compiled.line_in_section("tendon", k) or compiled.line(given, "fixed", "spatial")
        forces = [
            what for what in _TENDON_FORCES
            if np.any(compiled.parameters(f"tendon_{what}", 0.0, k))
        ]  # fmt: skip
        added = int(compiled.parameters("tendon_actuatorid", -1, k))
        if added >= 0:
            forces += [
                f"{what} of its actuator" for what in ("armature", "damping")
                if np.any(compiled.parameters(f"actuator_{what}", 0.0, added))
            ]  # fmt: skip
        for what in forces:
            report.refuse("tendon", subject, f"the {what} of a tendon is not supported", line)
        if model.tendon_limited[k]:
            report.add("warning", subject, "the limits of its length are left out", line)
        stiffness = 0.0 if compiled.disables("SPRING") else float(model.tendon_stiffness[k])
        damping = 0.0 if compiled.disables("DAMPER") else float(model.tendon_damping[k])
        if not stiffness and not damping:
            if not forces:
                report.add("no meaning", subject, "exerts no force of its own", line)
            continue
        low, high = map(float, model.tendon_lengthspring[k])
        coefficients = {
            joints[j].name: value for j, value in _coefficients(compiled, "tendon", k).items()
        }
        points = [] if coefficients else _path_of_tendon(compiled, k)
        if points is None:
            text = "a tendon around geoms or over pulleys is not supported"
            report.refuse("tendon", subject, text, line)
        elif points and 0 < low < high:
            text = f"`springlength` {low:g} {high:g} of a spatial tendon is not supported"
            report.refuse("tendon", subject, text, line)
        else:
            description.tendons.append(
                TendonData(stiffness, damping, (low, high), coefficients, points)
            )
            text = "`FixedTendon`" if coefficients else "`Cable`"
            report.add("translated", subject, f"spring and damper are a {text}", line)


def _path_of_tendon(compiled: CompiledModel, k: int) -> list[tuple[str, np.ndarray]] | None:
    """Return links and points in their frames on a tendon; `None` if it wraps around geoms."""
    model, points = compiled.model, []
    first = int(model.tendon_adr[k])
    for w in range(first, first + int(model.tendon_num[k])):
        if compiled.word("mjtWrap", model.wrap_type[w]) != "site":
            return None
        site = int(model.wrap_objid[w])
        points.append((compiled.bodies[model.site_bodyid[site]], model.site_pos[site].copy()))
    return points
