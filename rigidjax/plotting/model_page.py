"""A self-contained HTML page of a model."""

import dataclasses
import os
import pathlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from ..bodies import FixedPointBody
from ..bodies.inertia import inertia_tensor
from ..formulations import AbstractFormulation
from ..io.document import Block, Bullets, Heading, Paragraph, Table
from ..io.names import unknown_names
from ..mechanics import System
from ..mechanics.declared.topology import GROUND
from ..state import State
from ..viewer import view
from .html import embed_figure, embed_motion, write_page
from .style import GREY, PALETTE, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_topology(system: System) -> "Figure":
    """Plot the spanning trees of a system, the ground on top; joints that close loops are dashed.

    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    positions = _node_positions(system)
    width = max(x for x, _ in positions.values()) - min(x for x, _ in positions.values()) + 2
    depth = 1 - min(y for _, y in positions.values())
    index = {body.name: i for i, body in enumerate(system.bodies)} | {"ground": GROUND}
    ends = system.joined_bodies
    with style():
        figure = new_figure(min(16.0, 1.6 * width), min(20.0, 1.0 * depth + 0.6))
        ax = figure.add_subplot()
        for j, joint in enumerate(system.joints):
            loop = j in system.topology.loops
            (x0, y0), (x1, y1) = (positions[index[name]] for name in ends[joint.name])
            color = PALETTE[1] if loop else PALETTE[0]
            ax.plot([x0, x1], [y0, y1], color=color, linestyle="--" if loop else "-", zorder=1)
            middle = (0.5 * (x0 + x1), 0.5 * (y0 + y1))
            ax.text(
                *middle, type(joint).__name__, color=color, fontsize=7, ha="center", va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0}, zorder=2,
            )  # fmt: skip
        for i, by in enumerate(system.topology.joints):
            if by is None:
                (x, y) = positions[i]
                ax.plot([x, x], [y, 0], color=GREY, linestyle=":", zorder=0)
        for i, (x, y) in positions.items():
            name = "ground" if i == GROUND else system.bodies[i].name
            box = {"boxstyle": "round", "facecolor": "white", "edgecolor": GREY}
            ax.text(x, y, name, ha="center", va="center", bbox=box, zorder=2)
        ax.set_axis_off()
        ax.set_title(f"{len(system.bodies)} bodies, {len(system.joints)} joints")
        ax.margins(0.15)
    return figure


def _node_positions(system: System) -> dict[int, tuple[float, float]]:
    """Return the position of each body: leaves side by side, parents above their children."""
    topology = system.topology
    depths = topology.depths
    children: dict[int, list[int]] = {i: [] for i in (GROUND, *range(topology.num_bodies))}
    for i in topology.order:
        children[topology.parents[i]].append(i)
    across: dict[int, float] = {}
    leaves, order, stack = 0, [], [*reversed(children[GROUND])]
    while stack:
        order.append(stack.pop())
        stack += reversed(children[order[-1]])
    for i in (*reversed(order), GROUND):
        below = [across[c] for c in children[i]]
        if not below:
            across[i] = float(-leaves)
            leaves += 1
        else:
            across[i] = 0.5 * (min(below) + max(below))
    return {i: (x, 0.0 if i == GROUND else -1.0 - float(depths[i])) for i, x in across.items()}


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

    **Arguments:** `model`, to show; `path`, of the page; `state`, in which it is shown, by default
    the reference configuration; `title`, its heading; `files`, of which path and SHA-256 are
    stated; `force`, replace an existing file.
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
