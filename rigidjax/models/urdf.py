"""Reader of URDF files."""

import dataclasses
import math
import pathlib

import numpy as np

from ..checks import did_you_mean
from .description import (
    IDENTITY,
    Actuator,
    CouplingData,
    Description,
    JointKind,
    JointLimits,
    JointRecord,
    Link,
    LinkShape,
    Placement,
    about_axis,
    from_roll_pitch_yaw,
)
from .joint_graph import find_cycle, order_after_leaders
from .report import Report, check_elements
from .xml_source import Element

# Elements that are read, in an actuator or beside it; Drake's have a prefix.
_READ = {"mechanicalReduction", "gear_ratio", "rotor_inertia"}
# Children of a transmission with one joint and one actuator, by the tag of their parent.
_KNOWN = {
    "transmission": {"type", "joint", "actuator", *_READ},
    "actuator": {"hardwareInterface", "role", *_READ},
    "joint": {"hardwareInterface", "role"},
}
# Settings of encoders and controllers.
_SETTINGS = {
    "offset", "ignoreTransmissionAbsoluteEncoder", "deadBandLower", "deadBandUpper",
    "saturationLower", "saturationUpper",
}  # fmt: skip


def read_transmissions(root: Element, joints: dict[str, Element], description: Description) -> None:
    """Add the actuators of all transmissions, and their rotors to the armature of their joints."""
    report = description.report
    by_name = {joint.name: joint for joint in description.joints}
    for element in root.all("transmission"):
        of_joints = element.all("joint")
        actuators = element.all("actuator")
        if len(of_joints) != 1 or len(actuators) != 1:
            report.skip(
                "transmission", str(element),
                f"has {len(of_joints)} joints and {len(actuators)} actuators; one of each is read.",
                element.line,
            )  # fmt: skip
            continue
        name = of_joints[0].text_of("name")
        if name not in by_name:
            hint = did_you_mean(name, list(joints))
            report.skip(
                "transmission", str(element), f"drives {name!r}, which does not exist.{hint}",
                of_joints[0].line,
            )  # fmt: skip
            continue
        joint, (actuator,) = by_name[name], actuators
        if joint.kind == "fixed":
            text = f"actuator of {name!r}, which is fixed"
            report.add("no meaning", str(element), text, element.line)
            continue
        for part in (element, of_joints[0], actuator):
            _check_children(part, report)
        rotor_element, gear = find_rotor(element, actuator)
        rotor = 0.0 if rotor_element is None else rotor_element.number("value")
        joint.armature += rotor * gear**2
        description.actuators.append(
            Actuator(actuator.attributes.get("name", name), name, gear=gear)
        )
        text = f"actuator of {name!r}, reduction {gear:g}"
        if rotor:
            text += f", armature {rotor * gear**2:g} kg m^2"
        report.add("translated", str(element), text, element.line)


def _check_children(element: Element, report: Report) -> None:
    """Refuse unknown children, and report those without meaning."""
    for child in element.children:
        if child.tag in _SETTINGS:
            text = f"<{child.tag}> is a setting of an encoder or controller"
            report.add("no meaning", str(element), text, child.line)
        elif child.tag.split(":")[-1] not in (known := _KNOWN[element.tag]):
            hint = did_you_mean(child.tag, sorted(known))
            text = f"the element <{child.tag}> is unknown.{hint}"
            record = report.refuse if hint else report.skip
            record(f"transmission/{child.tag}", str(element), text, child.line)


def find_rotor(transmission: Element, actuator: Element) -> tuple[Element | None, float]:
    """Return the element with the inertia of the rotor, and the gear ratio, of a transmission."""
    gear, rotor = 1.0, None
    for part in (*actuator.children, *transmission.children):
        tag = part.tag.split(":")[-1]
        if tag == "mechanicalReduction":
            gear = float(part.numbers(1)[0])
        elif tag == "gear_ratio":
            gear = part.number("value")
        elif tag == "rotor_inertia":
            rotor = part
    return rotor, gear


