"""Covariances of a fit by several methods, and reasons to doubt its intervals."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..component_table import ComponentTable
from ..data.measurements import Runs
from ..parameters import Experiment, Parameter
from ..statistics.covariance import Spectrum
from ..statistics.estimate_covariance import (
    EstimateCovariance,
    model_covariance,
    preferred_sandwich,
    sandwich_covariance,
)
from ..statistics.plausibility import negative_finding
from ..statistics.stability import Rows, compare_halves, compare_with_rest
from ..statistics.verdict import (
    Finding,
    dependence_finding,
    difference_finding,
    rejected_channels,
)
from ..statistics.whiteness import Whiteness, assess_whiteness
from .evaluation import Evaluation
from .least_squares import Search
from .optimum import Optimum
from .problem import FitProblem

# Number of scores times parameters above which a sandwich that is not asked for is left out.
_LARGE = 2e8
# Mean square of residuals, in units of given noise, below which they are none of it.
_NEGLIGIBLE = 1e-4
# Number of runs above which single runs are not compared with the others.
_MANY_RUNS = 200
# Names of quantities that cannot be negative.
_NONNEGATIVE = frozenset("mass damping stiffness armature viscous coulomb stribeck".split())


class Uncertainty(NamedTuple):
    """Covariances of the estimates, and what the residuals say of them.

    **Attributes:** `covariances` by method, and the `method` of the intervals; `spectrum` with the
    covariance of the scores of this method; `findings` against the intervals.
    """

    covariances: dict[str, EstimateCovariance]
    method: str
    spectrum: Spectrum
    findings: tuple[Finding, ...]


def assess_uncertainty(
    optimum: Optimum, spectrum: Spectrum, covariance: str | None, freedom: float
) -> Uncertainty:
    """Return the covariances of a fit, the one for its intervals, and what speaks against it.

    **Arguments:** `optimum`; `spectrum` of the fitted components, for independent residuals;
    `covariance`, see `rj.identify`; `freedom` of Student's distribution for independent residuals.
    """
    runs, minimum, search = optimum.runs, optimum.minimum, optimum.search
    labels = optimum.table.subset(optimum.table.fitted_indices).labels
    rejected = rejected_channels(series_tests(runs, minimum.last))
    if runs.noise_is_known and _are_negligible(minimum.last):
        rejected = []
    preferred = preferred_sandwich(len(runs.names), minimum.per_run.shape[1] > 0)
    method = {None: preferred if rejected else "model", "sandwich": preferred}.get(
        covariance, covariance
    )
    covariances = {"model": model_covariance(spectrum, freedom)}
    if not spectrum.rank:
        return Uncertainty(covariances, "model", spectrum, ())
    rows, slope = _rows_by_run(optimum, optimum.evaluate(), search)
    others = {preferred, *([method] if method != "model" else [])}
    if method == "model" and runs.num_samples * spectrum.rank > _LARGE:
        others = set()
    scores = [run.scores(spectrum.basis) for run in rows]
    squares = sum(float(np.sum(run.residuals**2)) for run in rows)
    prior = np.asarray(minimum.last.prior.component_jacobian())[:, optimum.table.fitted_indices]
    for name in sorted(others, reverse=True):
        covariances[name] = sandwich_covariance(
            name,
            spectrum,
            scores,
            squares,
            np.sqrt(spectrum.variance) * prior if len(prior) else None,
            slope,
        )
    used = covariances[method or "model"]
    spectrum = spectrum.with_score_covariance(used.scores)
    total = np.sum([run.sum(axis=0) for run in scores], axis=0)
    differences = {"halves of the data": compare_halves(rows, spectrum, used, slope)}
    if 1 < len(rows) <= _MANY_RUNS:
        for name, run in zip(runs.names, rows, strict=True):
            differences[f"run {name} and the others"] = compare_with_rest(
                run, total, spectrum, used, slope
            )
    findings = [
        dependence_finding(rejected, labels, used, covariances),
        difference_finding(differences, labels),
    ]
    return Uncertainty(
        covariances, used.method, spectrum, tuple(f for f in findings if f is not None)
    )


def _are_negligible(evaluation: Evaluation) -> bool:
    """Return whether the residuals are too small for noise, such as errors of the integration."""
    return float(np.mean(np.square(np.asarray(evaluation.residuals)))) < _NEGLIGIBLE


def check_clusters(covariance: str | None, num_runs: int, parameters: Sequence[Parameter]) -> None:
    """Raise `ValueError` if a covariance clustered by run is asked for, and the data have none.

    Scores of the parameters of a run sum to zero in this run.
    """
    if covariance != "cluster":
        return
    if num_runs < 2:
        raise ValueError(
            f'`identify(covariance="cluster")` needs two runs or more; got {num_runs}. Use "hac".'
        )
    if names := [p.name for p in parameters if p.per_run]:
        raise ValueError(
            '`identify(covariance="cluster")` needs parameters that all runs share; each run has '
            f'its own {names}. Use "hac".'
        )


def series_tests(runs: Runs, evaluation: Evaluation) -> dict[str, Whiteness | None]:
    """Return the tests for whiteness of every channel, over all runs and in each run, by name."""
    tests = {}
    for sensor, weights, residuals in runs.by_sensor(evaluation.residuals):
        series = np.where(weights > 0, residuals, np.nan)
        for k, channel in enumerate(sensor.channels):
            name = sensor.name if len(sensor.channels) == 1 else f"{sensor.name} {channel}"
            tests[name] = assess_whiteness(list(series[:, :, k]))
            if len(runs.names) > 1:
                for run, samples in zip(runs.names, series[:, :, k], strict=True):
                    tests[f"{name} in run {run}"] = assess_whiteness([samples])
    return tests


def _rows_by_run(
    optimum: Optimum, evaluation: Evaluation, search: Search
) -> tuple[list[Rows], float]:
    """Return the linearised residuals of every run, and the mean slope of the influence function.

    Samples of all sensors at one time are in one row; times without samples are left out.
    """
    runs, table = optimum.runs, optimum.table
    jacobian, residuals = np.asarray(evaluation.jacobian), np.asarray(evaluation.residuals)
    num_shared, num_own = evaluation.shared.shape[0], evaluation.per_run.shape[1]
    weighted = [w.reshape(len(w), -1) > 0 for w in map(np.asarray, runs.weights)]
    psi, slopes = search.loss.influence(residuals)
    slope = float(np.mean(slopes[np.concatenate(weighted, axis=1)]))
    position = np.full(len(table.labels), -1)
    position[table.fitted_indices] = np.arange(table.fitted_indices.size)
    rows = []
    for b in range(len(jacobian)):
        first = num_shared + b * num_own
        columns = position[[*range(num_shared), *range(first, first + num_own)]]
        fitted = columns >= 0
        parts, errors, begin = [], [], 0
        used = np.zeros(runs.ts.shape[1], bool)
        for weights in map(np.asarray, runs.weights):
            count, channels = weights.shape[1:]
            end = begin + count * channels
            parts.append(jacobian[b, begin:end][:, fitted].reshape(count, channels, -1))
            errors.append(psi[b, begin:end].reshape(count, channels))
            used |= (weights[b] > 0).any(axis=1)
            begin = end
        rows.append(
            Rows(
                np.concatenate(parts, axis=1)[used],
                np.concatenate(errors, axis=1)[used],
                columns[fitted],
            )
        )
    return rows, slope


def negative_finding_of_fit(
    problem: FitProblem, experiment: Experiment, table: ComponentTable, std: np.ndarray
) -> Finding | None:
    """Return the finding that fitted masses, dampings, stiffnesses or frictions are negative.

    The quantities are known by the names of their fields.

    **Arguments:** `experiment`, of one run; `table` of all components; `std` (k,), standard
    deviations of the fitted ones.
    """
    paths, tree = jax.tree_util.tree_flatten_with_path(experiment)
    names = [_field_name(path) for path, _ in paths]
    named = jax.tree_util.tree_unflatten(tree, names)
    signs = [p.where(named) in _NONNEGATIVE for p in problem.parameters]
    shared, count = len(problem.shared), len(signs)
    quantities = []
    for k, deviation in zip(table.fitted_indices, std, strict=True):
        group = int(table.groups[k])
        if group >= shared:
            group = shared + (group - shared) % (count - shared)
        if signs[group]:
            quantities.append((table.labels[k], float(table.values[k]), float(deviation)))
    return negative_finding(quantities)


def _field_name(path: Sequence[Any]) -> str:
    """Return the name of the last field on the path to a leaf."""
    names = [key.name for key in path if isinstance(key, jax.tree_util.GetAttrKey)]
    return names[-1] if names else ""
