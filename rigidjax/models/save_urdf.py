"""Writer of URDF files."""

import dataclasses
import pathlib
import warnings
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ..bodies import Body
from ..forces import Gravity
from ..joints import Coupling, Free, Planar, Prismatic
from ..joints.base import AbstractJoint
from ..mechanics import System
from ..mechanics.stacked.joints import find_origins
from .assembly import DEFAULT_GRAVITY, free_joint_name
from .description import (
    GROUND,
    IDENTITY,
    Actuator,
    JointKind,
    JointLimits,
    Placement,
    about_axis,
    make_unique,
    placement_of,
    roll_pitch_yaw,
)
from .joint_laws import JOINT_CLASSES, UNLIMITED, check_friction, constants_of_file, limits_of
from .model import Model
from .urdf import WORLD
from .xml_source import add_element, format_numbers, write_tree

_KINDS: dict[type, JointKind] = {
    JOINT_CLASSES[kind]: kind
    for kind in ("revolute", "prismatic", "fixed", "floating", "planar", "spherical")
}
_LOOPS = "Save the system as `.xml` (MJCF)."


@dataclasses.dataclass
class _Frame:
    """A link to write: its body, or the ground, and its placement in space."""

    body: str
    placement: Placement


@dataclasses.dataclass
class _Tree:
    """Links to write, by name; `root`, the link without a joint: the ground or a floating base."""

    links: dict[str, _Frame]
    root: str

    @property
    def floats(self) -> bool:
        return self.links[self.root].body != GROUND


def save_urdf(source: Model | System, path: pathlib.Path, name: str) -> None:
    """Write a URDF file; see `save`."""
    model = source if isinstance(source, Model) else None
    system = source if isinstance(source, System) else source.system
    _check(system)
    couplings = _couplings(system)
    tree = _tree(system, model)
    root = ElementTree.Element("robot", name=name)
    bodies = {body.name: body for body in system.bodies}
    for link, frame in tree.links.items():
        element = add_element(root, "link", name=link)
        if link in bodies:
            _add_inertial(element, bodies[link], frame.placement)
    names = {joint.name for joint in system.joints}
    for body, j in zip(system.bodies, system.topology.joints, strict=True):
        if j is None and body.name != tree.root:
            free = free_joint_name(body.name, names)
            _add_joint(root, tree, free, "floating", tree.root, body.name)
    ends = dict(zip(model.names.joints, model.names.ends, strict=True)) if model else {}
    for joint in system.joints:
        parent, child = (_body(system, end) for end in (joint.parent, joint.child))
        if child == tree.root:
            continue
        # The frame or link that the joint names, if it is on the same body.
        link = ends.get(joint.name, (joint.parent,))[0]
        if link not in tree.links or tree.links[link].body != parent:
            link = tree.root if parent == GROUND else parent
        own = next(iter(limits_of(joint)), None)
        limits = own if model is None else model.limits.get(joint.name)
        zeros = {} if model is None else model.zeros
        _add_moving_joint(root, tree, joint, link, child, limits, couplings, zeros)
    # The joints of the file first, in their order.
    of_file = {} if model is None else {child: own for *own, child in model.names.fixed}
    for link in dict.fromkeys([*of_file, *tree.links]):
        if link not in tree.links or link in bodies or link == tree.root:
            continue
        body = tree.links[link].body
        name, parent = of_file.get(link, (f"{link}_fixed", ""))
        if parent not in tree.links or tree.links[parent].body != body:
            parent = tree.root if body == GROUND else body
        _add_joint(root, tree, make_unique(name, names), "fixed", parent, link)
    _add_transmissions(root, system, () if model is None else model.actuators)
    write_tree(root, path)


def _check(system: System) -> None:
    """Raise `ValueError` for parts of a system that URDF cannot express."""
    for j in system.topology.loops:
        raise ValueError(
            f"The joint {system.joints[j].name!r} closes a loop; a URDF file is a tree. {_LOOPS}"
        )
    for joint in system.joints:
        kind = type(joint)
        if kind not in _KINDS:
            raise ValueError(f"URDF has no joint for the {kind.__name__} {joint.name!r}. {_LOOPS}")
        check_friction(joint)
        if joint.stiffness is not None:
            raise ValueError(
                f"The {kind.__name__} {joint.name!r} has a spring, which a URDF file cannot "
                "contain; build it without `stiffness`, or save the system as `.xml` (MJCF)."
            )
        if joint.is_driven:
            raise ValueError(
                f"The {kind.__name__} {joint.name!r} has a prescribed motion, which a file cannot "
                "contain; build it without `motion`."
            )
    for body, j, is_reversed in zip(
        system.bodies, system.topology.joints, system.topology.reversed, strict=True
    ):
        if body.mass_law is not None:
            raise ValueError(
                f"The mass of the body {body.name!r} is a function of time, which a file cannot "
                "contain; give a number."
            )
        if is_reversed and j is not None:
            joint = system.joints[j]
            raise ValueError(
                f"The joint {joint.name!r} has its parent {joint.parent!r} further from the base "
                f"than its child {joint.child!r}, which URDF does not allow; exchange the two."
            )
    for constraint in system.constraints:
        if not isinstance(constraint, Coupling):
            raise ValueError(
                f"URDF cannot contain the {type(constraint).__name__} {constraint.name!r}; leave "
                "it out."
            )
    others = [type(force).__name__ for force in system.forces if not isinstance(force, Gravity)]
    if others:
        raise ValueError(
            f"A file cannot contain the forces {others}; build a `System` without them."
        )
    gravity = [np.asarray(force.vector) for force in system.forces if isinstance(force, Gravity)]
    standard = np.asarray(DEFAULT_GRAVITY, gravity[0].dtype) if gravity else None
    if standard is None or not np.array_equal(np.sum(gravity, axis=0), standard):
        got = np.sum(gravity, axis=0).tolist() if gravity else "none"
        raise ValueError(
            f"A URDF file cannot contain gravity; readers assume {DEFAULT_GRAVITY} m/s^2, the "
            f"system has {got}. Build a `System` with that gravity."
        )


