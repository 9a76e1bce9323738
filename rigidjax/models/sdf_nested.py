"""Models inside an SDF model, nested or included, as links, joints and frames of the outer one.

Source: http://sdformat.org/tutorials?tut=composition_proposal (nested, included, merged models).
"""

import copy
import os
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from .report import Report
from .sdf_frames import MODEL, WORLD, Frames, parse_flag, read_version, text_of_child
from .xml_source import Element, parse

_PARTS = ("link", "joint", "frame")
# Attributes and texts with the name of a frame, a link or a joint.
_NAMES = ("relative_to", "attached_to", "expressed_in", "joint")
_TEXTS = ("parent", "child", "gearbox_reference_body")
_DEEPEST = 50  # levels of models inside models


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
            nested, is_merged = _included(child, packages)
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


def _included(include: Element, packages: Sequence[str | os.PathLike[str]]) -> tuple[Element, bool]:
    """Return a copy of the model that an element includes, and whether it is merged."""
    uri = text_of_child(include, "uri")
    name = uri.split("://")[-1]
    home = pathlib.Path(include.path).parent
    folders = [home, home.parent, *map(pathlib.Path, packages)]
    found = [folder / name for folder in folders]
    found += [path / "model.sdf" for path in found]
    path = next((path for path in found if path.is_file()), None)
    if path is None:
        raise include.error(
            f"there is no file for {uri!r} beside the file or in a folder of `packages`, such as "
            f"{found[0]} or {found[len(folders)]}."
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
