"""Reports of a regression as Markdown, JSON or CSV."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...io.document import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Table,
    estimate_text,
    interval_text,
    std_text,
)
from ..statistics.estimate_covariance import METHODS
from .consistent import ConsistentRegression
from .regression import Regression

# Confidence level of the intervals.
LEVEL = 0.95


def as_document(regression: Regression) -> list[Block]:
    """Return the report; the verdict on the intervals is the first line."""
    data, base, methods = regression.data, regression.base, list(regression.covariances)
    parts: list[Block] = [Paragraph(str(regression.verdict), "verdict"), Heading("Regression", 1)]
    parts += [Paragraph(text, "warning") for text in regression.warnings]
    parts.append(Paragraph(size_text(regression)))
    stds = np.stack([c.std for c in regression.covariances.values()], axis=1)
    rows = zip(
        base.expressions,
        map(estimate_text, regression.values, regression.std),
        map(interval_text, map(tuple, regression.confidence_intervals(LEVEL))),
        *(map(std_text, column) for column in stds.T),
        strict=True,
    )
    heads = ("base parameter", "estimate", f"{100 * LEVEL:g} % interval")
    assumed = [f"{name}: {METHODS[name]}" for name in methods]
    tests = [
        f"{joint}: root mean square {rms:.4g}; {test or 'too few residuals for a test'}"
        for joint, rms, test in zip(
            data.joints, regression.rms, regression.whiteness.values(), strict=True
        )
    ]
    return [
        *parts,
        Table((*heads, *(f"std ({name})" for name in methods)), list(rows)),
        Paragraph(f"The intervals are those of `{regression.method}`. Methods assume:"),
        Bullets(assumed),
        Heading("Residual torques"),
        Bullets(tests),
    ]


def size_text(regression: Regression) -> str:
    """Return the numbers of samples and parameters."""
    data, base = regression.data, regression.base
    return (
        f"{len(data.torques)} samples of {len(data.joints)} torques, {base.rank} base parameters "
        f"of {len(data.labels)}, condition {base.condition:.3g}."
    )


def as_record(regression: Regression) -> dict[str, Any]:
    """Return the values of a regression by name, for JSON."""
    joints, intervals = regression.data.joints, regression.confidence_intervals(LEVEL)
    rows = zip(regression.base.expressions, regression.values, intervals, strict=True)
    return {
        "verdict": {"first_line": str(regression.verdict), "use": regression.verdict.use},
        "warnings": regression.warnings,
        "covariance_method": regression.method,
        "level": LEVEL,
        "parameters": [
            {"label": label, "estimate": value, "interval": interval}
            for label, value, interval in rows
        ],
        "covariances": {n: c.matrix for n, c in regression.covariances.items()},
        "std": {name: c.std for name, c in regression.covariances.items()},
        "noise": dict(zip(joints, regression.noise, strict=True)),
        "noise_is_known": regression.noise_is_known,
        "rms": dict(zip(joints, regression.rms, strict=True)),
        "whiteness": regression.whiteness,
    }


def numbers_table(regression: Regression, essential: Regression | None = None) -> Table:
    """Return the estimates as numbers, for CSV; empty cells for those that are not essential."""
    columns = [regression.values, regression.std, *regression.confidence_intervals(LEVEL).T]
    heads = ["base parameter", "estimate", "std", "lower", "upper"]
    rows = [
        [label, *map(float, row)]
        for label, *row in zip(regression.base.expressions, *columns, strict=True)
    ]
    if essential is not None:
        heads += ["essential estimate", "essential std"]
        values = zip(essential.values.tolist(), essential.std.tolist(), strict=True)
        kept = dict(zip(essential.base.expressions, values, strict=True))
        rows = [[*row, *kept.get(row[0], ("", ""))] for row in rows]
    return Table(heads, rows)


def list_removed(regression: Regression, essential: Regression) -> list[str]:
    """Return the base parameters that are not essential."""
    kept = set(essential.base.expressions)
    return [text for text in regression.base.expressions if text not in kept]


def essential_text(regression: Regression, essential: Regression) -> str:
    """Return how many parameters are essential, and the residual that the others explain."""
    growth = np.linalg.norm(essential.rms / regression.noise) / np.linalg.norm(
        regression.rms / regression.noise
    )
    return (
        f"{essential.base.rank} of {regression.base.rank} base parameters are essential; without "
        f"the others the residual grows by {100 * (growth - 1):.2f} %."
    )


def essential_section(regression: Regression, essential: Regression) -> list[Block]:
    """Return the section on the essential parameters."""
    rows = zip(
        essential.base.expressions,
        map(estimate_text, essential.values, essential.std),
        map(std_text, essential.std),
        strict=True,
    )
    return [
        Heading("Essential parameters"),
        Paragraph(essential_text(regression, essential)),
        Table(("base parameter", "estimate", "std"), list(rows)),
        Paragraph("Left out: " + ("; ".join(list_removed(regression, essential)) or "none") + "."),
    ]


def consistent_section(consistent: ConsistentRegression) -> list[Block]:
    """Return the section on physically consistent bodies."""
    rows = []
    for name, body in consistent.bodies.items():
        values = np.asarray(body.center), np.asarray(body.tensor)[np.triu_indices(3)]
        rows.append((name, f"{float(body.mass):.4g}", *map(_numbers_text, values)))
    return [
        Heading("Physically consistent bodies"),
        Paragraph(
            "In the frames of the links; inertia about the centre of mass, kg m^2. Where the "
            "torques determine nothing, the values are those of the prior."
        ),
        Table(("body", "mass, kg", "centre, m", "Ixx, Ixy, Ixz, Iyy, Iyz, Izz"), rows),
        Bullets(term_texts(consistent)),
    ]


def body_texts(consistent: ConsistentRegression) -> list[str]:
    """Return mass and centre of each body."""
    return [
        f"{name}: {float(body.mass):.4g} kg at ({_numbers_text(body.center)}) m"
        for name, body in consistent.bodies.items()
    ]


def term_texts(consistent: ConsistentRegression) -> list[str]:
    """Return rotor inertias, frictions and other terms with their standard deviations."""
    std = np.sqrt(np.diag(consistent.covariance))[len(consistent.bodies) * 10 :].tolist()
    return [
        f"{label}: {estimate_text(value, deviation)} +- {std_text(deviation)}"
        for (label, value), deviation in zip(consistent.terms.items(), std, strict=True)
    ]


def consistent_record(consistent: ConsistentRegression) -> dict[str, Any]:
    """Return the values of a consistent regression by name, for JSON."""
    bodies = {
        name: {"mass": float(body.mass), "center": np.asarray(body.center),
               "inertia": np.asarray(body.tensor)}
        for name, body in consistent.bodies.items()
    }  # fmt: skip
    return {
        "bodies": bodies,
        "terms": consistent.terms,
        "labels": consistent.data.labels,
        "parameters": consistent.parameters,
        "covariance": consistent.covariance,
        "rms": dict(zip(consistent.data.joints, consistent.rms, strict=True)),
    }


def _numbers_text(values: Sequence[float] | Any) -> str:
    return ", ".join(f"{x:.4g}" for x in np.asarray(values).tolist())
