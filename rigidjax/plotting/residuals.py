"""Figures of what was measured and predicted, and of what is left."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..identification import Fit, Measurements
from .style import AXES, GREY, PALETTE, figure_legend, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Runs and lags in one figure.
_RUNS = 12
_LAGS = 25


def plot_predictions(
    fit: Fit,
    measurements: Sequence[Measurements],
    predictions: Sequence[Mapping[str, np.ndarray]],
    sensor: int,
) -> "Figure":
    """Measured and predicted values of one sensor, and its residuals, in the first twelve runs.

    **Arguments:** `fit`; `measurements`, those it was made with; `predictions`, see
    `rigidjax.identification.predictions`; `sensor`, its number.
    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    count = min(len(measurements), _RUNS)
    columns = min(3, count)
    rows = -(-count // columns)
    with style():
        figure = new_figure(1.0 + 3.6 * max(columns, 2), 0.4 + 3.0 * rows)
        parts = figure.subfigures(rows, columns, squeeze=False, wspace=0.02, hspace=0.04).ravel()
        for b in range(count):
            above, below = parts[b].subplots(2, 1, sharex=True, height_ratios=(3, 1))
            _draw_run(above, below, fit, measurements[b], predictions[b], sensor, b)
        figure_legend(figure, parts[0].axes, markerscale=3)
    return figure


def _draw_run(above: Any, below: Any, fit, run, predicted, k, b):
    sensor = fit.sensors[k]
    ts, lines = np.asarray(run.ts), predicted[sensor.name].reshape(len(run.ts), -1)
    dots = np.array(np.asarray(run.values[k]).reshape(lines.shape))
    used: Any = np.asarray(run.mask[k])
    if used.shape != dots.shape:
        used = np.broadcast_to(used.any(axis=1)[:, None], dots.shape)
        # A quaternion and its negative are the same orientation.
        dots = dots * np.where(np.sum(dots * lines, axis=1, keepdims=True) < 0, -1.0, 1.0)
    dots[~used] = np.nan
    # Four numbers of an orientation, of which the residual has three.
    labels = [f"q{c}" for c in range(4)] if sensor.value_shape == (4,) else [None] * lines.shape[1]
    for c, label in enumerate(labels):
        above.plot(ts, dots[:, c], ".", color=_color(c), ms=4, alpha=0.5, mew=0)
        above.plot(ts, lines[:, c], color=_color(c), label=label)
    residuals = fit.residuals[b][sensor.name]
    for c, channel in enumerate(sensor.channels):
        below.plot(ts, residuals[:, c], ".", color=_color(c), ms=2.5, mew=0, label=channel)
    below.axhline(0.0, color=GREY, lw=0.7)
    below.set_xlabel("time (s)")
    above.margins(x=0.02)
    name = fit.run_names[b]
    unit = fit.sensor_units[sensor.name]
    above.set_title(f"run {name}: rms {fit.rms_by_run[sensor.name][name]:.3g} {unit}")
    above.set_ylabel("unit quaternion" if sensor.value_shape == (4,) else unit)
    below.set_ylabel("residual")


def plot_autocorrelation(fit: Fit) -> "Figure":
    """Correlation of the residuals of every sensor with those k samples before, by channel.

    The band is where 95 % of the values of white noise are.
    """
    with style():
        count = len(fit.sensors)
        figure = new_figure(4.6 * min(count, 2), 2.5 * -(-count // 2))
        axes = figure.subplots(-(-count // 2), min(count, 2), squeeze=False).ravel()
        for ax, sensor in zip(axes, fit.sensors, strict=False):
            size = 0
            for c, channel in enumerate(sensor.channels):
                series = [r[sensor.name][:, c] for r in fit.residuals]
                series = [r[np.isfinite(r)] for r in series]
                values = _correlations(series)
                size = max(size, sum(map(len, series)))
                ax.plot(1 + np.arange(len(values)), values, ".-", color=_color(c), label=channel)
            band = 1.96 / np.sqrt(max(size, 1))
            ax.axhspan(-band, band, color="#E6E6E6", lw=0, zorder=0)
            ax.axhline(0.0, color=GREY, lw=0.7)
            ax.set_title(sensor.name)
            ax.set_xlabel("lag (samples)")
            ax.set_ylabel("correlation")
            ax.legend(ncols=3)
        for ax in axes[count:]:
            ax.set_visible(False)
    return figure


def _correlations(series):
    total = float(sum(r @ r for r in series))
    lags = min(_LAGS, max(map(len, series)) - 1)
    if not total > 0:
        return np.zeros(max(lags, 0))
    return np.array([sum(r[k:] @ r[:-k] for r in series) / total for k in range(1, lags + 1)])


def _color(c):
    return AXES[c] if c < len(AXES) else PALETTE[c % len(PALETTE)]
