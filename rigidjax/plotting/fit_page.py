"""A self-contained HTML page of a fit."""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..identification import Fit, Measurements
from ..identification.fit.report import (
    ESTIMATES,
    LEVEL,
    estimate_rows,
    method_rows,
    method_texts,
    noise_text,
    strongest_correlations,
    verdict_texts,
    warning_texts,
    whiteness_texts,
)
from ..io.files import write_text
from .estimates import plot_correlations, plot_intervals
from .html import html_figure, html_list, html_note, html_page, html_table, html_text
from .residuals import plot_autocorrelation, plot_predictions

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
    motion: "View | None" = None,
    force: bool = False,
) -> pathlib.Path:
    """Write a fit as an HTML page: verdict, estimates, fit over data, residuals, correlations.

    The page contains its figures and loads nothing from elsewhere. If the fit did not converge, the
    page says so at the top.

    **Arguments:** `fit`; `measurements` of the fit; `predictions`, see
    `rigidjax.identification.predictions`; `path`; `title`; `case`, text of the case file;
    `motion`, a view such as that of `rigidjax.viewer.view_fit`, shown after the estimates;
    `force`, replace an existing file.
    **Returns:** the path.
    **Errors:** `FileExistsError` for an existing file without `force`; `OSError` for a path that
    cannot be written; `ModuleNotFoundError` without matplotlib.
    """
    parts = [*_head(fit), *_verdict(fit), *_estimates(fit)]
    if motion is not None:
        parts += [f"<h2>Run {html_text(fit.run_names[0])} in motion</h2>", motion._repr_html_()]
    for k, sensor in enumerate(fit.sensors):
        parts.append(f"<h2>Fit over data: {html_text(sensor.name)}</h2>")
        parts.append(_fit_note(fit, k))
        picture = plot_predictions(fit, measurements, predictions, k)
        parts.append(html_figure(picture, f"Measured and predicted values of the {sensor.name}"))
    parts += ["<h2>Residuals</h2>", _rms_table(fit), *html_list(whiteness_texts(fit))]
    parts.append(html_figure(plot_autocorrelation(fit), "Autocorrelation of the residuals"))
    parts += ["<h2>Correlations of the estimates</h2>"]
    pairs = [f"{a} and {b}: {c:+.5f}" for a, b, c in strongest_correlations(fit)]
    parts += html_list(pairs) or [html_note("No two estimates have a correlation above 0.9.")]
    parts.append(html_figure(plot_correlations(fit), "Correlation matrix of the estimates"))
    if fit.notes:
        parts += ["<h2>Notes</h2>", *html_list(fit.notes)]
    if case:
        parts += ["<h2>The case</h2>", f"<pre>{html_text(case)}</pre>"]
    return write_text(path, html_page(title, parts), force)


def _head(fit: Fit) -> list[str]:
    style = {"yes": "verdict", "with caution": "warning", "no": "failed"}[fit.verdict.use]
    out = [f'<p class="{style}">{html_text(str(fit.verdict))}</p>']
    if not fit.converged:
        out.append(
            f'<p class="failed">This fit did not converge: {html_text(fit.result)}. '
            "Its numbers are no estimates.</p>"
        )
    out += [f'<p class="warning">{html_text(sentence)}</p>' for sentence in warning_texts(fit)]
    count = len(fit.run_names)
    out.append(
        f"<p>{count} {'run' if count == 1 else 'runs'}, {fit.num_residuals} samples, "
        f"{len(fit.labels)} parameters; {html_text(fit.result)} after {sum(fit.iterations)} "
        f"iterations, {fit.failed_evaluations} failed trials, {fit.offset:.2g} standard errors "
        "from the optimum.</p>"
    )
    return out


def _verdict(fit: Fit) -> list[str]:
    sentences = html_list(verdict_texts(fit))
    return ["<h2>What the data determine</h2>", '<div class="verdict">', *sentences, "</div>"]


def _estimates(fit: Fit) -> list[str]:
    heading, *rows = method_rows(fit)
    return [
        "<h2>Estimates</h2>",
        html_table(ESTIMATES, estimate_rows(fit)),
        html_note(noise_text(fit)),
        html_table(heading, rows),
        *html_list(method_texts(fit)),
        html_figure(plot_intervals(fit, LEVEL), "Confidence intervals"),
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
    return html_note(
        f"Dots: measured; lines: predicted. Residual: predicted minus measured, "
        f"{fit.rms[sensor.name]:.4g} {fit.sensor_units[sensor.name]} rms over all.{runs}"
    )
