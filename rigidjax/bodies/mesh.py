"""Triangle meshes, also from STL and OBJ files, and the volume that they enclose."""

import functools
import itertools
import os
import pathlib
import re
from typing import Any, NamedTuple

import numpy as np

from ..checks import ArrayInput

# Plausible extents of bodies, m; other files without a unit get a warning.
_SMALLEST, _LARGEST = 1e-4, 10.0
# Layout of binary STL files, and patterns of those of text.
_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_HEADER = 84
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?"
_VERTEX = re.compile(rf"\bvertex\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})(?=\s|$)", re.IGNORECASE)
_FACET = re.compile(r"^\s*facet\b", re.IGNORECASE | re.MULTILINE)
_KEYWORD = re.compile(r"^\s*vertex\b.*$", re.IGNORECASE | re.MULTILINE)
# No file has larger indices, and some would overflow NumPy's integers.
_MOST = 2**31


class Mesh:
    """A surface of triangles.

    Meshes with equal arrays are equal; the arrays are read-only.

    **Arguments:** `vertices`, (V, 3) m; `faces`, (F, 3), indices of the vertices. If the mesh is to
    enclose a volume, adjacent faces must traverse their common edge in opposite directions.
    **Errors:** `ValueError` for other shapes, no faces, or an index out of range.
    """

    def __init__(self, vertices: ArrayInput, faces: ArrayInput):
        points, triangles = np.array(vertices, float), np.array(faces)
        if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
            raise ValueError(
                f"`Mesh(vertices=...)` must be finite, of shape (V, 3); got shape {points.shape}."
            )
        if triangles.ndim != 2 or triangles.shape[1] != 3 or triangles.dtype.kind not in "iu":
            raise ValueError(
                f"`Mesh(faces=...)` must be integers of shape (F, 3); got {triangles.dtype} of "
                f"shape {triangles.shape}."
            )
        if triangles.size == 0:
            raise ValueError("`Mesh(faces=...)` has no triangles.")
        if not (0 <= triangles.min() and triangles.max() < len(points)):
            raise ValueError(
                f"`Mesh(faces=...)` must be indices of the {len(points)} vertices; got "
                f"{triangles.min()} to {triangles.max()}."
            )
        self.vertices, self.faces = points, triangles.astype(int)
        self.vertices.flags.writeable = self.faces.flags.writeable = False
        self._unit_is_known = True
        self._hash = hash((self.vertices.tobytes(), self.faces.tobytes()))

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        scale: float | None = None,
        rotation: ArrayInput | None = None,
        offset: ArrayInput = (0.0, 0.0, 0.0),
    ) -> "Mesh":
        """Read the triangles of an STL (text or binary) or OBJ file.

        **Arguments:** `path`; `scale`, length of the file's unit in m, 0.001 for millimetres (by
        default 1, in which case `Body.mesh` warns of improbable extents); `rotation`, (3, 3), and
        `offset`, (3,) m: a point `x` of the file becomes `offset + rotation @ (scale * x)`.
        **Errors:** `ValueError` for another suffix, a file whose content does not match its suffix,
        or an invalid `rotation`, `scale` or `offset`; `OSError` for a file that cannot be read.
        """
        file = pathlib.Path(path)
        reader = {".stl": _read_stl, ".obj": _read_obj}.get(file.suffix.lower())
        if reader is None:
            raise ValueError(f"Meshes are read from .stl and .obj files; got {file}.")
        try:
            raw = cls(*reader(file.read_bytes()))
        except (ValueError, IndexError, UnicodeDecodeError) as error:
            raise ValueError(f"{file} is not a mesh as its suffix says: {error}") from error
        mesh = raw.placed(1.0 if scale is None else scale, rotation, offset)
        mesh._unit_is_known = scale is not None
        return mesh

    def placed(
        self,
        scale: float = 1.0,
        rotation: ArrayInput | None = None,
        offset: ArrayInput = (0.0, 0.0, 0.0),
    ) -> "Mesh":
        """Return the mesh with vertices at `offset + rotation @ (scale * x)`; see `read`."""
        R = np.eye(3) if rotation is None else np.asarray(rotation, float)
        translation = np.asarray(offset, float)
        if R.shape != (3, 3) or not (abs(R @ R.T - np.eye(3)) < 1e-6).all() or np.linalg.det(R) < 0:
            raise ValueError(
                f"`Mesh.read(rotation=...)` must be a rotation matrix (3, 3); got {rotation!r}."
            )
        if translation.shape != (3,):
            raise ValueError(f"`Mesh.read(offset=...)` must have shape (3,); got {offset!r}.")
        if not (np.isfinite(scale) and scale > 0):
            raise ValueError(f"`Mesh.read(scale=...)` must be positive; got {scale!r}.")
        return Mesh(scale * self.vertices @ R.T + translation, self.faces)

    def solid(self) -> "Solid":
        r"""Return volume, centre and second moments of the enclosed solid.

        They are sums over the tetrahedra between a point and each triangle. A tetrahedron of signed
        volume $v$ with corners $c_1, \dots, c_4$ contributes $v$, $\frac{v}{4} \sum c_i$ and
        $\frac{v}{20} (\sum c_i \sum c_i^T + \sum c_i c_i^T)$.

        **Errors:** `ValueError` if the surface is open, or encloses no volume.
        """
        return self._solid

    @functools.cached_property
    def _solid(self) -> "Solid":
        self._check_closed()
        middle = self.vertices.mean(axis=0)
        corners = self.vertices[self.faces] - middle
        a, b, c = np.moveaxis(corners, 1, 0)
        volumes = np.sum(a * np.cross(b, c), axis=1) / 6
        sums = corners.sum(axis=1)
        volume = volumes.sum()
        if not abs(volume) > 1e-12 * np.ptp(self.vertices, axis=0).max() ** 3:
            raise ValueError("The mesh encloses no volume; give its body a mass and an inertia.")
        center = volumes @ sums / (4 * volume)
        second = np.einsum("f,fi,fj->ij", volumes, sums, sums)
        second += np.einsum("f,fci,fcj->ij", volumes, corners, corners)
        # If all triangles are inside out, every sum has the opposite sign.
        second = second / (20 * volume) - np.outer(center, center)
        return Solid(abs(volume), middle + center, second)

    def _check_closed(self):
        """Raise `ValueError` unless each edge is traversed equally often in both directions."""
        faces = self._vertex_labels[self.faces]
        edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
        edges = edges[edges[:, 0] != edges[:, 1]]
        forward = edges[:, 0] < edges[:, 1]
        which = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        count = np.bincount(which, np.where(forward, 1, -1))
        if np.any(count):
            raise ValueError(
                f"The mesh is no closed surface: at {np.count_nonzero(count)} of its {len(count)} "
                "edges a neighbour is missing or faces the other way. Repair it, or give the body "
                "a mass and an inertia, and `rj.view(shapes=...)` the mesh."
            )

    @functools.cached_property
    def _vertex_labels(self) -> np.ndarray:
        """Label of each vertex, equal for vertices that differ only by rounding."""
        # Imported here because SciPy takes as long as half of all other imports.
        from .shells import weld

        return weld(self.vertices)

    def doubts(self) -> list[str]:
        """Return warnings about a closed surface whose mass may not be the intended one."""
        from .shells import overlaps

        warnings = []
        extent, volume = float(np.ptp(self.vertices, axis=0).max()), self.solid().volume
        if not (self._unit_is_known or _SMALLEST < extent < _LARGEST):
            warnings.append(
                f"The mesh is {extent:.3g} m long and encloses {volume:.3g} m^3 if its file is in "
                "metres. In which unit is it? Say `Mesh.read(path, scale=0.001)` for millimetres, "
                "`scale=1.0` for metres."
            )
        if shared := overlaps(self.vertices, self.faces, self._vertex_labels):
            more = f", and {len(shared) - 3} pairs more" if len(shared) > 3 else ""
            warnings.append(
                f"Shells of the mesh overlap: {'; '.join(shared[:3])}{more}. Their common "
                "volume counts twice in the mass and the inertia. Unite them, or turn cavities "
                "inside out."
            )
        return warnings

    def __eq__(self, other: Any) -> bool:
        return (
            isinstance(other, Mesh)
            and np.array_equal(self.vertices, other.vertices)
            and np.array_equal(self.faces, other.faces)
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Mesh of {len(self.vertices)} vertices, {len(self.faces)} faces"


class Solid(NamedTuple):
    """Volume, m^3; centre, (3,) m; mean of $(x - c)(x - c)^T$ about the centre $c$, (3, 3) m^2."""

    volume: float
    center: np.ndarray
    covariance: np.ndarray


def _read_stl(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return corners (3 F, 3) and faces (F, 3) of an STL file, text or binary.

    A text file may contain several solids, capital letters and any white space. A binary file may
    begin with "solid", and may have further bytes after its last facet.

    **Errors:** `ValueError` for an incomplete file.
    """
    count = int.from_bytes(data[80:_HEADER], "little")
    if 0 < count <= (len(data) - _HEADER) // _RECORD.itemsize:
        corners = np.frombuffer(data, _RECORD, count, _HEADER)["corners"].reshape(-1, 3)
    elif b"\0" in data and count:
        raise ValueError(
            f"a binary STL of {count} facets has {_HEADER + count * _RECORD.itemsize} bytes; "
            f"there are {len(data)}."
        )
    else:
        corners = _text_corners(data.decode("latin-1"))
    return corners, np.arange(len(corners)).reshape(-1, 3)


def _text_corners(text: str) -> np.ndarray:
    vertices = _VERTEX.findall(text)
    lines = _KEYWORD.findall(text)
    if len(lines) > len(vertices):
        wrong = next(line for line in lines if not _VERTEX.search(line))
        raise ValueError(f"a vertex has three numbers; got {wrong.strip()!r}.")
    facets = len(_FACET.findall(text))
    if len(vertices) % 3 or (facets and len(vertices) != 3 * facets):
        raise ValueError(
            f"each facet must have three vertices; got {len(vertices)} for {facets} facets."
        )
    coordinates = [[x.replace("D", "e").replace("d", "e") for x in row] for row in vertices]
    return np.array(coordinates, float).reshape(-1, 3)


def _read_obj(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (V, 3) and faces (F, 3) of an OBJ file; polygons are split into triangles.

    A backslash continues a line. Corners are `v`, `v/vt`, `v//vn` or `v/vt/vn`; vertices are
    numbered from 1, or by negative numbers back from the last one.

    **Errors:** `ValueError` that quotes the invalid line.
    """
    points, triangles = [], []
    text = re.sub(r"\\[ \t]*(\r\n|\r|\n)", " ", data.decode("utf-8-sig"))
    for line in text.splitlines():
        words = line.split("#")[0].split()
        keyword = words[0].lower() if words else ""
        if keyword == "v":
            points.append([float(word) for word in words[1:4]])
            if len(points[-1]) != 3:
                raise ValueError(f"a vertex has three coordinates; got {line.strip()!r}.")
        elif keyword == "f":
            corners = [_index(word, len(points)) for word in words[1:]]
            if len(corners) < 3:
                raise ValueError(f"a face has at least three corners; got {line.strip()!r}.")
            triangles += [(corners[0], b, c) for b, c in itertools.pairwise(corners[1:])]
    return np.array(points, float).reshape(-1, 3), np.array(triangles, int).reshape(-1, 3)


def _index(word: str, count: int) -> int:
    """Return the zero-based index of a corner; `count` vertices have been read so far."""
    k = int(word.split("/")[0])
    if k == 0 or k < -count or k > _MOST:
        raise ValueError(
            f"{word!r} is no vertex: vertices are numbered from 1, or from -1 backwards."
        )
    return k - 1 if k > 0 else count + k
