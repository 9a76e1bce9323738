"""A self-contained HTML page of a fit."""

import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..identification import Fit, IntervalTable, Measurements, interval_table
from ..identification.fit.report import (
    estimate_rows,
    interval_heading,
    method_texts,
    noise_text,
    strongest_correlations,
    verdict_texts,
    warning_texts,
    whiteness_texts,
)
from ..identification.provenance import data_hash
from ..io.files import write_text
from .estimates import plot_correlations, plot_intervals
from .html import (
    html_figure,
    html_list,
    html_motion,
    html_note,
    html_page,
    html_table,
    html_text,
)
from .model_page import model_tables
from .residuals import plot_autocorrelation, plot_overview, plot_predictions

if TYPE_CHECKING:
    from ..viewer import View


def write_fit_page(
    fit: Fit,
    measurements: Sequence[Measurements],
    predictions: Sequence[Mapping[str, np.ndarray]],
    path: str | os.PathLike[str],
    *,
    title: str = "Identification",
    case: str = "",
    files: Iterable[str | os.PathLike[str]] = (),
    intervals: IntervalTable | None = None,
    motion: "View | None" = None,
    force: bool = False,
) -> pathlib.Path:
    """Write a fit as an HTML page that can be printed.

    The first page has verdict, estimates, intervals and a picture; details follow: intervals by all
    methods, fit over data, residuals, correlations, data and model, the case, and the origin (date,
    files and data with their hashes, versions). The page contains its figures and loads nothing
    from elsewhere. If the fit did not converge, the page says so at the top.

    **Arguments:** `fit`; `measurements` of the fit; `predictions`, see
    `rigidjax.identification.predictions`; `path`; `title`; `case`, text of the case file; `files`
    of which path and SHA-256 are stated, such as the case and its data; `intervals`, from
    `rigidjax.identification.interval_table`, by default those of the fit alone; `motion`, a view
    such as that of `rigidjax.viewer.view_fit`; `force`, replace an existing file.
    **Returns:** the path.
    **Errors:** `FileExistsError` for an existing file without `force`; `OSError` for a path that
    cannot be written; `ModuleNotFoundError` without matplotlib.
    """
    table = interval_table(fit) if intervals is None else intervals
    runs = [measurements] if isinstance(measurements, Measurements) else list(measurements)
    parts = [*_head(fit), *_estimates(fit, table)]
    overview = plot_overview(fit, runs, predictions)
    parts.append(html_figure(overview, f"Fit over data of the run {fit.run_names[0]}"))
    parts.append(html_note("Points: measured; lines: predicted by the fitted model."))
    parts += ['<h2 class="details">Identifiability</h2>', *html_list(verdict_texts(fit))]
    parts += _intervals(fit, table)
    if motion is not None:
        parts += [f"<h2>Run {html_text(fit.run_names[0])} in motion</h2>", html_motion(motion)]
    for k, sensor in enumerate(fit.sensors):
        parts += [f"<h2>Fit over data: {html_text(sensor.name)}</h2>", _fit_note(fit, k)]
        picture = plot_predictions(fit, runs, predictions, k)
        parts.append(html_figure(picture, f"Measured and predicted values of the {sensor.name}"))
    parts += ["<h2>Residuals</h2>", _rms_table(fit), *html_list(whiteness_texts(fit))]
    parts.append(html_figure(plot_autocorrelation(fit), "Autocorrelation of the residuals"))
    parts += ["<h2>Correlations of the estimates</h2>"]
    pairs = [f"{a} and {b}: {c:+.5f}" for a, b, c in strongest_correlations(fit)]
    parts += html_list(pairs) or [html_note("No two estimates have a correlation above 0.9.")]
    parts.append(html_figure(plot_correlations(fit), "Correlation matrix of the estimates"))
    parts += _data_and_model(fit, runs)
    if fit.notes:
        parts += ["<h2>Notes</h2>", *html_list(fit.notes)]
    if case:
        parts += ["<h2>Case file</h2>", f"<pre>{html_text(case)}</pre>"]
    hashed = [("Samples, as fitted", f"SHA-256 {data_hash(fit.optimum.runs)}")]
    return write_text(path, html_page(title, parts, files, hashed), force)


