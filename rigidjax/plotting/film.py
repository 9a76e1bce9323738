"""Filmstrips of motions for papers, and animated GIFs."""

import colorsys
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..io import replacing
from ..io.mechanism import rotation_of
from ..viewer import View, view
from ..viewer.scene import decode_array
from .style import GREY, PALETTE, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Faces around an axis of revolution.
_AROUND = 24


def plot_filmstrip(motion: Any, count: int = 5, title: str = "") -> "Figure":
    """Plot a motion at equidistant times side by side, with the paths of the centres of mass.

    The projection is parallel, along the initial direction of the viewer.

    **Arguments:** `motion`, an argument of `rj.view`, or a `View`, whose first run is drawn;
    `count`, of pictures; `title`, of the figure.
    **Returns:** a matplotlib `Figure`; see `save_figure`.
    **Errors:** `ValueError` for less than one picture; those of `rj.view`.
    """
    if count < 1:
        raise ValueError(f"`plot_filmstrip(count=...)` must be 1 or more; got {count}.")
    film = _Film(motion)
    wide, high = film.extent
    with style():
        width = min(2.6, 11.0 / count)
        height = width * min(max(high / wide, 0.4), 2.2) + 0.5
        figure = new_figure(count * width, height, title)
        for k, time in enumerate(np.linspace(film.times[0], film.times[-1], count)):
            ax = figure.add_subplot(1, count, k + 1)
            film.draw(ax, time)
            ax.set_title(f"{time:.3g} s", loc="center", fontweight="normal")
    return figure


def save_animation(
    motion: Any,
    path: str | os.PathLike[str],
    *,
    fps: int = 20,
    width: float = 4.8,
    force: bool = False,
) -> pathlib.Path:
    """Write a motion as an animated GIF that repeats, at the speed of the viewer.

    **Arguments:** `motion`, as for `plot_filmstrip`; `path`, such as `run.gif`; `fps`, pictures per
    second, at most 50; `width`, inches of 100 pixels; `force`, replace an existing file.
    **Returns:** the path.
    **Errors:** `FileExistsError` for an existing file without `force`; `ValueError` for another
    suffix, for an invalid `fps`, and for a motion with a single time.
    """
    if pathlib.Path(path).suffix.lower() != ".gif":
        raise ValueError(f"`save_animation` writes .gif; got {path}. Change the suffix.")
    if not 1 <= fps <= 50:
        raise ValueError(f"`save_animation(fps=...)` must be from 1 to 50; got {fps}.")
    film = _Film(motion)
    duration = (film.times[-1] - film.times[0]) / film.speed
    if not duration > 0:
        raise ValueError("`save_animation` needs a motion with more than one time.")
    wide, high = film.extent
    pictures = []
    with replacing(path, force) as temporary, style():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from PIL import Image

        figure = new_figure(width, width * min(max(high / wide, 0.4), 1.5))
        canvas = FigureCanvasAgg(figure)
        figure.set_dpi(100)
        ax = figure.add_subplot()
        for time in np.linspace(film.times[0], film.times[-1], max(2, round(duration * fps))):
            ax.clear()
            film.draw(ax, time)
            canvas.draw()
            picture = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
            pictures.append(picture.quantize(64, dither=Image.Dither.NONE))
        options = {"save_all": True, "duration": round(1000 / fps), "loop": 0}
        pictures[0].save(temporary, format="GIF", append_images=pictures[1:], **options)
    return pathlib.Path(path)


ENDS = ("parent", "child")


