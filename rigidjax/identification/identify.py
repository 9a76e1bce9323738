"""The entry point of identification."""

from collections.abc import Sequence

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from ..formulations import AbstractFormulation
from ..projection import AbstractProjection
from ..state import State
from ..system import System
from .evaluation import Evaluation
from .fit import Fit, IdentificationError
from .identifiability import judge
from .least_squares import Minimum, minimise
from .measurements import Measurements, Runs, stack_runs
from .parameters import Parameter
from .problem import Problem, Simulation, component_sizes, component_table, make_problem
from .sensors import tracking
from .shooting import shoot, started_from

# Sum of squares per degree of freedom above which a fit is called a misfit.
_MISFIT = 2.0


def identify(
    model: AbstractFormulation,
    measurements: Measurements | Sequence[Measurements],
    parameters: Parameter | Sequence[Parameter],
    *,
    state0: State | Sequence[State] | None = None,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    projection: bool | AbstractProjection = True,
    max_steps: int = 4096,
    horizons: Sequence[float] = (0.1, 0.3, 1.0),
    segments: int = 1,
    max_iterations: int = 200,
    tolerance: float | None = None,
    throw: bool = True,
) -> Fit:
    r"""Fit parameters of a model to measurements by weighted least squares.

    Levenberg-Marquardt with exact Jacobians, forward mode through the adaptive solve, all runs at
    once by `vmap`. A trial whose simulation fails is rejected and counted.

    **Arguments:**

    - `model`: a formulation such as `rj.NullSpace(system)`.
    - `measurements`: one run or several, of any lengths, with the same sensors.
    - `parameters`: what is fitted, each a `Parameter`; everything else is held fixed.
    - `state0`: state at the first sample, one for all runs or one for each. If left out: the
      reference state, with the first sample of every gyroscope and attitude sensor put into it.
    - `solver`, `rtol`, `atol`, `projection`, `max_steps`: as in `rj.simulate`; the default solver
      is `diffrax.Dopri5()`.
    - `horizons`: parts of each run that are fitted first, one after the other, ending with 1.
      Short ones lead past the local minima of long or chaotic runs; `(1.0,)` fits all at once.
    - `segments`: multiple shooting, for runs that are too long or too chaotic for that. Each run is
      cut into so many segments with starts of their own, the gaps between them are closed in
      stages, and the fit goes on from there with the undivided runs, whatever `horizons` says.
      Include `start_state` or other parameters of the start, unless it is known exactly.
    - `max_iterations`: of the last stage; the others take at most a quarter of it.
    - `tolerance`: of the minimisation, relative change of coordinates and residuals; or a hundred
      times that as the distance to the optimum in standard deviations. `None` for 1e-8, or 1e-4
      in single precision.
    - `throw`: raise `IdentificationError` if there is no optimum; if `False`, see `Fit.result`.

    **Returns:** a `Fit`.
    **Raises:** `ValueError` and `TypeError` for arguments that do not fit, for fewer samples than
    parameters, and for parameters that act on nothing; `IdentificationError`.
    """
    if not isinstance(model, AbstractFormulation):
        raise TypeError(
            "`identify(model, ...)` takes a formulation such as `rj.NullSpace(system)`; got "
            f"{type(model).__name__}."
        )
    parameters = (parameters,) if isinstance(parameters, Parameter) else tuple(parameters)
    for parameter in parameters:
        if not isinstance(parameter, Parameter):
            raise TypeError(
                "`identify(parameters=...)` takes `rj.Parameter` objects; got "
                f"{type(parameter).__name__}."
            )
    stages = _checked_horizons(horizons)
    if isinstance(segments, bool) or not isinstance(segments, int) or segments < 1:
        raise ValueError(
            "`identify(segments=...)` must be a number of segments, 1 for undivided runs; got "
            f"{segments!r}."
        )
    if max_iterations < 4:
        raise ValueError(
            f"`identify(max_iterations=...)` must be at least 4; got {max_iterations}."
        )
    runs = stack_runs(measurements)
    for sensor in runs.sensors:
        sensor.check(model)
    model = tracking(model, runs.sensors)
    states = _start_states(model, runs, state0)
    solver = diffrax.Dopri5() if solver is None else solver
    how = Simulation(solver, rtol, atol, projection, max_steps)
    problem, notes = make_problem(model, runs, states, parameters, how)
    _check_count(problem, runs)
    given, shot = problem, None
    if segments > 1:
        shot = shoot(problem, runs, segments)
        problem, stages = shot.problem, np.ones(1)
    dtype = runs.ts.dtype
    if tolerance is None:
        tolerance = 1e-8 if dtype == jnp.float64 else 1e-4
    minimum = minimise(
        problem, jnp.asarray(stages, dtype), jnp.asarray(tolerance, dtype), max_iterations
    )
    _check_start(problem, runs, minimum.first)
    if shot is not None:
        notes = [*notes, *shot.notes(bool(minimum.converged))]
        minimum = started_from(given, minimum)
    fit = _make_fit(problem, runs, minimum, notes, max_iterations)
    if throw and not fit.converged:
        raise IdentificationError(
            f"The fit did not converge: {fit.result}. `throw=False` returns what was reached."
        )
    return fit


