"""Reports of `rigidjax regress`: Markdown, JSON and CSV."""

import csv
import datetime
import hashlib
import io
import json
from typing import Any

import numpy as np

from .._version import __version__
from ..identification import ConsistentRegression, Regression
from ..identification.regression.report import as_record, as_text
from ..identification.statistics.digits import estimate_text, std_text
from .case.regression import RegressionCase


def summary_lines(
    case: RegressionCase,
    linear: Regression,
    essential: Regression | None,
    consistent: ConsistentRegression | None,
) -> list[str]:
    """Return the lines that the command prints."""
    data = linear.data
    size = np.sqrt(np.mean(data.torques**2, axis=0))
    lines = [
        f"{case.title}: {len(data.torques)} samples of {len(data.joints)} torques, "
        f"{linear.base.rank} base parameters of {len(data.labels)}",
        str(linear.verdict),
        *(f"Warning: {text}" for text in linear.warnings),
        *_base_lines(linear if essential is None else essential),
        "residual torque, rms in % of that of the torque: "
        + ", ".join(
            f"{j} {100 * x:.1f}" for j, x in zip(data.joints, linear.rms / size, strict=True)
        ),
    ]
    if essential is not None:
        lines.append(_essential_text(linear, essential))
    return lines + ([] if consistent is None else _body_lines(consistent))


def _base_lines(linear: Regression) -> list[str]:
    rows = zip(linear.base.expressions, linear.values.tolist(), linear.std.tolist(), strict=True)
    return [f"{estimate_text(v, s):>12} +- {std_text(s):>8}   {label}" for label, v, s in rows]


def _essential_text(linear: Regression, essential: Regression) -> str:
    growth = np.linalg.norm(essential.rms / linear.noise) / np.linalg.norm(
        linear.rms / linear.noise
    )
    return (
        f"{essential.base.rank} of {linear.base.rank} base parameters are essential; without the "
        f"others the residual grows by {100 * (growth - 1):.2f} %."
    )


def _list_removed(linear: Regression, essential: Regression) -> list[str]:
    kept = set(essential.base.expressions)
    return [text for text in linear.base.expressions if text not in kept]


def _body_lines(consistent: ConsistentRegression) -> list[str]:
    lines = []
    for name, body in consistent.bodies.items():
        center = ", ".join(f"{x:.4g}" for x in np.asarray(body.center).tolist())
        lines.append(f"{name}: {float(body.mass):.4g} kg at ({center}) m")
    std = np.sqrt(np.diag(consistent.covariance))[len(consistent.bodies) * 10 :].tolist()
    for (label, value), deviation in zip(consistent.terms.items(), std, strict=True):
        lines.append(f"{label}: {estimate_text(value, deviation)} +- {std_text(deviation)}")
    return lines


def as_markdown(
    case: RegressionCase,
    linear: Regression,
    essential: Regression | None,
    consistent: ConsistentRegression | None,
) -> str:
    """Return the report as Markdown; its first line is the verdict on the intervals."""
    parts = [as_text(linear)]
    if essential is not None:
        parts += ["## Essential parameters", "", _essential_text(linear, essential), ""]
        parts += ["| base parameter | estimate | std |", "|---|---|---|"]
        parts += [
            f"| {label} | {estimate_text(value, std)} | {std_text(std)} |"
            for label, value, std in zip(
                essential.base.expressions,
                essential.values.tolist(),
                essential.std.tolist(),
                strict=True,
            )
        ]
        parts += [
            "",
            "Left out: " + ("; ".join(_list_removed(linear, essential)) or "none") + ".",
            "",
        ]
    if consistent is not None:
        parts += [
            "## Physically consistent bodies",
            "",
            "In the frames of the links; inertia about the centre of mass, kg m^2. Where the "
            "torques determine nothing, the values are those of the prior.",
            "",
            "| body | mass, kg | centre, m | Ixx, Ixy, Ixz, Iyy, Iyz, Izz |",
            "|---|---|---|---|",
        ]
        for name, body in consistent.bodies.items():
            tensor = np.asarray(body.tensor)[np.triu_indices(3)]
            cells = [
                ", ".join(f"{x:.4g}" for x in row) for row in (np.asarray(body.center), tensor)
            ]
            parts.append(f"| {name} | {float(body.mass):.4g} | {' | '.join(cells)} |")
        parts += ["", *(f"- {line}" for line in _body_lines(consistent)[len(consistent.bodies) :])]
        parts.append("")
    parts += ["## Data", "", *(f"- {key}: {value}" for key, value in _provenance(case).items())]
    return "\n".join(parts) + "\n"


def _provenance(case: RegressionCase) -> dict[str, Any]:
    """Return date, version and hashes of the case and its files."""
    hashes = {}
    for file in case.files:
        with open(file, "rb") as stream:
            hashes[file] = hashlib.file_digest(stream, "sha256").hexdigest()
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "rigidjax": __version__,
        "case": hashlib.sha256(case.text.encode()).hexdigest(),
        **hashes,
    }


def as_json(
    case: RegressionCase,
    linear: Regression,
    essential: Regression | None,
    consistent: ConsistentRegression | None,
) -> str:
    """Return the report as JSON."""
    record: dict[str, Any] = {"title": case.title, "regression": as_record(linear)}
    if essential is not None:
        record["essential"] = as_record(essential)
        record["essential"]["left_out"] = _list_removed(linear, essential)
    if consistent is not None:
        record["consistent"] = {
            "bodies": {
                name: {
                    "mass": float(body.mass),
                    "center": np.asarray(body.center).tolist(),
                    "inertia": np.asarray(body.tensor).tolist(),
                }
                for name, body in consistent.bodies.items()
            },
            "terms": consistent.terms,
            "labels": list(consistent.data.labels),
            "parameters": consistent.parameters.tolist(),
            "covariance": consistent.covariance.tolist(),
            "rms": dict(zip(consistent.data.joints, consistent.rms.tolist(), strict=True)),
        }
    record["data"] = _provenance(case)
    return json.dumps(record, indent=2) + "\n"


def as_csv(linear: Regression, essential: Regression | None) -> str:
    """Return the base parameters as CSV, with their estimates where they are essential."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    heads = ["base parameter", "estimate", "std", "lower", "upper"]
    writer.writerow([*heads, *([] if essential is None else ["essential estimate", "std"])])
    kept = {}
    if essential is not None:
        rows = zip(essential.values.tolist(), essential.std.tolist(), strict=True)
        kept = dict(zip(essential.base.expressions, rows, strict=True))
    intervals = linear.confidence_intervals()
    for k, label in enumerate(linear.base.expressions):
        row = [label, linear.values[k], linear.std[k], *intervals[k]]
        more = [] if essential is None else kept.get(label, ("", ""))
        writer.writerow([*row[:1], *(f"{x:.10g}" for x in row[1:]), *more])
    return text.getvalue()
