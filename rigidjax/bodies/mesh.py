"""Surfaces of triangles, of STL and OBJ files too, and the volume that they enclose."""

import functools
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np

from ..checks import ArrayInput
from .mesh_files import read_obj, read_stl

# Extents, m, of bodies that files without a unit are taken for; others are asked for their unit.
_SMALLEST, _LARGEST = 1e-4, 10.0


class Mesh:
    """A surface of triangles.

    Meshes with the same numbers are equal; the arrays cannot be written.

    **Arguments:** `vertices`, (V, 3) m; `faces`, (F, 3), indices of the vertices. Where it has to
    enclose a volume, neighbours run along their edge in opposite directions.
    **Raises:** `ValueError` for other shapes, no faces, or an index beyond the vertices.
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
            raise ValueError(f"`Mesh(faces=...)` must be indices of the {len(points)} vertices.")
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
        """The triangles of an STL (text or binary) or OBJ file, at `offset + rotation @ scale x`.

        **Arguments:** `path`; `scale`, m in a unit of the file, 0.001 for millimetres, which is 1
        if left out: `Body.mesh` then warns of improbable extents; `rotation`, (3, 3), from the
        components of the file; `offset`, (3,) m.
        **Raises:** `ValueError` for another ending, a file that is not what its ending says, and a
        `rotation` that is none; `OSError` for a file that cannot be read.
        """
        file = pathlib.Path(path)
        reader = {".stl": read_stl, ".obj": read_obj}.get(file.suffix.lower())
        if reader is None:
            raise ValueError(f"Meshes are read from .stl and .obj files; got {file}.")
        try:
            raw = cls(*reader(file.read_bytes()))
        except (ValueError, IndexError, UnicodeDecodeError) as error:
            raise ValueError(f"{file} is not a mesh as its ending says: {error}") from error
        mesh = raw.placed(1.0 if scale is None else scale, rotation, offset)
        mesh._unit_is_known = scale is not None
        return mesh

    def placed(
        self,
        scale: float = 1.0,
        rotation: ArrayInput | None = None,
        offset: ArrayInput = (0.0, 0.0, 0.0),
    ) -> "Mesh":
        """The mesh with its vertices at `offset + rotation @ scale x`; see `read`."""
        R = np.eye(3) if rotation is None else np.asarray(rotation, float)
        move = np.asarray(offset, float)
        if R.shape != (3, 3) or not (abs(R @ R.T - np.eye(3)) < 1e-6).all() or np.linalg.det(R) < 0:
            raise ValueError(
                f"`Mesh.read(rotation=...)` must be a rotation matrix (3, 3); got {rotation!r}."
            )
        if move.shape != (3,):
            raise ValueError(f"`Mesh.read(offset=...)` must have shape (3,); got {offset!r}.")
        if not (np.isfinite(scale) and scale > 0):
            raise ValueError(f"`Mesh.read(scale=...)` must be positive; got {scale!r}.")
        return Mesh(scale * self.vertices @ R.T + move, self.faces)

    def solid(self) -> "Solid":
        r"""Volume, centre and second moments of what the surface encloses.

        Sums over the tetrahedra between a point and each triangle, of signed volume $v$ and corners
        $c_1, \dots, c_4$: $v$, $\frac{v}{4} \sum c_i$ and
        $\frac{v}{20} (\sum c_i \sum c_i^T + \sum c_i c_i^T)$.

        **Raises:** `ValueError` if the surface is open, or encloses nothing.
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
        # With all triangles inside out every sum has the other sign.
        second = second / (20 * volume) - np.outer(center, center)
        return Solid(abs(volume), middle + center, second)

    def _check_closed(self):
        """`ValueError` unless each edge is run along as often in one direction as in the other."""
        faces = self._welded[self.faces]
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
    def _welded(self) -> np.ndarray:
        """A number for each vertex, the same for those that differ by rounding."""
        # When it is needed: SciPy takes as long as half of all imports.
        from .shells import weld

        return weld(self.vertices)

    def doubts(self) -> list[str]:
        """Return sentences on a closed surface whose mass may not be what is meant."""
        from .shells import overlaps

        found = []
        extent, volume = float(np.ptp(self.vertices, axis=0).max()), self.solid().volume
        if not (self._unit_is_known or _SMALLEST < extent < _LARGEST):
            found.append(
                f"The mesh is {extent:.3g} m long and encloses {volume:.3g} m^3 if its file is in "
                "metres. In which unit is it? Say `Mesh.read(path, scale=0.001)` for millimetres, "
                "`scale=1.0` for metres."
            )
        if shared := overlaps(self.vertices, self.faces, self._welded):
            more = f", and {len(shared) - 3} pairs more" if len(shared) > 3 else ""
            found.append(
                f"Shells of the mesh overlap: {'; '.join(shared[:3])}{more}. What they share "
                "counts twice in the mass and the inertia. Unite them, or turn cavities inside out."
            )
        return found

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
    """Volume, m^3; centre, (3,) m; mean of the squares of the distances from it, (3, 3) m^2."""

    volume: float
    center: np.ndarray
    covariance: np.ndarray
