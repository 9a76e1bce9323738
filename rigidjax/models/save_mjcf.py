"""Writer of MJCF files."""

import pathlib
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ..forces import Bushing, FixedTendon, Gravity, TorsionSpring
from ..joints import (
    Coupling,
    Cylindrical,
    Free,
    Planar,
    PolynomialCoupling,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
    Weld,
)
from ..joints.base import AbstractJoint
from ..mechanics import System
from ..mechanics.declared.topology import GROUND
from .description import IDENTITY, JointKind, JointRecord, Placement, placement_of
from .joint_laws import UNLIMITED, check_friction, constants_of_file, limits_of
from .mjcf import JOINT_TYPES
from .model import Model
from .xml_source import add_element, write_tree

_WORLD = "world"


def save_mjcf(source: Model | System, path: pathlib.Path, name: str) -> None:
    """Write an MJCF file; see `save`.

    Joints of the trees become hinges, slides, ball and free joints: `Cylindrical`, `Universal` and
    `Planar` joints several of them. Massless bodies between two joints become one body with both.
    `Spherical` joints and `Weld`s that close loops become the equalities `connect` and `weld`, a
    `Coupling` the equality `joint`. Body frames are those of the links of a `Model`, and those at
    the centres of mass otherwise.
    """
    system = source if isinstance(source, System) else source.system
    model = source if isinstance(source, Model) else None
    writer = _Writer(system, model)
    root = ElementTree.Element("mujoco", model=name)
    add_element(root, "compiler", angle="radian", inertiafromgeom="false", autolimits="true")
    add_element(root, "option", gravity=writer.gravity())
    world = add_element(root, "worldbody")
    writer.add_bodies(world)
    writer.add_equalities(add_element(root, "equality"))
    writer.add_tendons(add_element(root, "tendon"))
    if model is not None and model.actuators:
        _add_actuators(model, add_element(root, "actuator"))
    write_tree(root, path)


def _check_undriven(joint: AbstractJoint) -> None:
    """Raise `ValueError` for a joint with a prescribed motion."""
    if joint.is_driven:
        raise ValueError(
            f"The motion of the joint {joint.name!r} is prescribed, which MJCF cannot express; "
            "build it without `motion`."
        )


def _split_joint(joint: Any, is_reversed: bool, frame: Placement) -> list[JointRecord]:
    """Return the MJCF joints of a joint of a tree, outermost first.

    **Arguments:** `is_reversed`, whether the joint's child is nearer to the root of the tree;
    `frame`, of the body that it attaches.
    """
    _check_undriven(joint)
    kinds: Sequence[tuple[str, JointKind, Any]]
    if isinstance(joint, Weld):
        return []
    if isinstance(joint, Free):
        if joint.parent != "ground":
            raise ValueError(
                f"The Free joint {joint.name!r} has the parent {joint.parent!r}; free joints of "
                "MJCF are those of bodies in the inertial frame."
            )
        return [JointRecord(joint.name, "floating", "", "", frame.position)]
    if isinstance(joint, Spherical):
        return [JointRecord(joint.name, "spherical", "", "", np.asarray(joint.point))]
    if isinstance(joint, Revolute):
        kinds = [("", "revolute", joint.axis)]
    elif isinstance(joint, Prismatic):
        kinds = [("", "prismatic", joint.axis)]
    elif isinstance(joint, Cylindrical):
        kinds = [(" displacement", "prismatic", joint.axis), (" angle", "revolute", joint.axis)]
    elif isinstance(joint, Universal):
        kinds = [
            (" first angle", "revolute", joint.axis1),
            (" second angle", "revolute", joint.axis2),
        ]
    elif isinstance(joint, Planar):
        directions = np.asarray(joint.frame()).T
        kinds = [
            (" first displacement", "prismatic", directions[0]),
            (" second displacement", "prismatic", directions[1]),
            (" angle", "revolute", directions[2]),
        ]
    else:
        raise ValueError(
            f"MJCF has no counterpart of the {type(joint).__name__} {joint.name!r}; it has hinges, "
            "slides, ball and free joints and series of them."
        )
    count = len(kinds)
    check_friction(joint)
    constants = constants_of_file(joint)
    damping, armature, friction = (constants[n] for n in ("damping", "armature", "friction"))
    stiffness, rest = (
        np.zeros(count) if values is None else np.asarray(values)
        for values in (joint.stiffness, joint.rest)
    )
    limits = limits_of(joint) or [None] * count
    sign = -1.0 if is_reversed else 1.0
    axes = [
        JointRecord(
            joint.name + suffix, kind, "", "", np.asarray(joint.point),
            (sign * np.asarray(axis) / np.linalg.norm(np.asarray(axis)),),
            stiffness=float(stiffness[k]), rest=float(rest[k]), limits=limits[k],
            damping=float(damping[k]), armature=float(armature[k]), friction=float(friction[k]),
        )
        for k, (suffix, kind, axis) in enumerate(kinds)
    ]  # fmt: skip
    return axes[::-1] if is_reversed else axes


