"""Reader of SDF files, versions 1.4 to 1.12, with models inside models.

Models inside models: http://sdformat.org/tutorials?tut=composition_proposal.
"""

import copy
import os
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from .closure import align_axes, refuse_locked_loops
from .description import Description, FrameData, Link, LinkShape, Placement
from .report import Report, check_elements
from .sdf_frames import (
    MODEL,
    WORLD,
    Frames,
    number_of_child,
    parse_flag,
    read_pose,
    read_version,
    text_of_child,
)
from .sdf_joints import read_joints
from .xml_source import Element, parse

_PARTS = ("link", "joint", "frame")
# Attributes and texts with the name of a frame, a link or a joint.
_NAMES = ("relative_to", "attached_to", "expressed_in", "joint")
_TEXTS = ("parent", "child", "gearbox_reference_body")
_DEEPEST = 50  # models inside models


def flatten(
    model: Element,
    version: tuple[int, int],
    report: Report,
    check: Callable[[Element], None],
    packages: Sequence[str | os.PathLike[str]],
    depth: int = 0,
) -> None:
    """Replace the models inside a model by their links, joints and frames.

    The link `arm` of the model `tool` gets the name `tool::arm`, of a merged model its own; the
    frame of the model becomes a frame `tool`. Names inside a model mean its own parts.

    **Arguments:** `check`, which is applied to each included file; `packages`, folders that may
    contain included files.
    **Errors:** `ValueError` for a file that cannot be found or read, or includes itself.
    """
    if depth > _DEEPEST:
        raise model.error(f"models are nested or included more than {_DEEPEST} deep.")
    inner = [child for child in model.children if child.tag in ("model", "include")]
    model.children = [child for child in model.children if child not in inner]
    for child in inner:
        nested, is_merged = child, False
        if child.tag == "include":
            nested, is_merged = _read_included(child, packages)
            check(nested)
            report.add("translated", str(child), f"{nested} of {nested.path}", child.line)
        if version < (1, 7):
            text = "models inside a model are read from version 1.7 on"
            report.refuse("model", str(nested), text, child.line)
            continue
        flatten(nested, version, report, check, packages, depth + 1)
        static = nested.first("static")
        if static is not None and parse_flag(static.text, static):
            report.refuse("static", str(nested), "a static model inside another", static.line)
        _add_parts(model, nested, version, is_merged)
        text = "links, joints and frames of the model around it"
        report.add("translated", str(nested), text, child.line)


def _read_included(
    include: Element, packages: Sequence[str | os.PathLike[str]]
) -> tuple[Element, bool]:
    """Return a copy of the model that an element includes, and whether it is merged."""
    uri = text_of_child(include, "uri")
    name = uri.split("://")[-1]
    home = pathlib.Path(include.path).parent
    folders = [home, home.parent, *map(pathlib.Path, packages)]
    found = [folder / part for folder in folders for part in (name, f"{name}/model.sdf")]
    # No path, and no link on it, leaves these folders.
    inside = [str(folder.resolve()) + os.sep for folder in folders]
    path = next((p for p in found if p.is_file() and str(p.resolve()).startswith((*inside,))), None)
    if path is None:
        raise include.error(
            f"there is no file for {uri!r} beside the file or in a folder of `packages`, such as "
            f"{found[0]} or {found[1]}."
        )
    root = copy.deepcopy(parse(path)[0])
    models = root.all("model")
    if root.tag != "sdf" or len(models) != 1 or read_version(root) < (1, 7):
        raise include.error(f"{path} must be an SDF file of version 1.7 or later with one model.")
    (model,) = models
    for tag in ("name", "placement_frame", "static", "pose"):
        given = include.first(tag)
        if given is None:
            continue
        if tag in ("name", "placement_frame"):
            model.attributes[tag] = given.text.strip()
        else:
            model.children = [child for child in model.children if child.tag != tag] + [given]
    return model, parse_flag(include.attributes.get("merge", "false"), include)


