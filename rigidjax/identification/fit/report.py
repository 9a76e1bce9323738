"""A fit as text or JSON."""

import dataclasses
import json
import os
import pathlib
from typing import Any

import numpy as np

from ...io.files import write_text
from ..statistics.digits import estimate_text, interval_text, std_text
from .result import LEVEL, Fit

# A correlation of successive residuals above this is worth a sentence.
_DEPENDENT = 0.3
# Residuals that would be as far from white this rarely are said not to be.
_SIGNIFICANT = 0.01


def write_report(fit: Fit, path: str | os.PathLike[str] | None = None, force: bool = False) -> str:
    """The report as Markdown, or as JSON if `path` ends so; written whole or not at all.

    **Errors:** `ValueError` for another ending than `.md`, `.txt`, `.json`; `FileExistsError`
    without `force`; `OSError` for a path that cannot be written.
    """
    if path is None:
        return as_text(fit)
    suffix = pathlib.Path(path).suffix.lower()
    if suffix not in (".md", ".txt", ".json"):
        raise ValueError(
            f"`report(path)` writes .md, .txt or .json; got {os.fspath(path)!r}. Change the ending."
        )
    text = json.dumps(as_record(fit), indent=2) + "\n" if suffix == ".json" else as_text(fit)
    write_text(path, text, force)
    return text


def as_text(fit: Fit) -> str:
    """The report as Markdown; a fit that did not converge says so first."""
    lines = ["# Identification", ""]
    if not fit.converged:
        lines += [f"**This fit did not converge: {fit.result}.** Its numbers are no estimates.", ""]
    for sentence in warning_texts(fit):
        lines += [f"**Warning**: {sentence}", ""]
    lines += [
        f"{len(fit.run_names)} runs, {fit.num_residuals} samples, {len(fit.labels)} parameters; "
        f"{fit.result} after {' + '.join(map(str, fit.iterations))} iterations "
        f"({fit.failed_evaluations} failed trials), {fit.offset:.2g} standard errors from the "
        "optimum.",
        "",
        f"| {' | '.join(ESTIMATES)} |",
        "|---" * len(ESTIMATES) + "|",
    ]
    lines += [f"| {' | '.join(row)} |" for row in estimate_rows(fit)]
    lines += ["", noise_text(fit), ""]
    if pairs := [f"{a}, {b}: {c:+.5f}" for a, b, c in strongest_correlations(fit)]:
        lines += ["Strongest correlations: " + "; ".join(pairs), ""]
    lines += ["## What the data determine", ""]
    lines += [f"- {message}" for message in verdict_texts(fit)]
    lines += ["", "## Residuals (root mean square, predicted minus measured)", ""]
    for sensor in fit.sensors:
        name, unit = sensor.name, fit.sensor_units[sensor.name]
        by_channel, by_run = fit.rms_by_channel[name], fit.rms_by_run[name]
        lines += [
            f"- {name}: {fit.rms[name]:.5g} {unit} over all; by channel "
            + ", ".join(f"{c} {x:.4g}" for c, x in by_channel.items())
            + "; by run "
            + ", ".join(f"{run} {x:.4g}" for run, x in by_run.items())
            + "."
        ]
    lines += ["", "## Whiteness of the residuals (test of Ljung and Box)", ""]
    lines += [f"- {sentence}" for sentence in whiteness_texts(fit)]
    if fit.notes:
        lines += ["", "## Notes", "", *(f"- {note}" for note in fit.notes)]
    return "\n".join(lines) + "\n"


# Columns of the table of estimates.
ESTIMATES = ("parameter", "estimate", "std", f"{100 * LEVEL:g} % interval", "start", "unit")


def estimate_rows(fit: Fit) -> list[tuple[str, ...]]:
    """All estimates as rows of a table with the columns `ESTIMATES`."""
    std, intervals = fit.std, fit.confidence_intervals(LEVEL)
    rows = zip(fit.labels, fit.values.tolist(), fit.starts.tolist(), fit.units, strict=True)
    return [
        (
            label,
            estimate_text(value, std[label]),
            std_text(std[label]),
            interval_text(intervals[label]),
            f"{start:.6g}",
            unit,
        )
        for label, value, start, unit in rows
    ]


def warning_texts(fit: Fit) -> list[str]:
    """What makes estimates or standard deviations wrong: first in every report."""
    return [*fit.warnings, *dependence_texts(fit)]


