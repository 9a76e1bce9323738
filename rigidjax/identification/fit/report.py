"""Reports of a fit as Markdown, JSON or CSV."""

import dataclasses
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ..provenance import current_date, data_hash, software_versions
from ..report_file import write_report_file
from ..statistics.digits import estimate_text, interval_text, std_text
from ..statistics.estimate_covariance import METHODS
from .previous import Changes, changes_since
from .result import LEVEL, Fit

if TYPE_CHECKING:
    from ..intervals.side_by_side import IntervalTable

# p-value below which residuals are reported as not white.
_SIGNIFICANT = 0.01


def write_report(
    fit: Fit,
    path: str | os.PathLike[str] | None = None,
    force: bool = False,
    previous: str | os.PathLike[str] | None = None,
    intervals: "IntervalTable | None" = None,
) -> str:
    """Return the report, and write it to `path`; see `write_report_file`.

    **Arguments:** `previous`, an earlier report in JSON; the changes since are reported;
    `intervals` by several methods, by default those of the fit alone.
    """
    # Imported here because these intervals are computed from fits.
    from ..intervals.side_by_side import interval_table

    table = interval_table(fit) if intervals is None else intervals
    changes = None if previous is None else changes_since(as_record(fit), previous)
    return write_report_file(
        path,
        force,
        lambda: as_text(fit, table, changes),
        lambda: as_record(fit, changes) | {"intervals": table.to_record()},
        lambda: as_table(fit),
    )


def as_text(fit: Fit, table: "IntervalTable", changes: Changes | None = None) -> str:
    """Return the report as Markdown; the verdict on the intervals is the first line."""
    heading = interval_heading(table)
    lines = [f"**{fit.verdict}**", "", "# Identification", ""]
    if not fit.converged:
        lines += [f"**This fit did not converge: {fit.result}.** Its values are not estimates.", ""]
    for sentence in warning_texts(fit):
        lines += [f"**Warning**: {sentence}", ""]
    lines += [
        f"Runs: {len(fit.run_names)}; sampled values: {fit.num_residuals}; fitted parameters: "
        f"{len(fit.labels)}. Result: "
        f"{fit.result} after {' + '.join(map(str, fit.iterations))} iterations "
        f"({fit.failed_evaluations} failed trials), {fit.offset:.2g} standard errors from the "
        "optimum.",
        "",
        f"| {' | '.join(heading)} |",
        "|---" * len(heading) + "|",
    ]
    lines += [f"| {' | '.join(row)} |" for row in estimate_rows(fit, table)]
    lines += ["", noise_text(fit), "", "## Intervals by method", "", table.to_markdown()]
    lines += [*(f"- {text}" for text in method_texts(fit)), ""]
    if pairs := [f"{a}, {b}: {c:+.5f}" for a, b, c in strongest_correlations(fit)]:
        lines += ["Strongest correlations: " + "; ".join(pairs), ""]
    lines += ["## Identifiability", ""]
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
    lines += [
        "",
        "## Whiteness of the residuals (tests of Ljung and Box, and of runs of signs)",
        "",
    ]
    lines += [f"- {sentence}" for sentence in whiteness_texts(fit)]
    if changes is not None:
        lines += ["", "## Changes since the previous fit", "", changes.to_markdown()]
    if fit.notes:
        lines += ["", "## Notes", "", *(f"- {note}" for note in fit.notes)]
    versions = ", ".join(f"{name} {version}" for name, version in software_versions().items())
    lines += ["", "## Origin", "", f"- Date: {current_date()}."]
    lines += [f"- SHA-256 of the data: {data_hash(fit.optimum.runs)}.", f"- Versions: {versions}."]
    return "\n".join(lines) + "\n"


def interval_heading(table: "IntervalTable") -> tuple[str, ...]:
    """Return the heading of the table of estimates."""
    return ("parameter", "estimate", "std", f"{100 * table.level:g} % interval", "start", "unit")


def estimate_rows(fit: Fit, table: "IntervalTable") -> list[tuple[str, ...]]:
    """Return all estimates, with the intervals to use, as rows below `interval_heading`."""
    std, intervals = fit.std, table.trusted_intervals
    rows = zip(fit.labels, fit.values.tolist(), fit.starts.tolist(), fit.units, strict=True)
    return [
        (
            label,
            estimate_text(value, std[label]),
            std_text(std[label]),
            interval_text(intervals[label]),
            f"{start:.4g}",
            unit,
        )
        for label, value, start, unit in rows
    ]


def method_texts(fit: Fit) -> list[str]:
    """Return the assumption of each method on the residuals, and which one the fit uses."""
    # Imported here because these intervals are computed from fits.
    from ..intervals.side_by_side import METHOD_NAMES

    return [
        f"{METHOD_NAMES[name]}: assumes {METHODS[name]}"
        + (", as the standard deviations do." if name == fit.method else ".")
        for name in fit.covariances
    ]