class _Film:
    """Projections of a run: across, upwards and towards the eye."""

    def __init__(self, motion: Any):
        scene = (motion if isinstance(motion, View) else view(motion)).scene
        run = scene["runs"][0]
        self.times = decode_array(run["times"])
        self.speed = scene["speed"]
        poses = decode_array(run["poses"]).astype(float)
        self.positions, self.orientations = poses[..., :3], poses[..., 3:]
        camera = scene["camera"]
        toward, up = np.array(camera["direction"]), np.array(camera["up"])
        right = np.cross(up, toward)
        right /= np.linalg.norm(right)
        self.eye = np.stack([right, np.cross(toward, right), toward])
        self.middle = self.eye @ np.array(camera["center"])
        self.extent = np.abs(self.eye[:2]) @ np.array(camera["size"])
        meshes = scene.get("meshes", ())
        self.faces = [
            [faces_of(shape, meshes) for shape in body["shapes"]] for body in run["bodies"]
        ]
        self.springs = run["springs"]
        self.joints = [(joint["child"], joint["child_point"]) for joint in run["joints"]]

    def draw(self, ax: "Axes", time: float) -> None:
        """Draw the bodies, springs and joints at the saved time nearest to `time`."""
        from matplotlib.collections import PolyCollection

        row = int(np.argmin(np.abs(self.times - time)))
        polygons, colors, depths = [], [], []
        for i, parts in enumerate(self.faces):
            rotation = self.eye @ rotation_of(self.orientations[row, i])
            color = PALETTE[i % (len(PALETTE) - 1)]
            path = self.positions[: row + 1, i] @ self.eye.T
            ax.plot(*path.T[:2], color=color, lw=0.8, alpha=0.45, zorder=1)
            for faces, is_closed in parts:
                corners = faces @ rotation.T + self.eye @ self.positions[row, i]
                normals = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
                normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
                front = normals[:, 2] > 0 if is_closed else np.full(len(faces), True)
                light = np.abs(normals[front] @ (-0.35, 0.6, 0.72))
                polygons += list(corners[front, :, :2])
                colors += [_shade(color, value) for value in light]
                depths += list(corners[front, :, 2].mean(axis=1))
        order = np.argsort(depths)
        surfaces = PolyCollection(
            [polygons[k] for k in order], facecolors=[colors[k] for k in order], lw=0.3, zorder=2
        )
        surfaces.set_edgecolor(surfaces.get_facecolor())
        ax.add_collection(surfaces)
        for spring in self.springs:
            ends = [self._project(row, spring[end], spring[f"{end}_point"]) for end in ENDS]
            dashes = "-" if spring.get("is_cord") else (0, (1.5, 1))
            ax.plot(*np.array(ends).T[:2], color=GREY, lw=1.0, ls=dashes, zorder=1)
        for body, point in self.joints:
            position = self._project(row, body, point)
            ax.plot(*position[:2], "o", color="white", mec="#333333", ms=3.2, mew=0.8, zorder=3)
        wide, high = 0.53 * self.extent
        ax.set_xlim(self.middle[0] - wide, self.middle[0] + wide)
        ax.set_ylim(self.middle[1] - high, self.middle[1] + high)
        ax.set_aspect("equal")
        ax.axis("off")

    def _project(self, row: int, body: int, point: list[float]) -> np.ndarray:
        """Return the position in the picture of a point of a body or of the ground."""
        if body < 0:
            return self.eye @ np.array(point)
        arm = rotation_of(self.orientations[row, body]) @ np.array(point)
        return self.eye @ (self.positions[row, body] + arm)


def _shade(color: str, light: float) -> tuple[float, float, float]:
    """Return a colour in red, green and blue, darker for less light."""
    red, green, blue = (int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    return colorsys.hls_to_rgb(hue, min(1.0, lightness * (0.55 + 0.65 * light)), saturation)


def faces_of(
    shape: Mapping[str, Any], meshes: Sequence[Mapping[str, Any]] = ()
) -> tuple[np.ndarray, bool]:
    """Return the faces (F, 4, 3) m of a shape, body components, and whether they are closed.

    Corners run counterclockwise as seen from outside; triangles repeat a corner. `meshes` are the
    meshes of the scene.
    """
    size = shape["size"]
    match shape["kind"]:
        case "mesh":
            triangles = decode_array(meshes[shape["mesh"]]).reshape(-1, 3, 3)
            return np.concatenate([triangles, triangles[:, 2:]], axis=1), False
        case "box":
            faces = _box(size)
        case "sphere":
            faces = _revolve(*_arc(size * 3))
        case "ellipsoid":
            faces = _revolve(*_arc((1.0, 1.0, 1.0))) * np.array(size)
        case "cone":  # its apex is at the negative end
            faces = _revolve(np.array([0, size[0], 0]), size[1] * np.array([-0.5, 0.5, 0.5]))
        case _:
            radius, half = size[0], 0.5 * size[1]
            faces = _revolve(np.array([0, radius, radius, 0]), np.array([-half, -half, half, half]))
    return faces @ rotation_of(shape["orientation"]).T + np.array(shape["position"]), True


def _box(size: Sequence[float]) -> np.ndarray:
    faces = []
    for axis in range(3):
        for side in (-1, 1):
            ring = [(-1, -1), (1, -1), (1, 1), (-1, 1)][::side]
            corners = np.empty((4, 3))
            corners[:, axis] = side
            corners[:, (axis + 1) % 3], corners[:, (axis + 2) % 3] = np.array(ring).T
            faces.append(corners)
    return np.array(faces) * 0.5 * np.array(size)


def _arc(radii: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 13)
    return radii[0] * np.cos(angles), radii[2] * np.sin(angles)


def _revolve(radii: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Return the faces of the surface of revolution of a line about the third axis."""
    angles = np.linspace(0.0, 2 * np.pi, _AROUND + 1)
    grid = np.stack(
        [
            np.outer(np.cos(angles), radii),
            np.outer(np.sin(angles), radii),
            np.broadcast_to(heights, (_AROUND + 1, len(heights))),
        ],
        axis=-1,
    )
    around = grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]
    return np.stack(around, axis=2).reshape(-1, 4, 3)
