"""A fit as one page of HTML that needs nothing besides itself."""

import base64
import html
import importlib.metadata
import io
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..identification import Fit, Measurements
from ..identification.report import (
    ESTIMATES,
    LEVEL,
    estimate_rows,
    noise_text,
    strongest_correlations,
    warning_texts,
    whiteness_texts,
)
from ..io import replacing
from .estimates import plot_correlations, plot_intervals
from .residuals import plot_autocorrelation, plot_predictions
from .style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
table { border-collapse: collapse; margin: 0.8rem 0; }
th, td { padding: 0.2rem 0.9rem 0.2rem 0; text-align: right; border-bottom: 1px solid #e6e6e6; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; height: auto; }
pre { background: #f6f6f6; padding: 0.8rem; overflow-x: auto; font-size: 0.85rem; }
.failed { background: #b00020; color: white; padding: 0.8rem 1rem; font-weight: bold; }
.warning { background: #fff1d6; padding: 0.5rem 1rem; font-weight: bold; }
.verdict { background: #f2f6fa; padding: 0.4rem 1rem; }
.note { color: #666; font-size: 0.9rem; }
"""


def write_fit_page(
    fit: Fit,
    measurements: Sequence[Measurements],
    predictions: Sequence[Mapping[str, np.ndarray]],
    path: str | os.PathLike[str],
    *,
    title: str = "Identification",
    case: str = "",
    force: bool = False,
) -> pathlib.Path:
    """Write a fit as a page of HTML: verdict, estimates, fit over data, residuals, correlations.

    Figures are inside of the page; nothing is loaded from elsewhere. A fit that did not converge
    says so at the top.

    **Arguments:** `fit`; `measurements`, those it was made with; `predictions`, see
    `rigidjax.identification.predictions`; `path`; `title`; `case`, text of the case that was run;
    `force`, replace an existing file.
    **Returns:** the path.
    **Raises:** `FileExistsError` without `force`; `OSError` for a path that cannot be written;
    `ModuleNotFoundError` without matplotlib.
    """
    page = fit_page(fit, measurements, predictions, title, case)
    with replacing(path, force) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return pathlib.Path(path)


def fit_page(
    fit: Fit,
    measurements: Sequence[Measurements],
    predictions: Sequence[Mapping[str, np.ndarray]],
    title: str = "Identification",
    case: str = "",
) -> str:
    """The page as text; arguments as in `write_fit_page`."""
    parts = [f"<h1>{_text(title)}</h1>", *_head(fit), *_verdict(fit), *_estimates(fit)]
    for k, sensor in enumerate(fit.sensors):
        parts.append(f"<h2>Fit over data: {_text(sensor.name)}</h2>")
        parts.append(_fit_note(fit, k))
        picture = plot_predictions(fit, measurements, predictions, k)
        parts.append(_figure(picture, f"Measured and predicted values of the {sensor.name}"))
    parts += ["<h2>Residuals</h2>", _rms_table(fit), *_list(whiteness_texts(fit))]
    parts.append(_figure(plot_autocorrelation(fit), "Autocorrelation of the residuals"))
    parts += ["<h2>Correlations of the estimates</h2>"]
    pairs = [f"{a} and {b}: {c:+.5f}" for a, b, c in strongest_correlations(fit)]
    parts += _list(pairs) or [_note("No two estimates have a correlation above 0.9.")]
    parts.append(_figure(plot_correlations(fit), "Correlation matrix of the estimates"))
    if fit.notes:
        parts += ["<h2>Notes</h2>", *_list(fit.notes)]
    if case:
        parts += ["<h2>The case</h2>", f"<pre>{_text(case)}</pre>"]
    parts.append(_note(f"rigidjax {_version()}, jax {importlib.metadata.version('jax')}."))
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n"
        "</body>\n</html>\n"
    )


def _head(fit):
    out = []
    if not fit.converged:
        out.append(
            f'<p class="failed">This fit did not converge: {_text(fit.result)}. Its numbers are no '
            "estimates.</p>"
        )
    out += [f'<p class="warning">{_text(sentence)}</p>' for sentence in warning_texts(fit)]
    count = len(fit.run_names)
    out.append(
        f"<p>{count} {'run' if count == 1 else 'runs'}, {fit.num_residuals} samples, "
        f"{len(fit.labels)} parameters; {_text(fit.result)} after {sum(fit.iterations)} "
        f"iterations, {fit.failed_evaluations} failed trials, {fit.offset:.2g} standard errors "
        "from the optimum.</p>"
    )
    return out


def _verdict(fit):
    verdict = fit.identifiability
    messages = list(verdict.messages)
    if verdict.identifiable:
        messages.append(
            f"Condition of the weighted Jacobian with columns of norm one: {verdict.condition:.3g}."
        )
    return [
        "<h2>What the data determine</h2>",
        '<div class="verdict">',
        *_list(messages),
        "</div>",
    ]


def _estimates(fit):
    return [
        "<h2>Estimates</h2>",
        _table(ESTIMATES, estimate_rows(fit)),
        _note("Standard deviations assume independent residuals" + noise_text(fit)),
        _figure(plot_intervals(fit, LEVEL), "Confidence intervals"),
    ]


def _rms_table(fit):
    rows = [
        (f"{sensor.name}, {channel}", f"{rms:.4g}", fit.sensor_units[sensor.name])
        for sensor in fit.sensors
        for channel, rms in fit.rms_by_channel[sensor.name].items()
    ]
    return _table(("channel", "root mean square", "unit"), rows)


def _fit_note(fit, k):
    sensor = fit.sensors[k]
    shown = min(len(fit.run_names), 12)
    of_runs = "" if shown == len(fit.run_names) else f" The first {shown} runs."
    return _note(
        f"Dots: measured; lines: predicted. Residual: predicted minus measured, "
        f"{fit.rms[sensor.name]:.4g} {fit.sensor_units[sensor.name]} rms over all.{of_runs}"
    )


def _table(head, rows):
    def row(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{_text(c)}</{tag}>" for c in cells) + "</tr>"

    return "<table>" + row(head, "th") + "".join(row(r, "td") for r in rows) + "</table>"


def _list(items):
    if not items:
        return []
    return ["<ul>", *(f"<li>{_text(item)}</li>" for item in items), "</ul>"]


def _note(text):
    return f'<p class="note">{_text(text)}</p>'


def _figure(figure: "Figure", text: str) -> str:
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f'<p><img alt="{_text(text)}" src="data:image/png;base64,{data}"></p>'


def _text(text):
    return html.escape(str(text))


def _version():
    from .. import __version__

    return __version__
