"""Writing of fitted numbers back into the file that a system came from."""

import os
import pathlib
import shutil
import tempfile
import warnings
from dataclasses import fields, replace
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..bodies import Body
from ..joints.base import AbstractJoint
from ..mechanics import System
from .assembly import Assembly, group_links
from .description import Description, Link, Placement, placement_of
from .joint_laws import check_friction, constants_of_file
from .load import describe, load
from .model import Model
from .report import Report
from .update_formats import MjcfNumbers, SdfNumbers, UrdfNumbers, find_inertial
from .xml_source import Edits, parse

# Units of round-off that a change has to exceed, and that the written file may differ by.
_CHANGED, _WRITTEN = 32, 1024
_SHOWN = 8
# Fields of joints that are directions, of unit length in loaded systems.
_DIRECTIONS = ("axis", "axis1", "axis2", "normal")


def update(
    path: str | os.PathLike[str],
    system: System | Model,
    out: str | os.PathLike[str],
    **options: Any,
) -> None:
    """Write a model file with the masses, inertias and joint constants of a system.

    The result is the file at `path`, byte by byte, apart from the numbers of masses, centres of
    mass, inertias, damping, Coulomb friction and armature that are different in the system; viscous
    friction is written as damping. Inertias are written in the axes of the file, whose angles stay.
    A body of several fixed links changes by its link, and by the first link with an `<inertial>` if
    that link has none; the others stay. An attribute that an element does not have is added, an
    element is not. Frames and forces of the system do not matter. The file is written after it has
    been loaded again and found to give the system.

    **Arguments:** `path` of the URDF, SDF or MJCF file; `system`, with the bodies and joints that
    `load(path, **options)` gives, such as `fit.model.system`; `out`, the file to write, which may
    be `path`; `options`, those of `load`.
    **Errors:** `ValueError` for other bodies or joints, for a change of something else such as the
    axis of a joint, for an element that is missing or belongs to an included file, and for a mass
    that is less than that of the other links of a body; nothing is written then. `OSError` for
    files that cannot be read or written.
    """
    path, out = pathlib.Path(path), pathlib.Path(out)
    system = system.system if isinstance(system, Model) else system
    before = _load_quietly(path, options)
    _check_names(system, before, path)
    root, content = parse(path)
    if b"\0" in content:
        raise ValueError(f"{path}: `update` changes single bytes; save the file in UTF-8 first.")
    report = Report(str(path), options.get("ignore", ()), options.get("strict", False))
    description = describe(root, report, options.get("mimic", True), options.get("packages", ()))
    edits = Edits(content)
    kinds = {"robot": UrdfNumbers, "sdf": SdfNumbers, "mujoco": MjcfNumbers}
    numbers = kinds[root.tag](root, edits)
    for assembly in group_links(description, options.get("lump_fixed", True)):
        of_body = [body for body in before.bodies if body.name == assembly.lead.name]
        if of_body:
            new = system.bodies[system.locate(assembly.lead.name)[0]]
            _update_body(assembly, of_body[0], new, description, numbers)
    for old in before.joints:
        _update_joint(old, system.joints[system.joint_index(old.name)], numbers)
    _write(edits.apply(), path, out, system, options)


def _load_quietly(path: str | pathlib.Path, options: dict[str, Any]) -> System:
    """Return the system of a file without warnings about inertias, which `load` gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load(path, **options).system


def _check_names(system: System, before: System, path: pathlib.Path) -> None:
    for kind in ("bodies", "joints", "constraints"):
        ours, theirs = ([item.name for item in getattr(of, kind)] for of in (system, before))
        if set(ours) != set(theirs):
            extra, missing = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
            raise ValueError(
                f"The {kind} of the system differ from those of {path}: not in the file: {extra}; "
                f"not in the system: {missing}. Give the options that the file was loaded with."
            )


def _in_space(body: Body) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, centre of mass and inertia about it, space components."""
    pose = placement_of(body)
    inertia = np.asarray(body.inertia_tensor, float)
    return float(body.mass), pose.position, pose.rotation @ inertia @ pose.rotation.T