def _couplings(system: System) -> dict[str, Coupling]:
    """Return the couplings by their driven joint."""
    couplings: dict[str, Coupling] = {}
    for coupling in system.constraints:
        assert isinstance(coupling, Coupling)
        if coupling.joint in couplings:
            raise ValueError(
                f"The joint {coupling.joint!r} is driven by two couplings; URDF allows one "
                f"<mimic>. {_LOOPS}"
            )
        couplings[coupling.joint] = coupling
    for name in couplings:
        seen, at = {name}, name
        while at in couplings:
            at = couplings[at].by
            if at in seen:
                raise ValueError(f"The couplings of {sorted(seen)} form a cycle. {_LOOPS}")
            seen.add(at)
    return couplings


def _body(system: System, name: str) -> str:
    """Return the body of a name, or the ground."""
    return GROUND if name == GROUND else system.bodies[system.locate(name)[0]].name


def _tree(system: System, model: Model | None) -> _Tree:
    """Return the links of a system or model, those of bodies with the origin in their joint."""
    bodies = {body.name: body for body in system.bodies}
    centers = {name: placement_of(body) for name, body in bodies.items()}
    placed: dict[str, _Frame] = {}
    for frame in system.frames if model is None else model.frames.values():
        own = placement_of(frame)
        base = IDENTITY if frame.body == GROUND else centers[frame.body]
        # Composition with an identity is exact.
        placed[frame.name] = _Frame(frame.body, base.then(own))
    if model is not None and GROUND not in model.names.links:
        del placed[GROUND]
    for i, (name, center) in enumerate(centers.items()):
        j = system.topology.joints[i]
        joint = None if j is None else system.joints[j]
        if joint is not None and not joint.at_centre:
            origin = _point(joint, system)
        else:
            origin = placed[name].placement.position if name in placed else center.position
        placed[name] = _Frame(name, Placement(origin, center.rotation))
    order = [*([] if model is None else model.names.links), *bodies, *placed]
    links = {name: placed[name] for name in dict.fromkeys(order) if name in placed}
    base = _floating_base(system, links)
    if base is not None:
        return _Tree(links, base)
    at_rest = [
        name for name, link in links.items() if link.body == GROUND and _is_identity(link.placement)
    ]
    if at_rest:
        below = set() if model is None else {child for *_, child in model.names.fixed}
        return _Tree(links, min(at_rest, key=lambda name: name in below))
    # A root without mass is the ground, whatever its name.
    root = make_unique("world", set(links))
    return _Tree({root: _Frame(GROUND, IDENTITY)} | links, root)


def _floating_base(system: System, links: dict[str, _Frame]) -> str | None:
    """Return the body that is the root of the file; readers put a root at the origin of space."""
    rows = [i for i, parent in enumerate(system.topology.parents) if parent < 0]
    if len(rows) > 1 or any(link.body == GROUND for link in links.values()):
        return None
    body, j = system.bodies[rows[0]], system.topology.joints[rows[0]]
    is_free = j is None or (
        isinstance(system.joints[j], Free)
        and system.joints[j].name == free_joint_name(body.name, set())
    )
    # When loaded, a root without mass or with this name would become the ground.
    can_float = bool(body.mass > 0) and body.name.lower() not in WORLD
    return body.name if is_free and can_float and _is_identity(links[body.name].placement) else None


def _is_identity(placement: Placement) -> bool:
    return not placement.position.any() and np.array_equal(placement.rotation, np.eye(3))


def _point(joint: Any, system: System) -> np.ndarray:
    """Return the joint point, space components, in the reference configuration."""
    point = joint.point
    if point is None:
        point = next(origin for origin in find_origins(joint, system) if origin is not None)
    return np.asarray(point)