def warning_texts(fit: Fit) -> list[str]:
    """Return all reasons not to trust estimates or standard deviations, for the top of a report."""
    return list(fit.warnings)


def as_record(fit: Fit, changes: Changes | None = None) -> dict[str, Any]:
    """Return the report as plain values for JSON; infinite numbers become strings."""
    verdict = fit.identifiability
    sides = {b.label: "lower" if b.is_lower else "upper" for b in fit.bounds}
    return {
        "verdict": {"first_line": str(fit.verdict), **dataclasses.asdict(fit.verdict)},
        "result": fit.result,
        "converged": fit.converged,
        "iterations": list(fit.iterations),
        "failed_evaluations": fit.failed_evaluations,
        "relative_offset": _json_number(fit.offset),
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
                "std": _json_number(std),
                "interval": [_json_number(x) for x in interval],
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
                "std": _json_number(bound.std),
                "interval": [
                    _json_number(x) for x in bound.interval(fit.quantile(LEVEL, True, bound.label))
                ],
                "unit": bound.unit,
            }
            for bound in fit.bounds
        ],
        "covariance_method": fit.method,
        "std_by_method": {
            name: [_json_number(x) for x in c.std.tolist()] for name, c in fit.covariances.items()
        },
        "covariance": [[_json_number(x) for x in row] for row in fit.covariance.tolist()],
        "correlations": fit.correlations.tolist(),
        "identifiability": {
            "identifiable": verdict.identifiable,
            "rank": verdict.rank,
            "num_parameters": verdict.num_parameters,
            "condition": _json_number(verdict.condition),
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
        "date": current_date(),
        "data_sha256": data_hash(fit.optimum.runs),
        "versions": software_versions(),
    } | ({} if changes is None else {"changes": changes.to_record()})


def as_table(fit: Fit) -> list[list[Any]]:
    """Return the estimates as rows of numbers, a heading first, for CSV."""
    heading = ["parameter", "unit", "estimate", "std", "lower", "upper", "start"]
    std, intervals = fit.std, fit.confidence_intervals(LEVEL)
    pairs = zip(fit.labels, fit.units, fit.values.tolist(), fit.starts.tolist(), strict=True)
    rows = [
        [label, unit, value, std[label], *intervals[label], start]
        for label, unit, value, start in pairs
    ]
    return [heading, *rows]


def whiteness_texts(fit: Fit) -> list[str]:
    """Return for each sensor the results of the tests for whiteness of its channels."""
    sentences = []
    for name, channels in fit.whiteness.items():
        tested = {c: w for c, w in channels.items() if w is not None}
        if not tested:
            sentences.append(f"{name}: too few residuals for a test.")
            continue
        parts = "; ".join(f"{c} {w}" for c, w in tested.items())
        rejected = [c for c, w in tested.items() if min(w.p_values) < _SIGNIFICANT]
        verdict = (
            f"not white in {', '.join(rejected)}" if rejected else "no evidence against white noise"
        )
        sentences.append(f"{name}: {parts}; {verdict}.")
    return sentences


def strongest_correlations(
    fit: Fit, limit: int = 5, above: float = 0.9
) -> list[tuple[str, str, float]]:
    """Return pairs of labels with their correlation, strongest first."""
    upper = np.triu(np.abs(fit.correlations), k=1)
    order = np.argsort(-upper, axis=None)[:limit]
    pairs = []
    for i, j in zip(*np.unravel_index(order, upper.shape), strict=True):
        if upper[i, j] > above:
            pairs.append((fit.labels[i], fit.labels[j], float(fit.correlations[i, j])))
    return pairs


def verdict_texts(fit: Fit) -> list[str]:
    """Return sentences on which parameters the data determine, and how well."""
    verdict = fit.identifiability
    if not verdict.identifiable:
        return list(verdict.messages)
    return [
        *verdict.messages,
        f"Condition number of the scaled sensitivities: {verdict.condition:.3g} (1: the parameters "
        "act independently; above 1000: their effects are nearly alike).",
    ]


def noise_text(fit: Fit) -> str:
    """Return a sentence on the noise that the standard deviations assume."""
    if fit.method != "model":
        return f"Standard deviations allow for {METHODS[fit.method]} ({fit.method})."
    text = "Standard deviations assume independent residuals"
    if fit.noise_models:
        names = ", ".join(fit.noise_models)
        return f"Standard deviations rest on the noise models of the sensors: {names}."
    if fit.noise_is_known:
        given = "with the noise that was given; chi square per degree of freedom"
        return f"{text} {given} {fit.chi_square:.4g}."
    unit = fit.sensor_units[fit.sensors[0].name]
    return f"{text}, with the noise estimated from them ({fit.noise:.4g} {unit})."


def _json_number(x: float) -> float | str:
    return float(x) if np.isfinite(x) else str(float(x))