def _head(fit: Fit) -> list[str]:
    style = {"yes": "verdict", "with caution": "warning", "no": "failed"}[fit.verdict.use]
    out = [f'<p class="{style}">{html_text(str(fit.verdict))}</p>']
    if not fit.converged:
        out.append(
            f'<p class="failed">This fit did not converge: {html_text(fit.result)}. '
            "Its values are not estimates.</p>"
        )
    out += [f'<p class="warning">{html_text(sentence)}</p>' for sentence in warning_texts(fit)]
    return out


def _estimates(fit: Fit, table: IntervalTable) -> list[str]:
    return [
        "<h2>Estimates</h2>",
        html_table(interval_heading(table), estimate_rows(fit, table)),
        html_note(f"{noise_text(fit)} Intervals: {table.reason}."),
    ]


def _intervals(fit: Fit, table: IntervalTable) -> list[str]:
    heading, *rows = table.rows()
    return [
        "<h2>Intervals by method</h2>",
        html_table(heading, rows),
        html_note(table.legend),
        *html_list(method_texts(fit)),
        html_figure(plot_intervals(fit, table.level, table), "Intervals by method"),
    ]


def _rms_table(fit: Fit) -> str:
    rows = [
        (f"{sensor.name}, {channel}", f"{rms:.4g}", fit.sensor_units[sensor.name])
        for sensor in fit.sensors
        for channel, rms in fit.rms_by_channel[sensor.name].items()
    ]
    return html_table(("channel", "root mean square", "unit"), rows)


def _fit_note(fit: Fit, k: int) -> str:
    sensor = fit.sensors[k]
    count = min(len(fit.run_names), 12)
    runs = "" if count == len(fit.run_names) else f" The first {count} runs."
    whitened = ", whitened by the model of the noise" if sensor.name in fit.noise_models else ""
    return html_note(
        f"Points: measured; lines: predicted. Residual: predicted minus measured, in standard "
        f"deviations of the noise{whitened}; 95 % of normal noise lie in the band. Over all runs: "
        f"{fit.rms[sensor.name]:.4g} {fit.sensor_units[sensor.name]} rms.{runs}"
    )


def _data_and_model(fit: Fit, runs: Sequence[Measurements]) -> list[str]:
    """Return the search, samples and noise of the sensors, and the tables of the fitted model."""
    sensors = []
    for k, sensor in enumerate(fit.sensors):
        count = sum(_num_samples(run, k) for run in runs)
        sensors.append((sensor.name, count, len(sensor.channels), _noise_text(fit, runs, k)))
    return [
        "<h2>Data and search</h2>",
        html_note(
            f"Runs: {len(fit.run_names)}; sampled values: {fit.num_residuals}; fitted parameters: "
            f"{len(fit.labels)}. Result: {fit.result}, after {sum(fit.iterations)} iterations, "
            f"{fit.failed_evaluations} failed trials; {fit.offset:.2g} standard errors from the "
            "optimum."
        ),
        html_table(("sensor", "samples", "channels", "noise (standard deviation)"), sensors),
        f"<h2>Model with the estimates ({type(fit.model).__name__})</h2>",
        *model_tables(fit.model.system),
    ]


def _num_samples(run: Measurements, k: int) -> int:
    values = run.sample_mask(k).reshape(len(run.ts), -1)
    return int(np.isfinite(values).any(axis=1).sum())


def _noise_text(fit: Fit, runs: Sequence[Measurements], k: int) -> str:
    """Return the noise of a sensor, and whether it was given."""
    name = fit.sensors[k].name
    if name in fit.noise_models:
        return f"estimated: {fit.noise_models[name]}"
    unit = fit.sensor_units[name]
    if name in fit.noise_by_sensor:
        return f"estimated: {fit.noise_by_sensor[name]:.4g} {unit}"
    weights = np.asarray(fit.optimum.runs.weights[k])
    used = 1 / weights[weights > 0]
    low, high = (f"{fit.noise * x:.4g}" for x in (used.min(), used.max()))
    kind = "given" if runs[0].noise[k] is not None else "estimated"
    return f"{kind}: {low if low == high else f'{low} to {high}'} {unit}"