class _Writer:
    """Elements of the MJCF file of a system.

    `frames`, placement in space of each body's frame; `axes`, MJCF joints of each joint.
    """

    def __init__(self, system: System, model: Model | None):
        self.system, self.model = system, model
        self.topology = system.topology
        self.rows = {body.name: i for i, body in enumerate(system.bodies)} | {"ground": GROUND}
        self.rows |= {frame.name: self.rows[frame.body] for frame in system.frames}
        self.centers = [placement_of(body) for body in system.bodies]
        self.frames = list(self.centers)
        if model is not None:
            for i, body in enumerate(system.bodies):
                own = model.frames[body.name]
                self.frames[i] = self.centers[i].then(placement_of(own))
        else:
            self._move_frames_to_bushings()
        self.axes: dict[str, list[JointRecord]] = {}
        for i, j in enumerate(self.topology.joints):
            if j is None:
                name = f"{system.bodies[i].name} free"
                position = self.frames[i].position
                self.axes[name] = [JointRecord(name, "floating", "", "", position)]
            else:
                joint = system.joints[j]
                self.axes[joint.name] = _split_joint(
                    joint, self.topology.reversed[i], self.frames[i]
                )
        self._add_springs()

    def gravity(self) -> np.ndarray:
        """Return the sum of all gravities."""
        vectors = [
            np.asarray(force.vector) for force in self.system.forces if isinstance(force, Gravity)
        ]
        return np.sum([np.zeros(3), *vectors], axis=0)

    def _move_frames_to_bushings(self) -> None:
        """Move the frames of floating bodies to the points where springs hold them."""
        for force in self.system.forces:
            if isinstance(force, Bushing):
                first, second = sorted((self.rows[force.a], self.rows[force.b]))
                j = self.topology.joints[second]
                if first == GROUND and (j is None or isinstance(self.system.joints[j], Free)):
                    rotation = self.frames[second].rotation
                    self.frames[second] = Placement(np.asarray(force.point), rotation)

    def _add_springs(self) -> None:
        """Add springs and dampers of forces to the MJCF joints that they act on."""
        for force in self.system.forces:
            if isinstance(force, Gravity | FixedTendon):
                continue
            if isinstance(force, TorsionSpring) and force.joint in self.axes:
                of_joint = [axis for axis in self.axes[force.joint] if axis.axes]
                axis = of_joint[force.component or 0]
                axis.damping += float(force.damping)
                moment = axis.stiffness * axis.rest + float(force.stiffness) * float(force.angle)
                axis.stiffness += float(force.stiffness)
                axis.rest = moment / axis.stiffness if axis.stiffness else 0.0
            elif isinstance(force, Bushing) and self._add_bushing(force):
                continue
            else:
                raise ValueError(
                    f"MJCF has no counterpart of the force `{type(force).__name__}`; leave it out. "
                    "Files contain `Gravity`, `FixedTendon`s, a `TorsionSpring` on a joint, and a "
                    "`Bushing` that is the spring of a ball or free joint."
                )

    def _add_bushing(self, force: Bushing) -> bool:
        """Add a bushing that is the spring of a ball or free joint; return whether it is one."""
        ends = {self.rows[force.a], self.rows[force.b]}
        of_ends = [i for i, parent in enumerate(self.topology.parents) if {i, parent} == ends]
        axes = self._axes_above(of_ends[0]) if of_ends else []
        if len(axes) != 1 or axes[0].axes:
            return False
        (axis,) = axes
        unit = np.diag([0.0 if axis.kind == "spherical" else 1.0] * 3 + [1.0] * 3)
        values = []
        for given in (force.stiffness, force.damping):
            matrix = np.asarray(given)
            if matrix.ndim < 2:
                alone = np.zeros(6)
                alone[: 6 if matrix.size == 6 else 3] = matrix
                matrix = np.diag(alone)
            values.append(float(matrix[5, 5]))
            if not np.array_equal(matrix, values[-1] * unit):
                return False
        if not np.allclose(force.point, axis.point, 0.0, 1e-12):
            return False
        axis.stiffness, axis.damping = axis.stiffness + values[0], axis.damping + values[1]
        return True

    def add_bodies(self, world: ElementTree.Element) -> None:
        """Add the bodies with their joints and frames, parents first."""
        for frame in () if self.model is None else self.model.frames.values():
            if frame.body == "ground" and frame.name not in ("ground", _WORLD):
                _add_site(world, frame.name, placement_of(frame))
        elements = {GROUND: (world, IDENTITY)}
        for i, (parent, axes) in self._chains().items():
            above, placement = elements[parent]
            body, frame_of_body = self.system.bodies[i], self.frames[i]
            element = self._body_element(above, placement, i)
            elements[i] = element, frame_of_body
            for axis in axes:
                self._add_joint(element, axis, frame_of_body)
            for frame in self.system.frames:
                if frame.body == body.name:
                    in_space = self.centers[i].then(placement_of(frame))
                    _add_site(element, frame.name, frame_of_body.inverse().then(in_space))

    def _chains(self) -> dict[int, tuple[int, list[JointRecord]]]:
        """Return each body with mass, its parent with mass and the joints in between.

        Parents come first, children of a body in the order of the system.
        """
        chains: dict[int, tuple[int, list[JointRecord]]] = {}
        through: dict[int, tuple[int, list[JointRecord]]] = {}
        for i in self.topology.order:
            body, parent = self.system.bodies[i], self.topology.parents[i]
            parent, above = through.get(parent, (parent, []))
            axes = [*above, *self._axes_above(i)]
            if not np.any(np.asarray(body.mass)) and not np.any(np.asarray(body.inertia)):
                self._check_massless(i)
                through[i] = parent, axes
                continue
            rotations = [axis.kind for axis in axes if axis.kind in ("spherical", "revolute")]
            if "spherical" in rotations and len(rotations) > 1:
                raise ValueError(
                    f"The massless body above {body.name!r} is between a ball joint and another "
                    "rotation, which MJCF does not allow; give it a mass."
                )
            chains[i] = parent, axes
        children: dict[int, list[int]] = {}
        for i in sorted(chains):
            children.setdefault(chains[i][0], []).append(i)
        order = children.get(GROUND, [])
        for i in order:  # The loop appends the children of every body to the list.
            order += children.get(i, [])
        return {i: chains[i] for i in order}

    def _check_massless(self, i: int) -> None:
        """Raise `ValueError` for a massless body that is no link between two joints."""
        name = self.system.bodies[i].name
        children = [k for k, parent in enumerate(self.topology.parents) if parent == i]
        ends = [
            self.rows[end]
            for j in self.topology.loops
            for end in (self.system.joints[j].parent, self.system.joints[j].child)
        ]
        frames = [frame for frame in self.system.frames if frame.body == name]
        if len(children) != 1 or i in ends or frames or not self._axes_above(children[0]):
            raise ValueError(
                f"The body {name!r} has no mass. MJCF has massless bodies only between two joints, "
                "without frames and loops; give it a mass."
            )

    def _axes_above(self, i: int) -> list[JointRecord]:
        """Return the MJCF joints of the joint that attaches a body."""
        j = self.topology.joints[i]
        name = f"{self.system.bodies[i].name} free" if j is None else self.system.joints[j].name
        return self.axes[name]

    def _body_element(
        self, above: ElementTree.Element, placement: Placement, i: int
    ) -> ElementTree.Element:
        body = self.system.bodies[i]
        if body.name == _WORLD:
            raise ValueError(f"A body is called {_WORLD!r}, MuJoCo's inertial frame; rename it.")
        if body.mass_law is not None:
            raise ValueError(f"The mass of the body {body.name!r} varies; MJCF has constant ones.")
        own = placement.inverse().then(self.frames[i])
        element = add_element(above, "body", name=body.name, pos=own.position, quat=own.quaternion)
        center = self.frames[i].inverse().then(self.centers[i])
        principal, axes = np.linalg.eigh(np.asarray(body.inertia_tensor))
        if principal[0] + principal[1] < principal[2] * (1 - 1e-12):
            raise ValueError(
                f"The inertia of the body {body.name!r} is not physical; MuJoCo does not take it. "
                'Load the model with `physical="nearest"`.'
            )
        # MuJoCo rejects a moment above the sum of the others, even if only by rounding.
        principal[2] = min(principal[2], principal[0] + principal[1])
        axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
        inertial = center.then(Placement(np.zeros(3), axes))
        add_element(
            element, "inertial", pos=inertial.position, quat=inertial.quaternion,
            mass=body.mass, diaginertia=principal,
        )  # fmt: skip
        return element

    def _add_joint(self, element: ElementTree.Element, axis: JointRecord, frame: Placement) -> None:
        """Add a joint to a body with a frame."""
        attributes: dict[str, Any] = {"name": axis.name, "type": JOINT_TYPES[axis.kind]}
        zero = 0.0
        if axis.kind != "floating":
            attributes["pos"] = frame.inverse().of_point(axis.point)
        if axis.axes:
            attributes["axis"] = frame.rotation.T @ axis.axes[0]
            zero = 0.0 if self.model is None else self.model.zeros.get(axis.name, 0.0)
            if zero:
                attributes["ref"] = zero
        for field in ("damping", "armature", "stiffness"):
            if getattr(axis, field):
                attributes[field] = getattr(axis, field)
        if axis.friction:
            attributes["frictionloss"] = axis.friction
        if axis.stiffness and axis.axes:
            attributes["springref"] = axis.rest + zero
        limits = axis.limits if self.model is None else self.model.limits.get(axis.name)
        if limits is not None and axis.axes:
            if limits.position is not None:
                position = np.clip(limits.position, -UNLIMITED, UNLIMITED)
                attributes["range"] = position + zero
            if limits.effort is not None:
                attributes["actuatorfrcrange"] = [-limits.effort, limits.effort]
        add_element(element, "joint", **attributes)

    def add_equalities(self, parent: ElementTree.Element) -> None:
        """Add the joints that close loops, and the couplings."""
        for j in self.topology.loops:
            joint: Any = self.system.joints[j]
            _check_undriven(joint)
            ends = [self.rows[joint.parent], self.rows[joint.child]]
            names = [_WORLD if i == GROUND else self.system.bodies[i].name for i in ends]
            frames = [IDENTITY if i == GROUND else self.frames[i] for i in ends]
            if isinstance(joint, Spherical):
                kind, frame = "connect", frames[ends[0] == GROUND]
                names = names[::-1] if ends[0] == GROUND else names
            elif isinstance(joint, Weld):
                kind, frame = "weld", frames[1]
            else:
                raise ValueError(
                    f"The {type(joint).__name__} {joint.name!r} closes a loop; MJCF closes loops "
                    "only by `Spherical` joints and `Weld`s. Let one of these close the loop "
                    "(`System(closing=...)`)."
                )
            anchor = frame.inverse().of_point(np.asarray(joint.point))
            add_element(
                parent, kind, name=joint.name, body1=names[0], body2=names[1], anchor=anchor
            )
        for constraint in self.system.constraints:
            if isinstance(constraint, Coupling):
                values = [float(constraint.offset), float(constraint.ratio)]
            elif isinstance(constraint, PolynomialCoupling) and len(constraint.coefficients) <= 5:
                values = np.asarray(constraint.coefficients).tolist()
            else:
                raise ValueError(
                    f"MJCF has no counterpart of the {type(constraint).__name__} "
                    f"{constraint.name!r}; leave it out."
                )
            add_element(
                parent, "joint", name=constraint.name, joint1=constraint.joint,
                joint2=constraint.by, polycoef=np.pad(values, (0, 5 - len(values))),
            )  # fmt: skip

    def add_tendons(self, parent: ElementTree.Element) -> None:
        """Add the tendons on joints."""
        for force in self.system.forces:
            if isinstance(force, FixedTendon):
                tendon = add_element(
                    parent, "fixed", stiffness=float(force.stiffness),
                    damping=float(force.damping), springlength=np.asarray(force.length),
                )  # fmt: skip
                for name, value in zip(force.joints, force.coefficients.tolist(), strict=True):
                    add_element(tendon, "joint", joint=name, coef=value)


def _add_site(parent: ElementTree.Element, name: str, placement: Placement) -> None:
    add_element(parent, "site", name=name, pos=placement.position, quat=placement.quaternion)


def _add_actuators(model: Model, parent: ElementTree.Element) -> None:
    """Add the actuators of a model."""
    for actuator in model.actuators:
        zero = model.zeros.get(actuator.joint, 0.0)
        constant, by_length, by_rate = actuator.bias
        bias = [constant - by_length * actuator.gear * zero, by_length, by_rate]
        attributes: dict[str, Any] = {
            "name": actuator.name, "joint": actuator.joint, "gear": actuator.gear,
            "gainprm": actuator.gain, "biastype": "affine", "biasprm": bias,
        }  # fmt: skip
        if not any(bias):
            attributes["biastype"] = "none"
        for field, limits in (
            ("ctrlrange", actuator.control_range), ("forcerange", actuator.force_range)
        ):  # fmt: skip
            if limits is not None:
                attributes[field] = limits
        add_element(parent, "general", **attributes)
