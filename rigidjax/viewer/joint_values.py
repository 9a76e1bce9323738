"""Coordinates and rates of joints, computed from poses and velocities of the bodies."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..io.mechanism import GROUND
from .runs import DisplayedRun, to_space

# Translations along and rotations about axes of the joint frame, in the order of the coordinates.
_FREEDOMS = {
    "Revolute": "c",
    "Prismatic": "z",
    "Cylindrical": "zc",
    "Screw": "c",
    "Planar": "xyc",
    "Universal": "ab",
}


class JointValue(NamedTuple):
    """Coordinate of a joint: its `name`, `unit` and `values`, (T,), and `rates` or `None`."""

    joint: int
    name: str
    unit: str
    values: np.ndarray
    rates: np.ndarray | None


def joint_values(run: DisplayedRun) -> Iterator[JointValue]:
    """Yield the coordinates of the joints of a run, angles with full revolutions.

    A revolute, prismatic, cylindrical, screw, planar or universal joint has coordinates; the signs
    are those of `Solution.coordinates`. Rates of universal joints are not computed. Between two
    times an angle changes by less than half a revolution more or less than its rates predict.
    """
    for index, joint in enumerate(run.mechanism["joints"]):
        freedoms = _FREEDOMS.get(joint["kind"], "")
        for freedom in freedoms:
            name = joint["name"] + (f" {freedoms.index(freedom) + 1}" if len(freedoms) > 1 else "")
            if freedom in "xyz":
                values, rates = _translation(run, joint, "xyz".index(freedom))
                yield JointValue(index, name, "m", values, rates)
            else:
                angles, rates = _angle(run, joint, freedom)
                start = None if freedom == "b" else run.angles.get(joint["name"])
                values = _unwrap(angles, rates, run.times, start)
                yield JointValue(index, name, "rad", values, rates)


def _translation(
    run: DisplayedRun, joint: dict[str, Any], axis: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the displacement along an axis of the parent's joint frame, and its rate."""
    direction = _direction(run, joint, "parent", axis)
    start, end = (point_path(run, joint[e], joint[f"{e}_point"]) for e in ("parent", "child"))
    gap = end - start
    values = np.sum(gap * direction, axis=-1)
    if run.velocities is None or run.angular_velocities is None:
        return values, None
    velocity = _point_velocity(run, joint, "child") - _point_velocity(run, joint, "parent")
    turning = np.cross(_angular_velocity(run, joint["parent"]), direction)
    return values, np.sum(velocity * direction + gap * turning, axis=-1)


def _angle(
    run: DisplayedRun, joint: dict[str, Any], freedom: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return an angle in (-pi, pi], and its rate; `a`, `b` are the angles of a universal joint."""
    parent = np.stack([_direction(run, joint, "parent", k) for k in range(3)], axis=-1)
    child = np.stack([_direction(run, joint, "child", k) for k in range(3)], axis=-1)
    relative = np.swapaxes(parent, -1, -2) @ child
    if freedom == "a":
        return np.arctan2(relative[:, 2, 1], relative[:, 1, 1]), None
    if freedom == "b":
        return np.arctan2(relative[:, 0, 2], relative[:, 0, 0]), None
    angles = np.arctan2(
        relative[:, 1, 0] - relative[:, 0, 1], relative[:, 0, 0] + relative[:, 1, 1]
    )
    if run.angular_velocities is None:
        return angles, None
    spin = _angular_velocity(run, joint["child"]) - _angular_velocity(run, joint["parent"])
    return angles, np.sum(spin * parent[..., 2], axis=-1)


def _unwrap(
    angles: np.ndarray, rates: np.ndarray | None, times: np.ndarray, start: float | None
) -> np.ndarray:
    """Return angles with full revolutions, the first angle next to `start` if it is known."""
    if start is not None:
        angles = angles + 2 * np.pi * np.round((start - angles[0]) / (2 * np.pi))
    predicted = np.zeros(max(len(times) - 1, 0))
    if rates is not None:
        predicted = 0.5 * (rates[1:] + rates[:-1]) * np.diff(times)
    excess = np.diff(angles) - predicted
    steps = predicted + excess - 2 * np.pi * np.round(excess / (2 * np.pi))
    return angles[0] + np.concatenate([[0.0], np.cumsum(steps)])


def point_path(run: DisplayedRun, body: int, point: Any) -> np.ndarray:
    """Return the position of a point of a body at all times, (T, 3) m."""
    if body == GROUND:
        return np.broadcast_to(np.asarray(point, float), (len(run.times), 3))
    return run.positions[:, body] + _in_space(run, body, point)


def _direction(run: DisplayedRun, joint: dict[str, Any], end: str, axis: int) -> np.ndarray:
    return _in_space(run, joint[end], np.array(joint[f"{end}_frame"])[:, axis])


def _in_space(run: DisplayedRun, body: int, vector: Any) -> np.ndarray:
    vectors = np.broadcast_to(np.asarray(vector, float), (len(run.times), 3))
    return vectors if body == GROUND else to_space(run.orientations[:, body], vectors)


def _angular_velocity(run: DisplayedRun, body: int) -> np.ndarray:
    if body == GROUND or run.angular_velocities is None:
        return np.zeros((len(run.times), 3))
    return to_space(run.orientations[:, body], run.angular_velocities[:, body])


def _point_velocity(run: DisplayedRun, joint: dict[str, Any], end: str) -> np.ndarray:
    body = joint[end]
    if body == GROUND or run.velocities is None:
        return np.zeros((len(run.times), 3))
    arm = _in_space(run, body, joint[f"{end}_point"])
    return run.velocities[:, body] + np.cross(_angular_velocity(run, body), arm)
