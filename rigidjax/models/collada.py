"""Reader of Collada files, by pycollada."""

import io
import os
import pathlib

import numpy as np

from ..bodies.mesh import Mesh
from ..extras import import_optional

# Bytes, as of model files.
_LARGEST = 64 * 2**20


def read_collada(path: str | os.PathLike[str]) -> Mesh:
    """Return the triangles of a Collada file, in m, in the axes of the file.

    The unit of the file and the placements of its nodes are applied. Its `up_axis` is not, as in
    other programs that read robots: the axes of the link are those of the file.

    **Errors:** `ModuleNotFoundError` without the extra `rigidjax[meshes]`; `ValueError` for a file
    that is no Collada file, is too large, declares a document type, or has no triangles; `OSError`
    for a file that cannot be read.
    """
    path = pathlib.Path(path)
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"{path} has more than {_LARGEST} bytes.")
    content = path.read_bytes()
    # Other contents would be unpacked, or expand entities.
    if b"<COLLADA" not in content[:4096] or b"<!DOCTYPE" in content:
        raise ValueError(f"{path} is no Collada file: it does not start with <COLLADA>.")
    collada = import_optional("collada", "Collada files")
    try:
        document = collada.Collada(io.BytesIO(content))
    except collada.common.DaeError as error:
        raise ValueError(f"{path} cannot be read as Collada: {error}") from error
    vertices, faces, count = [], [], 0
    for geometry in document.scene.objects("geometry"):
        for primitive in geometry.primitives():
            if isinstance(primitive, collada.lineset.BoundLineSet):
                continue
            if isinstance(primitive, collada.polylist.BoundPolylist):
                primitive = primitive.triangleset()
            vertices.append(np.asarray(primitive.vertex, float))
            faces.append(np.asarray(primitive.vertex_index, int) + count)
            count += len(vertices[-1])
    if not faces:
        raise ValueError(f"{path} has no triangles.")
    unit = document.assetInfo.unitmeter
    points = np.concatenate(vertices) * (1.0 if unit is None else float(unit))
    return Mesh(points, np.concatenate(faces))
