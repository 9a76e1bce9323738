"""Shapes of links from the geoms of a compiled MJCF file."""

import os

from .description import Link, LinkShape
from .mjcf_compiled import CompiledModel
from .placement import from_quaternion

# Geoms of higher groups, such as collision shapes, are not shown by MuJoCo's viewer either.
_LAST_GROUP = 2


def add_shapes(compiled: CompiledModel, links: list[Link]) -> None:
    """Add the visible geoms of all bodies to their links."""
    model = compiled.model
    by_name = {link.name: link for link in links}
    for g in range(model.ngeom):
        if model.geom_group[g] > _LAST_GROUP:
            continue
        kind = compiled.word("mjtGeom", model.geom_type[g])
        placement = from_quaternion(model.geom_pos[g], model.geom_quat[g])
        size, path = tuple(map(float, model.geom_size[g])), ""
        if kind == "box":
            size = tuple(2 * half for half in size)
        elif kind in ("cylinder", "capsule"):
            size = (size[0], 2 * size[1])
        elif kind == "sphere":
            size = size[:1]
        elif kind == "mesh":
            # MuJoCo moves the vertices of a mesh to its centre of mass and principal axes.
            k = model.geom_dataid[g]
            moved = from_quaternion(model.mesh_pos[k], model.mesh_quat[k])
            placement = placement.then(moved.inverse())
            size, path = tuple(map(float, model.mesh_scale[k])), _path(compiled, k)
        elif kind != "ellipsoid":
            continue
        body = compiled.bodies[model.geom_bodyid[g]]
        by_name[body].shapes.append(LinkShape(kind, size, placement, path))


def _path(compiled: CompiledModel, mesh: int) -> str:
    """Return the file of a mesh, relative to the folder of the model."""
    first = int(compiled.model.mesh_pathadr[mesh])
    if first < 0:
        return ""
    path = compiled.model.paths[first:].split(b"\0", 1)[0].decode()
    return os.path.relpath(path, os.path.dirname(compiled.path)) if os.path.isabs(path) else path
