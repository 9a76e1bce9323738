"""Reader of MJCF files, through MuJoCo's own compiler."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .description import (
    IDENTITY,
    Actuator,
    Description,
    FrameData,
    JointKind,
    JointLimits,
    JointRecord,
    Link,
    LinkShape,
    Placement,
    from_quaternion,
    make_unique,
)
from .mjcf_compiled import CompiledModel
from .mjcf_elements import account_for_rest, add_equalities, find_reference_configuration
from .mjcf_sources import check_sources
from .report import Report
from .xml_source import Element

# Types of joints in the file, in the order of MuJoCo's `mjtJoint`.
JOINT_TYPES: dict[JointKind, str] = {
    "floating": "free", "spherical": "ball", "prismatic": "slide", "revolute": "hinge",
}  # fmt: skip
# Geoms of higher groups, such as collision shapes, are not shown by MuJoCo's viewer either.
_LAST_GROUP = 2


def read_mjcf(
    root: Element, report: Report, packages: Sequence[str | os.PathLike[str]] = ()
) -> Description:
    """Return the description of an MJCF file.

    The file, with all that it includes, is compiled by MuJoCo. The reference configuration is
    MuJoCo's `qpos0`; loops that are open there have a `gap`.

    **Arguments:** `root` element of the file; `report`, to which every element is added;
    `packages`, folders with files that it may refer to.
    **Errors:** `ModuleNotFoundError` without MuJoCo; `ValueError` for a file that it cannot
    compile, or that refers to files elsewhere.
    """
    check_sources(root, packages)
    compiled = CompiledModel(root)
    description = Description(
        root.attributes.get("model", "model"), report, world={compiled.bodies[0]}
    )
    data = find_reference_configuration(compiled)
    _add_bodies(compiled, data, description)
    joints = _add_joints(compiled, data, description)
    _add_shapes(compiled, description.links)
    _add_sites(compiled, description)
    add_equalities(compiled, data, joints, description)
    _add_actuators(compiled, joints, description)
    description.gravity = np.array(compiled.model.opt.gravity)
    if compiled.disables("GRAVITY"):
        description.gravity = np.zeros(3)
        report.add("translated", "<flag>", "gravity is disabled")
    account_for_rest(compiled, joints, description)
    return description


def _add_bodies(compiled: CompiledModel, data: Any, description: Description) -> None:
    """Add a link for each body; the first is the world."""
    model = compiled.model
    for b, name in enumerate(compiled.bodies):
        line = compiled.line(name, "body")
        link = Link(name, compiled.placement(data, b), float(model.body_mass[b]), line=line)
        frame = from_quaternion(model.body_ipos[b], model.body_iquat[b])
        # MuJoCo takes nearly equal frames for equal, and leaves out the difference.
        same = compiled.word("mjtSameFrame", compiled.parameters("body_sameframe", 0, b))
        if same == "body":
            frame = IDENTITY
        elif same == "bodyrot":
            frame = Placement(frame.position, IDENTITY.rotation)
        link.center = frame.position
        link.inertia = frame.rotation @ np.diag(model.body_inertia[b]) @ frame.rotation.T
        description.links.append(link)
        if b:
            description.report.add("read", f"body {name!r}", f"{link.mass:g} kg", line)


def _add_joints(compiled: CompiledModel, data: Any, description: Description) -> list[JointRecord]:
    """Add the joints, with massless links between joints of one body; return the file's joints."""
    model, bodies, report = compiled.model, compiled.bodies, description.report
    result = []
    given = [compiled.name("joint", j) for j in range(model.njnt)]
    taken, links = {name for name in given if name}, set(bodies)
    for b in range(1, model.nbody):
        above = bodies[model.body_parentid[b]]
        first, count = int(model.body_jntadr[b]), int(model.body_jntnum[b])
        if count == 0:
            name = make_unique(f"{above}-{bodies[b]}", taken)
            description.joints.append(JointRecord(name, "fixed", above, bodies[b]))
        if count > 1:
            report.add(
                "translated", f"body {bodies[b]!r}",
                f"its {count} joints are a chain with {count - 1} massless links",
                compiled.line(bodies[b], "body"),
            )  # fmt: skip
        for j in range(first, first + count):
            kind = list(JOINT_TYPES)[model.jnt_type[j]]
            name = given[j] or make_unique(f"{bodies[b]} {JOINT_TYPES[kind]}", taken)
            line = compiled.line(given[j], "joint", "freejoint")
            line = line or compiled.line(bodies[b], "body")
            child = bodies[b]
            if j < first + count - 1:
                child = make_unique(f"{bodies[b]}/{name}", links)
                description.links.append(Link(child, compiled.placement(data, b), line=line))
            joint = JointRecord(name, kind, above, child, data.xanchor[j].copy(), line=line)
            # The coordinates of MuJoCo's ball joints count from `qpos0`.
            joint.stays = joint.kind == "spherical"
            _set_properties(compiled, joint, j, data, report)
            description.joints.append(joint)
            result.append(joint)
            above = child
    return result


