"""Straight links, and orientations, of which the mechanisms are made."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from ..bodies import Body
from ..rotations import euler_map

Numbers = Sequence[float] | np.ndarray


def link(
    name: str, start: Numbers, end: Numbers, mass: float = 1.0, thickness: float = 0.0
) -> Body:
    r"""A uniform rod between two points, its first body axis from `start` to `end`.

    **Arguments:** `name`; `start`, `end`, (3,) m; `mass`, kg; `thickness`, edge of its square
    section, m. With zero, the inertia is $(0, I, I)$ with $I = m l^2/12$: joints have to govern the
    rotation about its own axis.
    """
    start, end = np.asarray(start, float), np.asarray(end, float)
    along = end - start
    length = float(np.sqrt(along @ along))
    square = thickness * thickness
    across = mass * (length * length + square) / 12
    inertia = (mass * square / 6, across, across)
    return Body(name, mass, inertia, 0.5 * (start + end), turn_to(along))


def turn_to(direction: Numbers) -> tuple[float, float, float, float]:
    """Quaternion of the shortest rotation that takes the first axis of space to `direction`.

    About the third axis for a direction opposite to the first.
    """
    x, y, z = np.asarray(direction, float) / math.sqrt(float(np.dot(direction, direction)))
    if x < -1 + 1e-12:
        return (0.0, 0.0, 0.0, 1.0)
    scale = math.sqrt(2 * (1 + x))
    return (scale / 2, 0.0, float(-z / scale), float(y / scale))


def matrix(orientation: ArrayLike) -> np.ndarray:
    """Rotation matrix of a quaternion (4,) as a NumPy array (3, 3)."""
    return np.asarray(euler_map(jnp.asarray(orientation)), float)


def in_body(orientation: ArrayLike, vector: Numbers) -> np.ndarray:
    """Body components (3,) of a vector given in space components."""
    return matrix(orientation).T @ np.asarray(vector, float)


def turn_about_third_axis(angle: float) -> tuple[float, float, float, float]:
    """Quaternion of a rotation about the third axis, rad."""
    return (math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2))
