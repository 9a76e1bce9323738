"""Reports of a fit as Markdown, JSON or CSV, and their sections, which its HTML page shares."""

import datetime
import hashlib
import importlib.metadata
import itertools
import os
import pathlib
import platform
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._version import __version__
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
from ..data.measurements import Runs
from ..statistics.estimate_covariance import METHODS
from ..statistics.verdict import METHOD_NAMES
from ..transforms import InertiaTensor
from .previous import Changes
from .result import LEVEL, Fit

_PACKAGES = ("jax", "jaxlib", "diffrax", "equinox", "optimistix", "numpy")


def software_versions() -> dict[str, str]:
    """Return the versions of rigidjax, Python and the packages that determine the results."""
    versions = {"rigidjax": __version__, "python": platform.python_version()}
    return versions | {name: importlib.metadata.version(name) for name in _PACKAGES}


def current_date() -> str:
    """Return the date and time in UTC, ISO 8601, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def file_hash(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of the content of a file, in hexadecimal.

    **Errors:** `OSError` for a file that cannot be read.
    """
    with pathlib.Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def origin_rows(
    data: Sequence[tuple[str, str]] = (), files: Iterable[str | os.PathLike[str]] = ()
) -> list[tuple[str, str]]:
    """Return names and values of the origin of a report: date, files, data, versions.

    **Arguments:** `data`, further names and values; `files`, of which the SHA-256 is stated.
    """
    rows = [("Date", current_date())]
    for file in map(pathlib.Path, files):
        rows.append((str(file), f"SHA-256 {file_hash(file)}" if file.is_file() else "a folder"))
    versions = ", ".join(f"{name} {version}" for name, version in software_versions().items())
    return [*rows, *data, ("Versions", versions)]


def data_hash(runs: Runs) -> str:
    """Return the SHA-256 of times, samples, masks and measured inputs of all runs, in hexadecimal.

    It depends on the order of runs and sensors and on the names of sensors, not on the names of
    runs and not on the noise.
    """
    digest = hashlib.sha256()

    def add(array: np.ndarray) -> None:
        array = np.ascontiguousarray(array)
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())

    for b, length in enumerate(runs.lengths):
        add(np.asarray(runs.ts)[b, :length])
        for sensor, values, weights in zip(runs.sensors, runs.values, runs.weights, strict=True):
            digest.update(sensor.name.encode())
            used = np.asarray(weights)[b, :length] > 0
            samples = np.asarray(values)[b, :length]
            add(used)
            add(np.where(used.any(axis=-1).reshape(-1, *[1] * (samples.ndim - 1)), samples, 0.0))
        for name in sorted(runs.inputs[b]):
            digest.update(name.encode())
            for array in runs.inputs[b][name]:
                add(np.asarray(array))
    return digest.hexdigest()


if TYPE_CHECKING:
    from .side_by_side import IntervalTable

# p-value below which residuals are reported as not white.
_SIGNIFICANT = 0.01
# Correlation above which a pair of estimates is named, and the number of such pairs.
_STRONG, _PAIRS = 0.9, 5


def as_document(
    fit: Fit, table: "IntervalTable", changes: Changes | None = None, causes: bool = True
) -> list[Block]:
    """Return the report; the verdict on the intervals is the first line."""
    parts: list[Block] = [*head(fit, causes), Heading("Identification", 1), search_text(fit)]
    parts += [estimates_table(fit, table), Paragraph(noise_text(fit)), *advice(fit)]
    for title, blocks in sections(fit, table).items():
        parts += [Heading(title), *blocks]
    if changes is not None:
        parts += [Heading("Changes since the previous fit"), *changes.blocks]
    if fit.notes:
        parts += [Heading("Notes"), Bullets(fit.notes)]
    origin = origin_rows([("SHA-256 of the data", data_hash(fit.optimum.runs))])
    return [*parts, Heading("Origin"), Bullets([f"{name}: {value}." for name, value in origin])]


def head(fit: Fit, causes: bool = True) -> list[Block]:
    """Return the verdict on the intervals, and all reasons not to trust the estimates."""
    kind = {"yes": "verdict", "with caution": "caution", "no": "failed"}[fit.verdict.use]
    parts: list[Block] = [Paragraph(str(fit.verdict), kind)]
    if causes and fit.causes:
        listed = "; ".join(
            f"({n}) {cause.text}, which explains {100 * cause.explained:.0f} %"
            for n, cause in enumerate(fit.causes, 1)
        )
        parts.append(Paragraph(f"Possible causes of the residuals: {listed}.", "warning"))
    if not fit.converged:
        text = f"This fit did not converge: {fit.result}. Its values are not estimates."
        parts.append(Paragraph(text, "failed"))
    return parts + [Paragraph(text, "warning") for text in fit.warnings]


