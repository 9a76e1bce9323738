"""Locations of mass properties and constants of joints in URDF, SDF and MJCF files."""

import itertools
from typing import TypeAlias

import numpy as np
from scipy.spatial.transform import Rotation

from .description import Link, from_quaternion, from_roll_pitch_yaw
from .mjcf_compiled import CompiledModel
from .sdf_frames import read_pose
from .urdf import find_rotor
from .xml_source import Edits, Element

# An element, and the attribute with the numbers, or `None` for its text.
Place: TypeAlias = tuple[Element, str | None]

_TENSOR = {
    "ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2),
}  # fmt: skip
_FULL = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")  # the order of `fullinertia`
_ORIENTATIONS = ("euler", "axisangle", "xyaxes", "zaxis")


def find_inertial(links: dict[str, Element], name: str) -> Element | None:
    """Return the element with mass and inertia of a link, or `None`."""
    return links[name].first("inertial") if name in links else None


def _set_one_by_one(
    numbers: "UrdfNumbers | SdfNumbers",
    old: Link,
    new: Link,
    tolerances: tuple[float, float, float],
    R: np.ndarray,
) -> None:
    """Write the numbers of a link that change, the inertia in axes with the rotation `R`."""
    of_mass, of_center, of_inertia = tolerances
    before, after = (R.T @ link.inertia @ R for link in (old, new))
    changes = [("mass", [old.mass], [new.mass], of_mass)]
    changes += [("center", list(old.center), list(new.center), of_center)]
    changes += [(tag, [before[k]], [after[k]], of_inertia) for tag, k in _TENSOR.items()]
    for what, a, b, tolerance in changes:
        if np.abs(np.subtract(a, b)).max() > tolerance:
            numbers.edits.set_numbers(*numbers.place(new.name, what, b), b, tolerance)


class UrdfNumbers:
    """Access to the numbers of a URDF file; `SdfNumbers` and `MjcfNumbers` have the same methods.

    **Arguments:** `root` element; `edits`, which collects the changes.
    """

    def __init__(self, root: Element, edits: Edits):
        self.root, self.edits = root, edits
        self.links = {element.text_of("name"): element for element in root.all("link")}
        self.joints = {element.text_of("name"): element for element in root.all("joint")}

    def set_inertial(self, old: Link, new: Link, tolerances: tuple[float, float, float]) -> None:
        """Write mass, centre of mass and inertia of a link, in the axes of the file.

        **Arguments:** `old`, as the file gives them; `new`; `tolerances` of the three, below which
        a number stays as it is.
        **Errors:** `ValueError` that names a missing element.
        """
        inertial = find_inertial(self.links, old.name)
        if inertial is None:
            raise self.links[old.name].error(
                "the mass properties of its body are different; add an <inertial> element to it."
            )
        origin, angles = inertial.first("origin"), np.zeros(3)
        if origin is not None:
            angles = origin.vector("rpy", 3, (0.0, 0.0, 0.0))
        R = from_roll_pitch_yaw(np.zeros(3), angles).rotation
        _set_one_by_one(self, old, new, tolerances, R)

    def place(self, link: str, what: str, values: list[float]) -> Place:
        """Return the location of `"mass"`, `"center"` or a component of the inertia of a link.

        **Errors:** `ValueError` if it is missing, with the `values` that it would have.
        """
        inertial = self.links[link].all("inertial")[0]
        if what == "mass":
            return inertial.all("mass")[0], "value"
        if what in _TENSOR:
            return inertial.all("inertia")[0], what
        origin = inertial.first("origin")
        if origin is None:
            raise inertial.error(
                f"the centre of mass of the link {link!r} is not at the origin any more; "
                'add <origin xyz="0 0 0"/> to the element.'
            )
        return origin, "xyz"

    def set_constant(self, joint: str, name: str, old: float, new: float, eps: float) -> None:
        """Write the `"damping"`, `"armature"` or `"friction"` of a joint; `eps`, tolerance."""
        element = self.joints[joint]
        if name == "armature":
            self._set_rotor(joint, old, new, eps)
            return
        dynamics = element.first("dynamics")
        if dynamics is None:
            raise element.error(f"its {name} is {new:g} now; add <dynamics/> to the element.")
        self.edits.set_numbers(dynamics, name, [new], eps)

    def _set_rotor(self, joint: str, old: float, new: float, eps: float) -> None:
        """Write the armature of a joint, as the inertia of a rotor in a transmission."""
        for element in self.root.all("transmission"):
            of_joints = element.all("joint")
            if len(of_joints) != 1 or of_joints[0].text_of("name") != joint:
                continue
            for actuator in element.all("actuator"):
                rotor, gear = find_rotor(element, actuator)
                if rotor is not None and gear:
                    inertia = rotor.number("value") + (new - old) / gear**2
                    self.edits.set_numbers(rotor, "value", [inertia], eps / gear**2)
                    return
        raise self.joints[joint].error(
            f'its armature is {new:g} now; add <rotor_inertia value="0"/> to a <transmission> '
            "of this joint."
        )


