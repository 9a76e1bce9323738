"""Figures of a motion."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..mechanics import has_joints
from ..simulate.solution import Solution
from .attitude import draw_attitude
from .style import AXES, GREY, PALETTE, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d import Axes3D

# Largest number of bodies with a legend; a longer one would hide the plot.
_MOST_NAMES = 10


def plot_motion(solution: Solution, title: str = "", body: int = 0) -> "Figure":
    """Plot attitude on the sphere, angular velocity, energy and drift of a trajectory.

    For several bodies, or with joints, the paths of the centres of mass and the angular speeds of
    all bodies replace the first two.

    **Arguments:** `solution`, not batched, with enough saved times; `title`, of the figure; `body`,
    the index of the body.
    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    with style():
        figure = new_figure(11.0, 6.2, title)
        grid = figure.add_gridspec(3, 2, width_ratios=(1.15, 1.0), height_ratios=(1.5, 1, 1))
        space: Any = figure.add_subplot(grid[:, 0], projection="3d")
        rates = figure.add_subplot(grid[0, 1])
        energy = figure.add_subplot(grid[1, 1], sharex=rates)
        drift = figure.add_subplot(grid[2, 1], sharex=rates)
        if has_joints(solution.model.system) or solution.model.layout.num_bodies > 1:
            _draw_paths(space, solution)
            _draw_speeds(rates, solution)
        else:
            draw_attitude(space, solution, body)
            draw_rates(rates, solution, body)
        draw_energy(energy, solution)
        draw_drift(drift, solution)
        for ax in (rates, energy):
            ax.tick_params(labelbottom=False)
            ax.set_xlabel("")
    return figure


def draw_rates(ax: "Axes", solution: Solution, body: int = 0) -> None:
    """Draw the angular velocity in body components over time."""
    ts, reached = _times(solution)
    omega = np.asarray(solution.states.angular_velocity)[reached, body]
    for i, color in enumerate(AXES):
        ax.plot(ts, omega[:, i], color=color, label=rf"$\Omega_{i + 1}$")
    ax.set_title("Angular velocity, body components")
    ax.set_ylabel("rad/s")
    ax.set_xlabel("time (s)")
    ax.margins(x=0)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.2)


def draw_energy(ax: "Axes", solution: Solution) -> None:
    """Draw the relative change of the total energy over time."""
    ts, reached = _times(solution)
    energy = np.asarray(solution.energy)[reached]
    scale = abs(energy[0]) if energy[0] != 0 else 1.0
    ax.plot(ts, (energy - energy[0]) / scale, color=PALETTE[0], lw=0.9)
    unit = f"{energy[0]:.4g} J" if energy[0] != 0 else "1 J"
    ax.set_title(f"Change of energy, in units of {unit}")
    ax.set_xlabel("time (s)")
    ax.margins(x=0)
    ax.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2))


def draw_drift(ax: "Axes", solution: Solution) -> None:
    """Draw the violations of all constraints over time, on a logarithmic scale."""
    ts, reached = _times(solution)
    ax.set_title("Violation of the constraints")
    ax.set_xlabel("time (s)")
    ax.margins(x=0)
    if solution.model.rotation.num_constraints == 0 and not has_joints(solution.model.system):
        ax.text(
            0.5, 0.5, "none: minimal coordinates", transform=ax.transAxes, ha="center", va="center"
        )
        ax.set_yticks([])
        return
    drifts = (
        ("position", solution.position_drift, PALETTE[2]),
        ("velocity (1/s)", solution.velocity_drift, PALETTE[3]),
    )
    # Dots, because lines through round-off would be nearly vertical.
    dots: dict[str, Any] = {"marker": ".", "ms": 2.5, "mew": 0, "linestyle": "none"}
    for name, drift, color in drifts:
        values = np.asarray(drift)[reached]
        # Exact zeros have no logarithm.
        ax.plot(ts, np.where(values > 0, values, np.nan), color=color, label=name, **dots)
    ax.set_yscale("log")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=4)


def _times(solution: Solution) -> tuple[np.ndarray, np.ndarray]:
    """Return the saved times that were reached, and their mask."""
    ts = np.asarray(solution.ts)
    reached = np.isfinite(ts)
    return ts[reached], reached


def _draw_paths(axes3d: "Axes3D", solution: Solution) -> None:
    """Draw the paths of all centres of mass, from rings to dots, with equal scales on all axes.

    **Arguments:** `axes3d`, with projection `"3d"`; `solution`, with enough saved times.
    """
    # The type stubs of 3-D axes are incomplete.
    ax: Any = axes3d
    x = np.asarray(solution.states.position)[np.isfinite(np.asarray(solution.ts))]
    for i, color in enumerate(_body_colors(x.shape[1])):
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


def _draw_speeds(ax: "Axes", solution: Solution) -> None:
    """Draw the angular speeds of all bodies over time."""
    ts, reached = _times(solution)
    omega = np.asarray(solution.states.angular_velocity)[reached]
    speed = np.sqrt(np.sum(omega * omega, axis=-1))
    names = [body.name for body in solution.model.multibody.bodies]
    for i, color in enumerate(_body_colors(len(names))):
        ax.plot(ts, speed[:, i], color=color, label=names[i])
    ax.set_title("Angular speed")
    ax.set_ylabel("rad/s")
    ax.set_xlabel("time (s)")
    ax.margins(x=0)
    if len(names) <= _MOST_NAMES:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.2)


def _body_colors(count: int) -> list[Any]:
    """Return a colour for each of `count` bodies, from a colour map if there are many."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    from matplotlib import colormaps

    return list(colormaps["viridis"](np.linspace(0.0, 0.9, count)))
