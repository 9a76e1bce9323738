"""Joints of SDF files."""

import dataclasses
import math

import numpy as np

from ..checks import did_you_mean
from .description import (
    GROUND,
    CouplingData,
    Description,
    JointKind,
    JointLimits,
    JointRecord,
    Link,
    Placement,
)
from .joint_graph import choose_trees, find_cycle
from .report import Report
from .sdf_frames import MODEL, WORLD, Frames, number_of_child, parse_flag, text_of_child
from .xml_source import Element

_KINDS: dict[str, JointKind] = {
    "fixed": "fixed", "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic",
    "ball": "spherical", "screw": "screw", "universal": "universal", "revolute2": "universal",
}  # fmt: skip
# Limits at or above this value mean that there is none.
_NO_LIMIT = 1e16


def read_joints(
    model: Element, frames: Frames, version: tuple[int, int], description: Description, mimic: bool
) -> None:
    """Add the joints of a model to its description, which has the links.

    The joints that close loops are chosen by `choose_trees`. A `universal` or `revolute2` joint
    with damping, springs or limits, or with axes that are not perpendicular, becomes two hinges
    with a massless link between them; a `gearbox`, a coupling of two hinges at its reference body.
    """
    joints, axes, gearboxes = [], {}, []
    for element in model.all("joint"):
        if _type(element) == "gearbox":
            gearboxes.append(element)
            continue
        joint, axes[element.text_of("name")] = _joint(element, frames, version, description.report)
        joints.append(joint)
    names = [link.name for link in description.links]
    taken = {*names, *axes}
    chosen = choose_trees(names, joints, description.report)
    for before, joint in zip(joints, chosen, strict=True):
        if joint.kind == "universal":
            of_joint = axes[joint.name]
            in_order = of_joint if joint.parent == before.parent else of_joint[::-1]
            _add_universal(joint, in_order, taken, description)
        else:
            description.joints.append(joint)
    for element in gearboxes:
        _add_gearbox(element, frames, version, description)
    _add_mimics(model, description, mimic)


def _type(element: Element) -> str:
    kind = element.text_of("type").lower()
    kinds = [*_KINDS, "gearbox"]
    if kind not in kinds:
        raise element.error(f"there is no joint of the type {kind!r}.{did_you_mean(kind, kinds)}")
    return kind


def _ends(element: Element, frames: Frames) -> tuple[str, str]:
    """Return the links of a joint, parent and child."""
    names = text_of_child(element, "parent"), text_of_child(element, "child")
    parent, child = (
        GROUND if name == WORLD else frames.attached_link(name, element) for name in names
    )
    if child == GROUND:
        raise element.error("the child of a joint cannot be the world; make it the parent.")
    if parent == child:
        raise element.error(f"connects the link {child!r} with itself.")
    return parent, child


def _joint(
    element: Element, frames: Frames, version: tuple[int, int], report: Report
) -> tuple[JointRecord, list[JointRecord]]:
    """Return a joint, and one with the direction and constants of each of its axes."""
    kind = _type(element)
    parent, child = _ends(element, frames)
    point = frames.placement.then(frames.place_element(element)).position
    tags = {"fixed": (), "ball": (), "universal": ("axis", "axis2"), "revolute2": ("axis", "axis2")}
    wanted = tags.get(kind, ("axis",))
    for axis in (*element.all("axis"), *element.all("axis2")):
        if axis.tag not in wanted:
            report.add("no meaning", str(element), f"<{axis.tag}> of a {kind} joint", axis.line)
    axes = [_axis(element, tag, frames, version, kind == "continuous") for tag in wanted]
    joint = dataclasses.replace(
        axes[0] if len(axes) == 1 else JointRecord("", "fixed", "", ""),
        name=element.attributes["name"], kind=_KINDS[kind], parent=parent, child=child,
        point=point, axes=tuple(axis.axes[0] for axis in axes),
        is_continuous=kind == "continuous", line=element.line,
    )  # fmt: skip
    if kind == "screw":
        joint.pitch = _pitch(element)
    report.add("read", str(element), joint.describe(kind), element.line)
    return joint, axes


def _pitch(element: Element) -> float:
    """Return the advance of a screw, m per revolution, positive for a right-handed thread.

    `thread_pitch` is in rad/m and positive for a left-handed thread, in all versions;
    `screw_thread_pitch` supersedes it. Source: sdf/1.11/joint.sdf and src/Joint.cc of libsdformat.
    """
    if element.first("screw_thread_pitch") is None and element.first("thread_pitch") is not None:
        old = number_of_child(element, "thread_pitch", 1.0)
        if old == 0:
            raise element.error("`thread_pitch` is in rad/m and cannot be zero.")
        return -2 * np.pi / old
    return number_of_child(element, "screw_thread_pitch", 1.0)