# Attributes and children of the elements that have a meaning here.
_SCHEMA: dict[str, tuple[set[str], set[str]]] = {
    "robot": ({"name", "version"}, {"link", "joint", "transmission", "material"}),
    "link": ({"name", "type"}, {"inertial", "visual", "collision"}),
    "inertial": (set(), {"origin", "mass", "inertia"}),
    "origin": ({"xyz", "rpy"}, set()),
    "mass": ({"value"}, set()),
    "inertia": ({"ixx", "ixy", "ixz", "iyy", "iyz", "izz"}, set()),
    "joint": (
        {"name", "type"},
        {
            "origin", "parent", "child", "axis", "limit", "dynamics", "mimic",
            "safety_controller", "calibration",
        },
    ),
    "parent": ({"link"}, set()),
    "child": ({"link"}, set()),
    "axis": ({"xyz"}, set()),
    "limit": ({"lower", "upper", "effort", "velocity"}, set()),
    "dynamics": ({"damping", "friction"}, set()),
    "mimic": ({"joint", "multiplier", "offset"}, set()),
}  # fmt: skip
# Elements without effect on the motion, and those of other programs, by their tag.
_WITHOUT_MEANING = {
    "visual": "visuals", "collision": "collision shapes", "material": "materials",
    "safety_controller": "safety controllers", "calibration": "calibrations",
    "gazebo": "settings of Gazebo", "sensor": "sensors", "mujoco": "settings of MuJoCo",
    "ros2_control": "interfaces of controllers", "contact": "contact parameters",
    "surface": "contact parameters", "self_filter": "settings of collision checks",
    "self_collision_checking": "settings of collision checks",
    "collision_checking": "settings of collision checks",
}  # fmt: skip
# Attributes of other programs, without effect on the motion.
_OTHER_ATTRIBUTES = {
    ("joint", "dont_collapse"), ("limit", "acceleration"), ("limit", "current"),
    ("limit", "gear_velocity"), ("limit", "command_effort"),
}  # fmt: skip
_KINDS: dict[str, JointKind] = {
    "fixed": "fixed", "continuous": "revolute", "revolute": "revolute", "prismatic": "prismatic",
    "planar": "planar", "floating": "floating", "spherical": "spherical",
}  # fmt: skip
WORLD = ("world", "ground")


@dataclasses.dataclass
class _Mimic:
    by: str
    ratio: float
    offset: float
    line: int


def read_urdf(root: Element, report: Report, mimic: bool = True) -> Description:
    """Return the description of a URDF file.

    **Arguments:** `root` element; `report`, to which every element is added;
    `mimic`, whether `<mimic>` couples joints.
    **Errors:** `ValueError` with file, line and element for missing, duplicate or misspelt names,
    wrong numbers, negative masses, and joints that form no tree.
    """
    _check_elements(root, report)
    description = Description(root.attributes.get("name", "model"), report)
    links = _by_name(root.all("link"), "link")
    joints = _by_name(root.all("joint"), "joint")
    if not links:
        raise root.error("has no <link>.")
    parents = _parents(links, joints)
    mimics = _mimics(joints, report) if mimic else {}
    if not mimic:
        for element in joints.values():
            if element.all("mimic"):
                report.add("ignored", str(element), "`mimic=False`: moves by itself", element.line)
    placements = _placements(links, joints, parents, mimics)
    for name, element in links.items():
        description.links.append(_link(element, placements[name], report))
    for name, element in joints.items():
        offset = mimics[name].offset if name in mimics else 0.0
        description.joints.append(_joint(element, placements, offset, report))
    for name, coupling in mimics.items():
        description.couplings.append(
            CouplingData(name, coupling.by, coupling.ratio, None, coupling.line)
        )
        text = f"`Coupling` with {coupling.ratio:g} times {coupling.by!r}"
        if coupling.offset:
            text += f"; the reference configuration has {name!r} at the offset {coupling.offset:g}"
        report.add("translated", f"<mimic> of {name!r}", text, coupling.line)
    roots = [name for name in links if name not in parents]
    description.world = {name for name in roots if name.lower() in WORLD}
    read_transmissions(root, joints, description)
    return description


def _check_elements(root: Element, report: Report) -> None:
    """Refuse macros, and unknown elements and attributes."""
    if root.tag != "robot":
        raise root.error("a URDF file starts with <robot>.")
    for element in root.walk():
        if any("xacro:" in key for key in (element.tag, *element.attributes)):
            file = pathlib.Path(element.path)
            raise element.error(
                f"macros of xacro are not expanded. Run `xacro {file.name} > "
                f"{file.stem}_expanded.urdf` and load the result."
            )
    check_elements(root, _SCHEMA, _WITHOUT_MEANING, report, _OTHER_ATTRIBUTES, skips_unknown=True)