def _update_body(
    assembly: Assembly, old: Body, new: Body, description: Description, numbers: Any
) -> None:
    """Write the numbers of a body, unless they are those of the file."""
    values = [
        [np.asarray(part) for part in (body.mass, body.position, body.inertia, body.orientation)]
        for body in (old, new)
    ]
    if all(np.array_equal(a, b) for a, b in zip(*values, strict=True)):
        return
    eps = _CHANGED * float(np.finfo(values[0][0].dtype).eps)
    mass, center, inertia = _in_space(new)
    first = next(
        (link for link in assembly.links if find_inertial(numbers.links, link.name)), assembly.lead
    )
    others = [link for link in assembly.links if link is not first]
    own = mass - sum(link.mass for link in others)
    if others and not own > 0 and mass != own:
        raise ValueError(
            f"{description.report.path}:{first.line}: the mass of the body {new.name!r} is "
            f"{mass:g} kg now, of which the other links have {mass - own:g} kg; none is left for "
            f"the link {first.name!r}. Change the masses of the other links."
        )
    # The body without its other links.
    body = Link(first.name, Placement(center, np.eye(3)), mass, np.zeros(3), inertia)
    absent = [replace(link, mass=-link.mass, inertia=-link.inertia) for link in others]
    whole = Link(first.name, first.placement)
    share = Assembly([whole, body, *absent]).mass_properties()
    changed = Link(first.name, first.placement, *share)
    if not mass:
        changed.center = first.placement.inverse().of_point(center)
    extent = max(np.abs(part).max() for part in (center, values[0][1], first.placement.position))
    arms = [np.linalg.norm(link.placement.of_point(link.center) - center) for link in others]
    size = np.abs(inertia).max() + mass * max(arms, default=0.0) ** 2
    ratio = mass / own if others and own else 1.0
    numbers.set_inertial(first, changed, (eps * mass, eps * extent * ratio, eps * size * ratio))


def _update_joint(old: AbstractJoint, new: AbstractJoint, numbers: Any) -> None:
    """Write the constants of a joint, unless they are those of the file."""
    check_friction(new)
    before, after = constants_of_file(old), constants_of_file(new)
    for name in ("damping", "armature", "friction"):
        a, b = before[name], after[name]
        if a.shape == b.shape and a.size and not np.array_equal(a, b):
            eps = _CHANGED * float(np.finfo(b.dtype).eps)
            numbers.set_constant(old.name, name, float(a[0]), float(b[0]), eps * float(abs(b[0])))


def _write(
    content: bytes, path: pathlib.Path, out: pathlib.Path, system: System, options: dict[str, Any]
) -> None:
    """Write the file after it has been loaded, beside `out`, and compared with the system."""
    handle, name = tempfile.mkstemp(suffix=path.suffix, prefix=".rigidjax-", dir=out.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        try:
            again = _load_quietly(name, options)
        except ValueError as error:
            raise ValueError(str(error).replace(name, str(out))) from None
        differences = _differences(system, again)
        if differences:
            more = f" and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
            raise ValueError(
                f"{path}: the file with new numbers would not give the system: "
                f"{', '.join(differences[:_SHOWN])}{more}. `update` writes masses, centres of "
                "mass, inertias, damping, Coulomb friction and armature only, and not where the "
                "file overrides them, as by `inertiafromgeom`, `settotalmass`, `boundmass`, "
                "`boundinertia`, `fusestatic` or `springdamper` of MJCF."
            )
        shutil.copymode(path, name)
        shutil.move(name, out)
    finally:
        pathlib.Path(name).unlink(missing_ok=True)


def _differences(system: System, again: System) -> list[str]:
    """Return the quantities of bodies and joints that differ by more than rounding."""
    eps = _WRITTEN * float(np.finfo(np.asarray(system.bodies[0].mass).dtype).eps)
    extent = max(1e-3, *(float(np.abs(np.asarray(body.position)).max()) for body in again.bodies))
    differences = []

    def compare(name: str, a: Any, b: Any, scale: float) -> None:
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or not np.abs(a - b).max(initial=0.0) <= eps * scale:
            differences.append(name)

    for old in again.bodies:
        new = system.bodies[system.locate(old.name)[0]]
        values = _in_space(old), _in_space(new)
        for what, a, b in zip(("mass", "centre of mass", "inertia"), *values, strict=True):
            scale = extent if what == "centre of mass" else float(np.abs(a).max())
            compare(f"{what} of {old.name!r}", a, b, scale)
    for old in again.joints:
        new = system.joints[system.joint_index(old.name)]
        if (type(old), old.parent, old.child) != (type(new), new.parent, new.child):
            differences.append(f"kind or bodies of {old.name!r}")
            continue
        constants = constants_of_file(new)
        for what, value in constants_of_file(old).items():
            scale = float(np.abs(value).max(initial=0.0))
            compare(f"{what} of {old.name!r}", value, constants[what], scale)
        laws: list[Any] = [old.friction, new.friction]
        if None not in laws:
            a, b = (np.asarray(law.velocity) for law in laws)
            compare(f"velocity of the friction of {old.name!r}", a, b, float(np.abs(a).max()))
        for field in fields(old):
            a, b = (getattr(joint, field.name) for joint in (old, new))
            if field.name in constants or not (eqx.is_array(a) or eqx.is_array(b)):
                continue
            if field.name in _DIRECTIONS:
                compare(f"{field.name} of {old.name!r}", a, b / np.linalg.norm(b), 1.0)
            else:
                compare(f"{field.name} of {old.name!r}", a, b, extent)
    by_name = {constraint.name: constraint for constraint in system.constraints}
    for old in again.constraints:
        new = by_name[old.name]
        for a, b in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
            compare(f"constants of {old.name!r}", a, b, max(1.0, float(np.abs(a).max())))
    return differences
