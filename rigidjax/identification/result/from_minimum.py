"""Assembly of a `Fit` from a minimum, and refinement of the tolerances of the integration."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...annotations import Scalar
from ...checks import as_leaf
from ...persistent_jit import persistent_jit
from ...state import State
from ..data.measurements import Runs
from ..experiment.parameters import ComponentTable, Experiment
from ..search.dependent_noise import FittedNoise
from ..search.evaluation import evaluate
from ..search.least_squares import MAX_DISTANCE, Minimum, Search, minimise
from ..search.losses import Squares
from ..search.optimum import Optimum
from ..search.problem import FitProblem, StartData
from ..search.uncertainty import (
    Uncertainty,
    assess_uncertainty,
    contradict,
    find_active_bounds,
    negative_finding_of_fit,
)
from ..statistics.ambiguity import join_names
from ..statistics.covariance import Spectrum
from ..statistics.estimate_covariance import CovarianceMethod
from ..statistics.identifiability import Identifiability, judge
from ..statistics.verdict import Finding
from .result import LEVEL, Fit

# Chi square per degree of freedom above which the residuals contradict the given noise.
_MISFIT = 2.0
# Condition number above which slow convergence is attributed to weakly determined parameters.
_BAD_CONDITION = 1e4
# Number of last iterations whose decrease of the sum of squares is reported, and the relative
# decrease that counts as progress.
_LAST, _PROGRESS = 10, 1e-3
# Relative difference below which derivatives agree with finite differences of runs.
_AGREE = 0.05
# Result if the linearisation promises a decrease that no trial step achieves.
_STUCK = "no step leads closer to the optimum"


# Factor by which tolerances are lowered if integration errors stall a fit, and maximum number of
# refinements.
_TIGHTER, _ROUNDS = 1e-2, 2
# Factor on `max_steps` for runs with lowered tolerances.
_MORE_STEPS = 4


def make_fit(
    fitted: FittedNoise,
    table: ComponentTable,
    notes: list[str],
    search: Search,
    covariance: CovarianceMethod | None = None,
) -> Fit:
    """Return the `Fit` at a minimum.

    **Arguments:** `fitted`, the minimum with its noise; `table` of all components; `notes` so far;
    `search`; `covariance`, see `rj.identify`.
    """
    problem, runs, minimum = fitted.problem, fitted.runs, fitted.minimum
    first, last = minimum.first, minimum.last
    table = table.with_values(last.components)
    indices, samples = table.fitted_indices, runs.num_samples
    freedom = samples - indices.size
    chi_square = float(np.sum(np.square(np.asarray(last.residuals)))) / max(freedom, 1)
    # Weights are in units of a noise that is known or modelled.
    has_scale = bool(fitted.models) or any(runs.has_noise)
    if isinstance(search.loss, Squares):
        variance = 1.0 if has_scale else chi_square
    else:
        used = np.concatenate([r[w > 0] for _, w, r in runs.by_sensor(last.residuals)])
        variance = search.loss.variance(used, indices.size)
    resolution = float(problem.simulation.resolution(runs.ts.dtype))
    jacobian = last.component_jacobian_with_prior(variance)
    optimum = Optimum(problem, runs, search, minimum, table)
    experiments = _experiments(problem, minimum)
    uncertain: list[Uncertainty] = []

    def allow_for_dependence(spectrum: Spectrum) -> Spectrum:
        student = np.inf if runs.noise_is_known else max(freedom, 0)
        uncertain.append(assess_uncertainty(optimum, spectrum, covariance, student))
        return uncertain[0].spectrum

    spectrum, verdict = judge(
        table, first.components, jacobian, variance, resolution, allow_for_dependence
    )
    (uncertainty,) = uncertain
    findings = list(uncertainty.findings)
    std = uncertainty.covariances[uncertainty.method].std
    negative = negative_finding_of_fit(problem, experiments[0], table, std)
    findings += [negative] if negative else []
    estimates = table.subset(indices)
    distance = float(minimum.distance_to_optimum(noise_floor(problem, runs), np))
    result, warnings = _describe_ending(minimum, distance, search, verdict)
    if result.startswith(_STUCK):
        warnings.append(_explain_stall(problem, _derivative_mismatch(problem, minimum)))
    failures = int(minimum.failures)
    if failures:
        notes = [*notes, f"{failures} trials had a simulation that failed; they were rejected."]
    if runs.noise_is_known and isinstance(search.loss, Squares) and chi_square > _MISFIT:
        ratio = np.sqrt(chi_square)
        text = (
            f"The residuals are {ratio:.3g} times as large as the noise that was given, on which "
            "the standard deviations rest: the noise, the model or this minimum is not the right "
            "one (`starts=...` looks for other minima)."
        )
        reason = f"residuals are {ratio:.3g} times as large as the given noise"
        findings.insert(0, Finding(reason, text, uncertainty.method == "model"))
    noise = fitted.white
    if not (noise or fitted.models or runs.noise_is_known):
        noise = {runs.sensors[0].name: float(np.sqrt(chi_square))}
    covariances = uncertainty.covariances
    if fitted.added_covariance is not None:
        chain = np.asarray(last.chain)[indices]
        added = chain @ fitted.added_covariance @ chain.T
        covariances = {
            name: dataclasses.replace(c, matrix=c.matrix + added) for name, c in covariances.items()
        }
    iterations = np.asarray(minimum.iterations)
    plain = last.residuals  # Before noise models filter them.
    if problem.runs.whitening:
        plain = evaluate(problem.without_whitening(), minimum.shared, minimum.per_run).residuals
    fit = Fit(
        model=experiments[0].model,
        sensors=experiments[0].sensors,
        models=tuple(e.model for e in experiments),
        states=tuple(
            e.state0 if e.start is None and e.reference is None else _start_state(e, as_leaf(t))
            for e, t in zip(experiments, np.asarray(problem.runs.ts)[:, 0], strict=True)
        ),
        sensors_by_run=tuple(e.sensors for e in experiments),
        labels=estimates.labels,
        units=estimates.units,
        values=estimates.values,
        starts=first.components[indices],
        covariances=covariances,
        method=uncertainty.method,
        correlations=spectrum.correlations(),
        residuals=split_residuals(runs, plain, weighted=False),
        innovations=split_residuals(runs, last.residuals, weighted=True),
        ts=tuple(np.asarray(runs.ts)[b, :n] for b, n in enumerate(runs.lengths)),
        run_names=runs.names,
        num_residuals=samples,
        noise_is_known=runs.noise_is_known,
        noise=float(np.sqrt(variance)),
        noise_by_sensor=noise,
        noise_models=fitted.models,
        chi_square=chi_square,
        identifiability=verdict,
        result=result,
        warnings=(*warnings, *(finding.text for finding in findings)),
        findings=tuple(findings),
        notes=tuple(notes),
        iterations=tuple(int(i) for i in iterations),
        failed_evaluations=failures,
        offset=distance,
        bounds=find_active_bounds(problem, minimum, table, runs.names, spectrum),
        cost=tuple(np.asarray(c)[:n] for c, n in zip(minimum.cost, iterations, strict=True)),
        optimum=optimum,
    )
    texts = tuple(bound.text(fit.quantile(LEVEL, True, bound.label), LEVEL) for bound in fit.bounds)
    return dataclasses.replace(fit, warnings=(*fit.warnings, *texts))


@persistent_jit
def _start_state(experiment: Experiment, t: Scalar) -> State:
    return experiment.start_at(t)[0]


def _experiments(problem: FitProblem, minimum: Minimum) -> list[Experiment]:
    """Return the experiment of every run at a minimum."""
    start_data = StartData(problem.runs.state0, problem.runs.inputs)
    start_data, all_leaves = jax.tree.map(np.asarray, (start_data, minimum.leaves))
    run_indices = range(problem.num_runs)
    leaves = [[leaf[b] for leaf in all_leaves] for b in run_indices]
    start_data = [jax.tree.map(lambda x, b=b: as_leaf(x[b]), start_data) for b in run_indices]
    return [
        problem.experiment([as_leaf(leaf) for leaf in run_leaves], start)
        for run_leaves, start in zip(leaves, start_data, strict=True)
    ]


def _describe_ending(
    minimum: Minimum, distance: float, search: Search, verdict: Identifiability
) -> tuple[str, list[str]]:
    """Return how the search ended, and advice if it did not end at an optimum."""
    if bool(minimum.converged) and distance <= MAX_DISTANCE:
        return "converged", []
    if bool(minimum.converged) and distance <= search.distance_tolerance:
        return f"stopped {distance:.2g} standard errors from the optimum, as `tolerance` allows", [
            f"Lower `tolerance` (here {float(search.tolerance):.2g}): an optimum is closer than "
            f"{MAX_DISTANCE:g} standard errors."
        ]
    if bool(minimum.converged):
        return f"{_STUCK}, which is {distance:.2g} standard errors away", [
            "The linearisation predicts a decrease, but no step lowers the sum of squares."
        ]
    iterations = int(minimum.iterations[-1])
    cost = np.asarray(minimum.cost)[-1][max(iterations - _LAST, 0) : iterations]
    facts = []
    if cost.size > 1 and np.isfinite(cost).all() and cost[0] > 0:
        gain = 1 - cost.min() / cost[0]
        facts.append(
            f"The sum of squares fell by {100 * gain:.2g} % in the last {cost.size} iterations"
            + ("; more of them (`max_iterations`) lead further." if gain > _PROGRESS else ".")
        )
    if not verdict.identifiable:
        undetermined = sorted({label for change in verdict.undetermined for label in change})
        facts.append(
            f"The data do not determine {join_names(undetermined)}: fix some of them at known "
            "values, or give priors."
        )
    elif verdict.condition > _BAD_CONDITION:
        facts.append(
            f"The data hardly determine a combination of the parameters (condition "
            f"{verdict.condition:.2g}, see the verdict): fix parameters, or give priors."
        )
    remaining = (
        f"{distance:.2g} standard errors from it" if np.isfinite(distance) else "far from it"
    )
    return f"no optimum within {search.max_iterations} iterations, {remaining}", [
        " ".join(facts) or "No iteration could be evaluated."
    ]


def _explain_stall(problem: FitProblem, mismatch: float) -> str:
    """Return why no step makes progress, judged by finite differences of runs."""
    tolerances = f"rtol = {float(problem.simulation.rtol):.1g}"
    if not np.isfinite(mismatch):
        return f"One standard error from there, runs fail at {tolerances}."
    text = f"Along that step, derivatives and differences of runs at {tolerances} "
    if mismatch < _AGREE:
        return text + f"agree to {100 * mismatch:.2g} %."
    return text + (
        f"differ by {100 * mismatch:.2g} %: the derivatives are not those of these runs."
    )


def split_residuals(
    runs: Runs, residuals: Any, weighted: bool
) -> tuple[dict[str, np.ndarray], ...]:
    """Return the residuals of each run by sensor; NaN where a sample has no weight.

    **Arguments:** `residuals` (B, N), weighted; `weighted`, whether to return them so, or in the
    sensor's unit.
    """
    by_run = [{} for _ in runs.lengths]
    for sensor, weights, scaled in runs.by_sensor(residuals):
        used = weights > 0
        factor = 1.0 if weighted else np.where(used, weights, 1.0)
        plain = np.where(used, scaled / factor, np.nan)
        for b, length in enumerate(runs.lengths):
            by_run[b][sensor.name] = plain[b, :length]
    return tuple(by_run)


def _derivative_mismatch(problem: FitProblem, minimum: Minimum) -> float:
    """Return the relative difference between derivatives and finite differences of runs.

    It is measured along the step to the optimum of the linearisation, on the residuals at a
    minimum, over the free coordinates. Not finite where runs fail.
    """
    evaluation = evaluate(problem, minimum.shared, minimum.per_run)
    free = np.asarray(minimum.sides) == 0
    jacobian = np.asarray(evaluation.coordinate_jacobian()) * free
    step = -np.linalg.lstsq(jacobian, np.asarray(evaluation.residuals).reshape(-1))[0]
    size = minimum.shared.size
    shared, per_run = step[:size], step[size:].reshape(minimum.per_run.shape)
    ends = []
    for sign in (1.0, -1.0):
        moved = problem.clip(minimum.shared + sign * shared, minimum.per_run + sign * per_run)
        end = evaluate(problem, *moved)
        ends.append(np.where(np.asarray(end.okay)[:, None], np.asarray(end.residuals), np.nan))
    slope = jacobian @ step
    difference = 0.5 * (ends[0] - ends[1]).reshape(-1)
    return float(np.linalg.norm(difference - slope) / max(np.linalg.norm(slope), 1e-300))


def noise_floor(problem: FitProblem, runs: Runs) -> float:
    """Return the variance below which residuals are not noise, in units of the weights.

    It is one for known noise. For estimated noise, residuals as small as ten tolerances are
    integration errors, so that exact data have an optimum too.
    """
    if runs.noise_is_known:
        return 1.0
    settings, count, total = problem.simulation, 0, 0.0
    rtol, atol = max(float(settings.rtol), float(np.finfo(runs.ts.dtype).eps)), float(settings.atol)
    for values, weights in zip(runs.values, map(np.asarray, runs.weights), strict=True):
        used = weights > 0
        largest = np.abs(np.asarray(values)[used.any(axis=-1)]).max()
        total += np.sum((10 * weights[used] * (atol + rtol * largest)) ** 2)
        count += np.count_nonzero(used)
    return float(total / count)


def refine_tolerances(fitted: FittedNoise, search: Search) -> FittedNoise:
    """Continue with tighter tolerances if the fit stalls before the optimum.

    Adaptive steps treat non-smooth inputs, such as tables of torques, differently in every trial,
    so that the sum of squares jumps. Near the optimum the jumps exceed the reduction that is left.
    Steps of fixed length do not have this problem. Smaller steps do not help a wrong model.

    **Returns:** the problem with the final tolerances and its minimum; also in `notes`.
    """
    problem, runs, minimum, notes = fitted.problem, fitted.runs, fitted.minimum, [*fitted.notes]
    if problem.simulation.dt is not None or contradict(runs, minimum.last.residuals):
        return fitted
    for _ in range(_ROUNDS):
        distance = minimum.distance_to_optimum(noise_floor(problem, runs), np)
        how = problem.simulation
        if not bool(minimum.converged) or distance <= max(
            MAX_DISTANCE, float(search.distance_tolerance)
        ):
            break
        smallest = 10 * float(jnp.finfo(runs.ts.dtype).eps)
        rtol, atol = (jnp.maximum(_TIGHTER * x, smallest) for x in (how.rtol, how.atol))
        if rtol >= how.rtol and atol >= how.atol:
            break
        for max_steps in (how.max_steps, _MORE_STEPS * how.max_steps):
            refined_settings = dataclasses.replace(how, rtol=rtol, atol=atol, max_steps=max_steps)
            refined = eqx.tree_at(
                lambda p: p.simulation, problem.with_starts(minimum.leaves), refined_settings
            )
            new_minimum = minimise(refined, search.with_full_horizons())
            succeeded = bool(np.all(new_minimum.last.okay))
            if succeeded and int(new_minimum.failures) == 0:
                break
        if not succeeded:
            notes.append(
                f"At rtol = {float(how.rtol):.1g} no step leads closer to the optimum, "
                f"{distance:.2g} standard errors away; at rtol = {float(rtol):.1g} simulations "
                f"fail, with {max_steps} steps as well."
            )
            break
        end_distance = new_minimum.distance_to_optimum(noise_floor(problem, runs), np)
        notes.append(
            f"Integrated at rtol = {float(rtol):.1g} in the end: at {float(how.rtol):.1g} the fit "
            f"ended {distance:.2g} standard errors from the optimum, "
            + (
                "because of errors of the integration."
                if bool(new_minimum.converged) and end_distance <= MAX_DISTANCE
                else f"and now {end_distance:.2g}, so that integration errors are not the reason."
            )
        )
        minimum = dataclasses.replace(
            new_minimum,
            first=minimum.first,
            iterations=jnp.concatenate([minimum.iterations, new_minimum.iterations]),
            cost=jnp.concatenate([minimum.cost, new_minimum.cost]),
            failures=minimum.failures + new_minimum.failures,
        )
        problem = refined
    return fitted._replace(problem=problem, minimum=minimum, notes=notes)