class SdfNumbers:
    """Access to the numbers of an SDF file."""

    def __init__(self, root: Element, edits: Edits):
        (model,) = (element for element in root.walk() if element.tag == "model")
        if any(part.path != root.path for part in model.walk()):
            raise root.error("`update` changes one file; this one includes others.")
        self.edits = edits
        self.links = {element.attributes["name"]: element for element in model.all("link")}
        # The axes of joints; each axis of a universal joint can be a hinge of its own.
        self.axes: dict[str, tuple[Element, Element]] = {}
        for joint in model.all("joint"):
            for axis in (*joint.all("axis"), *joint.all("axis2")):
                name = joint.attributes["name"]
                self.axes.setdefault(name, (joint, axis))
                self.axes[f"{name}.{axis.tag}"] = joint, axis

    def set_inertial(self, old: Link, new: Link, tolerances: tuple[float, float, float]) -> None:
        """Write the mass properties of a link; see `UrdfNumbers`."""
        inertial = find_inertial(self.links, old.name)
        if inertial is None:
            raise ValueError(
                f"The link {old.name!r} needs an <inertial> element for the mass properties of its "
                "body; add it to the file."
            )
        _set_one_by_one(self, old, new, tolerances, read_pose(inertial).rotation)

    def place(self, link: str, what: str, values: list[float]) -> Place:
        """Return the location of a number; see `UrdfNumbers`."""
        inertial = self.links[link].all("inertial")[0]
        if what not in _TENSOR:
            return _child_with_text(inertial, {"center": "pose"}.get(what, what), values)
        tensor = inertial.first("inertia")
        if tensor is None:
            raise inertial.error("the element <inertia> is missing; add it with its numbers.")
        return _child_with_text(tensor, what, values)

    def set_constant(self, joint: str, name: str, old: float, new: float, eps: float) -> None:
        """Write a constant of a joint; see `UrdfNumbers`."""
        element, axis = self.axes[joint]
        if name == "armature":
            raise element.error(
                f"its armature is {new:g} now, but SDF has no element for an armature."
            )
        dynamics = axis.first("dynamics")
        if dynamics is None:
            raise axis.error(
                f"the {name} of {joint!r} is {new:g} now; add "
                f"<dynamics><{name}>0</{name}></dynamics> to the element."
            )
        self.edits.set_numbers(*_child_with_text(dynamics, name, [new]), [new], eps)


def _child_with_text(parent: Element, tag: str, values: list[float]) -> Place:
    element = parent.first(tag)
    if element is None or not element.text.strip():
        text = " ".join(f"{value:g}" for value in values)
        raise parent.error(f"the element <{tag}> is missing; add it with the value {text}.")
    return element, None