def _set_properties(
    compiled: CompiledModel, joint: JointRecord, j: int, data: Any, report: Report
) -> None:
    """Set axis, springs, dampers, inertia and limits of a joint."""
    model, subject = compiled.model, f"joint {joint.name!r}"
    at, dof = int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
    joint.armature = float(model.dof_armature[dof])
    joint.friction = float(model.dof_frictionloss[dof])
    joint.damping = float(model.dof_damping[dof])
    joint.stiffness = float(model.jnt_stiffness[j])
    for what in ("damping", "armature", "friction", "stiffness"):
        if getattr(joint, what) < 0:
            place = f"{report.path}:{joint.line}" if joint.line else report.path
            value = getattr(joint, what)
            raise ValueError(f"{place}: {subject}: the {what} is negative; got {value:g}.")
    for field, feature, row in (
        ("dof_dampingpoly", "nonlinear damping", dof),
        ("jnt_stiffnesspoly", "nonlinear stiffness", j),
        ("jnt_springyield", "plastic spring", j),
    ):
        if np.any(compiled.parameters(field, 0.0, row)):
            report.refuse(feature, subject, f"a {feature} is not supported", joint.line)
    if joint.kind in ("revolute", "prismatic"):
        joint.axes = (data.xaxis[j] / np.linalg.norm(data.xaxis[j]),)
        joint.zero = float(data.qpos[at])
        joint.rest = float(model.qpos_spring[at]) - joint.zero
        _add_inertia_of_actuator(compiled, joint, j, report)
        joint.limits = _limits(compiled, joint, j, report)
    if model.jnt_limited[j] and compiled.disables("LIMIT"):
        report.add("no meaning", subject, "limits, which a <flag> disables", joint.line)
    elif model.jnt_limited[j] and not joint.axes:
        report.add("warning", subject, "the limit of its angle is left out", joint.line)
    for what, flag in (
        ("damping", "DAMPER"), ("stiffness", "SPRING"), ("friction", "FRICTIONLOSS"),
    ):  # fmt: skip
        if getattr(joint, what) and compiled.disables(flag):
            report.add("no meaning", subject, f"{what}, which a <flag> disables", joint.line)
            setattr(joint, what, 0.0)
    report.add("read", subject, joint.describe(joint.kind), joint.line)


def _add_inertia_of_actuator(
    compiled: CompiledModel, joint: JointRecord, j: int, report: Report
) -> None:
    """Add armature and damping of the actuator that contributes them to a joint."""
    model = compiled.model
    a = int(compiled.parameters("jnt_actuatorid", -1, j))
    if a < 0:
        return
    gear = float(model.actuator_gear[compiled.first_output(a), 0])
    armature, damping = (
        gear**2 * float(compiled.parameters(field, 0.0, a))
        for field in ("actuator_armature", "actuator_damping")
    )
    joint.armature += armature
    joint.damping += damping
    subject = f"joint {joint.name!r}"
    if armature or damping:
        text = f"armature {armature:g} and damping {damping:g} of its actuator are added"
        report.add("translated", subject, text, joint.line)
    if np.any(compiled.parameters("actuator_dampingpoly", 0.0, a)):
        text = "nonlinear damping of its actuator is not supported"
        report.refuse("nonlinear damping", subject, text, joint.line)


def _limits(
    compiled: CompiledModel, joint: JointRecord, j: int, report: Report
) -> JointLimits | None:  # fmt: skip
    """Return the limits of a hinge or slider in coordinates of the system."""
    model = compiled.model
    position = effort = None
    if model.jnt_limited[j] and not compiled.disables("LIMIT"):
        low, high = (float(value) - joint.zero for value in model.jnt_range[j])
        position = (low, high)
    if model.jnt_actfrclimited[j]:
        low, high = map(float, model.jnt_actfrcrange[j])
        effort = max(abs(low), abs(high))
        if low != -high:
            report.add(
                "warning", f"joint {joint.name!r}",
                f"the limits {low:g} and {high:g} of the actuator force are read as {effort:g}",
                joint.line,
            )  # fmt: skip
    return None if position is None and effort is None else JointLimits(position, None, effort)


def _add_shapes(compiled: CompiledModel, links: list[Link]) -> None:
    """Add the visible geoms of all bodies to their links."""
    model = compiled.model
    by_name = {link.name: link for link in links}
    for g in range(model.ngeom):
        if model.geom_group[g] > _LAST_GROUP:
            continue
        kind = compiled.word("mjtGeom", model.geom_type[g])
        placement = from_quaternion(model.geom_pos[g], model.geom_quat[g])
        size, path = tuple(map(float, model.geom_size[g])), ""
        if kind == "box":
            size = tuple(2 * half for half in size)
        elif kind in ("cylinder", "capsule"):
            size = (size[0], 2 * size[1])
        elif kind == "sphere":
            size = size[:1]
        elif kind == "mesh":
            # MuJoCo moves the vertices of a mesh to its centre of mass and principal axes.
            k = model.geom_dataid[g]
            moved = from_quaternion(model.mesh_pos[k], model.mesh_quat[k])
            placement = placement.then(moved.inverse())
            size, path = tuple(map(float, model.mesh_scale[k])), _path_of_mesh(compiled, k)
        elif kind != "ellipsoid":
            continue
        body = compiled.bodies[model.geom_bodyid[g]]
        by_name[body].shapes.append(LinkShape(kind, size, placement, path))


