"""Surfaces of the viewer's shapes as polygons with four corners."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..io.mechanism import rotation_of
from ..viewer.scene import decode_array

_AROUND = 24  # faces around an axis of revolution


def faces_of(
    shape: Mapping[str, Any], meshes: Sequence[Mapping[str, Any]] = ()
) -> tuple[np.ndarray, bool]:
    """Return the faces (F, 4, 3) m of a shape, body components, and whether they are closed.

    Corners run counterclockwise as seen from outside; triangles repeat a corner. `meshes` are the
    meshes of the scene.
    """
    size = shape["size"]
    match shape["kind"]:
        case "mesh":
            triangles = decode_array(meshes[shape["mesh"]]).reshape(-1, 3, 3)
            return np.concatenate([triangles, triangles[:, 2:]], axis=1), False
        case "box":
            faces = _box(size)
        case "sphere":
            faces = _revolve(*_arc(size * 3))
        case "ellipsoid":
            faces = _revolve(*_arc((1.0, 1.0, 1.0))) * np.array(size)
        case "cone":  # its apex is at the negative end
            faces = _revolve(np.array([0, size[0], 0]), size[1] * np.array([-0.5, 0.5, 0.5]))
        case _:
            radius, half = size[0], 0.5 * size[1]
            faces = _revolve(np.array([0, radius, radius, 0]), np.array([-half, -half, half, half]))
    return faces @ rotation_of(shape["orientation"]).T + np.array(shape["position"]), True


def _box(size: Sequence[float]) -> np.ndarray:
    faces = []
    for axis in range(3):
        for side in (-1, 1):
            ring = [(-1, -1), (1, -1), (1, 1), (-1, 1)][::side]
            corners = np.empty((4, 3))
            corners[:, axis] = side
            corners[:, (axis + 1) % 3], corners[:, (axis + 2) % 3] = np.array(ring).T
            faces.append(corners)
    return np.array(faces) * 0.5 * np.array(size)


def _arc(radii: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 13)
    return radii[0] * np.cos(angles), radii[2] * np.sin(angles)


def _revolve(radii: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Return the faces of the surface of revolution of a line about the third axis."""
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
