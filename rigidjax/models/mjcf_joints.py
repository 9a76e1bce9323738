"""Hinges, slides, ball and free joints of MJCF that express joints of a system."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..joints import Cylindrical, Free, Planar, Prismatic, Revolute, Spherical, Universal, Weld
from ..joints.base import AbstractJoint
from .description import JointLimits
from .joint_laws import check_friction, constants_of_file, limits_of
from .placement import Placement


@dataclasses.dataclass
class MjcfJoint:
    """A hinge, slide, ball or free joint of MJCF, with its spring, damper and armature."""

    name: str
    kind: str
    point: np.ndarray
    axis: np.ndarray
    damping: float = 0.0
    armature: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    moment: float = 0.0  # of the springs in the reference configuration
    limits: JointLimits | None = None  # of a joint with stops

    @property
    def has_coordinate(self) -> bool:
        return self.kind in ("hinge", "slide")


def check_undriven(joint: AbstractJoint) -> None:
    """Raise `ValueError` for a joint with a prescribed motion."""
    if joint.is_driven:
        raise ValueError(
            f"The motion of the joint {joint.name!r} is prescribed, which MJCF cannot express; "
            "build it without `motion`."
        )


def joints_of_mjcf(joint: Any, is_reversed: bool, frame: Placement) -> list[MjcfJoint]:
    """Return the MJCF joints of a joint of a tree, outermost first.

    **Arguments:** `is_reversed`, whether the joint's child is nearer to the root of the tree;
    `frame`, of the body that it attaches.
    """
    check_undriven(joint)
    kinds: Sequence[tuple[str, str, Any]]
    if isinstance(joint, Weld):
        return []
    if isinstance(joint, Free):
        if joint.parent != "ground":
            raise ValueError(
                f"The Free joint {joint.name!r} has the parent {joint.parent!r}; free joints of "
                "MJCF are those of bodies in the inertial frame."
            )
        return [MjcfJoint(joint.name, "free", frame.position, np.zeros(3))]
    if isinstance(joint, Spherical):
        return [MjcfJoint(joint.name, "ball", np.asarray(joint.point), np.zeros(3))]
    if isinstance(joint, Revolute):
        kinds = [("", "hinge", joint.axis)]
    elif isinstance(joint, Prismatic):
        kinds = [("", "slide", joint.axis)]
    elif isinstance(joint, Cylindrical):
        kinds = [(" displacement", "slide", joint.axis), (" angle", "hinge", joint.axis)]
    elif isinstance(joint, Universal):
        kinds = [(" first angle", "hinge", joint.axis1), (" second angle", "hinge", joint.axis2)]
    elif isinstance(joint, Planar):
        directions = np.asarray(joint.frame()).T
        kinds = [
            (" first displacement", "slide", directions[0]),
            (" second displacement", "slide", directions[1]),
            (" angle", "hinge", directions[2]),
        ]
    else:
        raise ValueError(
            f"MJCF has no counterpart of the {type(joint).__name__} {joint.name!r}; it has hinges, "
            "slides, ball and free joints and series of them."
        )
    count = len(kinds)
    check_friction(joint)
    constants = constants_of_file(joint)
    stiffness, rest = (
        np.zeros(count) if values is None else np.asarray(values)
        for values in (joint.stiffness, joint.rest)
    )
    limits = limits_of(joint) or [None] * count
    sign = -1.0 if is_reversed else 1.0
    axes = [
        MjcfJoint(
            joint.name + suffix, kind, np.asarray(joint.point),
            sign * np.asarray(axis) / np.linalg.norm(np.asarray(axis)),
            stiffness=float(stiffness[k]), moment=float(stiffness[k] * rest[k]), limits=limits[k],
            **{name: float(values[k]) for name, values in constants.items()},
        )
        for k, (suffix, kind, axis) in enumerate(kinds)
    ]  # fmt: skip
    return axes[::-1] if is_reversed else axes