def _by_name(elements: list[Element], kind: str) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in elements:
        name = element.text_of("name")
        if name in found:
            raise element.error(
                f"another {kind} of this name is in line {found[name].line}; rename one."
            )
        found[name] = element
    return found


def _parents(links: dict[str, Element], joints: dict[str, Element]) -> dict[str, str]:
    """Return the joint above each link, after checking that the joints form trees."""
    parents: dict[str, str] = {}
    for name, element in joints.items():
        ends = {}
        for tag in ("parent", "child"):
            end = element.first(tag)
            if end is None:
                raise element.error(f"the element <{tag}> is missing.")
            ends[tag] = link = end.text_of("link")
            if link not in links:
                raise end.error(f"there is no link {link!r}.{did_you_mean(link, list(links))}")
        if ends["parent"] == ends["child"]:
            raise element.error(f"connects the link {ends['child']!r} with itself.")
        child = ends["child"]
        if child in parents:
            raise element.error(
                f"the link {child!r} is the child of {parents[child]!r} already. A URDF file is a "
                "tree; closed loops can be loaded from SDF and MJCF files."
            )
        parents[child] = name
    above = {
        child: joints[name].all("parent")[0].text_of("link") for child, name in parents.items()
    }
    at = find_cycle(above)
    if at is not None:
        raise joints[parents[at]].error(f"the joints around {at!r} form a cycle.")
    roots = [link for link in links if link not in parents]
    if len(roots) > 1:
        raise links[roots[1]].error(
            f"no joint connects it with {roots[0]!r}; a URDF file is one tree."
        )
    return parents


def _mimics(joints: dict[str, Element], report: Report) -> dict[str, _Mimic]:
    found = {}
    for name, element in joints.items():
        mimic = element.first("mimic")
        if mimic is None:
            continue
        by = mimic.text_of("joint")
        if by not in joints:
            hint = did_you_mean(by, list(joints))
            raise mimic.error(f"the joint {name!r} follows {by!r}, which does not exist.{hint}")
        if element.text_of("type") == "fixed":
            report.add("no meaning", str(element), "<mimic> of a fixed joint", mimic.line)
            continue
        for one in (name, by):
            kind = joints[one].text_of("type")
            if kind not in ("revolute", "continuous", "prismatic"):
                raise mimic.error(f"the joint {one!r} is {kind} and has no single coordinate.")
        found[name] = _Mimic(
            by, mimic.number("multiplier", 1.0), mimic.number("offset", 0.0), mimic.line
        )
    at = find_cycle({name: follower.by for name, follower in found.items()})
    if at is not None:
        raise joints[at].error(f"the mimic joints around {at!r} form a cycle.")

    # Coordinates in the reference configuration, where independent joints are at zero.
    offsets: dict[str, float] = {}
    for name in order_after_leaders({name: follower.by for name, follower in found.items()}):
        own = found.get(name)
        offsets[name] = 0.0 if own is None else own.offset + own.ratio * offsets[own.by]
    return {name: dataclasses.replace(one, offset=offsets[name]) for name, one in found.items()}


def _origin(element: Element) -> Placement:
    origin = element.first("origin")
    if origin is None:
        return IDENTITY
    zero = (0.0, 0.0, 0.0)
    return from_roll_pitch_yaw(origin.vector("xyz", 3, zero), origin.vector("rpy", 3, zero))


def _axis(element: Element) -> np.ndarray:
    axis = element.first("axis")
    value = np.array([1.0, 0.0, 0.0]) if axis is None else axis.vector("xyz", 3)
    # Squares of the components may overflow or vanish.
    length = math.hypot(*value)
    if axis is not None and not length > 0:
        raise axis.error(f"the axis of {element} has no direction; give a vector other than 0 0 0.")
    return value / length


def _placements(
    links: dict[str, Element],
    joints: dict[str, Element],
    parents: dict[str, str],
    mimics: dict[str, _Mimic],
) -> dict[str, Placement]:
    """Return the placements of all links in the reference configuration."""
    ends = {link: joints[name].all("parent")[0].text_of("link") for link, name in parents.items()}
    placements = dict.fromkeys(links, IDENTITY)
    for link in order_after_leaders(ends):
        if link not in parents:
            continue
        element, mimic = joints[parents[link]], mimics.get(parents[link])
        placement = placements[ends[link]].then(_origin(element))
        if mimic is not None and mimic.offset:
            axis = _axis(element)
            if element.text_of("type") == "prismatic":
                moved = Placement(mimic.offset * axis, np.eye(3))
            else:
                moved = about_axis(np.zeros(3), axis, mimic.offset)
            placement = placement.then(moved)
        placements[link] = placement
    return placements