def _direction(
    joint: Element, axis: Element, frames: Frames, version: tuple[int, int]
) -> np.ndarray:
    """Return the direction of an axis, space components."""
    xyz = axis.first("xyz")
    value = np.array([0.0, 0.0, 1.0]) if xyz is None else xyz.numbers(3)
    # Squares of the components may overflow or vanish.
    length = math.hypot(*value)
    if not length > 0:
        raise axis.error(f"the axis of {joint} has no direction; give a vector other than 0 0 0.")
    reference = "" if xyz is None else xyz.attributes.get("expressed_in", "")
    flag = axis.first("use_parent_model_frame")
    # Version 1.4 has the axes of the model, 1.5 and 1.6 a flag, and later ones the name of a frame.
    if version < (1, 5) or (version < (1, 7) and flag and parse_flag(flag.text, flag)):
        reference = MODEL
    own = frames.place(reference, axis) if reference else frames.place_element(joint)
    return frames.placement.rotation @ own.rotation @ value / length


def _axis(
    joint: Element, tag: str, frames: Frames, version: tuple[int, int], is_continuous: bool
) -> JointRecord:
    """Return a joint of the name `tag` with the direction and constants of an axis."""
    element = joint.first(tag)
    if element is None:
        raise joint.error(f"the element <{tag}> is missing.")
    axis = JointRecord(tag, "revolute", "", "")
    axis.axes = (_direction(joint, element, frames, version),)
    dynamics = element.first("dynamics")
    axis.damping, axis.friction, axis.stiffness, axis.rest = (
        number_of_child(dynamics, name, 0.0)
        for name in ("damping", "friction", "spring_stiffness", "spring_reference")
    )
    for value, what in (
        (axis.damping, "damping"), (axis.friction, "friction"), (axis.stiffness, "stiffness"),
    ):  # fmt: skip
        if value < 0:
            raise element.error(f"the {what} of {joint} is negative; got {value:g}.")
    limit = element.first("limit")
    if limit is not None:
        low, high = _read_limit(limit, "lower", -_NO_LIMIT), _read_limit(limit, "upper", _NO_LIMIT)
        if low > high:
            raise limit.error(f"<lower> of {joint} is above <upper>; got {low:g} and {high:g}.")
        none = is_continuous or (low == -np.inf and high == np.inf)
        rate, effort = (_read_limit(limit, name, -1.0) for name in ("velocity", "effort"))
        limits = JointLimits(
            None if none else (low, high),
            rate if 0 <= rate < np.inf else None,
            effort if 0 <= effort < np.inf else None,
        )
        axis.limits = None if limits == JointLimits() else limits
    return axis


def _read_limit(limit: Element, tag: str, default: float) -> float:
    """Return a limit; values from 1e16 on are infinite."""
    element = limit.first(tag)
    text = "" if element is None else element.text.strip().lower()
    if element is None or text in ("inf", "+inf", "-inf", "infinity", "-infinity"):
        value = default if element is None else float(text)
    else:
        value = float(element.numbers(1)[0])
    return value if abs(value) < _NO_LIMIT else float(np.copysign(np.inf, value))


def _is_plain(axis: JointRecord) -> bool:
    return not (axis.damping or axis.friction or axis.stiffness or axis.limits)


def _add_universal(
    joint: JointRecord, axes: list[JointRecord], taken: set[str], description: Description
) -> None:
    """Add a universal joint, as two hinges if it needs them; `taken`, names in the file."""
    report, subject = description.report, f"joint {joint.name!r}"
    perpendicular = abs(joint.axes[0] @ joint.axes[1]) < 1e-9
    if perpendicular and (joint.closes_loop or all(_is_plain(axis) for axis in axes)):
        description.joints.append(joint)
        for axis in axes:
            if axis.damping or axis.stiffness:
                report.refuse(
                    "universal", subject,
                    f"damping or springs of <{axis.name}> in a joint that closes a loop",
                    joint.line,
                )  # fmt: skip
            elif not _is_plain(axis):
                text = f"limits or friction of <{axis.name}> in a joint that closes a loop"
                report.add("warning", subject, f"{text} are not kept", joint.line)
        return
    if joint.closes_loop:
        raise ValueError(
            f"{report.path}:{joint.line}: {subject} closes a loop and has axes that are not "
            "perpendicular; put two hinges and a link between them into the file."
        )
    cross = f"{joint.name}.cross"
    for name in (cross, *(f"{joint.name}.{axis.name}" for axis in axes)):
        if name in taken:
            raise ValueError(
                f"{report.path}:{joint.line}: {subject} becomes two hinges, which need the name "
                f"{name!r}; rename the other element of this name."
            )
    description.links.append(Link(cross, Placement(joint.point, np.eye(3)), line=joint.line))
    ends = (joint.parent, cross), (cross, joint.child)
    for axis, direction, (parent, child) in zip(axes, joint.axes, ends, strict=True):
        # The direction of the record, which is reversed if its ends were exchanged.
        hinge = dataclasses.replace(
            axis, name=f"{joint.name}.{axis.name}", parent=parent, child=child, point=joint.point,
            axes=(direction,), line=joint.line,
        )  # fmt: skip
        description.joints.append(hinge)
    report.add("translated", subject, f"two hinges with the massless link {cross!r}", joint.line)