def _add_inertial(link: ElementTree.Element, body: Body, placement: Placement) -> None:
    """Add <inertial> to a link, unless the body has no mass."""
    mass, inertia = float(body.mass), np.asarray(body.inertia_tensor)
    if mass == 0 and not inertia.any():
        return
    xx, xy, xz, _, yy, yz, _, _, zz = inertia.ravel()
    inertial = add_element(link, "inertial")
    center = placement.inverse().of_point(np.asarray(body.position))
    add_element(inertial, "origin", xyz=center)
    add_element(inertial, "mass", value=mass)
    add_element(inertial, "inertia", ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)


def _add_moving_joint(
    root: ElementTree.Element, tree: _Tree, joint: AbstractJoint, parent: str, child: str,
    limits: JointLimits | None, couplings: dict[str, Coupling], zeros: dict[str, float],
) -> None:  # fmt: skip
    """Add a joint of the system."""
    kind: str = _KINDS[type(joint)]
    if kind == "revolute" and (limits is None or limits.position is None):
        kind = "continuous"
    given: Any = getattr(joint, "normal" if isinstance(joint, Planar) else "axis", None)
    axis = np.zeros(3)
    if given is not None:
        axis = tree.links[child].placement.rotation.T @ np.asarray(given)
        axis = axis / np.linalg.norm(axis)
    # The file's coordinate in the reference configuration; independent joints have none.
    zero = zeros.get(joint.name, 0.0) if joint.name in couplings else 0.0
    if isinstance(joint, Prismatic):
        moved = Placement(-zero * axis, np.eye(3))
    else:
        moved = about_axis(np.zeros(3), axis, -zero) if zero else IDENTITY
    element = _add_joint(root, tree, joint.name, kind, parent, child, moved)
    if given is not None:
        add_element(element, "axis", xyz=axis)
    if joint.name in couplings:
        coupling = couplings[joint.name]
        by, ratio = coupling.by, float(coupling.ratio)
        offset = zero + float(coupling.offset)
        offset -= ratio * (zeros.get(by, 0.0) if by in couplings else 0.0)
        add_element(element, "mimic", joint=by, multiplier=ratio, offset=offset)
    if limits is not None or isinstance(joint, Prismatic):
        _add_limit(element, limits or JointLimits(), zero, kind)
    constants = constants_of_file(joint)
    dynamics = {
        name: float(constants[name][0])
        for name, given in (("damping", joint.dampings), ("friction", joint.friction))
        if given is not None or np.any(constants[name])
    }
    if dynamics:
        add_element(element, "dynamics", **dynamics)


def _add_limit(joint: ElementTree.Element, limits: JointLimits, zero: float, kind: str) -> None:
    values = {}
    if kind in ("revolute", "prismatic"):
        position = (-np.inf, np.inf) if limits.position is None else limits.position
        low, high = np.clip(position, -UNLIMITED, UNLIMITED).tolist()
        values = {"lower": low + zero, "upper": high + zero}
    for attribute, value in (("effort", limits.effort), ("velocity", limits.rate)):
        values[attribute] = UNLIMITED if value is None else value
    add_element(joint, "limit", **values)


def _add_joint(
    root: ElementTree.Element, tree: _Tree, name: str, kind: str, parent: str, child: str,
    moved: Placement = IDENTITY,
) -> ElementTree.Element:  # fmt: skip
    """Add a joint; `moved`, placement of the child at the coordinate zero."""
    parent_link, child_link = (tree.links[link].placement for link in (parent, child))
    placement = parent_link.inverse().then(child_link).then(moved)
    joint = add_element(root, "joint", name=name, type=kind)
    add_element(joint, "parent", link=parent)
    add_element(joint, "child", link=child)
    add_element(joint, "origin", xyz=placement.position, rpy=roll_pitch_yaw(placement.rotation))
    return joint


def _add_transmissions(
    root: ElementTree.Element, system: System, actuators: tuple[Actuator, ...]
) -> None:
    """Add transmissions for the actuators, and for rotors without an actuator."""
    driven = {joint.name for joint in system.joints}
    kept = [one for one in actuators if one.joint in driven]
    if lost := [one.name for one in actuators if one.joint not in driven]:
        warnings.warn(
            f"The actuators {lost} drive joints that are not in the system and are left out.",
            stacklevel=4,
        )
    if more := [one.name for one in kept if one != Actuator(one.name, one.joint, gear=one.gear)]:
        warnings.warn(
            f"A URDF file contains joint and gear of the actuators {more}; their laws and ranges "
            "are left out.",
            stacklevel=4,
        )
    rotors = {
        joint.name: float(joint.armatures[0])
        for joint in system.joints
        if joint.armatures is not None
    }
    of_rotors = [Actuator(f"{name}_rotor", name) for name in rotors]
    geared = {one.joint for one in kept if one.gear}
    for one in (*kept, *(rotor for rotor in of_rotors if rotor.joint not in geared)):
        armature = rotors.pop(one.joint, 0.0) if one.gear else 0.0
        element = add_element(root, "transmission", name=f"{one.name}_transmission")
        add_element(element, "joint", name=one.joint)
        actuator = add_element(element, "actuator", name=one.name)
        add_element(actuator, "mechanicalReduction").text = format_numbers(one.gear)
        if armature:
            add_element(element, "rotor_inertia", value=armature / one.gear**2)