def _add_parts(model: Element, nested: Element, version: tuple[int, int], is_merged: bool) -> None:
    """Add links, joints and frames of a nested model, and its frame, to the model around it."""
    name = nested.text_of("name")
    scope = f"_merged__{name}__model__" if is_merged else name
    prefix = "" if is_merged else f"{name}::"

    def outer(inner: str) -> str:
        if inner in ("", WORLD):
            return inner
        return scope if inner == MODEL else prefix + inner

    frames = Frames(nested, version, is_nested=True)
    if not nested.all("link"):
        raise nested.error("has no <link>.")
    canonical, placement = prefix + frames.canonical_link, frames.placement
    for part in nested.children:
        if part.tag not in _PARTS:
            continue
        for element in part.walk():
            for key in _NAMES:
                if key in element.attributes:
                    element.attributes[key] = outer(element.attributes[key].strip())
            if element.tag in _TEXTS:
                element.text = outer(element.text.strip())
        part.attributes["name"] = prefix + part.text_of("name")
        pose = part.first("pose")
        if pose is None:
            pose = Element("pose", {}, part.line, part.start, part.path)
            part.children.append(pose)
        is_free = part.tag != "joint" and not part.attributes.get("attached_to")
        if is_free and not pose.attributes.get("relative_to"):
            pose.attributes["relative_to"] = scope
        model.children.append(part)
    pose = nested.first("pose")
    quaternion = np.roll(placement.quaternion, -1)
    text = " ".join(repr(float(x)) for x in (*placement.position, *quaternion))
    reference = "" if pose is None else pose.attributes.get("relative_to", "")
    kept = {"relative_to": reference or MODEL, "rotation_format": "quat_xyzw"}
    own = Element("pose", kept, nested.line, nested.start, nested.path, text)
    attributes = {"name": scope, "attached_to": canonical}
    frame = Element("frame", attributes, nested.line, nested.start, nested.path, "", [own])
    model.children.append(frame)


_TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_AXIS = (set(), {"xyz", "dynamics", "limit", "mimic", "use_parent_model_frame", "initial_position"})
_LEAVES = (
    "mass", "static", "gravity", "kinematic", "parent", "child", "gearbox_ratio",
    "gearbox_reference_body", "thread_pitch", "screw_thread_pitch", "damping", "friction",
    "spring_reference", "spring_stiffness", "lower", "upper", "effort", "velocity", "linear",
    "angular", "multiplier", "uri", "name", "placement_frame", "offset", "reference",
    "use_parent_model_frame", *_TENSOR,
)  # fmt: skip
# Attributes and children of the elements that have a meaning here.
_SCHEMA: dict[str, tuple[set[str], set[str]]] = {
    **{tag: (set(), set()) for tag in _LEAVES},
    "sdf": ({"version"}, {"world", "model"}),
    "world": ({"name"}, {"gravity", "model"}),
    "model": (
        {"name", "canonical_link", "placement_frame", "namespace"},
        {"static", "pose", "link", "joint", "frame", "model", "include"},
    ),
    "include": ({"merge"}, {"uri", "name", "static", "pose", "placement_frame"}),
    "link": ({"name"}, {"pose", "inertial", "gravity", "kinematic", "velocity_decay"}),
    "frame": ({"name", "attached_to"}, {"pose"}),
    "pose": ({"relative_to", "frame", "rotation_format", "degrees"}, set()),
    "inertial": ({"auto"}, {"pose", "mass", "inertia"}),
    "inertia": (set(), set(_TENSOR)),
    "velocity_decay": (set(), {"linear", "angular"}),
    "joint": (
        {"name", "type"},
        {
            "pose", "parent", "child", "axis", "axis2", "gearbox_ratio", "gearbox_reference_body",
            "thread_pitch", "screw_thread_pitch",
        },
    ),
    "axis": _AXIS,
    "axis2": _AXIS,
    "xyz": ({"expressed_in"}, set()),
    "dynamics": (set(), {"damping", "friction", "spring_reference", "spring_stiffness"}),
    "limit": (set(), {"lower", "upper", "effort", "velocity"}),
    "mimic": ({"joint", "axis"}, {"multiplier", "offset", "reference"}),
}  # fmt: skip
# Elements without effect on the motion of rigid bodies, by their tag.
_WITHOUT_MEANING = {
    "visual": "visuals", "collision": "collision shapes", "sensor": "sensors", "light": "lights",
    "plugin": "plugins", "self_collide": "settings of collisions", "gripper": "grippers",
    "allow_auto_disable": "settings of Gazebo", "must_be_base_link": "settings of Gazebo",
    "enable_wind": "settings of wind plugins", "projector": "projectors", "audio": "sounds",
    "audio_sink": "sounds", "audio_source": "sounds", "battery": "batteries",
    "particle_emitter": "particle emitters", "physics": "settings of the solver of Gazebo",
    "scene": "scenes", "gui": "settings of the window", "wind": "settings of wind plugins",
    "magnetic_field": "settings of sensors", "atmosphere": "settings of sensors",
    "spherical_coordinates": "settings of sensors", "road": "roads", "actor": "actors",
    "provide_feedback": "settings of Gazebo", "stiffness": "constants of stops",
    "dissipation": "constants of stops", "density": "densities for computed inertias",
    "auto_inertia_params": "settings of computed inertias",
}  # fmt: skip
_UNSUPPORTED = {
    ("world", "include"): "other files are not read; copy the model into the file",
    ("sdf", "include"): "other files are not read; copy the model into the file",
    ("world", "joint"): "joints between models are not supported",
    ("world", "frame"): "frames of the world are not supported",
    ("world", "state"): "the state of a world, which changes poses, is not supported",
    ("world", "population"): "populations of models are not supported",
    ("inertial", "fluid_added_mass"): "added mass of a fluid is not supported",
}


