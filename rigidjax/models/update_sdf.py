"""Numbers of bodies and joints in SDF files."""

import numpy as np

from .description import Link
from .sdf_frames import read_pose
from .update_urdf import TENSOR
from .xml_edits import Edits
from .xml_source import Element


class SdfNumbers:
    """Access to the numbers of an SDF file; see `UrdfNumbers`."""

    def __init__(self, root: Element, edits: Edits):
        (model,) = (element for element in root.walk() if element.tag == "model")
        self.edits = edits
        self.links = {element.attributes["name"]: element for element in model.all("link")}
        # The axes of joints; each axis of a universal joint can be a hinge of its own.
        self.axes: dict[str, tuple[Element, Element]] = {}
        for joint in model.all("joint"):
            for axis in (*joint.all("axis"), *joint.all("axis2")):
                name = joint.attributes["name"]
                self.axes.setdefault(name, (joint, axis))
                self.axes[f"{name}.{axis.tag}"] = joint, axis

    def has_inertial(self, link: str) -> bool:
        """Return whether a link has numbers for mass and inertia."""
        return link in self.links and self.links[link].first("inertial") is not None

    def set_inertial(self, old: Link, new: Link, tolerances: tuple[float, float, float]) -> None:
        """Write mass, centre of mass and inertia of a link; see `UrdfNumbers`."""
        of_mass, of_center, of_inertia = tolerances
        inertial = self.links[old.name].first("inertial") if old.name in self.links else None
        if inertial is None:
            raise ValueError(
                f"The link {old.name!r} needs an <inertial> element for the mass properties of its "
                "body; add it to the file."
            )
        if abs(new.mass - old.mass) > of_mass:
            self._set(inertial, "mass", [new.mass], of_mass)
        if np.abs(new.center - old.center).max() > of_center:
            self._set(inertial, "pose", new.center, of_center)
        if np.abs(new.inertia - old.inertia).max() > of_inertia:
            tensor = inertial.first("inertia")
            if tensor is None:
                raise inertial.error("the element <inertia> is missing; add it with its numbers.")
            R = read_pose(inertial).rotation
            turned, before = (R.T @ link.inertia @ R for link in (new, old))
            for tag, index in TENSOR.items():
                if abs(turned[index] - before[index]) > of_inertia:
                    self._set(tensor, tag, [turned[index]], of_inertia)

    def set_damping(self, joint: str, old: float, new: float, tolerance: float) -> None:
        """Write the damping of a joint; see `UrdfNumbers`."""
        self._set_dynamics(joint, "damping", new, tolerance)

    def set_friction(self, joint: str, old: float, new: float, tolerance: float) -> None:
        """Write the Coulomb friction of a joint; see `UrdfNumbers`."""
        self._set_dynamics(joint, "friction", new, tolerance)

    def _set_dynamics(self, joint: str, name: str, new: float, tolerance: float) -> None:
        _, axis = self.axes[joint]
        dynamics = axis.first("dynamics")
        if dynamics is None:
            raise axis.error(
                f"the {name} of {joint!r} is {new:g} now; add "
                f"<dynamics><{name}>0</{name}></dynamics> to the element."
            )
        self._set(dynamics, name, [new], tolerance)

    def set_armature(self, joint: str, old: float, new: float, tolerance: float) -> None:
        """Raise `ValueError`: the format has no armature."""
        raise self.axes[joint][0].error(
            f"its armature is {new:g} now, but SDF has no element for an armature."
        )

    def _set(
        self, parent: Element, tag: str, values: list[float] | np.ndarray, tolerance: float
    ) -> None:
        element = parent.first(tag)
        if element is None or not element.text.strip():
            text = " ".join(f"{value:g}" for value in values)
            raise parent.error(f"the element <{tag}> is missing; add it with the value {text}.")
        self.edits.set_numbers(element, None, values, tolerance)
