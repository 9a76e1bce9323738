"""The path of the body axes on the unit sphere."""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..rotations import euler_map
from ..simulate.solution import Solution
from .style import AXES, GREY

if TYPE_CHECKING:
    from mpl_toolkits.mplot3d import Axes3D

_ELEVATION, _AZIMUTH = 22.0, -52.0

# Longest path, in revolutions, that is drawn: a longer one would cover the sphere.
_REVOLUTIONS = 5.0


def draw_attitude(axes3d: "Axes3D", solution: Solution, body: int = 0) -> None:
    """Draw the paths of the tips of the three body axes on the unit sphere, space components.

    Paths fade towards the past and behind the sphere. Only the last five revolutions of a longer
    path are drawn.

    **Arguments:** `axes3d`, with projection `"3d"`; `solution`, with enough saved times; `body`,
    the index of the body.
    """
    # The type stubs of 3-D axes are incomplete.
    ax: Any = axes3d
    axes = np.asarray(jax.vmap(euler_map)(solution.states.orientation[:, body]))
    reached = np.isfinite(np.asarray(solution.ts))
    axes = axes[reached]
    view = _view_direction()
    _draw_sphere(ax)
    shortened = []
    for i, color in enumerate(AXES):
        path = axes[:, :, i]
        end = _last_revolutions(path)
        shortened += [f"$d_{i + 1}$"] if len(end) < len(path) else []
        _draw_path(ax, end, color, view)
        tip = path[-1]
        front = tip @ view > 0
        ax.plot(*np.stack([0 * tip, tip], 1), color=color, lw=1.6, alpha=1.0 if front else 0.45)
        ax.plot(*tip[:, None], "o", color=color, ms=5, alpha=1.0 if front else 0.45)
        ax.text(*(1.17 * tip), f"$d_{i + 1}$", color=color, ha="center", va="center", fontsize=11)
    ax.view_init(elev=_ELEVATION, azim=_AZIMUTH)
    ax.set_proj_type("ortho")
    ax.set_box_aspect((1, 1, 1), zoom=1.28)
    ax.set_axis_off()
    for setter in (ax.set_xlim, ax.set_ylim, ax.set_zlim):
        setter(-1, 1)
    ax.set_title("Body axes on the unit sphere")
    note = f"; of {', '.join(shortened)} the last {_REVOLUTIONS:g} turns" if shortened else ""
    ax.text2D(
        0.0, 0.0, f"paths fade into the past{note}", transform=ax.transAxes, color=GREY, va="bottom"
    )


def _last_revolutions(path: np.ndarray) -> np.ndarray:
    """Return the end of a path on the sphere, at most `_REVOLUTIONS` revolutions long."""
    lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
    to_the_end = np.cumsum(lengths[::-1])[::-1]
    first = np.searchsorted(-to_the_end, -2 * np.pi * _REVOLUTIONS)
    return path[first:]


def _draw_path(ax: Any, path: np.ndarray, color: str, view: np.ndarray) -> None:
    """Draw a line that fades with age and behind the sphere."""
    from matplotlib.colors import to_rgb
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    if len(path) < 2:
        return
    pieces = np.stack([path[:-1], path[1:]], axis=1)
    age = np.linspace(0.06, 1.0, len(pieces))
    front = pieces.mean(axis=1) @ view > 0
    colors = np.empty((len(pieces), 4))
    colors[:, :3] = to_rgb(color)
    colors[:, 3] = age * np.where(front, 1.0, 0.25)
    ax.add_collection3d(Line3DCollection(list(pieces), colors=colors, linewidths=1.1))


def _draw_sphere(ax: Any) -> None:
    """Draw the outline and the equator of the sphere, and the axes of space."""
    angle = np.linspace(0, 2 * np.pi, 181)
    circle = np.stack([np.cos(angle), np.sin(angle), 0 * angle])
    view = _view_direction()
    side = np.cross(view, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side)
    up = np.cross(side, view)
    outline = side[:, None] * circle[0] + up[:, None] * circle[1]
    ax.plot(*outline, color="#BBBBBB", lw=0.9)
    front = view @ circle > 0
    for visible, style in ((front, "-"), (~front, ":")):
        ax.plot(*np.where(visible, circle, np.nan), color="#CCCCCC", lw=0.8, ls=style)
    for i, name in enumerate("xyz"):
        tip = np.eye(3)[i]
        ax.plot(*np.stack([tip, 1.25 * tip], 1), color=GREY, lw=0.8)
        ax.text(*(1.36 * tip), name, color=GREY, ha="center", va="center", fontsize=8.5)


def _view_direction() -> np.ndarray:
    elevation, azimuth = np.radians([_ELEVATION, _AZIMUTH])
    return np.array(
        [
            np.cos(elevation) * np.cos(azimuth),
            np.cos(elevation) * np.sin(azimuth),
            np.sin(elevation),
        ]
    )
