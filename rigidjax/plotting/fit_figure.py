"""Figures of a fit: measured and fitted values, residuals, and the ellipse of two parameters."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..identification import (
    Experiment,
    Fit,
    IntervalTable,
    Measurements,
    Simulation,
    interval_table,
)
from ..identification.experiment.inputs import pad_rows
from ..identification.result.predictions import read_run
from ..identification.result.result import LEVEL
from ..results import RESULTS, SimulationError
from .residuals import draw_run
from .style import GREY, PALETTE, figure_legend, new_figure, run_panels, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 301


def plot_fit(
    fit: Fit,
    measurements: Sequence[Measurements],
    title: str = "",
    moments: tuple[str, str] | None = None,
    prior: tuple[Sequence[float], Sequence[float]] | None = None,
) -> "Figure":
    """Plot measured and fitted values of the first sensor in every run, with their residuals.

    **Arguments:** `fit`, to draw; `measurements`, those of the fit; `title`, of the figure;
    `moments`, labels of two fitted moments of inertia, which are plotted against each other in a
    last panel; `prior`, values and standard deviations of these two from another source, kg m^2,
    for the same panel.
    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    with style():
        height = 0.8 + 1.7 * len(fit.sensors[0].channels)
        figure, parts = run_panels(len(measurements) + (moments is not None), title, height)
        # Times of the samples and times between them.
        times = [np.union1d(r.ts, np.linspace(r.ts[0], r.ts[-1], _POINTS)) for r in measurements]
        length = max(map(len, times))
        for b, (run, ts) in enumerate(zip(measurements, times, strict=True)):
            # One compiled simulation serves all runs: their times are padded to equal length.
            predicted = _predict(fit, b, pad_rows(ts, length))[: len(ts)]
            draw_run(parts[b], fit, run, b, 0, ts, predicted)
        if moments is not None:
            _draw_moments(parts[len(measurements)].subplots(), fit, moments, prior)
    return figure


def _predict(fit: Fit, b: int, ts: np.ndarray) -> np.ndarray:
    """Return the readings of the first sensor that the fit predicts for its run `b`."""
    experiment = Experiment(fit.models[b], fit.states[b], fit.sensors_by_run[b][:1])
    (readings,), result = read_run(
        experiment, ts, Simulation(max_steps=100_000).with_defaults(ts.dtype)
    )
    if result != RESULTS.successful:
        raise SimulationError(RESULTS[result])
    return np.asarray(readings)


def _draw_moments(
    ax: "Axes",
    fit: Fit,
    moments: tuple[str, str],
    prior: tuple[Sequence[float], Sequence[float]] | None,
) -> None:
    """Draw ellipses of one and two standard deviations, g m^2, and the limit of a flat body."""
    i, j = (fit.labels.index(label) for label in moments)
    centre = 1e3 * fit.values[[i, j]]
    covariance = 1e6 * fit.covariance[np.ix_([i, j], [i, j])]
    angle = np.linspace(0, 2 * np.pi, 361)
    factor = np.linalg.cholesky(covariance + 1e-12 * np.trace(covariance) * np.eye(2))
    circle = factor @ np.stack([np.cos(angle), np.sin(angle)])
    for scale, alpha in ((2.0, 0.25), (1.0, 0.6)):
        ax.fill(*(centre[:, None] + scale * circle), color=PALETTE[0], alpha=alpha, lw=1.5)
    ax.plot(*centre, "o", color=PALETTE[0], ms=5, label="fit, 1 and 2 std")
    spread = 2.6 * np.sqrt(np.diag(covariance))
    if prior is not None:
        values, deviations = (1e3 * np.asarray(x, float) for x in prior)
        ax.errorbar(
            *values[:, None],
            xerr=deviations[:1],
            yerr=deviations[1:],
            fmt="s",
            color=PALETTE[1],
            ms=5,
            lw=1.0,
            capsize=3,
            label="measured otherwise",
        )
        spread = np.maximum(spread, 1.15 * (np.abs(values - centre) + deviations))
    ax.set_xlim(centre[0] - spread[0], centre[0] + spread[0])
    ax.set_ylim(centre[1] - spread[1], centre[1] + spread[1])
    if moments == ("I1", "I2"):
        system: Any = fit.model.system
        third = 1e3 * float(system.inertia[2])
        x = np.array(ax.get_xlim())
        ax.fill_between(x, x - third, ax.get_ylim()[0], color="#DDDDDD", lw=0, zorder=0)
        ax.plot(x, x - third, color=GREY, lw=1.0, label="flat body; none beyond")
    ax.set_xlabel(f"{moments[0]} (g m$^2$)")
    ax.set_ylabel(f"{moments[1]} (g m$^2$)")
    correlation = fit.correlation(*moments)
    ax.set_title(f"Moments of inertia, correlation {correlation:.4f}")
    ax.legend(loc="upper left")


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AS_TITLE: dict[str, Any] = {"fontsize": 10, "fontweight": "bold"}

# Largest number of parameters for which the matrix shows numbers.
_NUMBERS = 10

# Sizes in inches: cells with and without a number, a letter, the colour bar, a margin, the title.
_CELL, _SMALL_CELL, _LETTER, _BAR, _MARGIN, _TITLE = 0.45, 0.28, 0.075, 1.3, 0.6, 3.6


def plot_intervals(fit: Fit, level: float = LEVEL, table: IntervalTable | None = None) -> "Figure":
    """Plot the intervals of all parameters by all methods, in standard deviations of the fit.

    **Arguments:** `fit`, with the estimates; `level`, of the intervals; `table`, from
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
