"""Triangles of STL and OBJ files."""

import itertools
import os
import pathlib

import numpy as np

from ..checks import ArrayInput
from .shapes import Shape, mesh

_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_mesh(
    path: str | os.PathLike[str], scale: float = 1.0, offset: ArrayInput = (0.0, 0.0, 0.0)
) -> Shape:
    """The triangles of an STL (text or binary) or OBJ file as a shape.

    **Arguments:** `path`; `scale`, m in a unit of the file; `offset`, of the file's origin from the
    centre of mass, (3,) m, body components.
    **Raises:** `ValueError` for another ending, and for a file that is not what its ending says;
    `OSError` for one that cannot be read.
    """
    file = pathlib.Path(path)
    reader = {".stl": _read_stl, ".obj": _read_obj}.get(file.suffix.lower())
    if reader is None:
        raise ValueError(f"Meshes are read from .stl and .obj files; got {file}.")
    try:
        points, triangles = reader(file.read_bytes())
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is not a mesh as its ending says: {error}.") from error
    if len(triangles) == 0:
        raise ValueError(f"{file} has no triangles.")
    return mesh(scale * points + np.asarray(offset, float), triangles)


def _read_stl(data: bytes):
    count = int.from_bytes(data[80:84], "little")
    if len(data) == 84 + count * _RECORD.itemsize and count:
        corners = np.frombuffer(data, _RECORD, count, 84)["corners"].reshape(-1, 3)
    else:
        rows = (line.split() for line in data.decode("ascii").splitlines())
        corners = np.array([row[1:4] for row in rows if row[:1] == ["vertex"]], float)
        if corners.size % 9:
            raise ValueError("the vertices are not three for each facet")
        corners = corners.reshape(-1, 3)
    return corners.astype(float), np.arange(len(corners)).reshape(-1, 3)


def _read_obj(data: bytes):
    points, triangles = [], []
    for line in data.decode("utf-8").splitlines():
        words = line.split("#")[0].split()
        if words[:1] == ["v"]:
            points.append([float(word) for word in words[1:4]])
        elif words[:1] == ["f"]:
            # Counted from 1, or backwards from the last vertex; a polygon is a fan of triangles.
            corners = [int(word.split("/")[0]) for word in words[1:]]
            corners = [k - 1 if k > 0 else len(points) + k for k in corners]
            triangles += [(corners[0], b, c) for b, c in itertools.pairwise(corners[1:])]
    return np.array(points, float).reshape(-1, 3), np.array(triangles, int).reshape(-1, 3)
