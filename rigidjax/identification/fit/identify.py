"""Identification of parameters from measurements."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...formulations.choice import ModelInput, choose_formulation
from ...persistent_jit import persistent_jit
from ...state import State
from ..data.measurements import Measurements, Runs, stack_runs
from ..experiment.checked_arguments import check_parameters
from ..experiment.parameters import Parameter, describe_priors
from ..experiment.simulation import Settings, Simulation, resolve_simulation
from ..noise.models import NoiseArgument, noise_models
from ..prediction.fit import (
    check_prediction_options,
    check_white_noise,
    make_prediction_fit,
    make_prediction_problem,
)
from ..result.from_minimum import make_fit, refine_tolerances
from ..result.result import Fit
from ..search.first_order import FirstOrder, descend
from ..search.least_squares import Minimum, Search, minimise_from
from ..search.losses import AbstractLoss, Squares
from ..search.noise import fit_with_noise, guess_noise
from ..search.options import (
    IdentificationError,
    Method,
    check_start,
    check_starts,
    count_fitted,
    make_search,
    prepare_problems,
)
from ..search.problem import FitProblem
from ..search.uncertainty import check_clusters
from ..shooting.shooting import restore_starts, shoot
from ..starts.named_parameters import find_named_parameters
from ..statistics.estimate_covariance import CovarianceMethod, check_covariance
from ..statistics.verdict import plausibility_notes

# Tolerance and maximum number of iterations from each start; the final fit refines the best.
_TOLERANCE, _ITERATIONS = 1e-3, 15
# Relative difference of costs below which two minima count as the same.
_SAME = 1e-2


def identify(
    model: ModelInput,
    measurements: Measurements | Sequence[Measurements],
    parameters: Parameter | Sequence[Parameter],
    *,
    state0: State | Sequence[State] | None = None,
    simulation: Simulation | None = None,
    horizons: Sequence[float] = (0.1, 0.3, 1.0),
    method: Method = "levenberg-marquardt",
    loss: AbstractLoss | None = None,
    noise: NoiseArgument = "white",
    covariance: CovarianceMethod | None = None,
    starts: int = 1,
    start_spread: float = 0.5,
    seed: int = 0,
    segments: int = 1,
    process_noise: Mapping[str, Any] | None = None,
    max_iterations: int = 200,
    tolerance: float | None = None,
    throw: bool = True,
    **settings: Unpack[Settings],
) -> Fit:
    """Fit parameters of a model to measurements by weighted least squares.

    The method is Levenberg-Marquardt with exact Jacobians, computed in forward mode through the
    adaptive solve, for all runs at once by `vmap`. A trial whose simulation fails is rejected and
    counted. Unknown noise is estimated from the residuals, sensor by sensor, alternating with the
    fit.

    **Arguments:**

    - `model`: a system or a formulation, as in `rj.simulate`.
    - `measurements`: one run or several, of any lengths, with the same sensors.
    - `parameters`: the fitted parameters, each a `Parameter`, with or without a prior; everything
      else is fixed.
    - `state0`: state at the first sample, one for all runs or one per run. If left out: the
      reference state, updated by the first sample of every gyroscope and attitude sensor. If such a
      sample comes so late that its reading may have changed by more than its noise, the start of
      every run is fitted too; a note in the `Fit` names the sensor.
    - `simulation`: an `rj.Simulation`. If integration errors stall a fit, it continues with
      tolerances a hundred times smaller and up to four times the steps, and reports it in
      `Fit.notes`.
    - `solver`, `rtol`, `atol`, `dt`, `projection`, `adjoint`, `max_steps`, `backend`: instead of
      `simulation`, its arguments.
    - `horizons`: fractions of each run that are fitted one after the other, ending with 1. Short
      ones avoid the local minima of long or chaotic runs; `(1.0,)` fits whole runs at once.
    - `method`: `"gauss-newton"` takes the full step of the linearisation, shortened by a line
      search; it needs a good start, and data that determine all parameters. `FirstOrder(...)`
      starts with gradient steps, for large or stochastic problems. `"prediction-error"` fits a
      model with `process_noise` to its predictions one sample ahead, by an extended Kalman filter.
    - `loss`: of a residual in units of the noise; `Huber()` or `Cauchy()` against outliers. `None`
      for least squares.
    - `noise`: the kind of noise, for all sensors or in a dictionary by sensor: `"white"`;
      `"ar1"`, ... `"ar8"`, autoregressive, `"ar(p)"` of a selected order; `"gp"`, a Gaussian
      process with a time constant, plus white noise; `"random-walk"`, a bias that walks at random,
      plus white noise; or `AutoRegressive`, `GaussianProcess` and `RandomWalk` objects of
      `rj.identification`, whose parameters are kept if given. Others are estimated by
      restricted maximum likelihood, alternating with the fit. Residuals are whitened by a Kalman
      filter.
    - `covariance`: `"model"` for independent residuals; `"hac"` for residuals that depend on
      earlier ones in the run and on other sensors; `"cluster"` for any dependence within a run, by
      the scatter of many runs that share all parameters; `"sandwich"` for `"cluster"` with 30 runs
      or more, else `"hac"`. `None` takes the sandwich where tests reject that residuals are white.
      See `Fit.covariances`.
    - `starts`: number of starts that are minimised at once, under `vmap`; the fit continues from
      the lowest minimum. The first start is the given one; others are drawn around it.
    - `start_spread`: how far the others are drawn from the given one, relative to the natural scale
      of each coordinate (logarithms, angles) or to its value.
    - `seed`: of the random starts.
    - `segments`: number of segments per run for multiple shooting, for runs that are too long or
      too chaotic for `horizons`. Each segment has its own start; the gaps between segments are
      closed in stages, and the fit continues with the whole runs, ignoring `horizons`. Include
      `start_state` or other parameters of the start, unless it is known exactly.
    - `process_noise`: for `method="prediction-error"`, standard deviations by name, `None` for
      those to be estimated. For a joint: of a white noise of its effort, N m/sqrt(Hz) or
      N/sqrt(Hz), one value, or one per coordinate; for a body: those of force and moment, a pair;
      `"moment"`: for a `FixedPointBody`; for a logged signal or input: of the errors of its
      samples, in its unit; for an input that is not logged: of a white noise.
    - `max_iterations`: of the last stage; the others take at most a quarter of it.
    - `tolerance`: of the minimisation. It ends at a distance to the optimum of a hundred
      tolerances, in standard errors, or when no step promises a relative reduction of the sum of
      squares above the tolerance. A fit that ends more than 0.1 standard errors away has not
      converged. `None` for 1e-8, or 1e-4 in single precision.
    - `throw`: whether to raise `IdentificationError` if there is no optimum; otherwise see
      `Fit.result`.

    **Returns:** a `Fit`.
    **Raises:** `ValueError` and `TypeError` for arguments that do not fit, for fewer samples than
    parameters, and for parameters without effect; `IdentificationError`.
    """
    run_settings = resolve_simulation("identify", simulation, settings)
    model = choose_formulation(model, "identify")
    parameters = check_parameters("identify", parameters)
    check_starts(starts, start_spread, segments, model)
    check_covariance("identify", covariance)
    given_noise = check_prediction_options(method, process_noise, starts, segments)
    runs = stack_runs(measurements)
    parameters = find_named_parameters(parameters, model, runs.sensors)
    check_clusters(covariance, len(runs.names), parameters)
    search = make_search(runs.ts.dtype, horizons, method, loss, max_iterations, tolerance)
    models = noise_models("identify", noise, runs.sensors)
    check_white_noise(given_noise, models)
    prior_notes = describe_priors(parameters)
    # Priors, robust losses and several sensors need the noise; a single weight does not matter.
    has_one_weight = len(runs.sensors) == 1 and isinstance(search.loss, Squares) and not prior_notes
    noise_is_usable = runs.noise_is_known or has_one_weight

    def weigh(runs: Runs) -> Runs:
        is_weighed = noise_is_usable or given_noise is not None
        return runs if is_weighed else guess_noise(runs, priors=bool(prior_notes))

    (problem,), (runs,), table, notes = prepare_problems(
        model, [runs], parameters, state0, run_settings, weigh, {}
    )
    notes += prior_notes
    count = count_fitted(table, runs)
    if given_noise is not None:
        predicted = make_prediction_problem(problem, runs, search, given_noise)
        return _finish(make_prediction_fit(predicted, runs, table, notes, covariance), throw)
    given_problem, shooting = problem, None
    if starts > 1:
        problem, note = _find_best_start(problem, search, starts, start_spread, seed)
        notes.append(note)
    if segments > 1:
        shooting = shoot(problem, runs, segments)
        problem, search = shooting.problem, search.with_full_horizon()
    if isinstance(method, FirstOrder):
        problem, note = descend(problem, search.loss, method)
        notes.append(note)
    fitted = fit_with_noise(problem, runs, search, count, models, noise_is_usable)
    check_start(fitted.problem, fitted.runs, table, fitted.minimum.first)
    fitted = refine_tolerances(fitted, search)
    notes += fitted.notes
    if shooting is not None:
        notes += shooting.notes(bool(fitted.minimum.converged))
    if fitted.problem is not given_problem:
        fitted = fitted._replace(minimum=restore_starts(given_problem, fitted.minimum))
    fit = make_fit(fitted, table, notes, search, covariance)
    return _finish(fit, throw)


def _finish(fit: Fit, throw: bool) -> Fit:
    """Return the fit with notes on implausible estimates; raise `IdentificationError` if it has no
    optimum, and `throw`."""
    fit = dataclasses.replace(fit, notes=(*fit.notes, *plausibility_notes(fit.model)))
    if throw and not fit.converged:
        raise IdentificationError(
            f"The fit did not converge: {fit.result}. {fit.warnings[0]} `throw=False` returns the "
            "last iterate."
        )
    return fit


def _find_best_start(
    problem: FitProblem, search: Search, count: int, spread: float, seed: int
) -> tuple[FitProblem, str]:
    """Minimise from many starts under `vmap`; return the problem started at the lowest minimum.

    **Arguments:** `problem`, whose start is the first one; `search`; `count` of starts; `spread`:
    coordinates with a natural scale (logarithms, angles) are drawn uniformly within this fraction
    of it, others within this fraction of their value; `seed` of the draws.
    **Returns:** the problem with that start, and a note on the minima that were found.
    """
    search = dataclasses.replace(
        search,
        tolerance=jnp.full_like(search.tolerance, _TOLERANCE),
        max_iterations=min(search.max_iterations, _ITERATIONS),
    )
    shared, per_run = problem.start_coordinates()
    natural = problem.natural_scales()
    key_shared, key_per_run = jax.random.split(jax.random.key(seed))
    draw_shared = jax.vmap(lambda key: _draw(key, shared, natural[0], spread))
    draw_per_run = jax.vmap(lambda key: _draw(key, per_run, natural[1], spread))
    drawn = (
        draw_shared(jax.random.split(key_shared, count)),
        draw_per_run(jax.random.split(key_per_run, count)),
    )
    starts = jax.vmap(problem.clip)(drawn[0].at[0].set(shared), drawn[1].at[0].set(per_run))
    minima, costs = _minimise_all(problem, starts, search)
    costs = np.where(np.isfinite(costs), costs, np.inf)
    best = int(np.argmin(costs))
    if not np.isfinite(costs[best]):
        return problem, f"None of {count} starts could be simulated."
    num_same = int(np.count_nonzero(costs <= costs[best] * (1 + _SAME)))
    num_failed = int(np.count_nonzero(~np.isfinite(costs)))
    note = (
        f"{num_same} of {count} starts came to the lowest minimum"
        + (f", {count - num_same - num_failed} to others" if count > num_same + num_failed else "")
        + (f", {num_failed} could not be simulated" if num_failed else "")
        + "."
    )
    lowest = jax.tree.map(lambda leaf: leaf[best], minima)
    return problem.with_starts(lowest.leaves), note


def _draw(
    key: PRNGKeyArray, x: Float[Array, "*s"], natural: Float[Array, "*s"], spread: float
) -> Float[Array, "*s"]:
    scale = jnp.where(jnp.isfinite(natural), natural, jnp.abs(x))
    return x + spread * scale * jax.random.uniform(key, x.shape, x.dtype, -1.0, 1.0)


@persistent_jit
def _minimise_all(
    problem: FitProblem, starts: tuple[Float[Array, "K S"], Float[Array, "K B P"]], search: Search
) -> tuple[Minimum, Float[Array, " K"]]:
    def minimise_one(start):
        shared, per_run = start
        minimum = minimise_from(problem, shared, per_run, search)
        cost = jnp.sum(search.loss.root(minimum.last.residuals) ** 2)
        cost = cost + jnp.sum(minimum.last.prior.residuals**2)
        return minimum, jnp.where(jnp.all(minimum.last.okay), cost, jnp.inf)

    return jax.vmap(minimise_one)(starts)