def read_sdf(
    root: Element,
    report: Report,
    mimic: bool = True,
    packages: Sequence[str | os.PathLike[str]] = (),
) -> Description:
    """Return the description of an SDF file with one model.

    See `read_joints` for the joints that close loops, and for universal joints and gearboxes.

    **Arguments:** `root` element; `report`, to which every element is added;
    `mimic`, whether `<mimic>` couples joints; `packages`, folders with included files.
    **Errors:** `ValueError` with file, line and element for missing, duplicate or misspelt names,
    wrong numbers, negative masses, poses in a circle, several models.
    """
    version = read_version(root)

    def check(element: Element) -> None:
        check_elements(element, _SCHEMA, _WITHOUT_MEANING, report, (), _UNSUPPORTED)

    check(root)
    model = _only_model(root)
    flatten(model, version, report, check, packages)
    frames = Frames(model, version)
    description = Description(model.attributes.get("name", "model"), report)
    links = {element.attributes["name"]: element for element in model.all("link")}
    if not links:
        raise model.error("has no <link>.")
    description.gravity = _gravity(root, list(links.values()), version, report)
    for name, element in links.items():
        placement = frames.placement.then(frames.place_element(element))
        description.links.append(_link(element, name, placement, frames, report))
    for element in model.all("frame"):
        name = element.attributes["name"]
        link = frames.attached_link(name, element)
        on_link = frames.place(link, element).inverse().then(frames.place(name, element))
        description.frames.append(FrameData(name, link, on_link))
        report.add("read", str(element), f"on {link!r}", element.line)
    read_joints(model, frames, version, description, mimic)
    static = model.first("static")
    if static is not None and parse_flag(static.text, static):
        description.world = set(links)
    return refuse_locked_loops(align_axes(description))


def _only_model(root: Element) -> Element:
    worlds = root.all("world")
    models = [model for part in (root, *worlds) for model in part.all("model")]
    if len(models) != 1:
        names = [model.attributes.get("name") for model in models]
        raise root.error(
            f"one model is read from a file; this one has {len(models)} ({names[:5]}). "
            "Give each a file of its own."
        )
    return models[0]


