"""Transmissions of URDF files."""

from ..checks import did_you_mean
from .description import Actuator, Description
from .report import Report
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
            report.refuse(
                "transmission", str(element),
                f"has {len(of_joints)} joints and {len(actuators)} actuators; one of each is read.",
                element.line,
            )  # fmt: skip
            continue
        name = of_joints[0].text_of("name")
        if name not in by_name:
            hint = did_you_mean(name, list(joints))
            report.refuse(
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
            report.refuse(f"transmission/{child.tag}", str(element), text, child.line)


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