def _checked_horizons(horizons):
    stages = np.asarray(horizons, float)
    if (
        stages.ndim != 1
        or len(stages) == 0
        or not np.all(np.diff(stages) > 0)
        or not (stages[0] > 0 and stages[-1] == 1)
    ):
        raise ValueError(
            "`identify(horizons=...)` must increase, from above 0, to 1, such as (0.1, 0.3, 1.0); "
            f"got {horizons!r}."
        )
    return stages


def _start_states(model, runs: Runs, state0) -> list[State]:
    count = len(runs.names)
    if state0 is None:
        system = model.system
        state = system.reference_state() if isinstance(system, System) else State()
        states = [state] * count
        for k, sensor in enumerate(runs.sensors):
            states = [
                sensor.start(model, state, runs.values[k][b][0]) for b, state in enumerate(states)
            ]
    elif isinstance(state0, State):
        states = [state0] * count
    else:
        states = list(state0)
        if len(states) != count:
            raise ValueError(
                f"`identify(state0=...)` takes one state, or one for each of the {count} runs; got "
                f"{len(states)}."
            )
    dtype = jnp.result_type(runs.ts)
    return [jax.tree.map(lambda x: x.astype(dtype), model.check_state(s)) for s in states]


def _check_count(problem: Problem, runs: Runs) -> None:
    _, _, fitted = component_table(problem, runs)
    count = int(np.count_nonzero(fitted))
    if runs.num_samples < count:
        raise ValueError(
            f"There are {runs.num_samples} scalar samples for {count} parameters. Fit fewer "
            "parameters, or measure more."
        )


def _check_start(problem: Problem, runs: Runs, first: Evaluation) -> None:
    """Say by name why a fit could not succeed."""
    failed = [runs.names[b] for b in np.flatnonzero(~np.asarray(first.okay))]
    if failed:
        raise IdentificationError(
            f"The simulation fails at the start values, in the runs {failed}. Start closer to the "
            "truth, or allow more steps (`max_steps`)."
        )
    labels, _, fitted = component_table(problem, runs)
    sensitivity = np.abs(np.asarray(first.by_components())).max(axis=0)
    idle = [x for x, s, f in zip(labels, sensitivity, fitted, strict=True) if f and s == 0]
    if idle:
        raise ValueError(
            f"The parameters {idle} act on nothing that is measured, at the start values. Leave "
            "them out, or start elsewhere."
        )


