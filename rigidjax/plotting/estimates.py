"""Figures of the confidence intervals and the correlations of estimates."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..identification import Fit, IntervalTable, interval_table
from ..identification.result.result import LEVEL
from .style import GREY, PALETTE, figure_legend, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AS_TITLE: dict[str, Any] = {"fontsize": 10, "fontweight": "bold"}

# Largest number of parameters for which the matrix shows numbers.
_NUMBERS = 10

# Sizes in inches: cells with and without a number, a letter, the colour bar, a margin, the title.
_CELL, _SMALL_CELL, _LETTER, _BAR, _MARGIN, _TITLE = 0.45, 0.28, 0.075, 1.3, 0.6, 3.6


def plot_intervals(fit: Fit, level: float = LEVEL, table: IntervalTable | None = None) -> "Figure":
    """Plot the intervals of all parameters by all methods, in standard deviations of the fit.

    **Arguments:** `fit`; `level` of the intervals; `table`, from
    `rigidjax.identification.interval_table` at this level, by default that of the fit alone.
    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    table = interval_table(fit, level=level) if table is None else table
    count, methods = len(fit.labels), list(table.intervals)
    gap = 0.7 / len(methods)
    with style():
        figure = new_figure(6.4, 1.2 + (0.2 + 0.12 * len(methods)) * count)
        ax = figure.subplots()
        beside = ax.get_yaxis_transform()
        for row, (label, value) in enumerate(fit.estimates.items()):
            std = fit.std[label]
            if not (np.isfinite(std) and std > 0):
                ax.text(0, row, "not determined", va="center", ha="center", color=GREY, fontsize=8)
                continue
            for m, method in enumerate(methods):
                if label in table.intervals[method]:
                    ends = (np.array(table.intervals[method][label]) - value) / std
                    y = row + gap * (m - 0.5 * (len(methods) - 1))
                    width = 2.4 if table.trusted[label] == method else 1.0
                    ax.plot(ends, [y, y], "|-", color=PALETTE[m % len(PALETTE)], lw=width, ms=7)
            low, high = table.trusted_intervals[label]
            if value and np.isfinite(high - low):
                text = f"± {50 * (high - low) / abs(value):.2g} %"
                ax.text(1.01, row, text, va="center", transform=beside, fontsize=8)
        for m, method in enumerate(methods):
            ax.plot([], [], color=PALETTE[m % len(PALETTE)], label=method)
        ax.axvline(0.0, color=GREY, lw=0.7)
        ax.set_yticks(range(count), list(fit.labels))
        ax.set_ylim(count - 0.5, -0.5)
        ax.set_xlabel("difference from the estimate (standard deviations)")
        ax.set_title(f"{100 * level:g} % intervals; use the thick ones")
        figure_legend(figure, [ax])
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
