"""Straight links and their orientations, for the mechanisms."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import ArrayLike

from ..bodies import Body

Point = Sequence[float] | np.ndarray


def link(name: str, start: Point, end: Point, mass: float = 1.0, thickness: float = 0.0) -> Body:
    r"""Return a uniform rod between two points; its first body axis is from `start` to `end`.

    **Arguments:** `name`; `start`, `end`, (3,) m; `mass`, kg; `thickness`, edge of its square
    section, m. With thickness zero the inertia is $(0, I, I)$ with $I = m l^2/12$, and joints have
    to determine the rotation about the axis of the rod.
    """
    start, end = np.asarray(start, float), np.asarray(end, float)
    along = end - start
    length = float(np.sqrt(along @ along))
    square = thickness * thickness
    across = mass * (length * length + square) / 12
    inertia = (mass * square / 6, across, across)
    shape = "box" if thickness else None
    return Body(name, mass, inertia, 0.5 * (start + end), turn_to(along), shape=shape)


def turn_to(direction: Point) -> tuple[float, float, float, float]:
    """Return the quaternion of the shortest rotation of the first axis of space to `direction`.

    For the opposite direction it is a rotation about the third axis.
    """
    x, y, z = np.asarray(direction, float) / math.sqrt(float(np.dot(direction, direction)))
    if x < -1 + 1e-12:
        return (0.0, 0.0, 0.0, 1.0)
    scale = math.sqrt(2 * (1 + x))
    return (scale / 2, 0.0, float(-z / scale), float(y / scale))


def matrix(orientation: ArrayLike) -> np.ndarray:
    """Return the rotation matrix of a quaternion (4,) as a NumPy array (3, 3)."""
    # Not by `euler_map`, each operation of which would be compiled.
    w, x, y, z = np.asarray(orientation, float)
    tilde = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 2 * (w * tilde + tilde @ tilde)


def in_body(orientation: ArrayLike, vector: Point) -> np.ndarray:
    """Convert a vector (3,) from space to body components."""
    return matrix(orientation).T @ np.asarray(vector, float)


def turn_about_third_axis(angle: float) -> tuple[float, float, float, float]:
    """Return the quaternion of a rotation about the third axis by `angle`, rad."""
    return (math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2))
