"""Points of joints that are left out: the origins of the frames that stand at their ends."""

from collections.abc import Collection
from typing import Any

import numpy as np

from ...checks import is_traced, vector_leaf
from ...joints.base import AbstractJoint
from ...joints.replacing import replace_fields
from ..declaration import AbstractSystem

# Distance of two origins that are one point, in parts of the largest number that places them.
_TOGETHER = 1e-6


def left_out(joint: AbstractJoint) -> list[str]:
    """Fields of points that are `None`."""
    fields = ("point", "parent_point", "child_point")
    return [name for name in fields if getattr(joint, name, ()) is None]


def mounts(joint: AbstractJoint, frames: Collection[str]) -> tuple[str | None, str | None]:
    """Those of the frames, at the parent and at the child, whose origins points left out are."""
    fields = {*left_out(joint)}
    ends = (joint.parent, "parent_point"), (joint.child, "child_point")
    parent, child = (
        name if name in frames and fields & {"point", own} else None for name, own in ends
    )
    return parent, child


def with_origins(joint: AbstractJoint, parent: Any, child: Any) -> AbstractJoint:
    """The joint with the origins of its `mounts`, `None` without one, as points left out."""
    either = parent if child is None else child
    origins = {"point": either, "parent_point": parent, "child_point": child}
    return replace_fields(joint, **{name: origins[name] for name in left_out(joint)})


def known_origins(joint: AbstractJoint, system: AbstractSystem) -> list[np.ndarray | None]:
    """Origins of its `mounts`, space components, in a system of known values."""
    frames = {frame.name: frame for frame in system.frames}
    found = [None if name is None else frames[name] for name in mounts(joint, frames)]
    bodies = {body.name: body for body in system.bodies} if any(found) else {}
    return [None if frame is None else frame.origin(bodies[frame.body]) for frame in found]


def checked_points(joint: AbstractJoint, system: AbstractSystem) -> AbstractJoint:
    """The joint; `ValueError` for points that cannot be left out, or cannot be where frames are.

    **Arguments:** `system`, which has its bodies and frames.
    """
    if not (fields := left_out(joint)):
        return joint
    at = mounts(joint, {frame.name for frame in system.frames})
    if at == (None, None) and not joint.needs_point:
        return replace_fields(joint, point=vector_leaf(np.zeros(3), "point"))
    names = [joint.parent, joint.child]
    if lacking := left_out(with_origins(joint, *at)):
        raise ValueError(
            f"The joint {joint.name!r} needs `{lacking[0]}`, space components in the reference "
            f"configuration: it is the origin of a frame only where one is named; got {names}."
        )
    frames = [frame for frame in system.frames if frame.name in at]
    carriers = {frame.body for frame in frames}
    if is_traced((joint, frames, [body for body in system.bodies if body.name in carriers])):
        return joint
    first, second = known_origins(joint, system)
    with_origins(joint, first, second).check_points()
    if "point" in fields and first is not None and second is not None:
        size = np.abs([first, second, *(np.asarray(frame.point) for frame in frames)]).max()
        if (gap := np.linalg.norm(second - first)) > _TOGETHER * size:
            raise ValueError(
                f"The joint {joint.name!r} is in the origins of {names}, which are {gap:.3g} m "
                "apart in the reference configuration. Move a body or a frame, or give `point`."
            )
    return joint
