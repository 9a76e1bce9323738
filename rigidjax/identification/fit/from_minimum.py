"""What a fit found, as its users see it."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..data.measurements import Runs
from ..parameters import Components
from ..statistics.ambiguity import listed
from ..statistics.identifiability import judge
from .active_bounds import active_bounds
from .failed_runs import slope_mismatch
from .least_squares import Minimum, Search
from .losses import Squares
from .precision import MOST_OFFSET, least_scatter
from .problem import Problem, Start
from .result import LEVEL, Fit

# Sum of squares per degree of freedom above which a fit is called a misfit.
_MISFIT = 2.0
# Condition from which on a fit is slow because of what the data hardly determine.
_BAD_CONDITION = 1e4
# Iterations over which progress is looked at, and what counts as progress of the sum of squares.
_LAST, _PROGRESS = 10, 1e-3
# Relative distance below which derivatives agree with differences of runs.
_AGREE = 0.05
# How a search ends where derivatives lead on, and trials do not.
_STUCK = "no step leads closer to the optimum"


def make_fit(
    problem: Problem,
    runs: Runs,
    table: Components,
    minimum: Minimum,
    notes: list[str],
    search: Search,
    estimated: dict[str, float],
) -> Fit:
    """The result at a minimum.

    **Arguments:** `table` of all components; `estimated`, the noise of sensors that was not given.
    """
    first, last = minimum.first, minimum.last
    table = table.at(last.components)
    chosen, samples = table.chosen, runs.num_samples
    freedom = samples - chosen.size
    chi_square = float(np.sum(np.square(np.asarray(last.residuals)))) / max(freedom, 1)
    variance = _variance(runs, search, last, chi_square, chosen.size)
    resolution = float(problem.simulation.resolution(runs.ts.dtype))
    jacobian = last.with_prior(variance)
    spectrum, verdict = judge(table, first.components, jacobian, variance, resolution)
    estimates = table.part(chosen)
    offset = float(minimum.offset(least_scatter(problem, runs), np))
    result, warnings = _ending(minimum, offset, search, verdict)
    if result.startswith(_STUCK):
        warnings.append(_stuck_text(problem, slope_mismatch(problem, minimum)))
    failures = int(minimum.failures)
    if failures:
        notes = [*notes, f"{failures} trials had a simulation that failed; they were rejected."]
    if runs.noise_is_known and isinstance(search.loss, Squares) and chi_square > _MISFIT:
        ratio = np.sqrt(chi_square)
        warnings.append(
            f"The residuals are {ratio:.3g} times as large as the noise that was given, on which "
            "the standard deviations rest: the noise, the model or this minimum is not the right "
            "one (`starts=...` looks for other minima)."
        )
    noise = estimated
    if not (noise or runs.noise_is_known):
        noise = {runs.sensors[0].name: float(np.sqrt(chi_square))}
    experiments = _experiments(problem, minimum)
    iterations = np.asarray(minimum.iterations)
    fit = Fit(
        model=experiments[0].model,
        sensors=experiments[0].sensors,
        models=tuple(e.model for e in experiments),
        states=tuple(
            _started(e, jnp.asarray(t))
            for e, t in zip(experiments, np.asarray(problem.runs.ts)[:, 0], strict=True)
        ),
        sensors_by_run=tuple(e.sensors for e in experiments),
        labels=estimates.labels,
        units=estimates.units,
        values=estimates.values,
        starts=first.components[chosen],
        covariance=spectrum.covariance(),
        correlations=spectrum.correlations(),
        residuals=_residuals(runs, last),
        ts=tuple(np.asarray(runs.ts)[b, :n] for b, n in enumerate(runs.lengths)),
        run_names=runs.names,
        num_residuals=samples,
        noise_is_known=runs.noise_is_known,
        noise=float(np.sqrt(variance)),
        noise_by_sensor=noise,
        chi_square=chi_square,
        identifiability=verdict,
        result=result,
        warnings=tuple(warnings),
        notes=tuple(notes),
        iterations=tuple(int(i) for i in iterations),
        failed_evaluations=failures,
        offset=offset,
        bounds=active_bounds(problem, minimum, table, runs.names, spectrum),
        cost=tuple(np.asarray(c)[:n] for c, n in zip(minimum.cost, iterations, strict=True)),
    )
    texts = tuple(bound.text(fit.quantile(LEVEL, True), LEVEL) for bound in fit.bounds)
    return dataclasses.replace(fit, warnings=(*fit.warnings, *texts))


def _started(experiment, t):
    """The state at the start of a run."""
    plain = experiment.start is None and experiment.reference is None
    return experiment.state0 if plain else _started_compiled(experiment, t)


@eqx.filter_jit
def _started_compiled(experiment, t):
    return experiment.started(t)[0]


def _variance(runs, search, last, chi_square, count):
    """Variance of a weighted residual, with so many parameters fitted."""
    if isinstance(search.loss, Squares):
        return 1.0 if runs.noise_is_known else chi_square
    used = np.concatenate([r[w > 0] for _, w, r in runs.by_sensor(last.residuals)])
    return search.loss.variance(used, count)


def _experiments(problem, minimum):
    """The experiment of every run at a minimum."""
    starts = Start(problem.runs.state0, problem.runs.inputs)
    starts, found = jax.tree.map(np.asarray, (starts, minimum.leaves))
    each = range(problem.num_runs)
    leaves = [[leaf[b] for leaf in found] for b in each]
    starts = [jax.tree.map(lambda x, b=b: jnp.asarray(x[b]), starts) for b in each]
    return [
        problem.experiment([jnp.asarray(leaf) for leaf in own], start)
        for own, start in zip(leaves, starts, strict=True)
    ]


def _ending(minimum, offset, search, verdict):
    """How the search ended, and if it was not at an optimum, what can be done."""
    if bool(minimum.converged) and offset <= MOST_OFFSET:
        return "converged", []
    if bool(minimum.converged) and offset <= search.reach:
        return f"stopped {offset:.2g} standard errors from the optimum, as `tolerance` allows", [
            f"Lower `tolerance` (here {float(search.tolerance):.2g}): an optimum is closer than "
            f"{MOST_OFFSET:g} standard errors."
        ]
    if bool(minimum.converged):
        return f"{_STUCK}, which is {offset:.2g} standard errors away", [
            "The derivatives lead on, but no step along them lowers the sum of squares."
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
        loose = sorted({label for change in verdict.undetermined for label in change})
        facts.append(
            f"The data do not determine {listed(loose)}: give known values of some, or priors."
        )
    elif verdict.condition > _BAD_CONDITION:
        facts.append(
            f"The data hardly determine a combination of the parameters (condition "
            f"{verdict.condition:.2g}, see the verdict): give known values or priors."
        )
    reached = f"{offset:.2g} standard errors from it" if np.isfinite(offset) else "far from it"
    return f"no optimum within {search.max_iterations} iterations, {reached}", [
        " ".join(facts) or "No iteration could be evaluated."
    ]


def _stuck_text(problem, mismatch):
    """What a search met that no step leads on, from differences of runs."""
    tolerances = f"rtol = {float(problem.simulation.rtol):.1g}"
    if not np.isfinite(mismatch):
        return f"One standard error from there, runs fail at {tolerances}."
    text = f"Along that step, derivatives and differences of runs at {tolerances} "
    if mismatch < _AGREE:
        return text + f"agree to {100 * mismatch:.2g} %."
    return text + (
        f"differ by {100 * mismatch:.2g} %: the derivatives are not those of these runs."
    )


def _residuals(runs, evaluation):
    """Residuals of each run by sensor, in its unit; NaN where a sample has no weight."""
    out = [{} for _ in runs.lengths]
    for sensor, weights, weighted in runs.by_sensor(evaluation.residuals):
        plain = np.where(weights > 0, weighted / np.where(weights > 0, weights, 1.0), np.nan)
        for b, length in enumerate(runs.lengths):
            out[b][sensor.name] = plain[b, :length]
    return tuple(out)
