"""Figures of a motion."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..mechanics import has_joints
from ..simulate.solution import Solution
from .attitude import draw_attitude
from .multibody import draw_paths, draw_speeds
from .style import AXES, PALETTE, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_motion(solution: Solution, title: str = "", body: int = 0) -> "Figure":
    """Plot attitude on the sphere, angular velocity, energy and drift of a trajectory.

    For several bodies, or with joints, the paths of the centres of mass and the angular speeds of
    all bodies replace the first two.

    **Arguments:** `solution`, not batched, with enough saved times; `title`; `body`, the index of
    the body.
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
            draw_paths(space, solution)
            draw_speeds(rates, solution)
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
