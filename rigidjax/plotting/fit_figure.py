"""Figures of a fit: measured and fitted values, residuals, and the ellipse of two parameters."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..identification import Experiment, Fit, Measurements, Simulation
from ..identification.experiment.inputs import pad_rows
from ..identification.result.predictions import read_run
from ..results import RESULTS, SimulationError
from .residuals import draw_run
from .style import GREY, PALETTE, run_panels, style

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

    **Arguments:** `fit`; `measurements` of the fit; `title`; `moments`, labels of two fitted
    moments of inertia, which are plotted against each other in a last panel; `prior`, values
    and standard deviations of these two from another source, kg m^2, for the same panel.
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
