"""Covariances of a fit by several methods, and reasons to doubt its intervals."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import ArrayLike

from ...io.document import interval_text, std_text
from ..data.measurements import Runs
from ..experiment.linearised_runs import sensor_major_order
from ..experiment.parameters import ComponentTable, Experiment, Parameter
from ..statistics.covariance import Spectrum
from ..statistics.estimate_covariance import (
    EstimateCovariance,
    model_covariance,
    preferred_sandwich,
    sandwich_covariance,
)
from ..statistics.stability import Rows, compare_halves, compare_with_rest
from ..statistics.verdict import (
    Finding,
    dependence_finding,
    difference_finding,
    negative_finding,
    rejected_channels,
)
from ..statistics.whiteness import Whiteness, assess_whiteness, successive_correlation
from .evaluation import Evaluation
from .least_squares import Minimum, Search
from .optimum import Optimum
from .problem import FitProblem

# Number of scores times parameters above which the sandwich is computed only on request.
_LARGE = 2e8
# Mean square of residuals, in units of the given noise, below which they are not noise.
_NEGLIGIBLE = 1e-4
# Number of runs above which single runs are not compared with the others.
_MANY_RUNS = 200
# Part of the variance of readings, and correlation of successive residuals, of wrong models.
_WRONG, _SMOOTH = 0.05, 0.5
# Names of quantities that cannot be negative.
_NONNEGATIVE = frozenset("mass damping stiffness armature viscous coulomb stribeck".split())


def contradict(runs: Runs, residuals: ArrayLike) -> bool:
    """Return whether weighted residuals (B, N) show that the model or the data are wrong.

    They do if residuals of a sensor are large, above 5 % of the variance of its readings, and
    smooth, with a correlation of successive ones above one half. White noise may be as large.
    """
    for (_, weights, r), values in zip(runs.by_sensor(residuals), runs.values, strict=True):
        if np.size(values) == weights.size:
            used = weights > 0
            plain = np.where(used, r / np.where(used, weights, 1.0), np.nan)
            samples = np.asarray(values).reshape(weights.shape)[used]
            is_large = np.nanmean(plain**2) > _WRONG * np.var(samples)
            if is_large and successive_correlation(list(plain)) > _SMOOTH:
                return True
    return False


@dataclasses.dataclass(frozen=True)
class ActiveBound:
    """A bound on which the optimum lies; without it the sum of squares would decrease further.

    **Attributes:** `quantity`, the bounded quantity: the label of a parameter, or a combination of
    parameters such as a principal Euler value, which is zero for a flat body; `label` of the
    parameter, `None` for a combination; `parameters`, labels of all parameters in it; `limit`, the
    bound; `is_lower`, whether it is a lower bound; `std`, standard deviation of the quantity in the
    linearisation without the bound; `unit`.
    """

    quantity: str
    label: str | None
    parameters: tuple[str, ...]
    limit: float
    is_lower: bool
    std: float
    unit: str

    def interval(self, factor: float) -> tuple[float, float]:
        """Return the one-sided interval from the limit to `factor` standard deviations inside."""
        if self.is_lower:
            return self.limit, self.limit + factor * self.std
        return self.limit - factor * self.std, self.limit

    def text(self, factor: float, level: float) -> str:
        """Return the bound in words, with the one-sided interval at a confidence level."""
        unit = f" {self.unit}" if self.unit else ""
        flat = " (a flat body)" if self.label is None else ""
        interval = interval_text(self.interval(factor))
        if np.isfinite(self.std):
            interval = f"{interval}{unit}"
        return (
            f"{self.quantity} is at its {'lower' if self.is_lower else 'upper'} bound, "
            f"{self.limit:.6g}{unit}{flat}: the data alone would have it "
            f"{'less' if self.is_lower else 'greater'}. Its {100 * level:g} % interval is "
            f"one-sided, {interval} (standard deviation without the bound {std_text(self.std)})."
        )


def find_active_bounds(
    problem: FitProblem,
    minimum: Minimum,
    table: ComponentTable,
    names: tuple[str, ...],
    spectrum: Spectrum,
) -> tuple[ActiveBound, ...]:
    """Return the bounds that are active at a minimum.

    **Arguments:** `problem`, `minimum`; `table` of all components; `names` of the runs; `spectrum`
    of the fitted components.
    """
    sides = np.asarray(minimum.sides)
    if not sides.any():
        return ()
    bounds, first_component, first_coordinate = [], 0, 0
    leaves = [np.asarray(leaf) for leaf in minimum.leaves]
    count = len(problem.shared)
    shared_entries = [(p, leaf[0], "") for p, leaf in zip(problem.parameters, leaves, strict=True)][
        :count
    ]
    run_entries = [
        (p, leaf[b], f" of run {name}")
        for b, name in enumerate(names)
        for p, leaf in list(zip(problem.parameters, leaves, strict=True))[count:]
    ]
    for p, leaf, suffix in (*shared_entries, *run_entries):
        size, width = len(p.transform.fitted(leaf.shape)), len(p.component_labels(leaf.shape))
        leaf_sides = sides[first_coordinate : first_coordinate + size]
        for active in p.transform.active_limits(leaf, leaf_sides) if leaf_sides.any() else ():
            combination = np.zeros(len(table.labels))
            combination[first_component : first_component + width] = active.combination
            components = np.flatnonzero(combination * table.fitted)
            is_component = not active.quantity
            bounds.append(
                ActiveBound(
                    quantity=table.labels[components[0]]
                    if is_component
                    else f"The {active.quantity} of {p.name}{suffix}",
                    label=table.labels[components[0]] if is_component else None,
                    parameters=tuple(table.labels[k] for k in components),
                    limit=active.limit,
                    is_lower=active.is_lower,
                    std=spectrum.std_of(combination[table.fitted_indices]),
                    unit=table.units[components[0]],
                )
            )
        first_component, first_coordinate = first_component + width, first_coordinate + size
    return tuple(bounds)


class Uncertainty(NamedTuple):
    """Covariances of the estimates, and findings from the residuals against them.

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
    """Return the covariances of a fit, the one for its intervals, and the findings against it.

    **Arguments:** `optimum`; `spectrum` of the fitted components, for independent residuals;
    `covariance`, see `rj.identify`; `freedom` of Student's distribution for independent residuals.
    """
    runs, minimum, search = optimum.runs, optimum.minimum, optimum.search
    labels = optimum.table.subset(optimum.table.fitted_indices).labels
    rejected = rejected_channels(series_tests(runs, minimum.last))
    mean_square = float(np.mean(np.square(np.asarray(minimum.last.residuals))))
    if runs.noise_is_known and mean_square < _NEGLIGIBLE:
        rejected = []  # Such small residuals are errors of the integration.
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
    by_sample = np.concatenate([np.asarray(w) for w in runs.weights], axis=2) > 0
    order = np.argsort(sensor_major_order(runs.weights))
    psi, slopes = search.loss.influence(residuals)
    slope = float(np.mean(slopes[:, order].reshape(by_sample.shape)[by_sample]))
    position = np.full(len(table.labels), -1)
    position[table.fitted_indices] = np.arange(table.fitted_indices.size)
    rows = []
    for b in range(len(jacobian)):
        first = num_shared + b * num_own
        columns = position[[*range(num_shared), *range(first, first + num_own)]]
        fitted = columns >= 0
        used = by_sample[b].any(axis=1)
        J = jacobian[b, order][:, fitted].reshape(*by_sample[b].shape, -1)
        errors = psi[b, order].reshape(by_sample[b].shape)
        rows.append(Rows(J[used], errors[used], columns[fitted]))
    return rows, slope


def negative_finding_of_fit(
    problem: FitProblem, experiment: Experiment, table: ComponentTable, std: np.ndarray
) -> Finding | None:
    """Return the finding that fitted masses, dampings, stiffnesses or frictions are negative.

    The quantities are known by the names of their fields.

    **Arguments:** `experiment`, of one run; `table` of all components; `std` (k,), standard
    deviations of the fitted ones.
    """
    pairs, tree = jax.tree_util.tree_flatten_with_path(experiment)
    # The last field on the path to a leaf.
    names = [
        ([key.name for key in path if isinstance(key, jax.tree_util.GetAttrKey)] or [""])[-1]
        for path, _ in pairs
    ]
    named = jax.tree_util.tree_unflatten(tree, names)
    quantities = []
    for k, deviation in zip(table.fitted_indices, std, strict=True):
        if problem.parameter_of(int(table.groups[k])).where(named) in _NONNEGATIVE:
            quantities.append((table.labels[k], float(table.values[k]), float(deviation)))
    return negative_finding(quantities)