def search_text(fit: Fit) -> Paragraph:
    """Return the size of the problem, and how the search ended."""
    return Paragraph(
        f"Runs: {len(fit.run_names)}; sampled values: {fit.num_residuals}; fitted parameters: "
        f"{len(fit.labels)}. Result: {fit.result} after {' + '.join(map(str, fit.iterations))} "
        f"iterations ({fit.failed_evaluations} failed trials), {fit.offset:.2g} standard errors "
        "from the optimum.",
        "note",
    )


def advice(fit: Fit) -> list[Block]:
    """Return principal axes of inertias, and the next experiment that would help."""
    return [Paragraph(text) for text in (*principal_axes_texts(fit), next_experiment(fit)) if text]


def principal_axes_texts(fit: Fit) -> list[str]:
    r"""Return a sentence for each fitted inertia tensor: its principal moments and axes.

    Standard deviations are those of the linearisation, $d\lambda_i = v_i^T\,dI\,v_i$.
    """
    texts, table = [], fit.optimum.table
    chosen = table.fitted_indices
    for group in dict.fromkeys(table.groups[chosen].tolist()):
        if not isinstance(fit.optimum.problem.parameter_of(group).transform, InertiaTensor):
            continue
        rows = np.flatnonzero(table.groups[chosen] == group)
        a, b, c, d, e, f = fit.values[rows]
        moments, axes = np.linalg.eigh([[a, f, e], [f, b, d], [e, d, c]])
        x, y, z = axes
        slopes = np.stack([x * x, y * y, z * z, 2 * y * z, 2 * x * z, 2 * x * y])
        std = np.sqrt(np.diag(slopes.T @ fit.covariance[np.ix_(rows, rows)] @ slopes))
        parts = "; ".join(
            f"{estimate_text(m, s)} +- {std_text(s)} about ({v[0]:.3f}, {v[1]:.3f}, {v[2]:.3f})"
            for m, s, v in zip(moments.tolist(), std.tolist(), axes.T.tolist(), strict=True)
        )
        name = fit.labels[rows[0]].removesuffix(".I11")
        texts.append(f"Principal moments of {name}, {fit.units[rows[0]]}: {parts}.")
    return texts


def next_experiment(fit: Fit) -> str:
    """Return what would make the least known estimate better, from the linearised fit.

    It is the one with the largest standard deviation relative to its parameter. Compared are a
    second run of this kind, half of the noise of one sensor, and a measured value of
    one other parameter. The text is empty for estimates that the data do not determine.
    """
    std, table = np.array(list(fit.std.values())), fit.optimum.table
    chosen, runs = table.fitted_indices, fit.optimum.runs
    starts = table.values.copy()
    starts[chosen] = fit.starts
    sizes = table.magnitudes(starts)[chosen]
    if not np.all(np.isfinite(std)) or not np.any(sizes > 0):
        return ""
    evaluation = fit.optimum.evaluate()
    parts_of_size = np.divide(std, sizes, out=np.zeros_like(std), where=sizes > 0)
    weakest = int(np.argmax(parts_of_size))
    J = evaluation.component_jacobian()[:, chosen].reshape(len(runs.names), -1, len(chosen))
    ends = np.cumsum([0, *(w[0].size for w in runs.weights)])
    parts = [np.einsum("bni,bnj->ij", *[J[:, a:b]] * 2) for a, b in itertools.pairwise(ends)]
    scale = 1 / np.sqrt(np.diag(np.sum(parts, axis=0)))
    prior = np.asarray(evaluation.prior.component_jacobian())[:, chosen]
    parts = [scale[:, None] * part * scale for part in (*parts, fit.noise**2 * prior.T @ prior)]
    total = np.sum(parts, axis=0)

    def deviation(information: np.ndarray, kept: np.ndarray) -> float:
        inverse = np.linalg.pinv(information[np.ix_(kept, kept)], hermitian=True)
        return float(np.sqrt(np.diag(inverse)[kept == weakest][0]))

    every = np.arange(len(chosen))
    now = deviation(total, every)
    choices = {"a second run like these": deviation(total + np.sum(parts[:-1], axis=0), every)}
    for sensor, part in zip(runs.sensors, parts, strict=False):
        choices[f"half of the noise of the {sensor.name}"] = deviation(total + 3 * part, every)
    groups = table.groups[chosen]
    for k in every[groups != groups[weakest]]:
        choices[f"a known value of {fit.labels[k]}"] = deviation(total, np.delete(every, k))
    best = sorted(choices, key=lambda name: choices[name])[:3]
    listed = ", ".join(f"by {100 * (1 - choices[name] / now):.0f} % with {name}" for name in best)
    return (
        f"Least known is {fit.labels[weakest]}, to {100 * parts_of_size[weakest]:.2g} %. Its "
        f"standard deviation would be smaller {listed}."
    )


