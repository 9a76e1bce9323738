"""Numbers of bodies and joints in URDF files."""

import numpy as np

from .description import Link
from .placement import from_roll_pitch_yaw
from .urdf_transmissions import find_rotor
from .xml_edits import Edits
from .xml_source import Element

TENSOR = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}


class UrdfNumbers:
    """Access to the numbers of a URDF file; `SdfNumbers` and `MjcfNumbers` have the same methods.

    **Arguments:** `root` element; `edits`, which collects the changes.
    """

    def __init__(self, root: Element, edits: Edits):
        self.root, self.edits = root, edits
        self.links = {element.text_of("name"): element for element in root.all("link")}
        self.joints = {element.text_of("name"): element for element in root.all("joint")}

    def has_inertial(self, link: str) -> bool:
        """Return whether a link has numbers for mass and inertia."""
        return self.links[link].first("inertial") is not None

    def set_inertial(self, old: Link, new: Link, tolerances: tuple[float, float, float]) -> None:
        """Write mass, centre of mass and inertia of a link, in the axes of the file.

        **Arguments:** `old`, as the file gives them; `new`; `tolerances` of the three, below which
        a number stays as it is.
        **Errors:** `ValueError` that names a missing element.
        """
        inertial = self.links[old.name].first("inertial")
        if inertial is None:
            raise self.links[old.name].error(
                "the mass properties of its body are different; add an <inertial> element to it."
            )
        of_mass, of_center, of_inertia = tolerances
        mass, tensor = (inertial.all(tag)[0] for tag in ("mass", "inertia"))
        self.edits.set_numbers(mass, "value", [new.mass], of_mass)
        origin, rotation = inertial.first("origin"), np.eye(3)
        if origin is not None:
            angles = origin.vector("rpy", 3, (0.0, 0.0, 0.0))
            rotation = from_roll_pitch_yaw(np.zeros(3), angles).rotation
        if np.abs(new.center - old.center).max() > of_center:
            if origin is None:
                raise inertial.error(
                    f"the centre of mass of the link {old.name!r} is not at the origin any more; "
                    'add <origin xyz="0 0 0"/> to the element.'
                )
            self.edits.set_numbers(origin, "xyz", new.center, of_center)
        if np.abs(new.inertia - old.inertia).max() > of_inertia:
            turned = rotation.T @ new.inertia @ rotation
            for name, index in TENSOR.items():
                self.edits.set_numbers(tensor, name, [turned[index]], of_inertia)

    def set_damping(self, joint: str, old: float, new: float, tolerance: float) -> None:
        """Write the damping of a joint; `old`, as the file gives it."""
        self._set_dynamics(joint, "damping", new, tolerance)

    def set_friction(self, joint: str, old: float, new: float, tolerance: float) -> None:
        """Write the Coulomb friction of a joint; `old`, as the file gives it."""
        self._set_dynamics(joint, "friction", new, tolerance)

    def _set_dynamics(self, joint: str, name: str, new: float, tolerance: float) -> None:
        element = self.joints[joint]
        dynamics = element.first("dynamics")
        if dynamics is None:
            raise element.error(f"its {name} is {new:g} now; add <dynamics/> to the element.")
        self.edits.set_numbers(dynamics, name, [new], tolerance)

    def set_armature(self, joint: str, old: float, new: float, tolerance: float) -> None:
        """Write the armature of a joint, as the inertia of a rotor in a transmission."""
        for element in self.root.all("transmission"):
            of_joints = element.all("joint")
            if len(of_joints) != 1 or of_joints[0].text_of("name") != joint:
                continue
            for actuator in element.all("actuator"):
                rotor, gear = find_rotor(element, actuator)
                if rotor is not None and gear:
                    inertia = rotor.number("value") + (new - old) / gear**2
                    self.edits.set_numbers(rotor, "value", [inertia], tolerance / gear**2)
                    return
        raise self.joints[joint].error(
            f'its armature is {new:g} now; add <rotor_inertia value="0"/> to a <transmission> '
            "of this joint."
        )