class MjcfNumbers:
    """Access to the numbers of an MJCF file.

    Constants of joints that come from a default class are written to the joint itself.
    """

    def __init__(self, root: Element, edits: Edits):
        self.edits, self.compiled, self.path = edits, CompiledModel(root), root.path
        # An equality may have the name of a joint, and its tag.
        trees = [element for part in root.all("worldbody") for element in part.walk()]
        named = [element for element in trees if "name" in element.attributes]
        self.links, self.joints = (
            {element.attributes["name"]: element for element in named if element.tag == tag}
            for tag in ("body", "joint")
        )

    def set_inertial(self, old: Link, new: Link, tolerances: tuple[float, float, float]) -> None:
        """Write mass properties; other principal axes than those in the file change `quat`."""
        inertial = find_inertial(self.links, old.name)
        full = [new.inertia[_TENSOR[tag]] for tag in _FULL]
        if inertial is None:
            center, moments = (
                " ".join(f"{value:.9g}" for value in values) for values in (new.center, full)
            )
            raise ValueError(
                f"{self.path}: the body {old.name!r} needs an <inertial> element in this file, as "
                "geoms and included files are not written. Add "
                f'<inertial pos="{center}" mass="{new.mass:.9g}" fullinertia="{moments}"/>.'
            )
        of_mass, of_center, of_inertia = tolerances
        self.edits.set_numbers(inertial, "mass", [new.mass], of_mass)
        if np.abs(new.center - old.center).max() > of_center:
            self.edits.set_numbers(inertial, "pos", new.center, of_center)
        if np.abs(new.inertia - old.inertia).max() <= of_inertia:
            return
        if "fullinertia" in inertial.attributes:
            self.edits.set_numbers(inertial, "fullinertia", full, of_inertia)
            return
        b = self.compiled.bodies.index(old.name)
        R = from_quaternion(np.zeros(3), self.compiled.model.body_iquat[b]).rotation
        turned = R.T @ new.inertia @ R
        moments = np.diag(turned)
        if np.abs(turned - np.diag(moments)).max() > of_inertia:
            given = [name for name in _ORIENTATIONS if name in inertial.attributes]
            if given:
                raise inertial.error(
                    f"the principal axes of the body {old.name!r} are different; give the "
                    f"orientation by `quat` instead of `{given[0]}`."
                )
            moments, axes = _principal_axes(turned)
            p = Rotation.from_matrix(R @ axes).as_quat(canonical=True, scalar_first=True)
            self.edits.set_numbers(inertial, "quat", p, 0.0)
        self.edits.set_numbers(inertial, "diaginertia", moments, of_inertia)

    def set_constant(self, joint: str, name: str, old: float, new: float, eps: float) -> None:
        """Write a constant of a joint; see `UrdfNumbers`."""
        attribute = {"friction": "frictionloss"}.get(name, name)
        if joint not in self.joints:
            raise ValueError(
                f"{self.path}: the {attribute} of the joint {joint!r} is different, but there is "
                "no <joint> of this name in the file: give it a name, or update the included file."
            )
        model, mujoco = self.compiled.model, self.compiled.mujoco
        j = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint)
        # MuJoCo's value, less what an actuator adds to it, is the number in the file.
        own = float(getattr(model, f"dof_{attribute}")[model.jnt_dofadr[j]])
        self.edits.set_numbers(self.joints[joint], attribute, [own + (new - old)], eps)


def _principal_axes(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return principal moments and axes, in the order and direction closest to the given axes."""
    moments, axes = np.linalg.eigh(inertia)
    order = max(
        itertools.permutations(range(3)), key=lambda order: np.abs(np.diag(axes[:, order])).sum()
    )
    moments, axes = moments[list(order)], axes[:, order]
    axes = axes * np.where(np.diag(axes) < 0, -1.0, 1.0)
    if np.linalg.det(axes) < 0:
        axes[:, int(np.argmin(np.abs(np.diag(axes))))] *= -1
    return moments, axes