def estimates_table(fit: Fit, table: "IntervalTable") -> Table:
    """Return all estimates with the intervals to use."""
    std, intervals = fit.std, table.trusted_intervals
    return Table(
        ("parameter", "estimate", "std", f"{100 * table.level:g} % interval", "start", "unit"),
        [
            (
                label,
                estimate_text(value, std[label]),
                std_text(std[label]),
                interval_text(intervals[label]),
                f"{start:.4g}",
                unit,
            )
            for label, value, start, unit in zip(
                fit.labels, fit.values.tolist(), fit.starts.tolist(), fit.units, strict=True
            )
        ],
    )


def sections(fit: Fit, table: "IntervalTable") -> dict[str, list[Block]]:
    """Return the sections on intervals, identifiability and residuals, by their titles."""
    methods = [
        f"{METHOD_NAMES[name]}: assumes {METHODS[name]}"
        + (", as the standard deviations do." if name == fit.method else ".")
        for name in fit.covariances
    ]
    verdict = list(fit.identifiability.messages)
    if fit.identifiability.identifiable:
        verdict.append(
            "Condition number of the scaled sensitivities: "
            f"{fit.identifiability.condition:.3g} (1: the parameters act independently; above "
            "1000: their effects are nearly alike)."
        )
    residuals = [
        f"{name}: {fit.rms[name]:.5g} {unit} over all; by channel "
        + ", ".join(f"{c} {x:.4g}" for c, x in fit.rms_by_channel[name].items())
        + "; by run "
        + ", ".join(f"{run} {x:.4g}" for run, x in fit.rms_by_run[name].items())
        + "."
        for name, unit in fit.sensor_units.items()
    ]
    return {
        "Intervals by method": [table.table, Paragraph(table.legend, "note"), Bullets(methods)],
        "Identifiability": [Bullets([*verdict, _correlations_text(fit)])],
        "Residuals": [
            Paragraph("Root mean square, predicted minus measured:", "note"),
            Bullets(residuals),
            Paragraph("Whiteness, tests of Ljung and Box and of runs of signs:", "note"),
            Bullets(whiteness_texts(fit)),
        ],
    }


def as_record(fit: Fit) -> dict[str, Any]:
    """Return the values of a fit by name, for JSON."""
    sides = {b.label: "lower" if b.is_lower else "upper" for b in fit.bounds}
    rows = numbers_table(fit).rows
    own = ("result", "converged", "iterations", "failed_evaluations", "num_residuals",
           "noise_is_known", "noise", "chi_square", "degrees_of_freedom", "covariance",
           "correlations", "rms", "autocorrelation", "rms_by_run", "rms_by_channel", "whiteness",
           "warnings", "notes")  # fmt: skip
    judged = ("identifiable", "rank", "num_parameters", "condition", "messages")
    return {
        "verdict": {"first_line": str(fit.verdict), **vars(fit.verdict)},
        **{name: getattr(fit, name) for name in own},
        "relative_offset": fit.offset,
        "level": LEVEL,
        "parameters": [
            {
                "label": label,
                "unit": unit,
                "estimate": value,
                "std": std,
                "interval": interval,
                "start": start,
                "bound": sides.get(label),
            }
            for label, unit, value, std, *interval, start in rows
        ],
        "bounds": [
            {
                "quantity": bound.quantity,
                "parameters": bound.parameters,
                "bound": "lower" if bound.is_lower else "upper",
                "limit": bound.limit,
                "std": bound.std,
                "interval": bound.interval(fit.quantile(LEVEL, True, bound.label)),
                "unit": bound.unit,
            }
            for bound in fit.bounds
        ],
        "covariance_method": fit.method,
        "std_by_method": {name: c.std for name, c in fit.covariances.items()},
        "identifiability": {name: getattr(fit.identifiability, name) for name in judged},
        "date": current_date(),
        "data_sha256": data_hash(fit.optimum.runs),
        "versions": software_versions(),
    }


def numbers_table(fit: Fit) -> Table:
    """Return the estimates as numbers, for CSV."""
    std, intervals = fit.std, fit.confidence_intervals(LEVEL)
    rows = zip(fit.labels, fit.units, fit.values.tolist(), fit.starts.tolist(), strict=True)
    return Table(
        ("parameter", "unit", "estimate", "std", "lower", "upper", "start"),
        [(name, unit, x, std[name], *intervals[name], start) for name, unit, x, start in rows],
    )


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


def _correlations_text(fit: Fit) -> str:
    """Return the pairs of estimates with the strongest correlations."""
    upper = np.triu(np.abs(fit.correlations), k=1)
    order = np.argsort(-upper, axis=None)[:_PAIRS]
    pairs = [
        f"{fit.labels[i]}, {fit.labels[j]}: {fit.correlations[i, j]:+.5f}"
        for i, j in zip(*np.unravel_index(order, upper.shape), strict=True)
        if upper[i, j] > _STRONG
    ]
    if not pairs:
        return f"No two estimates have a correlation above {_STRONG:g}."
    return "Strongest correlations: " + "; ".join(pairs) + "."


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
