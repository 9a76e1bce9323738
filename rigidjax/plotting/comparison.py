"""Work against error of several formulations."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..problems import Comparison, Row
from .style import GREY, PALETTE, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "osD^vP*"


def plot_comparison(comparison: Comparison, title: str = "") -> "Figure":
    """Plot evaluations against error, and the work at equal error, one colour per formulation.

    Null-space formulations have filled markers, absolute ones dashed lines and hollow markers.

    **Arguments:** `comparison`, from `rj.problems.compare`; `title`, of the figure.
    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    with style():
        figure = new_figure(11.0, 5.4, title)
        left, right = figure.subplots(1, 2, width_ratios=(1.3, 1.0))
        looks = {row.label: _look(i, row) for i, row in enumerate(comparison.rows)}
        _draw_work_precision(left, comparison, looks)
        _draw_equal_work(right, comparison, looks)
    return figure


def _look(i: int, row: Row) -> dict[str, str]:
    absolute = row.label.startswith("absolute")
    color = PALETTE[i % len(PALETTE)]
    return {
        "color": color,
        "marker": _MARKERS[(i + i // len(PALETTE)) % len(_MARKERS)],
        "linestyle": "--" if absolute else "-",
        "markerfacecolor": "white" if absolute else color,
    }


def _draw_work_precision(
    ax: "Axes", comparison: Comparison, looks: dict[str, dict[str, Any]]
) -> None:
    for row in comparison.rows:
        good = np.isfinite(row.errors) & (row.errors > 0)
        ax.plot(row.errors[good], row.evaluations[good], ms=5.5, **looks[row.label])
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.invert_xaxis()
    ax.set_title("Work against error: lower right is better")
    ax.set_xlabel(f"error at {comparison.t1:g} s, against {comparison.reference}")
    ax.set_ylabel("evaluations of the right-hand side")


def _draw_equal_work(ax: "Axes", comparison: Comparison, looks: dict[str, dict[str, Any]]) -> None:
    rows = comparison.rows
    works = [row.work for row in rows if np.isfinite(row.work)]
    widest = max(works, default=1.0)
    for y, row in enumerate(rows):
        look = looks[row.label]
        if np.isfinite(row.work):
            ax.barh(
                y,
                row.work,
                height=0.6,
                color=look["markerfacecolor"],
                edgecolor=look["color"],
                linestyle=look["linestyle"],
            )
            text, end = f"{row.work:.2f}", row.work
        else:
            text, end = (row.failure and "ended early") or "too far off", 0.0
        ax.annotate(text, (end, y), (5, 0), textcoords="offset points", va="center")
        ax.plot(-0.035 * widest, y, clip_on=False, ms=6, **{**look, "linestyle": "none"})
    ax.axvline(1.0, color=GREY, lw=0.8)
    ax.set_xlim(0, 1.15 * widest)
    ax.set_yticks(range(len(rows)), [row.label for row in rows])
    ax.tick_params(axis="y", length=0, pad=14)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(f"relative to {rows[0].label}")
    ax.set_title("Evaluations for the same error")
