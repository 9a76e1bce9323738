"""Conversion of the joints of files to those of a system: classes, friction and stops."""

from typing import Any, NamedTuple

import numpy as np

from ..joints import (
    Cylindrical,
    Free,
    Friction,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Stop,
    Universal,
    Weld,
)
from ..joints.base import AbstractJoint
from .description import JointKind, JointLimits, JointRecord
from .report import Report

# Stands for limits that are not given where a file demands them.
UNLIMITED = 1e30
JOINT_CLASSES: dict[JointKind, Any] = {
    "fixed": Weld, "revolute": Revolute, "prismatic": Prismatic, "cylindrical": Cylindrical,
    "screw": Screw, "universal": Universal, "planar": Planar, "spherical": Spherical,
    "floating": Free,
}  # fmt: skip
# Kinds of joints with coordinates on which friction, dampers and rotors act.
WITH_CONSTANTS = ("revolute", "prismatic", "cylindrical", "screw")


class JointLaws(NamedTuple):
    """Laws for joints of a file: the arguments `friction_velocity` and `stops` of `load`."""

    friction_velocity: float | None = None
    stops: Stop | None = None

    def check(self) -> None:
        """Raise for arguments of `load` that are no laws."""
        velocity, stops = self
        is_number = isinstance(velocity, int | float) and not isinstance(velocity, bool)
        if velocity is not None and not (is_number and 0 < velocity < np.inf):
            raise ValueError(
                "`load(friction_velocity=...)` must be a positive number, or None to leave "
                f"friction out; got {velocity!r}."
            )
        if stops is not None and not isinstance(stops, Stop):
            raise TypeError(
                f"`load(stops=...)` takes an object, as in `stops=rj.Stop(1e4)`; got {stops!r}."
            )

    def arguments_of(self, joint: JointRecord, report: Report) -> dict[str, Any]:
        """Return friction and stops of a joint as arguments of its class, and report them."""
        subject, arguments = f"joint {joint.name!r}", {}
        if joint.friction:
            text = f"friction of {joint.friction:g} N or N m"
            if joint.kind in WITH_CONSTANTS and self.friction_velocity is not None:
                velocity = self.friction_velocity
                arguments["friction"] = Friction(joint.friction, velocity=velocity)
                text += f" is Coulomb friction, smooth below {velocity:g} m/s or rad/s"
                report.add("translated", subject, text, joint.line)
            else:
                text += " is not in the equations of motion"
                report.add("warning", subject, text, joint.line)
        position = None if joint.limits is None else joint.limits.position
        if self.stops is None or position is None or joint.kind not in ("revolute", "prismatic"):
            return arguments
        if position[0] < position[1]:
            report.add("translated", subject, "its limits are elastic stops", joint.line)
            return arguments | {"limits": position, "stop": self.stops}
        text = "its limits are equal, which leaves no room for stops"
        report.add("warning", subject, text, joint.line)
        return arguments


def constants_of_file(joint: AbstractJoint) -> dict[str, np.ndarray]:
    """Return the constants that files have for the rates of a joint.

    `damping`, viscous friction included, `armature`, and `friction`, the Coulomb friction.
    """
    law: Any = joint.friction
    given = {"damping": joint.dampings, "armature": joint.armatures}
    given["friction"] = None if law is None else law.coulomb
    zeros = np.zeros(joint.num_undriven_rates)
    values = {name: zeros if value is None else np.asarray(value) for name, value in given.items()}
    if law is not None and np.any(law.viscous):
        values["damping"] = values["damping"] + np.asarray(law.viscous)
    return values


def check_friction(joint: AbstractJoint) -> None:
    """Raise `ValueError` for friction that a file cannot express."""
    law: Any = joint.friction
    if law is not None and (law.stribeck is not None or callable(law.coulomb)):
        what = "a level that changes" if law.stribeck is None else "`stribeck`"
        raise ValueError(
            f"The friction of the joint {joint.name!r} has {what}, for which model files have no "
            "element; build the joint with constant Coulomb and viscous friction alone."
        )


def limits_of(joint: AbstractJoint) -> list[JointLimits]:
    """Return the limits of the coordinates of a joint that has stops; none of another one."""
    limits: Any = joint.limits
    return [] if limits is None else [JointLimits((low, high)) for low, high in limits.tolist()]
