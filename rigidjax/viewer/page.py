"""Pages of HTML that need nothing besides themselves."""

import html
import importlib.resources
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..bodies import FixedPointBody
from ..checks import ArrayInput
from ..io.files import write_text
from ..state import State
from .runs import Run, is_model, runs_of
from .scene import scene_of
from .shapes import AnyShape

# In this order: a later file uses what an earlier one defines.
_SCRIPTS = (
    "three.bundle.js",
    "data.js",
    "shapes.js",
    "joints.js",
    "vectors.js",
    "stage.js",
    "run.js",
    "graphs.js",
    "controls.js",
    "main.js",
)
THEMES = ("auto", "light", "dark")


class View:
    """A motion as a page of HTML, shown in a notebook by itself.

    `scene`, the data of the page; `page`, its text; `save` writes it.
    """

    def __init__(self, scene: dict[str, Any], height: int = 560):
        self.scene = scene
        self.height = height

    @property
    def page(self) -> str:
        """The page, with its program and its data; nothing is loaded from elsewhere."""
        # In a script, `<` could end it; in JSON it can be written otherwise.
        data = json.dumps(self.scene, allow_nan=False, separators=(",", ":")).replace(
            "<", "\\u003c"
        )
        parts = {
            "title": html.escape(self.scene["title"] or "Motion"),
            "theme": self.scene["theme"],
            "style": _static("viewer.css"),
            "data": data,
            "scripts": "\n".join(f"<script>\n{_static(name)}\n</script>" for name in _SCRIPTS),
        }
        page = _static("page.html")
        for name, text in parts.items():
            page = page.replace(f"<!-- {name} -->", text, 1)
        return page

    def save(self, path: str | os.PathLike[str], force: bool = False) -> pathlib.Path:
        """Write the page, whole or not at all.

        **Arguments:** `path`, such as `run.html`; `force`, replace an existing file.
        **Returns:** the path.
        **Raises:** `FileExistsError` unless `force`; `OSError` for a path that cannot be written.
        """
        return write_text(path, self.page, force)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" title="{html.escape(self.scene["title"])}" '
            f'style="width: 100%; height: {self.height}px; border: 0; border-radius: 8px" '
            "allowfullscreen></iframe>"
        )

    def __repr__(self) -> str:
        runs = self.scene["runs"]
        return (
            f"View of {len(runs)} run{'s' * (len(runs) != 1)}, {len(runs[0]['bodies'])} bodies, "
            f'{self.scene["start"]:g} to {self.scene["end"]:g} s: `.save("run.html")` writes it.'
        )


def view(
    *items: Any,
    labels: Sequence[str] | None = None,
    state: State | None = None,
    ts: ArrayInput | None = None,
    shapes: Mapping[str, AnyShape | Sequence[AnyShape]] | None = None,
    quantities: Mapping[str, ArrayInput] | None = None,
    reactions: bool = False,
    frames: int = 601,
    members: int = 20,
    title: str = "",
    speed: float | None = None,
    theme: str = "auto",
    height: int = 560,
) -> View:
    """Show motions in three dimensions, in a notebook or as a page that stands alone.

    Bodies have the shapes that they were made as, else those of their inertia: a sphere, cylinder
    or box of constant density. A body with a fixed point has no mass; its longest edge is 1 m.

    **Arguments:**

    - `items`: one or several, drawn over each other: a `Solution` (of a batch the first member, and
      others faint), a dataset of `rj.io` or the name of its file, a model, system or body with
      a fixed point, at `state`, or a tuple of one with its states and their times, or with an
      `Ensemble` whose runs returned a `Solution`.
    - `labels`, one for each item.
    - `state`, `ts`: of the models among the items: a `State`, or one with a leading axis of times
      and these times, (T,) s. Without a `state` a system is in its reference configuration.
    - `shapes`, by names of bodies, each one or several of `rigidjax.viewer`: `box`, `cylinder`,
      `cone`, `sphere`, `ellipsoid`; or a `Mesh`, or an STL or OBJ file in m, from the centre of
      mass, body components.
    - `quantities`, further graphs of the first item by name, (T,) at its saved times.
    - `reactions`, of the joints as well; with closed loops they take seconds to compile.
    - `frames`, the most times that are kept; `members`, the most of a batch.
    - `title`; `speed`, seconds of motion in a second, by default a round one; `theme`, `"auto"`,
      `"light"` or `"dark"`; `height` in a notebook, pixels.

    **Returns:** a `View`: `.save("run.html")` writes it.
    **Raises:** `TypeError` for what cannot be viewed; `ValueError` for runs without times, and for
    arguments that do not fit together.
    """
    if not items:
        raise ValueError("`view` needs something to show: a `Solution`, a file, or a model.")
    if labels is not None and len(labels) != len(items):
        raise ValueError(f"`view(labels=...)` must be {len(items)} texts; got {len(labels)}.")
    if theme not in THEMES:
        raise ValueError(f"`view(theme=...)` must be one of {THEMES}; got {theme!r}.")
    if frames < 2 or members < 1:
        raise ValueError(
            f"`view` needs frames of at least 2 and members of at least 1; got {frames}, {members}."
        )
    if speed is not None and not (np.isfinite(speed) and speed > 0):
        raise ValueError(f"`view(speed=...)` must be positive; got {speed!r}.")
    if (state is not None or ts is not None) and not any(map(is_model, items)):
        raise ValueError("`view(state=..., ts=...)` goes with a model, a system or a body.")
    names = labels or (["" for _ in items] if len(items) == 1 else _numbered(items))
    runs: list[Run] = []
    for item, label in zip(items, names, strict=True):
        if is_model(item):
            shown = _reference_state(item) if state is None else state
            item = (item, shown, *(() if ts is None else (ts,)))
        runs += runs_of(item, label, frames, members, reactions)
    for name, values in (quantities or {}).items():
        runs[0].graphs[name, ""] = _quantity(name, values, items[0], runs[0])
    return View(scene_of(runs, title, shapes, speed, theme), height)


def _numbered(items):
    return [
        os.path.basename(item) if isinstance(item, str | os.PathLike) else f"run {k + 1}"
        for k, item in enumerate(items)
    ]


def _reference_state(model):
    system = getattr(model, "system", model)
    return State() if isinstance(system, FixedPointBody) else system.reference_state()


def _quantity(name, values, item, run):
    """A quantity at the times of a run, of those at which it was given."""
    numbers = np.asarray(values, float)
    given = np.asarray(getattr(item, "ts", getattr(item, "time", run.times)), float)
    if given.ndim != 1 or numbers.shape != given.shape:
        raise ValueError(
            f"`view(quantities=...)` must have a value at each of the {given.shape[-1]} saved "
            f"times of the first item; {name!r} has shape {numbers.shape}."
        )
    return numbers[np.searchsorted(np.where(np.isfinite(given), given, np.inf), run.times)]


def _static(name: str) -> str:
    return (importlib.resources.files("rigidjax.viewer") / "static" / name).read_text("utf-8")
