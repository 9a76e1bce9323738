"""A self-contained HTML page of a fit."""

import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..identification import Fit, IntervalTable, Measurements, interval_table
from ..identification.result.report import (
    advice,
    data_hash,
    estimates_table,
    head,
    noise_text,
    search_text,
    sections,
)
from ..io.document import Block, Bullets, Heading, Paragraph, Table
from .fit_figure import plot_correlations, plot_intervals
from .html import Listing, embed_figure, embed_motion, write_page
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

    **Arguments:** `fit`, to describe; `measurements`, those of the fit; `predictions`, see
    `rigidjax.identification.predictions`; `path`, of the page; `title`, its heading; `case`, text
    of the case file; `files`, of which path and SHA-256 are stated, such as the case and its data;
    `intervals`, from `rigidjax.identification.interval_table`, by default those of the fit alone;
    `motion`, a view such as that of `rigidjax.viewer.view_fit`; `force`, replace an existing file.
    **Returns:** the path.
    **Errors:** `FileExistsError` for an existing file without `force`; `OSError` for a path that
    cannot be written; `ModuleNotFoundError` without matplotlib.
    """
    table = interval_table(fit) if intervals is None else intervals
    runs = [measurements] if isinstance(measurements, Measurements) else list(measurements)
    overview = plot_overview(fit, runs, predictions)
    parts: list[Any] = [
        *head(fit),
        Heading("Estimates"),
        estimates_table(fit, table),
        Paragraph(f"{noise_text(fit)} Intervals: {table.reason}.", "note"),
        *advice(fit),
        embed_figure(overview, f"Fit over data of the run {fit.run_names[0]}"),
        Paragraph(
            "Points: measured; lines: predicted. Quantiles of normal residuals are on the line.",
            "note",
        ),
    ]
    if motion is not None:
        parts += [Heading(f"Run {fit.run_names[0]} in motion"), embed_motion(motion)]
    for k, sensor in enumerate(fit.sensors):
        picture = plot_predictions(fit, runs, predictions, k)
        parts += [
            Heading(f"Fit over data: {sensor.name}", kind="" if k else "details"),
            _fit_note(fit, k),
            embed_figure(picture, f"Measured and predicted values of the {sensor.name}"),
        ]
    pictures = {
        "Intervals by method": plot_intervals(fit, table.level, table),
        "Identifiability": plot_correlations(fit),
        "Residuals": plot_autocorrelation(fit),
    }
    for title_of_section, blocks in sections(fit, table).items():
        parts += [Heading(title_of_section), *blocks]
        if picture := pictures.get(title_of_section):
            parts.append(embed_figure(picture, title_of_section))
    parts += _data_and_model(fit, runs)
    if fit.notes:
        parts += [Heading("Notes"), Bullets(fit.notes)]
    if case:
        parts += [Heading("Case file"), Listing(case)]
    hashed = [("Samples, as fitted", f"SHA-256 {data_hash(fit.optimum.runs)}")]
    return write_page(path, title, parts, files, hashed, force)


def _fit_note(fit: Fit, k: int) -> Paragraph:
    sensor = fit.sensors[k]
    count = min(len(fit.run_names), 12)
    runs = "" if count == len(fit.run_names) else f" The first {count} runs."
    whitened = ", whitened by the model of the noise" if sensor.name in fit.noise_models else ""
    return Paragraph(
        f"Points: measured; lines: predicted. Residual: predicted minus measured, in standard "
        f"deviations of the noise{whitened}; 95 % of normal noise lie in the band. Over all runs: "
        f"{fit.rms[sensor.name]:.4g} {fit.sensor_units[sensor.name]} rms.{runs}",
        "note",
    )


def _data_and_model(fit: Fit, runs: Sequence[Measurements]) -> list[Block]:
    """Return the search, samples and noise of the sensors, and the tables of the fitted model."""
    sensors = []
    for k, sensor in enumerate(fit.sensors):
        values = [run.sample_mask(k).reshape(len(run.ts), -1) for run in runs]
        count = sum(int(np.isfinite(x).any(axis=1).sum()) for x in values)
        sensors.append((sensor.name, count, len(sensor.channels), _noise_text(fit, runs, k)))
    return [
        Heading("Data and search"),
        search_text(fit),
        Table(("sensor", "samples", "channels", "noise (standard deviation)"), sensors),
        Heading(f"Model with the estimates ({type(fit.model).__name__})"),
        *model_tables(fit.model.system),
    ]


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