def _link(element: Element, placement: Placement, report: Report) -> Link:
    link = Link(element.text_of("name"), placement, line=element.line)
    inertial = element.first("inertial")
    link.shapes = [_shape(visual) for visual in element.all("visual")]
    if inertial is None:
        report.add("read", str(element), "no mass", element.line)
        return link
    mass, inertia = inertial.first("mass"), inertial.first("inertia")
    if mass is None or inertia is None:
        missing = "mass" if mass is None else "inertia"
        raise inertial.error(f"the element <{missing}> of {element} is missing.")
    link.mass = mass.number("value")
    if link.mass < 0:
        raise mass.error(f"the mass of {element} is negative; got {link.mass:g} kg.")
    xx, xy, xz, yy, yz, zz = (
        inertia.number(name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    own = _origin(inertial)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    link.center = own.position
    link.inertia = own.rotation @ tensor @ own.rotation.T
    report.add("read", str(element), f"{link.mass:g} kg", element.line)
    if not np.array_equal(own.rotation, np.eye(3)):
        report.add(
            "translated", f"<inertial> of {link.name!r}", "inertia turned to the link axes",
            inertial.line,
        )  # fmt: skip
    return link


def _shape(visual: Element) -> LinkShape:
    placement = _origin(visual)
    geometry = visual.first("geometry")
    for solid in [] if geometry is None else geometry.children:
        if solid.tag == "box":
            return LinkShape("box", tuple(solid.vector("size", 3)), placement)
        if solid.tag in ("cylinder", "capsule"):
            return LinkShape(solid.tag, (solid.number("radius"), solid.number("length")), placement)
        if solid.tag == "sphere":
            return LinkShape("sphere", (solid.number("radius"),), placement)
        if solid.tag == "mesh":
            scale = tuple(solid.vector("scale", 3, (1.0, 1.0, 1.0)))
            return LinkShape("mesh", scale, placement, solid.text_of("filename"))
    raise visual.error("has no <geometry> of a known kind.")


def _joint(
    element: Element, placements: dict[str, Placement], offset: float, report: Report
) -> JointRecord:
    name, kind = element.text_of("name"), element.text_of("type")
    if kind not in _KINDS:
        raise element.error(f"there is no joint of the type {kind!r}.{did_you_mean(kind, _KINDS)}")
    parent, child = (element.all(tag)[0].text_of("link") for tag in ("parent", "child"))
    placement = placements[child]
    joint = JointRecord(
        name, _KINDS[kind], parent, child, placement.position, zero=offset,
        is_continuous=kind == "continuous", line=element.line,
    )  # fmt: skip
    if kind == "fixed":
        for tag in ("axis", "limit", "dynamics"):
            for child_element in element.all(tag):
                text = f"<{tag}> of a fixed joint"
                report.add("no meaning", str(element), text, child_element.line)
        report.add("read", str(element), kind, element.line)
        return joint
    if kind not in ("floating", "spherical"):
        joint.axes = (placement.rotation @ _axis(element),)
    joint.limits = _limits(element, kind, offset)
    dynamics = element.first("dynamics")
    if dynamics is not None:
        joint.damping, joint.friction = (
            dynamics.number("damping", 0.0),
            dynamics.number("friction", 0.0),
        )
        for value, what in ((joint.damping, "damping"), (joint.friction, "friction")):
            if value < 0:
                raise dynamics.error(f"the {what} of {element} is negative; got {value:g}.")
    report.add("read", str(element), joint.describe(kind), element.line)
    return joint


def _limits(element: Element, kind: str, offset: float) -> JointLimits | None:
    limit = element.first("limit")
    if limit is None:
        if kind in ("revolute", "prismatic"):
            raise element.error(f"a {kind} joint needs <limit>; without limits it is continuous.")
        return None
    position = None
    if kind in ("revolute", "prismatic"):
        low, high = limit.number("lower", 0.0), limit.number("upper", 0.0)
        if low > high:
            raise limit.error(f"`lower` of {element} is above `upper`; got {low:g} and {high:g}.")
        position = (low - offset, high - offset)
    values = {}
    for attribute in ("velocity", "effort"):
        values[attribute] = limit.number(attribute) if attribute in limit.attributes else None
    return JointLimits(position, values["velocity"], values["effort"])