def _gravity(
    root: Element, links: list[Element], version: tuple[int, int], report: Report
) -> np.ndarray | None:
    """Return the gravity of the file, zero if all links turn it off; `None` without a world."""
    weightless = [
        link
        for link in links
        if (flag := link.first("gravity")) is not None and not parse_flag(flag.text, flag)
    ]
    if weightless and len(weightless) == len(links):
        report.add("translated", "<gravity>", "no link has gravity: zero", weightless[0].line)
        return np.zeros(3)
    for link in weightless:
        report.refuse("gravity", str(link), "gravity on other links only", link.line)
    world = root.first("world")
    if world is None:
        return None
    # Before 1.6 gravity is a setting of the solver.
    physics = world.all("physics") if version < (1, 6) else []
    for place in (world, *physics):
        element = place.first("gravity")
        if element is not None:
            return element.numbers(3)
    # The default of the format, which differs from the default of `load`.
    return np.array([0.0, 0.0, -9.8])


def _link(
    element: Element, name: str, placement: Placement, frames: Frames, report: Report
) -> Link:
    link = Link(name, placement, line=element.line)
    link.shapes = [
        shape
        for visual in element.all("visual")
        if (shape := _shape(visual, name, frames)) is not None
    ]
    kinematic, decay = element.first("kinematic"), element.first("velocity_decay")
    if kinematic is not None and parse_flag(kinematic.text, kinematic):
        report.refuse("kinematic", str(element), "links moved from outside", kinematic.line)
    if number_of_child(decay, "linear", 0.0) or number_of_child(decay, "angular", 0.0):
        report.refuse("velocity_decay", str(element), "decay of velocities", element.line)
    inertial = element.first("inertial")
    if inertial is not None and parse_flag(inertial.attributes.get("auto", "0"), inertial):
        report.refuse("auto", str(inertial), "inertia from collision shapes", inertial.line)
    inertia = None if inertial is None else inertial.first("inertia")
    link.mass = number_of_child(inertial, "mass", 1.0)
    if link.mass < 0:
        raise element.error(f"the mass is negative; got {link.mass:g} kg.")
    missing = [
        what
        for what, is_missing in (
            ("mass: 1 kg", inertial is None or inertial.first("mass") is None),
            ("inertia: 1 kg m^2", inertia is None),
        )
        if is_missing
    ]
    report.add("read", str(element), f"{link.mass:g} kg", element.line)
    if missing:
        report.add(
            "warning", str(element), "has the defaults of the format for " + ", ".join(missing),
            element.line,
        )  # fmt: skip
    xx, xy, xz, yy, yz, zz = (
        number_of_child(inertia, tag, float(tag[1] == tag[2])) for tag in _TENSOR
    )
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    pose = None if inertial is None else inertial.first("pose")
    if inertial is None or pose is None:
        link.inertia = tensor
        return link
    if pose.attributes.get(frames.attribute):
        raise pose.error("the pose of <inertial> is always relative to its link.")
    own = read_pose(inertial)
    link.center, link.inertia = own.position, own.rotation @ tensor @ own.rotation.T
    return link


def _shape(visual: Element, link: str, frames: Frames) -> LinkShape | None:
    """Return the shape of a visual, `None` for kinds that the viewer does not show."""
    geometry = visual.first("geometry")
    solid = geometry.children[0] if geometry is not None and geometry.children else None
    if solid is None or solid.tag not in (
        "box", "sphere", "cylinder", "capsule", "ellipsoid", "mesh",
    ):  # fmt: skip
        return None
    placement = frames.place_child(visual, link)

    def size(tag: str, count: int) -> tuple[float, ...]:
        child = solid.first(tag)
        if child is None:
            raise solid.error(f"the element <{tag}> is missing.")
        return tuple(child.numbers(count))

    if solid.tag == "box":
        return LinkShape("box", size("size", 3), placement)
    if solid.tag == "sphere":
        return LinkShape("sphere", size("radius", 1), placement)
    if solid.tag == "ellipsoid":
        return LinkShape("ellipsoid", size("radii", 3), placement)
    if solid.tag == "mesh":
        scale = (1.0, 1.0, 1.0) if solid.first("scale") is None else size("scale", 3)
        return LinkShape("mesh", scale, placement, text_of_child(solid, "uri"))
    return LinkShape(solid.tag, size("radius", 1) + size("length", 1), placement)
