"""Figures of a fit: measured and fitted rates, residuals, what is known of two parameters."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..identification import Fit, Measurements
from ..simulate import simulate
from .style import AXES, GREY, PALETTE, figure_legend, new_figure, style

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
    """Measured and fitted values of the first sensor in every run, with their residuals.

    **Arguments:** `fit`; `measurements`, those it was made with; `title`; `moments`, labels of two
    fitted moments of inertia to be drawn against each other in a last panel; `prior`, other values
    of these two and their standard deviations, kg m^2, to be drawn there as well.
    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    panels = len(measurements) + (moments is not None)
    columns = min(3, panels)
    rows = -(-panels // columns)
    with style():
        figure = new_figure(1.0 + 3.6 * columns, 0.7 + 3.1 * rows)
        parts = figure.subfigures(rows, columns, squeeze=False, wspace=0.02, hspace=0.04).ravel()
        for b, run in enumerate(measurements):
            above, below = parts[b].subplots(2, 1, sharex=True, height_ratios=(3, 1))
            _draw_run(above, below, fit, run, b, first=b % columns == 0)
        if moments is not None:
            _draw_moments(parts[len(measurements)].subplots(), fit, moments, prior)
        if title:
            figure.suptitle(title, fontsize=12, x=0.01, ha="left")
        figure_legend(figure, parts[0].axes[:1], handlelength=1.2)
    return figure


def _draw_run(
    above: "Axes", below: "Axes", fit: Fit, run: Measurements, b: int, first: bool
) -> None:
    sensor = fit.sensors_by_run[b][0]
    ts, measured = np.asarray(run.ts), np.asarray(run.values[0])
    fine = np.linspace(ts[0], ts[-1], _POINTS)
    solution = simulate(fit.models[b], fit.states[b], fine[-1], t0=fine[0], ts=fine)
    predicted = jax.vmap(lambda t, y: sensor.predict(fit.models[b], t, y))(solution.ts, solution.ys)
    for k, channel in enumerate(sensor.channels):
        color = AXES[k % len(AXES)]
        above.plot(ts, measured[:, k], ".", color=color, ms=4, alpha=0.5, mew=0)
        above.plot(fine, np.asarray(predicted)[:, k], color=color, label=channel)
        below.plot(ts, fit.residuals[b][sensor.name][:, k], ".", color=color, ms=2.5, mew=0)
    rms = fit.rms_by_run[sensor.name][fit.run_names[b]]
    above.set_title(f"run {fit.run_names[b]}: rms {rms:.3g} {fit.sensor_units[sensor.name]}")
    below.axhline(0.0, color=GREY, lw=0.7)
    below.set_xlabel("time (s)")
    above.margins(x=0.02)
    if first:
        above.set_ylabel(fit.sensor_units[sensor.name])
        below.set_ylabel("residual")


def _draw_moments(
    ax: "Axes",
    fit: Fit,
    moments: tuple[str, str],
    prior: tuple[Sequence[float], Sequence[float]] | None,
) -> None:
    """Ellipse of one and two standard deviations, in g m^2, and the limit of a flat body."""
    i, j = (fit.labels.index(label) for label in moments)
    centre = 1e3 * fit.values[[i, j]]
    covariance = 1e6 * fit.covariance[np.ix_([i, j], [i, j])]
    angle = np.linspace(0, 2 * np.pi, 361)
    root = np.linalg.cholesky(covariance + 1e-12 * np.trace(covariance) * np.eye(2))
    circle = root @ np.stack([np.cos(angle), np.sin(angle)])
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
    third = _third_moment(fit, moments)
    if third is not None:
        x = np.array(ax.get_xlim())
        ax.fill_between(x, x - third, ax.get_ylim()[0], color="#DDDDDD", lw=0, zorder=0)
        ax.plot(x, x - third, color=GREY, lw=1.0, label="flat body; none beyond")
    ax.set_xlabel(f"{moments[0]} (g m$^2$)")
    ax.set_ylabel(f"{moments[1]} (g m$^2$)")
    correlation = fit.correlation(*moments)
    ax.set_title(f"Moments of inertia, correlation {correlation:.4f}")
    ax.legend(loc="upper left")


def _third_moment(fit: Fit, moments: tuple[str, str]) -> float | None:
    """The remaining moment in g m^2, if the first label is I1 and the second I2."""
    system: Any = fit.model.system
    if moments != ("I1", "I2"):
        return None
    return 1e3 * float(system.inertia[2])
