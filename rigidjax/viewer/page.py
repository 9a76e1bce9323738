"""Self-contained HTML pages of motions."""

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
from ..models.model import Model
from ..state import State
from .runs import DisplayedRun, is_model, runs_of
from .scene import scene_of
from .shapes import AnyShape

# In the order of their dependencies.
_SCRIPTS = (
    "three.bundle.js",
    "data.js",
    "shapes.js",
    "supports.js",
    "joints.js",
    "vectors.js",
    "framing.js",
    "stage.js",
    "run.js",
    "quantities.js",
    "graphs.js",
    "pictures.js",
    "picking.js",
    "distance.js",
    "address.js",
    "posing.js",
    "controls.js",
    "main.js",
)
THEMES = ("auto", "light", "dark")


class View:
    """A motion as an HTML page, which notebooks display.

    `scene` contains the data of the page, `page` is its text, and `save` writes it.
    """

    def __init__(self, scene: dict[str, Any], height: int = 560):
        self.scene = scene
        self.height = height

    @property
    def page(self) -> str:
        """Text of the page with its scripts and data; nothing is loaded from elsewhere."""
        # `<` could end the script element, so it is escaped in the JSON text.
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
        """Write the page, completely or not at all.

        **Arguments:** `path`, such as `run.html`; `force`, replace an existing file.
        **Returns:** the path.
        **Errors:** `ValueError` for another suffix than `.html`; `FileExistsError` for an existing
        file without `force`; `OSError` for a path that cannot be written.
        """
        if pathlib.Path(path).suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"A view is a page: its path must end with .html; got {str(path)!r}.")
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
    traces: Mapping[str, float] | None = None,
    reactions: bool = False,
    frames: int = 601,
    members: int = 20,
    title: str = "",
    speed: float | None = None,
    theme: str = "auto",
    height: int = 560,
) -> View:
    """Show motions in three dimensions, in a notebook or as a self-contained page.

    A body is drawn with the shape that it was made with, otherwise as the sphere, cylinder or box
    of constant density that has its inertia. A body with a fixed point has no mass; its longest
    edge is 1 m.

    **Arguments:**

    - `items`, one or several, drawn over each other. An item is a `Solution` (of a batch the first
      member, and others faintly); a dataset of `rj.io` or the path of its file; a model, also one
      from a file, a system or a body with a fixed point, in `state`; a tuple of one of these with
      states and times; or a tuple of one of these with an `Ensemble` whose runs returned a
      `Solution`.
    - `labels`, one per item.
    - `state`, `ts`, for models among the items: a `State`, or a `State` with a leading time axis
      and the times, (T,) s. The default is the reference configuration. A mechanism at
      one time has a slider for each joint coordinate, unless it has loops or constraints.
    - `shapes`, by names of bodies: one or several of `box`, `cylinder`, `cone`, `sphere` and
      `ellipsoid` from `rigidjax.viewer`, a `Mesh`, or an STL or OBJ file in m, from the centre of
      mass, body components.
    - `quantities`, further graphs of the first item by name, (T,) at its saved times.
    - `traces`, lengths in s of the paths of `Frame`s and of centres of mass, by names of frames and
      bodies; infinity is the whole run. The default is whole paths of free ends, otherwise of few
      centres of mass.
    - `reactions`, whether to show the reactions of joints; with closed loops they take seconds to
      compile.
    - `frames`, maximum number of times; `members`, maximum number of batch members.
    - `title`: of the page.
    - `speed`, seconds of motion per second, by default 1 unless the run is very short or long;
      `theme`, `"auto"`, `"light"` or `"dark"`; `height`, in a notebook, pixels.

    **Returns:** a `View`: `.save("run.html")` writes it.
    **Errors:** `TypeError` for other items; `ValueError` for runs without times, and for arguments
    that contradict each other.
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
    names = labels or (["" for _ in items] if len(items) == 1 else _default_labels(items))
    runs: list[DisplayedRun] = []
    for item, label in zip(items, names, strict=True):
        if is_model(item):
            displayed = _reference_state(item) if state is None else state
            item = (item, displayed, *(() if ts is None else (ts,)))
        runs += runs_of(item, label, frames, members, reactions)
    for name, values in (quantities or {}).items():
        runs[0].graphs[name, ""] = _quantity(name, values, items[0], runs[0])
    scene = scene_of(runs, title, shapes, speed, theme)
    if traces is not None:
        scene["traces"] = _trace_lengths(traces, runs[0])
    return View(scene, height)


def _default_labels(items: Sequence[Any]) -> list[str]:
    return [
        os.path.basename(item) if isinstance(item, str | os.PathLike) else f"run {k + 1}"
        for k, item in enumerate(items)
    ]


def _reference_state(model: Any) -> State:
    if isinstance(model, Model):
        return model.state
    system = getattr(model, "system", model)
    return State() if isinstance(system, FixedPointBody) else system.reference_state()


def _trace_lengths(traces: Mapping[str, float], run: DisplayedRun) -> dict[str, float | str]:
    """Return the lengths of traces in seconds, `"run"` for the whole run."""
    mechanism = run.mechanism
    names = [part["name"] for part in (*mechanism["bodies"], *mechanism.get("frames", []))]
    if unknown := sorted(set(traces) - set(names)):
        raise ValueError(
            f"`view(traces=...)` names {unknown}; the bodies and frames of the first item are "
            f"{names}."
        )
    for name, seconds in traces.items():
        if not seconds >= 0:
            raise ValueError(
                f"`view(traces=...)` must have lengths of at least 0 s, `math.inf` for the whole "
                f"run; {name!r} has {seconds!r}."
            )
    return {name: float(s) if np.isfinite(s) else "run" for name, s in traces.items()}


def _quantity(name: str, values: ArrayInput, item: Any, run: DisplayedRun) -> np.ndarray:
    """Return a quantity at the times of a run, a subset of the saved times of the item."""
    samples = np.asarray(values, float)
    times = np.asarray(getattr(item, "ts", getattr(item, "time", run.times)), float)
    if times.ndim != 1 or samples.shape != times.shape:
        raise ValueError(
            f"`view(quantities=...)` must have a value at each of the {times.shape[-1]} saved "
            f"times of the first item; {name!r} has shape {samples.shape}."
        )
    return samples[np.searchsorted(np.where(np.isfinite(times), times, np.inf), run.times)]


def _static(name: str) -> str:
    return (importlib.resources.files("rigidjax.viewer") / "static" / name).read_text("utf-8")
