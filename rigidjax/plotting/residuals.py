"""Figures of measured and predicted values, and of residuals."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..identification import Fit, Measurements
from ..identification.statistics.whiteness import correlations
from .style import AXES, GREY, PALETTE, figure_legend, new_figure, run_panels, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

# Maximum number of runs and of lags in a figure.
_RUNS = 12
_LAGS = 25


def plot_predictions(
    fit: Fit,
    measurements: Sequence[Measurements],
    predictions: Sequence[Mapping[str, np.ndarray]],
    sensor: int,
) -> "Figure":
    """Plot measured and predicted values of a sensor, and residuals, in the first twelve runs.

    **Arguments:** `fit`; `measurements` of the fit; `predictions`, see
    `rigidjax.identification.predictions`; `sensor`, the index of the sensor.
    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    name = fit.sensors[sensor].name
    with style():
        figure, parts = run_panels(min(len(measurements), _RUNS))
        for b, (part, run) in enumerate(zip(parts, measurements, strict=False)):
            draw_run(part, fit, run, b, sensor, np.asarray(run.ts), predictions[b][name])
        figure_legend(figure, parts[0].axes, markerscale=3)
    return figure


def draw_run(
    panel: "SubFigure",
    fit: Fit,
    run: Measurements,
    b: int,
    k: int,
    times: np.ndarray,
    predicted: np.ndarray,
) -> None:
    """Draw measured and predicted values of a sensor, and below them the residuals.

    **Arguments:** `panel`; `fit`; `run` and its index `b`; `k`, index of the sensor; `times`, which
    include those of the samples; `predicted`, values at `times`.
    """
    above, below = panel.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    sensor, ts = fit.sensors[k], np.asarray(run.ts)
    lines = predicted.reshape(len(times), -1)
    dots = run.sample_mask(k).reshape(len(ts), -1)
    residuals = fit.residuals[b][sensor.name]
    if not sensor.value_shape:
        # Angles in the revolution in which the fit compared them.
        dots = lines[np.searchsorted(times, ts)] - residuals
    is_orientation = sensor.value_shape == (4,)
    if is_orientation:
        # A quaternion and its negative are the same orientation.
        cosine = np.sum(dots * lines[np.searchsorted(times, ts)], axis=1, keepdims=True)
        dots = dots * np.where(cosine < 0, -1.0, 1.0)
    # An orientation has four components, its residual three.
    labels = [f"q{c}" for c in range(4)] if is_orientation else [None] * lines.shape[1]
    for c, label in enumerate(labels):
        above.plot(ts, dots[:, c], ".", color=_color(c), ms=4, alpha=0.5, mew=0)
        above.plot(times, lines[:, c], color=_color(c), label=label)
    for c, channel in enumerate(sensor.channels):
        below.plot(ts, residuals[:, c], ".", color=_color(c), ms=2.5, mew=0, label=channel)
    below.axhline(0.0, color=GREY, lw=0.7)
    below.set_xlabel("time (s)")
    above.margins(x=0.02)
    name = fit.run_names[b]
    unit = fit.sensor_units[sensor.name]
    above.set_title(f"run {name}: rms {fit.rms_by_run[sensor.name][name]:.3g} {unit}")
    above.set_ylabel("unit quaternion" if is_orientation else unit)
    below.set_ylabel("residual")


def plot_autocorrelation(fit: Fit) -> "Figure":
    """Plot the autocorrelation of the residuals of every sensor over the lag, by channel.

    The band contains 95 % of the values of white noise.
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
                lags = min(_LAGS, max(map(len, series)) - 1)
                values = correlations(series, lags)
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


def _color(c: int) -> str:
    return AXES[c] if c < len(AXES) else PALETTE[c % len(PALETTE)]