def _make_fit(
    problem: Problem,
    runs: Runs,
    minimum: Minimum,
    notes: list[str],
    max_iterations: int,
) -> Fit:
    first, last = minimum.first, minimum.last
    labels, units, fitted = component_table(problem, runs)
    values = _components(last)
    samples = runs.num_samples
    freedom = samples - int(np.count_nonzero(fitted))
    chi_square = float(np.sum(np.square(np.asarray(last.residuals)))) / max(freedom, 1)
    variance = 1.0 if runs.noise_is_known else chi_square
    epsilon = float(jnp.finfo(runs.ts.dtype).eps)
    spectrum, verdict = judge(
        labels,
        units,
        _groups(problem),
        fitted,
        values,
        np.asarray(last.by_components()),
        variance,
        # Derivatives are those of the discrete trajectory, as accurate as it is.
        max(10 * problem.simulation.rtol, np.sqrt(epsilon)),
        component_sizes(problem),
    )
    if bool(minimum.converged):
        result = "converged"
    else:
        result = f"no optimum within {max_iterations} iterations"
    failures = int(minimum.failures)
    if failures:
        notes = [*notes, f"{failures} trials had a simulation that failed; they were rejected."]
    if runs.noise_is_known and chi_square > _MISFIT:
        ratio = np.sqrt(chi_square)
        notes = [
            *notes,
            f"The residuals are {ratio:.3g} times as large as the noise that was given: the model "
            "does not explain these data, or this is a local minimum.",
        ]
    models, states, sensors, bounds = [], [], [], []
    of_runs, found = jax.tree.map(np.asarray, (problem.runs, minimum.leaves))
    for b in range(problem.num_runs):
        leaves = [jnp.asarray(leaf[b]) for leaf in found]
        run = jax.tree.map(lambda x, b=b: jnp.asarray(x[b]), of_runs)
        experiment = problem.experiment(leaves, run)
        models.append(experiment.model)
        states.append(experiment.started(run.ts[0])[0])
        sensors.append(experiment.sensors)
        for p, leaf in zip(problem.parameters, leaves, strict=True):
            reached = p.transform.bound(np.asarray(leaf))
            if reached and (p.per_run or b == 0):
                of_run = f" of run {runs.names[b]}" if p.per_run else ""
                bounds.append(
                    f"{p.name}{of_run} is at {reached}; its standard deviation is that of a "
                    "linearisation which does not know of the bound."
                )
    iterations = np.asarray(minimum.iterations)
    chosen = np.flatnonzero(fitted)
    return Fit(
        model=models[0],
        sensors=sensors[0],
        models=tuple(models),
        states=tuple(states),
        labels=tuple(labels[i] for i in chosen),
        units=tuple(units[i] for i in chosen),
        values=values[chosen],
        starts=_components(first)[chosen],
        covariance=spectrum.covariance(variance),
        correlations=spectrum.correlations(),
        residuals=_residuals(runs, last),
        ts=tuple(np.asarray(runs.ts)[b, :n] for b, n in enumerate(runs.lengths)),
        run_names=runs.names,
        num_residuals=samples,
        noise_is_known=runs.noise_is_known,
        noise=float(np.sqrt(variance)),
        chi_square=chi_square,
        identifiability=verdict,
        result=result,
        notes=(*notes, *bounds),
        iterations=tuple(int(i) for i in iterations),
        failed_evaluations=failures,
        offset=float(minimum.offset),
        cost=tuple(np.asarray(c)[:n] for c, n in zip(minimum.cost, iterations, strict=True)),
    )


def _components(evaluation):
    return np.concatenate([np.asarray(evaluation.shared), np.asarray(evaluation.own).reshape(-1)])


def _groups(problem):
    """The parameter (and run) that every component belongs to, as numbers."""
    out, number = [], 0
    for p, leaf in zip(problem.shared_parameters, problem.shared, strict=True):
        out += [number] * len(p.component_labels(leaf.shape))
        number += 1
    for _ in range(problem.num_runs):
        for p, leaf in zip(problem.own_parameters, problem.runs.own, strict=True):
            out += [number] * len(p.component_labels(leaf.shape[1:]))
            number += 1
    return out


def _residuals(runs, evaluation):
    """Residuals of each run by sensor, in its unit; NaN where a sample has no weight."""
    out, begin = [{} for _ in runs.lengths], 0
    for sensor, weights in zip(runs.sensors, map(np.asarray, runs.weights), strict=True):
        end = begin + weights[0].size
        weighted = np.asarray(evaluation.residuals)[:, begin:end].reshape(weights.shape)
        plain = np.where(weights > 0, weighted / np.where(weights > 0, weights, 1.0), np.nan)
        for b, length in enumerate(runs.lengths):
            out[b][sensor.name] = plain[b, :length]
        begin = end
    return tuple(out)
