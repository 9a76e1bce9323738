"""Reports of a regression as Markdown, JSON or CSV."""

import dataclasses
import os
from typing import Any

import numpy as np

from ..report_file import write_report_file
from ..statistics.digits import estimate_text, interval_text, std_text
from ..statistics.estimate_covariance import METHODS
from .regression import Regression

# Confidence level of the intervals.
LEVEL = 0.95


def write_report(
    regression: Regression, path: str | os.PathLike[str] | None = None, force: bool = False
) -> str:
    """Return the report, and write it to `path`; see `write_report_file`."""
    return write_report_file(
        path,
        force,
        lambda: as_text(regression),
        lambda: as_record(regression),
        lambda: as_table(regression),
    )


def as_text(regression: Regression) -> str:
    """Return the report as Markdown; the verdict on the intervals is the first line."""
    data, base, methods = regression.data, regression.base, list(regression.covariances)
    lines = [f"**{regression.verdict}**", "", "# Regression", ""]
    for warning in regression.warnings:
        lines += [f"**Warning**: {warning}", ""]
    heads = ["base parameter", "estimate", f"{100 * LEVEL:g} % interval"]
    heads += [f"std ({name})" for name in methods]
    lines += [
        f"{len(data.torques)} samples of {len(data.joints)} torques, {base.rank} base parameters "
        f"of {len(data.labels)}, condition {base.condition:.3g}.",
        "",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
    ]
    stds = np.stack([c.std for c in regression.covariances.values()], axis=1)
    intervals = regression.confidence_intervals(LEVEL)
    for k, label in enumerate(base.expressions):
        value = estimate_text(regression.values[k], regression.std[k])
        cells = [label, value, interval_text((intervals[k, 0], intervals[k, 1]))]
        lines.append(f"| {' | '.join([*cells, *map(std_text, stds[k])])} |")
    lines += ["", f"The intervals are those of `{regression.method}`. Methods assume:"]
    lines += [f"- {name}: {METHODS[name]}" for name in methods]
    lines += ["", "## Residual torques", ""]
    for joint, rms, test in zip(
        data.joints, regression.rms, regression.whiteness.values(), strict=True
    ):
        lines.append(
            f"- {joint}: root mean square {rms:.4g}; {test or 'too few residuals for a test'}"
        )
    return "\n".join(lines) + "\n"


def as_record(regression: Regression) -> dict[str, Any]:
    """Return the report as plain values for JSON."""
    return {
        "verdict": {"first_line": str(regression.verdict), "use": regression.verdict.use},
        "warnings": list(regression.warnings),
        "covariance_method": regression.method,
        "level": LEVEL,
        "parameters": [
            {"label": label, "estimate": value, "interval": interval}
            for label, value, interval in zip(
                regression.base.expressions,
                regression.values.tolist(),
                regression.confidence_intervals(LEVEL).tolist(),
                strict=True,
            )
        ],
        "covariances": {n: c.matrix.tolist() for n, c in regression.covariances.items()},
        "std": {name: c.std.tolist() for name, c in regression.covariances.items()},
        "noise": dict(zip(regression.data.joints, regression.noise.tolist(), strict=True)),
        "noise_is_known": regression.noise_is_known,
        "rms": dict(zip(regression.data.joints, regression.rms.tolist(), strict=True)),
        "whiteness": {
            joint: None if test is None else dataclasses.asdict(test)
            for joint, test in regression.whiteness.items()
        },
    }


def as_table(regression: Regression) -> list[list[Any]]:
    """Return the estimates as rows of numbers, a heading first, for CSV."""
    columns = (
        regression.base.expressions,
        regression.values.tolist(),
        regression.std.tolist(),
        *regression.confidence_intervals(LEVEL).T.tolist(),
    )
    heading = ["base parameter", "estimate", "std", "lower", "upper"]
    return [heading, *map(list, zip(*columns, strict=True))]
