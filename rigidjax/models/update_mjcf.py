"""Numbers of bodies and joints in MJCF files."""

import itertools

import numpy as np
from scipy.spatial.transform import Rotation

from .description import Link
from .mjcf_compiled import CompiledModel
from .placement import from_quaternion
from .xml_edits import Edits
from .xml_source import Element

_ORIENTATIONS = ("euler", "axisangle", "xyaxes", "zaxis")
# The order of `fullinertia`.
_FULL = (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)


class MjcfNumbers:
    """Access to the numbers of an MJCF file; see `UrdfNumbers`.

    Constants of joints that come from a default class are written to the joint itself.
    """

    def __init__(self, root: Element, edits: Edits):
        self.edits, self.compiled, self.path = edits, CompiledModel(root), root.path
        # An equality may have the name of a joint, and its tag.
        trees = [element for part in root.all("worldbody") for element in part.walk()]
        named = [element for element in trees if "name" in element.attributes]
        self.bodies, self.joints = (
            {element.attributes["name"]: element for element in named if element.tag == tag}
            for tag in ("body", "joint")
        )

    def has_inertial(self, link: str) -> bool:
        """Return whether a body has numbers for mass and inertia."""
        return link in self.bodies and self.bodies[link].first("inertial") is not None

    def set_inertial(self, old: Link, new: Link, tolerances: tuple[float, float, float]) -> None:
        """Write mass, centre of mass and inertia of a body; see `UrdfNumbers`.

        An inertia with principal axes other than those in the file changes `quat` as well.
        """
        if not self.has_inertial(old.name):
            full = " ".join(f"{new.inertia[index]:.9g}" for index in _FULL)
            center = " ".join(f"{value:.9g}" for value in new.center)
            raise ValueError(
                f"{self.path}: the body {old.name!r} needs an <inertial> element in this file, as "
                "geoms and included files are not written. Add "
                f'<inertial pos="{center}" mass="{new.mass:.9g}" fullinertia="{full}"/>.'
            )
        inertial = self.bodies[old.name].all("inertial")[0]
        of_mass, of_center, of_inertia = tolerances
        self.edits.set_numbers(inertial, "mass", [new.mass], of_mass)
        if np.abs(new.center - old.center).max() > of_center:
            self.edits.set_numbers(inertial, "pos", new.center, of_center)
        if np.abs(new.inertia - old.inertia).max() <= of_inertia:
            return
        if "fullinertia" in inertial.attributes:
            values = [new.inertia[index] for index in _FULL]
            self.edits.set_numbers(inertial, "fullinertia", values, of_inertia)
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

    def set_damping(self, joint: str, old: float, new: float, tolerance: float) -> None:
        """Write the damping of a joint; see `UrdfNumbers`."""
        self._set_constant(joint, "damping", new - old, tolerance)

    def set_armature(self, joint: str, old: float, new: float, tolerance: float) -> None:
        """Write the armature of a joint; see `UrdfNumbers`."""
        self._set_constant(joint, "armature", new - old, tolerance)

    def set_friction(self, joint: str, old: float, new: float, tolerance: float) -> None:
        """Write the Coulomb friction of a joint; see `UrdfNumbers`."""
        self._set_constant(joint, "frictionloss", new - old, tolerance)

    def _set_constant(self, joint: str, name: str, change: float, tolerance: float) -> None:
        if joint not in self.joints:
            raise ValueError(
                f"{self.path}: the {name} of the joint {joint!r} is different, but there is no "
                "<joint> of this name in the file: give it a name, or update the included file."
            )
        model = self.compiled.model
        j = self.compiled.mujoco.mj_name2id(model, self.compiled.mujoco.mjtObj.mjOBJ_JOINT, joint)
        # Without the part of an actuator.
        own = getattr(model, f"dof_{name}")[model.jnt_dofadr[j]]
        self.edits.set_numbers(self.joints[joint], name, [float(own) + change], tolerance)


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
