"""Transmissions of URDF files."""

from ..checks import did_you_mean
from .description import Actuator, Description
from .xml_source import Element


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