def as_record(fit: Fit) -> dict[str, Any]:
    """The report as plain values; what is infinite is written as a string."""
    verdict = fit.identifiability
    sides = {b.label: "lower" if b.is_lower else "upper" for b in fit.bounds}
    one_sided = fit.quantile(LEVEL, one_sided=True)
    return {
        "result": fit.result,
        "converged": fit.converged,
        "iterations": list(fit.iterations),
        "failed_evaluations": fit.failed_evaluations,
        "relative_offset": _plain(fit.offset),
        "num_residuals": fit.num_residuals,
        "noise_is_known": fit.noise_is_known,
        "noise": fit.noise,
        "chi_square": fit.chi_square,
        "degrees_of_freedom": fit.degrees_of_freedom,
        "level": LEVEL,
        "parameters": [
            {
                "label": label,
                "unit": unit,
                "estimate": value,
                "std": _plain(std),
                "interval": [_plain(x) for x in interval],
                "start": start,
                "bound": sides.get(label),
            }
            for label, unit, value, std, interval, start in zip(
                fit.labels,
                fit.units,
                fit.values.tolist(),
                fit.std.values(),
                fit.confidence_intervals(LEVEL).values(),
                fit.starts.tolist(),
                strict=True,
            )
        ],
        "bounds": [
            {
                "quantity": bound.quantity,
                "parameters": list(bound.parameters),
                "bound": "lower" if bound.is_lower else "upper",
                "limit": bound.limit,
                "std": _plain(bound.std),
                "interval": [_plain(x) for x in bound.interval(one_sided)],
                "unit": bound.unit,
            }
            for bound in fit.bounds
        ],
        "covariance": [[_plain(x) for x in row] for row in fit.covariance.tolist()],
        "correlations": fit.correlations.tolist(),
        "identifiability": {
            "identifiable": verdict.identifiable,
            "rank": verdict.rank,
            "num_parameters": verdict.num_parameters,
            "condition": _plain(verdict.condition),
            "messages": list(verdict.messages),
        },
        "rms": fit.rms,
        "autocorrelation": fit.autocorrelation,
        "rms_by_run": fit.rms_by_run,
        "rms_by_channel": fit.rms_by_channel,
        "whiteness": {
            sensor: {c: None if w is None else dataclasses.asdict(w) for c, w in channels.items()}
            for sensor, channels in fit.whiteness.items()
        },
        "warnings": warning_texts(fit),
        "notes": list(fit.notes),
    }


def dependence_texts(fit: Fit) -> list[str]:
    """A sentence for each sensor whose successive residuals are correlated."""
    out = []
    for name, r in fit.autocorrelation.items():
        if r > _DEPENDENT:
            factor = np.sqrt((1 + r) / (1 - r)) if r < 1 else np.inf
            out.append(
                f"Residuals of the {name} are not independent: successive ones have a "
                f"correlation of {r:.2f}, so that these standard deviations are too small, by a "
                f"factor of about {factor:.1f} if that of residuals k samples apart is "
                f"{r:.2f}^k, by more if it is larger."
            )
    return out


def whiteness_texts(fit: Fit) -> list[str]:
    """For each sensor what the test of Ljung and Box says of its channels."""
    out = []
    for name, channels in fit.whiteness.items():
        tested = {c: w for c, w in channels.items() if w is not None}
        if not tested:
            out.append(f"{name}: too few residuals for a test.")
            continue
        parts = ", ".join(
            f"{c} p = {w.p_value:.2g} (Q = {w.statistic:.4g}, {w.lags} lags)"
            for c, w in tested.items()
        )
        bad = [c for c, w in tested.items() if w.p_value < _SIGNIFICANT]
        verdict = f"not white in {', '.join(bad)}" if bad else "nothing speaks against white noise"
        out.append(f"{name}: {parts}; {verdict}.")
    return out


def strongest_correlations(
    fit: Fit, limit: int = 5, above: float = 0.9
) -> list[tuple[str, str, float]]:
    """Pairs of labels with their correlation, strongest first."""
    upper = np.triu(np.abs(fit.correlations), k=1)
    order = np.argsort(-upper, axis=None)[:limit]
    out = []
    for i, j in zip(*np.unravel_index(order, upper.shape), strict=True):
        if upper[i, j] > above:
            out.append((fit.labels[i], fit.labels[j], float(fit.correlations[i, j])))
    return out


def verdict_texts(fit: Fit) -> list[str]:
    """What the data determine, and how well."""
    verdict = fit.identifiability
    if not verdict.identifiable:
        return list(verdict.messages)
    return [
        *verdict.messages,
        f"Condition of the weighted Jacobian with columns of norm one: {verdict.condition:.3g}.",
    ]


def noise_text(fit: Fit) -> str:
    """What the standard deviations rest on: where the noise is from."""
    text = "Standard deviations assume independent residuals"
    if fit.noise_is_known:
        given = "with the noise that was given; chi square per degree of freedom"
        return f"{text} {given} {fit.chi_square:.4g}."
    unit = fit.sensor_units[fit.sensors[0].name]
    return f"{text}, with the noise estimated from them ({fit.noise:.4g} {unit})."


def _plain(x):
    return float(x) if np.isfinite(x) else str(float(x))