def _path_of_mesh(compiled: CompiledModel, mesh: int) -> str:
    """Return the file of a mesh, relative to the folder of the model."""
    first = int(compiled.model.mesh_pathadr[mesh])
    if first < 0:
        return ""
    path = compiled.model.paths[first:].split(b"\0", 1)[0].decode()
    return os.path.relpath(path, os.path.dirname(compiled.path)) if os.path.isabs(path) else path


def _add_sites(compiled: CompiledModel, description: Description) -> None:
    """Add a frame for each named site."""
    model, report = compiled.model, description.report
    taken, unnamed = {link.name for link in description.links} | {"ground"}, 0
    for s in range(model.nsite):
        given = compiled.name("site", s)
        if given is None:
            unnamed += 1
            continue
        name = make_unique(f"{given} site" if given in taken else given, taken)
        placement = from_quaternion(model.site_pos[s], model.site_quat[s])
        body = compiled.bodies[model.site_bodyid[s]]
        description.frames.append(FrameData(name, body, placement))
        text = "frame" if name == given else f"frame {name!r}; another frame has its name"
        report.add("translated", f"site {given!r}", text, compiled.line(given, "site"))
    if unnamed:
        report.add("no meaning", "<site>", f"{unnamed} sites without a name")


def _add_actuators(
    compiled: CompiledModel, joints: list[JointRecord], description: Description
) -> None:
    """Add the actuators of hinges and sliders; refuse others."""
    model, report, taken = compiled.model, description.report, set[str]()
    for a in range(len(model.actuator_trntype)):
        given = compiled.name("actuator", a)
        line = compiled.line_in_section("actuator", a) or compiled.line(
            given, "motor", "position", "velocity", "general", "intvelocity", "damper", "cylinder",
            "muscle", "adhesion", "plugin",
        )  # fmt: skip
        subject = f"actuator {given or a!r}"
        if compiled.disables_actuator(a):
            text = "exerts no force: a <flag> or `actuatorgroupdisable` disables it"
            report.add("no meaning", subject, text, line)
            continue
        reason = _find_unsupported(compiled, a, joints)
        if reason is not None:
            report.skip(reason[0], subject, f"{reason[1]} is not supported", line)
            continue
        joint = joints[model.actuator_trnid[a, 0]]
        gear = float(model.actuator_gear[compiled.first_output(a), 0])
        gain, bias = float(model.actuator_gainprm[a, 0]), np.zeros(3)
        if compiled.word("mjtBias", model.actuator_biastype[a]) == "affine":
            bias = np.array(model.actuator_biasprm[a, :3], float)
        kind = "general"
        if not bias.any() and gain == 1:
            kind = "motor"
        elif bias[0] == 0 and bias[1] == -gain:
            kind = "position"
        elif bias[0] == bias[1] == 0 and bias[2] == -gain:
            kind = "velocity"
        constant, by_length, by_rate = map(float, bias)
        constant += by_length * gear * joint.zero
        control = int(compiled.parameters("actuator_ctrladr", a, a))
        is_clamped = model.actuator_ctrllimited[control] and not compiled.disables("CLAMPCTRL")
        ranges = [
            (float(low), float(high)) if is_limited else None
            for is_limited, (low, high) in (
                (is_clamped, model.actuator_ctrlrange[control]),
                (model.actuator_forcelimited[a], model.actuator_forcerange[a]),
            )
        ]
        description.actuators.append(
            Actuator(
                make_unique(given or f"{joint.name} {kind}", taken), joint.name, kind, gear, gain,
                (constant, by_length, by_rate), *ranges,
            )
        )  # fmt: skip
        report.add("translated", subject, f"{kind} of {joint.name!r}, gear {gear:g}", line)


def _find_unsupported(
    compiled: CompiledModel, a: int, joints: list[JointRecord]
) -> tuple[str, str] | None:
    """Return name and description of the feature for which an actuator is refused, if any."""
    model = compiled.model
    word = compiled.word("mjtTrn", model.actuator_trntype[a])
    if word not in ("joint", "jointinparent"):
        return "actuator transmission", f"the transmission to a {word}"
    joint = joints[model.actuator_trnid[a, 0]]
    if joint.kind not in ("revolute", "prismatic"):
        return "actuator transmission", f"the transmission to a {joint.kind} joint"
    for part, enum, allowed in (
        ("dynamics", "mjtDyn", ("none",)),
        ("gain", "mjtGain", ("fixed",)),
        ("bias", "mjtBias", ("none", "affine")),
    ):
        field = {"dynamics": "dyn"}.get(part, part)
        word = compiled.word(enum, getattr(model, f"actuator_{field}type")[a])
        if word not in allowed:
            return f"actuator {part}", f"the {part} {word!r}"
    if compiled.parameters("actuator_delay", 0.0, a):
        return "actuator delay", "a delay of the control"
    return None
