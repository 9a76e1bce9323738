"""Figures of the motion of several bodies."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..simulate.solution import Solution
from .style import GREY, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from mpl_toolkits.mplot3d import Axes3D

# Largest number of bodies with a legend; a longer one would hide the plot.
_MOST_NAMES = 10


def draw_paths(axes3d: "Axes3D", solution: Solution) -> None:
    """Draw the paths of all centres of mass, from rings to dots, with equal scales on all axes.

    **Arguments:** `axes3d`, with projection `"3d"`; `solution`, with enough saved times.
    """
    # The type stubs of 3-D axes are incomplete.
    ax: Any = axes3d
    x = np.asarray(solution.states.position)[np.isfinite(np.asarray(solution.ts))]
    for i, color in enumerate(body_colors(x.shape[1])):
        ax.plot(*x[:, i].T, color=color, lw=1.1)
        ax.plot(*x[:1, i].T, "o", color="white", mec=color, ms=4)
        ax.plot(*x[-1:, i].T, "o", color=color, ms=5)
    low, high = x.min(axis=(0, 1)), x.max(axis=(0, 1))
    middle, half = (low + high) / 2, max(float(np.max(high - low)) / 2, 1e-3)
    for axis, setter in enumerate((ax.set_xlim, ax.set_ylim, ax.set_zlim)):
        setter(middle[axis] - half, middle[axis] + half)
    ax.set_box_aspect((1, 1, 1))
    ax.set_proj_type("ortho")
    ax.tick_params(labelsize=7)
    for label, setter in zip("xyz", (ax.set_xlabel, ax.set_ylabel, ax.set_zlabel), strict=True):
        setter(f"{label} (m)")
    ax.set_title("Paths of the centres of mass")
    ax.text2D(0.0, 0.0, "from rings to dots", transform=ax.transAxes, color=GREY, va="bottom")


def draw_speeds(ax: "Axes", solution: Solution) -> None:
    """Draw the angular speeds of all bodies over time."""
    ts = np.asarray(solution.ts)
    reached = np.isfinite(ts)
    omega = np.asarray(solution.states.angular_velocity)[reached]
    speed = np.sqrt(np.sum(omega * omega, axis=-1))
    names = [body.name for body in solution.model.multibody.bodies]
    for i, color in enumerate(body_colors(len(names))):
        ax.plot(ts[reached], speed[:, i], color=color, label=names[i])
    ax.set_title("Angular speed")
    ax.set_ylabel("rad/s")
    ax.set_xlabel("time (s)")
    ax.margins(x=0)
    if len(names) <= _MOST_NAMES:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.2)


def body_colors(count: int) -> list[Any]:
    """Return a colour for each of `count` bodies, from a colour map if there are many."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    from matplotlib import colormaps

    return list(colormaps["viridis"](np.linspace(0.0, 0.9, count)))
