"""Figures of measured and predicted values, and of residuals."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..identification import Fit, Measurements
from ..identification.statistics.whiteness import correlations
from ..sensors import AbstractSensor
from .style import AXES, GREY, PALETTE, panel_grid, run_panels, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Maximum number of runs, of lags and of channels in a figure, and of large points in a panel.
_RUNS = 12
_LAGS = 25
_OVERVIEW = 4
_FEW = 300


def plot_predictions(
    fit: Fit,
    measurements: Sequence[Measurements],
    predictions: Sequence[Mapping[str, np.ndarray]],
    sensor: int,
) -> "Figure":
    """Plot measured and predicted values of a sensor, and residuals, in the first twelve runs.

    **Arguments:** `fit`, to draw; `measurements`, those of the fit; `predictions`, see
    `rigidjax.identification.predictions`; `sensor`, the index of the sensor.
    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    name, channels = fit.sensors[sensor].name, len(fit.sensors[sensor].channels)
    with style():
        figure, parts = run_panels(min(len(measurements), _RUNS), height=0.8 + 1.7 * channels)
        for b, (part, run) in enumerate(zip(parts, measurements, strict=False)):
            draw_run(part, fit, run, b, sensor, np.asarray(run.ts), predictions[b][name])
    return figure


def plot_overview(
    fit: Fit, measurements: Sequence[Measurements], predictions: Sequence[Mapping[str, np.ndarray]]
) -> "Figure":
    """Plot measured and predicted values of the first channels of all sensors in the first run, and
    the quantiles of all residuals over those of the normal distribution.

    **Arguments:** as of `plot_predictions`.
    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    run, panels = measurements[0], []
    for k, sensor in enumerate(fit.sensors):
        values = predictions[0][sensor.name]
        dots, lines, labels = _series(fit, run, 0, k, np.asarray(run.ts), values)
        panels += [
            (sensor, label, d, x) for label, d, x in zip(labels, dots.T, lines.T, strict=True)
        ]
    panels = panels[:_OVERVIEW]
    with style():
        figure, axes = panel_grid(len(panels) + 1, 2, 4.4, 1.8)
        _draw_quantiles(axes[-1], fit)
        for k, (ax, (sensor, label, dots, line)) in enumerate(zip(axes[:-1], panels, strict=True)):
            _draw_channel(ax, np.asarray(run.ts), dots, np.asarray(run.ts), line, k % len(AXES))
            ax.set_title(sensor.name if label == sensor.name else f"{sensor.name}, {label}")
            ax.set_ylabel(_unit_text(fit, sensor))
            ax.set_xlabel("time (s)")
    return figure


def _draw_quantiles(ax: "Axes", fit: Fit) -> None:
    """Draw sorted residuals of each sensor, in units of the noise, over normal quantiles."""
    from scipy import special  # It takes long to import.

    for c, sensor in enumerate(fit.sensors):
        r = np.concatenate([run[sensor.name].reshape(-1) for run in fit.innovations]) / fit.noise
        r = np.sort(r[np.isfinite(r)])
        normal = special.ndtri((np.arange(len(r)) + 0.5) / len(r))
        ax.plot(normal, r, ".", color=_color(c), ms=2.5, mew=0, label=sensor.name)
    ax.axline((0.0, 0.0), slope=1.0, color=GREY, lw=0.7)
    ax.set_title("quantiles of residuals / noise")
    ax.set_xlabel("normal quantile")
    ax.legend()


def draw_run(
    panel: "SubFigure",
    fit: Fit,
    run: Measurements,
    b: int,
    k: int,
    times: np.ndarray,
    predicted: np.ndarray,
) -> None:
    """Draw measured and predicted values of each channel of a sensor, and residuals below.

    Residuals are in units of the noise, those of dependent noise after whitening.

    **Arguments:** `panel`; `fit`; `run` and its index `b`; `k`, index of the sensor; `times`, which
    include those of the samples; `predicted`, values at `times`.
    """
    sensor, ts = fit.sensors[k], np.asarray(run.ts)
    dots, lines, labels = _series(fit, run, b, k, times, predicted)
    residuals = fit.innovations[b][sensor.name] / fit.noise
    count = residuals.shape[1]
    grid = panel.subplots(2 * count, 1, sharex=True, squeeze=False, height_ratios=(3, 1.2) * count)
    axes = list(grid[:, 0])
    # An orientation has four components and a residual of three channels.
    shown = [[0, 1], [2], [3]] if lines.shape[1] > count else [[c] for c in range(count)]
    for c, columns in enumerate(shown):
        above, below = axes[2 * c : 2 * c + 2]
        for i in columns:
            _draw_channel(above, ts, dots[:, i], times, lines[:, i], i)
        names = ", ".join(labels[i] for i in columns)
        above.set_ylabel(f"{names} ({_unit_text(fit, sensor)})")
        below.axhspan(-2, 2, color="#E6E6E6", lw=0, zorder=0)
        below.axhline(0.0, color=GREY, lw=0.7)
        below.plot(ts, residuals[:, c], ".", color=_color(columns[-1]), ms=2.5, mew=0)
        below.set_ylabel("residual\n/ noise")
    axes[-1].set_xlabel("time (s)")
    name = fit.run_names[b]
    rms = f"{fit.rms_by_run[sensor.name][name]:.3g} {fit.sensor_units[sensor.name]}"
    axes[0].set_title(f"run {name}: rms {rms}")


def _series(
    fit: Fit, run: Measurements, b: int, k: int, times: np.ndarray, predicted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return measured and predicted values, (T, C) each, and the names of the columns."""
    sensor, ts = fit.sensors[k], np.asarray(run.ts)
    lines = predicted.reshape(len(times), -1)
    dots = run.sample_mask(k).reshape(len(ts), -1)
    at_samples = lines[np.searchsorted(times, ts)]
    if not sensor.value_shape:
        # Angles in the revolution in which the fit compared them.
        dots = at_samples - fit.residuals[b][sensor.name]
    if sensor.value_shape != (4,):
        return dots, lines, list(sensor.channels)
    # A quaternion and its negative are the same orientation.
    cosine = np.sum(dots * at_samples, axis=1, keepdims=True)
    return dots * np.where(cosine < 0, -1.0, 1.0), lines, [f"q{c}" for c in range(4)]


def _draw_channel(
    ax: "Axes", ts: np.ndarray, dots: np.ndarray, times: np.ndarray, line: np.ndarray, c: int
) -> None:
    """Draw a predicted line, and over it the measured points, smaller where they are many."""
    ax.plot(times, line, color=_color(c), lw=2.4, alpha=0.75)
    size = 3.5 if np.isfinite(dots).sum() <= _FEW else 1.8
    ax.plot(ts, dots, ".", color="#222222", ms=size, mew=0)
    ax.margins(x=0.02)


def _unit_text(fit: Fit, sensor: AbstractSensor) -> str:
    return "1" if sensor.value_shape == (4,) else fit.sensor_units[sensor.name]


def plot_autocorrelation(fit: Fit) -> "Figure":
    """Plot the autocorrelation of the residuals of every sensor over the lag, by channel.

    The band contains 95 % of the values of white noise.
    """
    with style():
        figure, axes = panel_grid(len(fit.sensors), 2, 4.6, 2.5)
        for ax, sensor in zip(axes, fit.sensors, strict=True):
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
    return figure


def _color(c: int) -> str:
    return AXES[c] if c < len(AXES) else PALETTE[c % len(PALETTE)]
