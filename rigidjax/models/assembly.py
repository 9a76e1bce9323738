"""Assembly of a `Model` from the description of a file."""

import dataclasses
import os
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..bodies import Body
from ..bodies.frame import Frame
from ..bodies.inertia import nearest_physical
from ..checks import ArrayInput
from ..forces import Bushing, Cable, FixedTendon, Gravity, TorsionSpring
from ..joints import Coupling, PolynomialCoupling
from ..mechanics import System
from .description import (
    GROUND,
    Description,
    GroundFrame,
    JointRecord,
    Link,
    Placement,
    TendonData,
    make_unique,
)
from .joint_laws import JOINT_CLASSES, WITH_CONSTANTS, JointLaws
from .meshes import shape_of
from .model import Model, Names
from .report import Report

DEFAULT_GRAVITY = (0.0, 0.0, -9.81)


@dataclasses.dataclass
class Assembly:
    """Links that are fixed to each other; the first one gives name and axes."""

    links: list[Link]
    is_ground: bool = False

    @property
    def lead(self) -> Link:
        return self.links[0]

    def mass_properties(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Return mass, centre of mass in the lead's frame and inertia about it, lead's axes."""
        into_lead = self.lead.placement.inverse()
        parts = [(into_lead.then(link.placement), link) for link in self.links]
        mass = sum(link.mass for link in self.links)
        centers = [placement.of_point(link.center) for placement, link in parts]
        if len(parts) == 1:
            return mass, self.lead.center, self.lead.inertia
        if mass == 0:
            turned = [p.rotation @ link.inertia @ p.rotation.T for p, link in parts]
            return 0.0, np.zeros(3), np.sum(turned, axis=0)
        weights = np.array([link.mass for link in self.links]) / mass
        center = weights @ np.array(centers)
        inertia = np.zeros((3, 3))
        for (placement, link), own in zip(parts, centers, strict=True):
            d = own - center
            inertia += placement.rotation @ link.inertia @ placement.rotation.T
            inertia += link.mass * (d @ d * np.eye(3) - np.outer(d, d))
        return mass, center, inertia


def assemble(
    description: Description,
    fixed_base: bool | None,
    lump_fixed: bool | Literal["massless"],
    physical: str,
    gravity: ArrayInput | None,
    packages: Sequence[str | os.PathLike[str]],
    meshes: bool,
    laws: JointLaws,
) -> Model:
    """Return the model of a description; see `load` for the arguments.

    **Errors:** `ValueError` for unsupported features, and joints that cannot be expressed.
    """
    report = description.report
    assemblies = group_links(description, lump_fixed)
    _fix_roots(description, assemblies, fixed_base)
    bodies, frames = {}, {}
    for assembly in assemblies:
        _add_assembly(assembly, description, physical, packages, meshes, bodies, frames)
    of_link = {link.name: a for a in assemblies for link in a.links}
    for site in description.frames:
        link = next(link for link in of_link[site.link].links if link.name == site.link)
        frames[site.name] = _frame(
            site.name, of_link[site.link], link.placement.then(site.placement), bodies
        )
    frames.setdefault(GROUND, GroundFrame(GROUND, np.zeros(3), (1.0, 0.0, 0.0, 0.0)))
    named = {GROUND: GROUND} | {
        link: GROUND if assembly.is_ground else assembly.lead.name
        for link, assembly in of_link.items()
    }
    made, forces, fixed = [], [], []
    for joint in sorted(description.joints, key=lambda joint: joint.closes_loop):
        ends = named[joint.parent], named[joint.child]
        if joint.kind == "fixed" and ends[0] == ends[1]:
            if not joint.closes_loop:
                fixed.append((joint.name, joint.parent, joint.child))
            continue
        if ends[0] == ends[1]:
            raise ValueError(
                f"{report.path}:{joint.line}: the joint {joint.name!r} is between links that are "
                "fixed to each other."
            )
        made.append((joint, _joint(joint, *ends, report, laws)))
        forces += _springs(joint, *ends)
    couplings = [
        PolynomialCoupling(one.joint, one.by, (0.0, one.ratio, *one.higher), one.name)
        if one.higher
        else Coupling(one.joint, one.by, one.ratio, name=one.name)
        for one in description.couplings
    ]
    zeros = {joint.name: joint.zero for joint, _ in made}
    links = {link.name: link for link in description.links}
    forces += [force for one in description.tendons for force in _tendon(one, zeros, links, named)]
    given = description.gravity if gravity is None else gravity
    forces.insert(0, Gravity(DEFAULT_GRAVITY if given is None else given))
    report.check()
    if not bodies:
        hint = " With `fixed_base=False` the base floats." if fixed_base else ""
        raise ValueError(f"{report.path}: no link can move; all are fixed to the ground.{hint}")
    # Frames in the order of their bodies, without those named as a body.
    rows = {name: row for row, name in enumerate(bodies)}
    added = [f for f in frames.values() if isinstance(f, Frame) and f.name not in bodies]
    system = System(
        list(bodies.values()),
        [*(joint for _, joint in made), *couplings],
        forces,
        sorted(added, key=lambda frame: rows[frame.body]),
        closing=[joint.name for joint, _ in made if joint.closes_loop],
    )
    for j in system.topology.loops:
        report.add("translated", f"joint {system.joints[j].name!r}", "closes a loop")
    limits = {joint.name: joint.limits for joint, _ in made if joint.limits is not None}
    names = Names(
        tuple(bodies),
        tuple(joint.name for joint, _ in made),
        tuple(link.name for link in description.links),
        tuple(joint.kind for joint, _ in made),
        tuple((joint.parent, joint.child) for joint, _ in made),
        tuple(joint.name for joint, _ in made if joint.is_continuous),
        tuple(joint.name for joint, _ in made if joint.closes_loop),
        _depth_first(description, {joint.name for joint, _ in made}),
        tuple(fixed),
    )
    return Model(
        system, frames, names, limits, tuple(description.actuators), system.reference_state(),
        zeros, report,
    )  # fmt: skip


def _depth_first(description: Description, wanted: set[str]) -> tuple[str, ...]:
    """Return the wanted joints of the trees depth first, with children sorted by their joints."""
    below: dict[str, list[JointRecord]] = {}
    for joint in sorted(description.joints, key=lambda joint: joint.name, reverse=True):
        if not joint.closes_loop:
            below.setdefault(joint.parent, []).append(joint)
    children = {joint.child for joints in below.values() for joint in joints}
    links = [GROUND, *(link.name for link in description.links)]
    roots = [link for link in dict.fromkeys(links) if link not in children]
    stack = [joint for root in reversed(roots) for joint in below.get(root, [])]
    order = []
    while stack:
        joint = stack.pop()
        order.append(joint.name)
        stack += below.get(joint.child, [])
    return tuple(name for name in order if name in wanted)


def group_links(description: Description, lump_fixed: bool | Literal["massless"]) -> list[Assembly]:
    """Return the links, those at fixed joints together, parents first."""
    lead = {link.name: link.name for link in description.links}
    kept = {
        link.name
        for link in description.links
        if lump_fixed == "massless" and (link.mass or np.any(link.inertia))
    }

    def find(name: str) -> str:
        while lead[name] != name:
            lead[name] = lead[lead[name]]
            name = lead[name]
        return name

    for joint in description.joints:
        is_tree = joint.kind == "fixed" and not joint.closes_loop
        if is_tree and lump_fixed and joint.child not in kept:
            if joint.parent == GROUND:
                description.world.add(joint.child)
                continue
            parent, child = find(joint.parent), find(joint.child)
            if parent != child:
                lead[child] = parent
    links = {link.name: link for link in description.links}
    found: dict[str, list[Link]] = {}
    for link in description.links:
        found.setdefault(find(link.name), []).append(link)
    assemblies = []
    for name, members in found.items():
        others = [link for link in members if link.name != name]
        assemblies.append(Assembly([links[name], *others]))
        for link in others:
            description.report.add(
                "translated", f"link {link.name!r}", f"part of the body {name!r}, with a frame",
                link.line,
            )  # fmt: skip
    return assemblies


def free_joint_name(base: str, taken: set[str]) -> str:
    """Return the name of the joint of a floating base, apart from those that are taken."""
    return make_unique(f"free {GROUND}-{base}", taken)


def _fix_roots(
    description: Description, assemblies: list[Assembly], fixed_base: bool | None
) -> None:
    """Mark the assemblies that are the ground."""
    of_link = {link.name: a for a in assemblies for link in a.links}
    children = {
        id(of_link[joint.child])
        for joint in description.joints
        if not joint.closes_loop and of_link[joint.child] is not of_link.get(joint.parent)
    }
    report, taken = description.report, {joint.name for joint in description.joints}
    for assembly in assemblies:
        lead = assembly.lead
        if any(link.name in description.world for link in assembly.links):
            reason = "is the inertial frame"
        elif id(assembly) in children:
            continue
        elif fixed_base:
            reason = "is fixed to the ground (`fixed_base=True`)"
        elif sum(link.mass for link in assembly.links) == 0 and fixed_base is None:
            reason = "has no mass and is the ground"
        else:
            report.add("translated", f"link {lead.name!r}", "is a floating base", lead.line)
            name = free_joint_name(lead.name, taken)
            joint = JointRecord(name, "floating", GROUND, lead.name)
            description.joints.insert(0, joint)
            continue
        assembly.is_ground = True
        mass = sum(link.mass for link in assembly.links)
        if mass:
            reason += f"; its mass of {mass:g} kg does not move"
        report.add("translated", f"link {lead.name!r}", reason, lead.line)


def _add_assembly(
    assembly: Assembly,
    description: Description,
    physical: str,
    packages: Sequence[str | os.PathLike[str]],
    meshes: bool,
    bodies: dict[str, Body],
    frames: dict[str, Frame | GroundFrame],
) -> None:
    """Add the body of an assembly, and the frames of its links."""
    report, lead = description.report, assembly.lead
    if not assembly.is_ground:
        for link in assembly.links:
            if link.name == GROUND:
                raise ValueError(
                    f"{report.path}:{link.line}: a moving link is called {GROUND!r}, the name of "
                    "the inertial frame; rename it."
                )
        mass, center, inertia = assembly.mass_properties()
        inertia = _checked_inertia(lead, inertia, report, physical)
        mass_is_missing = mass == 0 and np.any(inertia)
        if mass_is_missing:
            report.add("warning", f"link {lead.name!r}", "has inertia without mass", lead.line)
        placement = lead.placement
        shape = shape_of(assembly.links, placement, center, packages, report) if meshes else None
        bodies[lead.name] = Body(
            lead.name, mass, inertia, placement.of_point(center), placement.quaternion,
            physical=False, shape=shape,
        )  # fmt: skip
    for link in assembly.links:
        frames[link.name] = _frame(link.name, assembly, link.placement, bodies)


def _frame(
    name: str, assembly: Assembly, placement: Placement, bodies: dict[str, Body]
) -> Frame | GroundFrame:
    """Return a frame on the body of an assembly, from its placement in space."""
    if assembly.is_ground:
        return GroundFrame(name, placement.position, placement.quaternion)
    body = bodies[assembly.lead.name]
    center = Placement(np.asarray(body.position), assembly.lead.placement.rotation)
    on_body = center.inverse().then(placement)
    return Frame(name, body.name, on_body.position, on_body.quaternion)


def _checked_inertia(link: Link, inertia: np.ndarray, report: Any, physical: str) -> np.ndarray:
    """Return the inertia, or the nearest physical one, with a warning if it is not physical."""
    euler = np.linalg.eigvalsh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    size = np.abs(euler).sum()
    # Tolerates the rounding of flat bodies and rods, as `checked_inertia` does.
    if euler[0] >= -32 * np.finfo(float).eps * size:
        return inertia
    text = (
        f"the inertia is not physical: its smallest principal Euler value is {euler[0]:.3g} "
        f"kg m^2, {-euler[0] / size:.2g} of its size"
    )
    if physical == "error":
        raise ValueError(f"{report.path}:{link.line}: link {link.name!r}: {text}.")
    nearest = inertia
    if physical == "nearest":
        nearest = np.asarray(nearest_physical(inertia).inertia)
        change = np.abs(nearest - inertia).max()
        text += f"; replaced by the nearest physical one, which differs by {change:.3g} kg m^2"
    report.add("warning", f"link {link.name!r}", text, link.line)
    warnings.warn(
        f"{report.path}: link {link.name!r}: {text}. See `load(physical=...)`.", stacklevel=5
    )
    return nearest


def _springs(joint: JointRecord, parent: str, child: str) -> list[Any]:
    """Return the spring of a joint; of spherical and floating joints with the damping."""
    if joint.kind in ("spherical", "floating"):
        along = 0.0 if joint.kind == "spherical" else 1.0
        stiffness, damping = (
            value * np.array([along] * 3 + [1.0] * 3) for value in (joint.stiffness, joint.damping)
        )
        if not stiffness.any() and not damping.any():
            return []
        return [Bushing(parent, child, joint.point, stiffness, damping)]
    if not joint.stiffness:
        return []
    return [TorsionSpring(joint.name, joint.stiffness, angle=joint.rest)]


def _tendon(
    tendon: TendonData, zeros: dict[str, float], links: dict[str, Link], named: dict[str, str]
) -> list[Any]:
    """Return the forces of a tendon: a fixed one, or a cable that does not push below its length.

    **Arguments:** `zeros`, coordinates of joints of the file in the reference configuration;
    `named`, bodies by link.
    """
    stiffness, damping, (low, high) = tendon.stiffness, tendon.damping, tendon.length
    if tendon.coefficients:
        start = sum(r * zeros[name] for name, r in tendon.coefficients.items())
        length = (low - start, high - start)
        return [FixedTendon(tendon.coefficients, stiffness, damping, length)]
    points = [(named[link], links[link].placement.of_point(p)) for link, p in tendon.points]
    if low == high:
        return [Cable(points, stiffness, damping, low, tension_only=False)]
    # The damper of MuJoCo acts on a slack cord, too.
    cord = [Cable(points, stiffness, length=high)] if stiffness else []
    return cord + ([Cable(points, 0.0, damping, tension_only=False)] if damping else [])


def _joint(joint: JointRecord, parent: str, child: str, report: Report, laws: JointLaws) -> Any:
    """Return the joint of the system between two bodies."""
    arguments: dict[str, Any] = {"parent": parent, "child": child, "name": joint.name}
    if joint.kind != "floating":
        arguments["point"] = joint.point
    axes = {"universal": ("axis1", "axis2"), "planar": ("normal",)}.get(joint.kind, ("axis",))
    arguments |= zip(axes, joint.axes, strict=False)
    if joint.kind == "screw":
        arguments["pitch"] = joint.pitch
    constants: dict[str, Any] = {"damping": joint.damping, "armature": joint.armature}
    if joint.kind in WITH_CONSTANTS:
        arguments |= constants
    elif joint.kind in ("spherical", "floating"):
        del constants["damping"]  # see `_springs`
    for what, value in constants.items():
        if value and joint.kind not in WITH_CONSTANTS:
            report.refuse(
                f"{joint.kind} {what}", f"joint {joint.name!r}",
                f"{what} of a {joint.kind} joint is not supported", joint.line,
            )  # fmt: skip
    arguments |= laws.arguments_of(joint, report)
    return JOINT_CLASSES[joint.kind](**arguments)
