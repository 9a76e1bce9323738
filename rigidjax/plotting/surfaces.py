"""Surfaces of the viewer's shapes as polygons with four corners."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..io.mechanism import rotation_of
from ..viewer.scene import decoded

_AROUND = 24


def faces_of(
    shape: Mapping[str, Any], meshes: Sequence[Mapping[str, Any]] = ()
) -> tuple[np.ndarray, bool]:
    """Faces (F, 4, 3) m of a shape, body components, and whether they are closed.

    Corners go around as seen from outside, counterclockwise; triangles have one corner twice.
    `meshes` are those of the scene.
    """
    size = shape["size"]
    match shape["kind"]:
        case "mesh":
            triangles = decoded(meshes[shape["mesh"]]).reshape(-1, 3, 3)
            return np.concatenate([triangles, triangles[:, 2:]], axis=1), False
        case "box":
            faces = _box(size)
        case "sphere":
            faces = _turned(*_arc(size * 3))
        case "ellipsoid":
            faces = _turned(*_arc((1.0, 1.0, 1.0))) * np.array(size)
        case "cone":  # the apex at the negative end
            faces = _turned(np.array([0, size[0], 0]), size[1] * np.array([-0.5, 0.5, 0.5]))
        case _:
            radius, half = size[0], 0.5 * size[1]
            faces = _turned(np.array([0, radius, radius, 0]), np.array([-half, -half, half, half]))
    return faces @ rotation_of(shape["orientation"]).T + np.array(shape["position"]), True


def _box(size):
    faces = []
    for axis in range(3):
        for side in (-1, 1):
            ring = [(-1, -1), (1, -1), (1, 1), (-1, 1)][::side]
            corners = np.empty((4, 3))
            corners[:, axis] = side
            corners[:, (axis + 1) % 3], corners[:, (axis + 2) % 3] = np.array(ring).T
            faces.append(corners)
    return np.array(faces) * 0.5 * np.array(size)


def _arc(radii):
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 13)
    return radii[0] * np.cos(angles), radii[2] * np.sin(angles)


def _turned(radii, heights):
    """What a line of radii over heights describes when it turns about the third axis."""
    angles = np.linspace(0.0, 2 * np.pi, _AROUND + 1)
    grid = np.stack(
        [
            np.outer(np.cos(angles), radii),
            np.outer(np.sin(angles), radii),
            np.broadcast_to(heights, (_AROUND + 1, len(heights))),
        ],
        axis=-1,
    )
    around = grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]
    return np.stack(around, axis=2).reshape(-1, 4, 3)
