"""Figures of the confidence intervals and the correlations of estimates."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..identification import Fit
from ..identification.statistics.digits import interval_text, std_text
from .style import GREY, PALETTE, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AS_TITLE: dict[str, Any] = {"fontsize": 10, "fontweight": "bold"}

# Largest number of parameters for which the matrix shows numbers.
_NUMBERS = 10

# Sizes in inches: cells with and without a number, a letter, the colour bar, a margin, the title.
_CELL, _SMALL_CELL, _LETTER, _BAR, _MARGIN, _TITLE = 0.45, 0.28, 0.075, 1.3, 0.6, 3.6


def plot_intervals(fit: Fit, level: float = 0.95) -> "Figure":
    """Plot the confidence intervals of all parameters relative to the estimates, in percent.

    **Arguments:** `fit`; `level` of the intervals.
    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    count = len(fit.labels)
    with style():
        figure = new_figure(6.4, 1.0 + 0.26 * count)
        ax = figure.subplots()
        beside, intervals = ax.get_yaxis_transform(), fit.confidence_intervals(level)
        widest, bounds = 0.0, {b.label: b for b in fit.bounds}
        for row, (label, value) in enumerate(fit.estimates.items()):
            if label in bounds and np.isfinite(bounds[label].std):
                side = "lower" if bounds[label].is_lower else "upper"
                text = f"on its {side} bound: {interval_text(intervals[label])}"
                ax.text(0, row, text, va="center", ha="center", color=GREY, fontsize=8)
                continue
            half = intervals[label][1] - value
            if not np.isfinite(half) or value == 0:
                text = "not determined" if not np.isfinite(half) else f"0 ± {std_text(half)}"
                ax.text(0, row, text, va="center", ha="center", color=GREY, fontsize=8)
                continue
            percent = 100 * half / abs(value)
            widest = max(widest, percent)
            ax.errorbar(0, row, xerr=percent, fmt="o", color=PALETTE[0], ms=4, capsize=3, lw=1.3)
            ax.text(1.01, row, f"± {percent:.2g} %", va="center", transform=beside, fontsize=8)
        ax.axvline(0.0, color=GREY, lw=0.7)
        ax.set_yticks(range(count), list(fit.labels))
        ax.set_ylim(count - 0.5, -0.5)
        if widest > 1.0:
            ax.set_xscale("symlog", linthresh=1.0)
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set_xlabel("relative to the estimate (%; linear within ± 1 %, logarithmic beyond)")
        else:
            ax.set_xlabel("relative to the estimate (%)")
        ax.set_title(f"{100 * level:g} % confidence intervals")
    return figure


def plot_correlations(fit: Fit) -> "Figure":
    """Plot the correlations of all estimates as a matrix of colours.

    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    count = len(fit.labels)
    with style():
        # Room for names on two sides, and for a number in every cell if there are numbers.
        names = _LETTER * max(map(len, fit.labels))
        size = names + count * (_CELL if count <= _NUMBERS else _SMALL_CELL)
        figure = new_figure(max(size + _BAR, _TITLE), size + _MARGIN)
        ax = figure.subplots()
        image = ax.imshow(fit.correlations, cmap="RdBu_r", vmin=-1, vmax=1)
        ax.grid(False)
        ax.set_xticks(range(count), list(fit.labels), rotation=90)
        ax.set_yticks(range(count), list(fit.labels))
        if count <= _NUMBERS:
            for i in range(count):
                for j in range(count):
                    c = fit.correlations[i, j]
                    color = "white" if abs(c) > 0.6 else "black"
                    ax.text(j, i, f"{c:.2f}", ha="center", va="center", color=color, fontsize=7)
        figure.colorbar(image, ax=ax, shrink=0.8)
        # A title of the figure, because the axes may be narrower than the text.
        figure.suptitle("Correlations of the estimates", x=0.02, ha="left", **_AS_TITLE)
    return figure
