"""Shapes of links for the viewer."""

import io
import os
import pathlib
from collections.abc import Sequence

import numpy as np

from ..bodies.mesh import Mesh
from ..extras import import_optional
from .description import Link, LinkShape, Placement
from .report import Report

_SIDES = 24
# Largest size of a Collada file in bytes, as for model files.
_LARGEST = 64 * 2**20


def shape_of(
    links: Sequence[Link],
    body: Placement,
    center: np.ndarray,
    packages: Sequence[str | os.PathLike[str]],
    report: Report,
) -> Mesh | None:
    """Return the visible surface of a body, in body axes from its centre of mass.

    **Arguments:** `links` of the body; `body`, placement of the body's link frame in space;
    `center`, its centre of mass in that frame; `packages`, folders with meshes; `report`, which
    gets a line for each mesh that is not shown.
    """
    origin = Placement(body.of_point(center), body.rotation).inverse()
    vertices, faces, count = [], [], 0
    for link in links:
        for shape in link.shapes:
            surface = _surface(shape, link, packages, report)
            if surface is None:
                continue
            placement = origin.then(link.placement).then(shape.placement)
            points = surface.vertices @ placement.rotation.T + placement.position
            vertices.append(points)
            faces.append(surface.faces + count)
            count += len(points)
    return Mesh(np.concatenate(vertices), np.concatenate(faces)) if vertices else None


def _surface(
    shape: LinkShape, link: Link, packages: Sequence[str | os.PathLike[str]], report: Report
) -> Mesh | None:
    subject = f"visual of link {link.name!r}"
    if shape.kind == "mesh":
        path = find_mesh(shape.path, report.path, packages)
        if path is None:
            report.add("warning", subject, f"the mesh {shape.path} is not found", link.line)
            return None
        try:
            is_collada = path.suffix.lower() == ".dae"
            mesh = read_collada(path) if is_collada else Mesh.read(path, scale=1.0)
        except (ValueError, ModuleNotFoundError) as error:
            report.add("warning", subject, f"not shown: {error}", link.line)
            return None
        return Mesh(mesh.vertices * np.array(shape.size), mesh.faces)
    if shape.kind == "box":
        corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        triangles = [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]
        return Mesh(0.5 * corners * np.array(shape.size), triangles)
    if shape.kind in ("cylinder", "capsule"):
        radius, length = shape.size
        return _revolve(
            [(radius, -length / 2), (radius, length / 2)], round_ends=shape.kind == "capsule"
        )
    radii = np.resize(np.array(shape.size), 3)
    ball = _revolve([(1.0, 0.0)], round_ends=True)
    return Mesh(ball.vertices * radii, ball.faces)


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
    # The reader would unpack an archive, and expand the entities of a document type.
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


def _revolve(profile: list[tuple[float, float]], round_ends: bool) -> Mesh:
    """Return the closed surface of a profile of radii and heights, revolved about z."""
    (first, low), (last, high) = profile[0], profile[-1]
    if round_ends:
        angles = np.linspace(0, np.pi / 2, 7)[1:-1]
        below = [(first * np.sin(a), low - first * np.cos(a)) for a in angles]
        above = [(last * np.cos(a), high + last * np.sin(a)) for a in angles]
        profile, low, high = [*below, *profile, *above], low - first, high + last
    turn = 2 * np.pi * np.arange(_SIDES) / _SIDES
    rings = [
        np.stack([r * np.cos(turn), r * np.sin(turn), np.full(_SIDES, z)], axis=1)
        for r, z in profile
    ]
    points = np.concatenate([*rings, [[0, 0, low], [0, 0, high]]])
    faces, last_ring = [], (len(rings) - 1) * _SIDES
    for k in range(_SIDES):
        n = (k + 1) % _SIDES
        for ring in range(len(rings) - 1):
            a, b = ring * _SIDES, (ring + 1) * _SIDES
            faces += [(a + k, a + n, b + n), (a + k, b + n, b + k)]
        faces += [(len(points) - 2, n, k), (len(points) - 1, last_ring + k, last_ring + n)]
    return Mesh(points, faces)


def search_folders(
    model: str | os.PathLike[str], packages: Sequence[str | os.PathLike[str]]
) -> list[pathlib.Path]:
    """Return the folders with files of a model: packages, its own and those beside it."""
    home = pathlib.Path(model).resolve().parent
    # A relative name may lead to a sibling of the model's folder, such as ../meshes.
    beside = home if home.parent == home.parent.parent else home.parent
    return [*(pathlib.Path(folder).resolve() for folder in packages), beside]


def is_inside(path: pathlib.Path, folders: Sequence[pathlib.Path]) -> bool:
    """Return whether a path is in one of the folders."""
    return any(path.is_relative_to(folder) for folder in folders)


def find_mesh(
    name: str, model: str, packages: Sequence[str | os.PathLike[str]]
) -> pathlib.Path | None:
    """Return the file of a mesh, searched in folders of packages and beside the model file.

    `package://name/path` is searched as `name/path` and as `path` in the given folders and in those
    above the model file, other names relative to the model file. Results are existing files inside
    these folders, or the folder above the model file's.
    """
    home = pathlib.Path(model).resolve().parent
    if "://" not in name:
        path = (home / name).resolve()
        found = name and is_inside(path, search_folders(model, packages)) and path.is_file()
        return path if found else None
    scheme, _, rest = name.partition("://")
    if scheme not in ("package", "model", "file"):
        return None
    roots = [pathlib.Path(folder).resolve() for folder in packages] + [home, *home.parents[:4]]
    for root in roots:
        for part in (rest, rest.partition("/")[2]):
            path = (root / part.lstrip("/")).resolve()
            if part and path.is_relative_to(root) and path.is_file():
                return path
    return None
