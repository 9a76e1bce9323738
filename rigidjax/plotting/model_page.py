"""A self-contained HTML page of a model."""

import dataclasses
import os
import pathlib
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import numpy as np

from ..bodies import FixedPointBody
from ..bodies.inertia import inertia_tensor
from ..formulations import AbstractFormulation
from ..io.document import Block, Bullets, Heading, Paragraph, Table
from ..io.names import unknown_names
from ..mechanics import System
from ..state import State
from ..viewer import view
from .html import embed_figure, embed_motion, write_page
from .topology import plot_topology

# Fields of joints that have columns of their own in the table.
_IN_COLUMNS = {"name", "parent", "child"}


def write_model_page(
    model: AbstractFormulation | System | FixedPointBody,
    path: str | os.PathLike[str],
    *,
    state: State | None = None,
    title: str = "Model",
    files: Iterable[str | os.PathLike[str]] = (),
    force: bool = False,
) -> pathlib.Path:
    """Write a model as an HTML page: a view, bodies, joints, forces, and the trees of bodies.

    The page can be printed, and states its date, files with their hashes, and versions.

    **Arguments:** `model`; `path`; `state` in which it is shown, by default the reference
    configuration; `title`; `files` of which path and SHA-256 are stated; `force`, replace an
    existing file.
    **Returns:** the path.
    **Errors:** `TypeError` for other objects than models; `FileExistsError` for an existing file
    without `force`; `OSError` for a path that cannot be written; `ModuleNotFoundError` without
    matplotlib.
    """
    if not isinstance(model, AbstractFormulation | System | FixedPointBody):
        raise TypeError(
            "A page of a model needs a formulation, a `System` or a `FixedPointBody`; got "
            f"{type(model).__name__}."
        )
    system = model.system if isinstance(model, AbstractFormulation) else model
    motion = embed_motion(view(model, state=state), 1)
    parts: list[Any] = [Heading("View"), motion, *model_tables(system)]
    if isinstance(system, System):
        figure = embed_figure(plot_topology(system), "Trees of bodies; loops are dashed")
        parts += [Heading("Kinematic structure"), figure]
    if isinstance(model, AbstractFormulation):
        names = Paragraph(", ".join(unknown_names(model)), "note")
        parts += [Heading(f"Unknowns of {type(model).__name__}"), names]
    return write_page(path, title, parts, files, force=force)


def model_tables(system: System | FixedPointBody) -> list[Block]:
    """Return tables and lists of the bodies, joints, forces and frames of a model."""
    if isinstance(system, FixedPointBody):
        inertia = Paragraph(f"inertia {_number(system.inertia)}", "note")
        items = [item for item in (system.potential, system.moment) if item is not None]
        head = Paragraph("A body with a fixed point.")
        return [head, inertia, *_titled_list("Potential and moment", items)]
    bodies = [
        (
            body.name,
            *map(_number, (body.mass, body.position)),
            _number(np.linalg.eigvalsh(np.asarray(inertia_tensor(body.inertia)))),
        )
        for body in system.bodies
    ]
    loops = set(system.topology.loops)
    joints = [
        (
            joint.name, type(joint).__name__, joint.parent, joint.child, joint.num_rates,
            "closes a loop" if j in loops else "prescribed" if joint.is_driven else "tree",
            _values(joint, _IN_COLUMNS),
        )
        for j, joint in enumerate(system.joints)
    ]  # fmt: skip
    counts = {"Bodies": len(bodies), "joints": len(joints), "degrees of freedom": system.num_dof}
    parts = [
        Paragraph("; ".join(f"{name}: {count}" for name, count in counts.items()) + "."),
        Heading("Bodies"),
        Table(("body", "mass, kg", "centre of mass, m", "principal moments, kg m²"), bodies),
    ]
    if joints:
        head = ("joint", "type", "parent", "child", "degrees of freedom", "role", "parameters")
        parts += [Heading("Joints"), Table(head, joints)]
    parts += _titled_list("Constraints", system.constraints)
    parts += _titled_list("Forces", system.forces)
    return parts + _titled_list("Frames", system.frames)


def _titled_list(title: str, items: Iterable[Any]) -> list[Block]:
    lines = [
        " ".join(filter(None, (type(i).__name__, getattr(i, "name", ""), _values(i, {"name"}))))
        for i in items
    ]
    return [Heading(title), Bullets(lines)] if lines else []


def _values(item: Any, omitted: set[str]) -> str:
    """Return the fields of an item as text: names, numbers, and laws by their names."""
    if not dataclasses.is_dataclass(item):
        return getattr(item, "__name__", "")
    texts = []
    for field in dataclasses.fields(item):
        value = getattr(item, field.name)
        if field.name in omitted or value is None:
            continue
        texts.append(f"{field.name} {_text(value)}")
    return ", ".join(texts)


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return str(value)
    if eqx.is_array_like(value):
        return _number(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    name = getattr(value, "__name__", type(value).__name__)
    is_part = isinstance(value, eqx.Module) and not callable(value)
    return f"{name}({_values(value, set())})" if is_part else name


def _number(value: Any) -> str:
    values = np.asarray(value, float)
    if values.ndim == 0:
        return f"{values:.6g}"
    return "(" + ", ".join(map(_number, values)) + ")"
