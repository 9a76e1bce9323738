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
from .least_squares import Minimum, Search
from .losses import Squares
from .precision import MOST_OFFSET, least_scatter
from .problem import Problem, Start
from .result import LEVEL, Fit

# Sum of squares per degree of freedom above which a fit is called a misfit.
_MISFIT = 2.0
# Condition from which on a fit is slow because of what the data hardly determine.
_BAD_CONDITION = 1e4


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
    failures = int(minimum.failures)
    if failures:
        notes = [*notes, f"{failures} trials had a simulation that failed; they were rejected."]
    if runs.noise_is_known and isinstance(search.loss, Squares) and chi_square > _MISFIT:
        ratio = np.sqrt(chi_square)
        warnings.append(
            f"The residuals are {ratio:.3g} times as large as the noise that was given: the model "
            "does not explain these data, or this is a local minimum. Standard deviations are too "
            "small."
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
        return f"no step leads closer to the optimum, which is {offset:.2g} standard errors away", [
            "Derivatives lead on, but the sum of squares does not fall: it has errors of the "
            "integration that are larger than what is left to gain. Lower `rtol` and `atol`; give "
            "what is known at single times only, such as a measured torque, as a signal at whose "
            "knots steps end, not as a table that steps jump over."
        ]
    ways = ["more iterations (`max_iterations`)", "start values closer to the truth"]
    if search.damped:
        ways.append('the other method (`method="gauss-newton"`)')
    if search.horizons.shape[0] == 1:
        ways.append("shorter `horizons` first")
    if not verdict.identifiable or verdict.condition > _BAD_CONDITION:
        loose = sorted({label for change in verdict.undetermined for label in change})
        which = f" ({listed(loose)})" if loose else ""
        ways.insert(0, f"known values or priors for what the data hardly determine{which}")
    text = "; ".join(ways)
    reached = f"{offset:.2g} standard errors from it" if np.isfinite(offset) else "far from it"
    return f"no optimum within {search.max_iterations} iterations, {reached}", [
        f"What helps a fit that ends early: {text}."
    ]


def _residuals(runs, evaluation):
    """Residuals of each run by sensor, in its unit; NaN where a sample has no weight."""
    out = [{} for _ in runs.lengths]
    for sensor, weights, weighted in runs.by_sensor(evaluation.residuals):
        plain = np.where(weights > 0, weighted / np.where(weights > 0, weights, 1.0), np.nan)
        for b, length in enumerate(runs.lengths):
            out[b][sensor.name] = plain[b, :length]
    return tuple(out)
