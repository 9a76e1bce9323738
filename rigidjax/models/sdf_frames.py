"""Frames of an SDF model: links, joints, frames, and the poses between them."""

import numpy as np

from ..checks import did_you_mean
from .description import IDENTITY, Placement, from_quaternion, from_roll_pitch_yaw
from .xml_source import Element

MODEL, WORLD = "__model__", "world"
_VERSIONS = (1, 4), (1, 12)


class Frames:
    """Named frames of a model, placed in the frame of the model.

    Poses are relative to `relative_to` or, before version 1.7, to `frame`. By default,
    links and frames are placed relative to the model (attached frames relative to their parent),
    and joints relative to their child. Source: http://sdformat.org/tutorials?tut=pose_frame_semantics.

    **Attributes:** `elements`, links, joints and frames by name; `placement` of the model in space,
    of a nested model in the frame that its pose is relative to.
    **Errors:** `ValueError` for names that are reserved, used twice or unknown, and for poses or
    attachments that contain a cycle.
    """

    def __init__(self, model: Element, version: tuple[int, int], is_nested: bool = False):
        self.model, self.is_nested = model, is_nested
        self.attribute = "relative_to" if version >= (1, 7) else "frame"
        self.elements: dict[str, Element] = {}
        names: dict[tuple[str, str], Element] = {}
        for element in model.children:
            if element.tag in ("link", "joint", "frame"):
                # Before 1.7 a joint may have the name of a link; a reference then means the link.
                name = element.text_of("name")
                scope = element.tag if version < (1, 7) else ""
                other = names.setdefault((scope, name), element)
                if other is not element:
                    raise element.error(
                        f"another <{other.tag}> of this name is in line {other.line}; rename one."
                    )
                if name == WORLD or (name.startswith("__") and name.endswith("__")):
                    raise element.error(f"the name {name!r} is reserved; rename it.")
                if element.tag == "link" or name not in self.elements:
                    self.elements[name] = element
        self._placed: dict[str, Placement] = {MODEL: IDENTITY}
        self.placement = self._placement_of_model()
        self._placed[WORLD] = self.placement.inverse()

    def _placement_of_model(self) -> Placement:
        pose = self.model.first("pose")
        reference = "" if pose is None else pose.attributes.get(self.attribute, "")
        if reference not in ("", WORLD) and not self.is_nested:
            assert pose is not None
            raise pose.error(f"the model is relative to {reference!r}; it must be the world.")
        of_frame = read_pose(self.model)
        name = self.model.attributes.get("placement_frame")
        return of_frame.then(self.place(name, self.model).inverse()) if name else of_frame

    def find(self, name: str, source: Element) -> Element:
        """Return the element of a name that `source` uses."""
        if name not in self.elements:
            hint = did_you_mean(name, list(self.elements))
            raise source.error(f"there is no link, joint or frame {name!r}.{hint}")
        return self.elements[name]

    def place(self, name: str, source: Element) -> Placement:
        """Return the placement of a frame in the model; `source`, the element that names it."""
        path: dict[str, Element] = {}
        at, by = name, source
        while at not in self._placed:
            element = self.find(at, by)
            if at in path:
                raise element.error(f"the poses around {at!r} form a cycle.")
            path[at] = element
            at, by = self._reference(element), element
        for own, element in reversed(path.items()):
            self._placed[own] = self._placed[at].then(read_pose(element))
            at = own
        return self._placed[name]

    def place_element(self, element: Element) -> Placement:
        """Return the placement of a link, joint or frame in the model."""
        # Not by its name, which a joint and a link may share before 1.7.
        return self.place(self._reference(element), element).then(read_pose(element))

    def place_child(self, element: Element, link: str) -> Placement:
        """Return the placement of a visual or another part of a link, in the link."""
        pose = element.first("pose")
        reference = "" if pose is None else pose.attributes.get(self.attribute, "")
        own = read_pose(element)
        if not reference or pose is None:
            return own
        return self.place(link, element).inverse().then(self.place(reference, pose)).then(own)

    def _reference(self, element: Element) -> str:
        """Return the frame that the pose of an element is relative to."""
        pose = element.first("pose")
        reference = "" if pose is None else pose.attributes.get(self.attribute, "")
        if not reference and element.tag == "joint":
            reference = text_of_child(element, "child")
        return reference or element.attributes.get("attached_to") or MODEL

    def attached_link(self, name: str, source: Element) -> str:
        """Return the link that a frame is fixed to."""
        seen: dict[str, Element] = {}
        at, by = name, source
        while True:
            if at == MODEL:
                at = self.canonical_link
            element = self.find(at, by)
            if element.tag == "link":
                return at
            if at in seen:
                raise element.error(f"the frames around {at!r} are attached in a cycle.")
            seen[at] = element
            by = element
            if element.tag == "joint":
                at = text_of_child(element, "child")
            else:
                at = element.attributes.get("attached_to") or MODEL

    @property
    def canonical_link(self) -> str:
        """Name of the link that the frame of the model is attached to."""
        name = self.model.attributes.get("canonical_link")
        if name:
            if self.find(name, self.model).tag != "link":
                raise self.model.error(f"the canonical link {name!r} is no link of the model.")
            return name
        return next(name for name, element in self.elements.items() if element.tag == "link")


def read_version(root: Element) -> tuple[int, int]:
    """Return the version of a file; `ValueError` for one that is not read."""
    text = root.text_of("version")
    parts = text.split(".")
    if len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts):
        version = int(parts[0]), int(parts[1])
        if _VERSIONS[0] <= version <= _VERSIONS[1]:
            return version
    raise root.error(f"versions 1.4 to 1.12 of SDF are read; got {text!r}.")


def read_pose(element: Element) -> Placement:
    """Return the `<pose>` of an element in the frame that it is relative to."""
    pose = element.first("pose")
    if pose is None or not pose.text.strip():
        return IDENTITY
    kind = pose.attributes.get("rotation_format", "euler_rpy")
    degrees = parse_flag(pose.attributes.get("degrees", "false"), pose)
    if kind == "quat_xyzw":
        values = pose.numbers(7)
        if not np.linalg.norm(values[3:]) > 0:
            raise pose.error("the quaternion is zero.")
        return from_quaternion(values[:3], np.roll(values[3:], 1))
    if kind != "euler_rpy":
        raise pose.error(f'`rotation_format` must be "euler_rpy" or "quat_xyzw"; got {kind!r}.')
    values = pose.numbers(6)
    angles = np.radians(values[3:]) if degrees else values[3:]
    return from_roll_pitch_yaw(values[:3], angles)


def parse_flag(text: str, source: Element) -> bool:
    """Return a truth value; `source`, the element for errors."""
    value = text.strip().lower()
    if value not in ("true", "false", "1", "0"):
        raise source.error(f"must be true or false; got {text.strip()!r}.")
    return value in ("true", "1")


def text_of_child(element: Element, tag: str) -> str:
    """Return the text of a child element, which must be there."""
    child = element.first(tag)
    if child is None or not child.text.strip():
        raise element.error(f"the element <{tag}> is missing.")
    return child.text.strip()


def number_of_child(parent: Element | None, tag: str, default: float) -> float:
    """Return the number in a child element, or a default."""
    element = None if parent is None else parent.first(tag)
    return default if element is None else float(element.numbers(1)[0])