def _add_gearbox(
    element: Element, frames: Frames, version: tuple[int, int], description: Description
) -> None:
    """Add the coupling of a gearbox: angle of its child -ratio times that of its parent.

    Both angles are relative to the reference body, about `<axis2>` and `<axis>`. Source:
    sdf/1.11/joint.sdf of libsdformat, `gearbox_reference_body`.
    """
    reference = frames.attached_link(text_of_child(element, "gearbox_reference_body"), element)
    ratio = number_of_child(element, "gearbox_ratio", 1.0)
    hinges = []
    for tag, link in zip(("axis", "axis2"), _ends(element, frames), strict=True):
        axis = element.first(tag)
        if axis is None:
            raise element.error(f"the element <{tag}> is missing.")
        direction = _direction(element, axis, frames, version)
        hinge = next(
            (
                joint
                for joint in description.joints
                if joint.kind == "revolute" and {joint.parent, joint.child} == {reference, link}
            ),
            None,
        )
        if hinge is None or abs(hinge.axes[0] @ direction) < 1 - 1e-6:
            description.report.refuse(
                "gearbox", str(element),
                f"needs a hinge of {link!r} about <{tag}> on its reference body {reference!r}",
                element.line,
            )  # fmt: skip
            return
        along = np.sign(hinge.axes[0] @ direction)
        hinges.append((hinge.name, along if hinge.child == link else -along))
    (by, of_parent), (name, of_child) = hinges
    value = float(-ratio * of_parent * of_child)
    description.couplings.append(
        CouplingData(name, by, value, element.text_of("name"), element.line)
    )
    description.report.add(
        "translated", str(element), f"`Coupling`: {name!r} is {value:g} times {by!r}", element.line
    )


def _add_mimics(model: Element, description: Description, mimic: bool) -> None:
    """Add the couplings of joints that follow others."""
    report = description.report
    singles = {
        joint.name: joint
        for joint in description.joints
        if joint.kind in ("revolute", "prismatic", "screw")
    }
    names = [element.text_of("name") for element in model.all("joint")]

    def coordinate(name: str, tag: str, source: Element) -> str:
        if name not in names:
            raise source.error(f"there is no joint {name!r}.{did_you_mean(name, names)}")
        found = next((one for one in (f"{name}.{tag}", name) if one in singles), None)
        if found is None or (found == name and tag != "axis"):
            raise source.error(f"<{tag}> of the joint {name!r} is no single coordinate here.")
        return found

    by = {}
    for element in model.all("joint"):
        for axis in (*element.all("axis"), *element.all("axis2")):
            follower = axis.first("mimic")
            if follower is None:
                continue
            if not mimic:
                report.add("ignored", str(element), "`mimic=False`: moves by itself", axis.line)
                continue
            name = coordinate(element.text_of("name"), axis.tag, follower)
            leader = coordinate(
                follower.text_of("joint"), follower.attributes.get("axis", "axis"), follower
            )
            ratio = number_of_child(follower, "multiplier", 1.0)
            offset = number_of_child(follower, "offset", 0.0)
            offset -= ratio * number_of_child(follower, "reference", 0.0)
            by[name] = leader
            if find_cycle(by) is not None:
                raise follower.error(f"the mimic joints around {leader!r} form a cycle.")
            description.couplings.append(
                CouplingData(name, leader, ratio, None, follower.line, offset)
            )
            text = f"`Coupling` with {ratio:g} times {leader!r}"
            report.add("translated", f"<mimic> of {name!r}", text, follower.line)
