"""Points of joints that are not given: the origins of the frames at their ends."""

from collections.abc import Collection
from typing import Any

import numpy as np

from ...checks import is_traced, vector_leaf
from ...joints.base import AbstractJoint
from ...joints.replacing import replace_fields
from ..declaration import AbstractSystem

# Distance of two origins that are one point, in parts of the largest number that places them.
_TOGETHER = 1e-6


def missing_points(joint: AbstractJoint) -> list[str]:
    """Return the names of the fields of points that are `None`."""
    fields = ("point", "parent_point", "child_point")
    return [name for name in fields if getattr(joint, name, ()) is None]


def mounts(joint: AbstractJoint, frames: Collection[str]) -> tuple[str | None, str | None]:
    """Return the frames, at parent and child, whose origins stand for missing points."""
    fields = {*missing_points(joint)}
    ends = (joint.parent, "parent_point"), (joint.child, "child_point")
    parent, child = (
        name if name in frames and fields & {"point", own_point} else None
        for name, own_point in ends
    )
    return parent, child


def with_origins(joint: AbstractJoint, parent: Any, child: Any) -> AbstractJoint:
    """Return the joint with the origins of its `mounts` as its missing points."""
    either = parent if child is None else child
    origins = {"point": either, "parent_point": parent, "child_point": child}
    return replace_fields(joint, **{name: origins[name] for name in missing_points(joint)})


def find_origins(joint: AbstractJoint, system: AbstractSystem) -> list[np.ndarray | None]:
    """Return the origins of the `mounts` of a joint, space components, for known values."""
    frames = {frame.name: frame for frame in system.frames}
    found = [None if name is None else frames[name] for name in mounts(joint, frames)]
    bodies = {body.name: body for body in system.bodies} if any(found) else {}
    return [None if frame is None else frame.origin(bodies[frame.body]) for frame in found]


def check_points(joint: AbstractJoint, system: AbstractSystem) -> AbstractJoint:
    """Return the joint; raise `ValueError` for missing points that no frame supplies.

    Also where the frames at both ends have different origins.

    **Arguments:** `system`, which has its bodies and frames.
    """
    if not (fields := missing_points(joint)):
        return joint
    mounted = mounts(joint, {frame.name for frame in system.frames})
    if mounted == (None, None) and not joint.needs_point:
        return replace_fields(joint, point=vector_leaf(np.zeros(3), "point"))
    names = [joint.parent, joint.child]
    if still_missing := missing_points(with_origins(joint, *mounted)):
        raise ValueError(
            f"The joint {joint.name!r} needs `{still_missing[0]}`, space components in the "
            f"reference configuration: a frame supplies it only where one is named; got {names}."
        )
    frames = [frame for frame in system.frames if frame.name in mounted]
    carriers = {frame.body for frame in frames}
    if is_traced((joint, frames, [body for body in system.bodies if body.name in carriers])):
        return joint
    first, second = find_origins(joint, system)
    with_origins(joint, first, second).check_points()
    if "point" in fields and first is not None and second is not None:
        size = np.abs([first, second, *(np.asarray(frame.point) for frame in frames)]).max()
        if (gap := np.linalg.norm(second - first)) > _TOGETHER * size:
            raise ValueError(
                f"The joint {joint.name!r} is in the origins of {names}, which are {gap:.3g} m "
                "apart in the reference configuration. Move a body or a frame, or give `point`."
            )
    return joint
