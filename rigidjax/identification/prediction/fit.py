"""Prediction-error fits of one set of runs."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...analysis.linear_arguments import IndependentRates
from ...initial.local_coordinates import independent_rates, num_rates
from ...persistent_jit import persistent_jit
from ...sensors import Accelerometer, Delayed, JointTorque, ReactionForce, ReactionMoment
from ...simulate.arguments import check_solver, choose_projection
from ...state import State
from ..data.measurements import Runs, rescale_weights
from ..experiment.linearised_runs import sensor_major_order
from ..experiment.parameters import ComponentTable
from ..result.from_minimum import make_fit, split_residuals
from ..result.result import Fit
from ..search.dependent_noise import FittedNoise
from ..search.least_squares import Minimum, Search
from ..search.losses import Squares
from ..search.noise import difference_noise
from ..search.options import check_start
from ..search.problem import FitProblem
from .kalman import FilteredRun, Predictor, smooth_run, start_of_run
from .motion import SampledMotion
from .process_noise import ProcessNoise, initial_intensity, make_process_noise
from .rounds import (
    CONVERGED,
    MAX_ROUNDS,
    NoiseLevels,
    PredictionProblem,
    RoundState,
    advance_round,
    covariance_from_levels,
    filter_runs,
    start_levels,
)

# First guess of the noise of a sensor whose successive samples show none, relative to the spread of
# the samples.
_SMALL = 1e-2

_READS_FORCES = (Accelerometer, JointTorque, ReactionForce, ReactionMoment)


# Change of the innovations when the steps are halved, in their standard deviations, below which
# the integration is accurate; and the largest number of halvings.
_ACCURATE, _HALVINGS = 1e-3, 12


def check_prediction_options(
    method: Any, process_noise: Mapping[str, Any] | None, starts: int = 1, segments: int = 1
) -> Mapping[str, Any] | None:
    """Return the process noise of a prediction-error fit, `None` for other methods.

    **Errors:** `ValueError` for options that do not belong to the method.
    """
    if method != "prediction-error":
        if process_noise is not None:
            raise ValueError(
                '`identify(process_noise=...)` needs `method="prediction-error"`; got '
                f"`method={method!r}`."
            )
        return None
    if process_noise is None:
        raise ValueError(
            '`identify(method="prediction-error")` needs `process_noise=`, standard deviations by '
            "the names of joints, bodies, signals and inputs, such as {'hinge': 0.01}, or "
            "{'hinge': None} to estimate them."
        )
    if starts > 1 or segments > 1:
        raise ValueError(
            '`identify(method="prediction-error")` corrects its state by every sample, so that it '
            f"needs neither `starts` nor `segments`; got {starts} and {segments}."
        )
    return process_noise


def check_white_noise(process_noise: Mapping[str, Any] | None, models: Sequence[Any]) -> None:
    """Raise `ValueError` for a prediction-error fit with dependent noise of the sensors."""
    if process_noise is not None and any(model is not None for model in models):
        raise ValueError(
            '`identify(method="prediction-error")` takes white noise of the sensors, '
            '`noise="white"`; a slow disturbance of the motion is process noise.'
        )


def make_prediction_problem(
    problem: FitProblem, runs: Runs, search: Search, process_noise: Mapping[str, Any]
) -> PredictionProblem:
    """Return the problem of a prediction-error fit.

    **Errors:** `ValueError` and `TypeError` for sensors, solvers and options that the filter does
    not support, and for process noise that does not fit the model.
    """
    if not isinstance(search.loss, Squares):
        raise ValueError(
            '`identify(method="prediction-error")` takes `loss=None`: the filter corrects its '
            "state by every sample, outliers too. Mask them by `Measurements(mask=...)`."
        )
    for sensor in runs.sensors:
        _check_sensor(sensor)
    noise = make_process_noise(problem.model, process_noise, runs.inputs[0])
    motion = _make_motion(problem, runs, noise)
    problem = dataclasses.replace(problem, predictor=Predictor(motion, problem.simulation.backend))
    is_estimated = (*noise.is_estimated, *(not known for known in runs.has_noise))
    sensor_noise = jnp.asarray(_rough_sensor_noise(runs), runs.ts.dtype)
    return PredictionProblem(problem, noise, search.with_full_horizon(), sensor_noise, is_estimated)


def _check_sensor(sensor: Any) -> None:
    """Raise `ValueError` for a sensor that the filter does not support."""
    parts = jax.tree.leaves(sensor, is_leaf=lambda x: isinstance(x, (*_READS_FORCES, Delayed)))
    if any(isinstance(part, Delayed) for part in (sensor, *parts)):
        raise ValueError(
            f'`identify(method="prediction-error")` has no sensors with a delay; got '
            f"{sensor.name!r}. Shift its samples in time."
        )
    if any(isinstance(part, _READS_FORCES) for part in (sensor, *parts)):
        raise ValueError(
            f'`identify(method="prediction-error")` takes sensors of positions and velocities; '
            f"{sensor.name!r} reads accelerations or forces, of which white noise has no finite "
            "value. Leave it out."
        )


def _rough_sensor_noise(runs: Runs) -> np.ndarray:
    """Return a rough standard deviation of the noise of each sensor in units of its weights: one if
    it is given, else that which successive samples show."""
    noise, ts = [], np.asarray(runs.ts)
    for values, weights, known in zip(runs.values, runs.weights, runs.has_noise, strict=True):
        samples, w = np.asarray(values), np.asarray(weights)
        rough = difference_noise(ts, samples, w)
        if not np.isfinite(rough):
            spread = np.std(samples.reshape(*w.shape[:2], -1)[w.max(axis=-1) > 0])
            rough = _SMALL * spread if spread > 0 else 1.0
        noise.append(1.0 if known else float(rough))
    return np.asarray(noise)


def _make_motion(problem: FitProblem, runs: Runs, noise: ProcessNoise) -> SampledMotion:
    model, simulation = problem.model, problem.simulation
    solver = check_solver(simulation.solver)
    tableau = getattr(solver, "tableau", None)
    if not (
        isinstance(solver, diffrax.AbstractERK) and isinstance(tableau, diffrax.ButcherTableau)
    ):
        raise ValueError(
            '`identify(method="prediction-error")` integrates by explicit Runge-Kutta methods such '
            f"as `diffrax.Dopri5()`; got `solver={type(solver).__name__}()`."
        )
    state = jax.tree.map(lambda x: x[0], problem.runs.state0)
    independent = independent_rates(model, state)
    local = IndependentRates(independent, independent)
    dtype = runs.ts.dtype
    spans = np.diff(np.asarray(runs.ts), axis=1)
    step = simulation.dt if simulation.dt is not None else np.median(spans[spans > 0])
    return SampledMotion(
        solver,
        choose_projection(simulation.projection, solver, "identify"),
        jnp.asarray(step, dtype),
        local.coordinates(num_rates(model), dtype),
        noise.channels,
        2 * len(independent) + model.multibody.num_states,
    )


def refine_step(
    problem: PredictionProblem, shared: Any, per_run: Any, levels: NoiseLevels
) -> tuple[PredictionProblem, bool]:
    """Return the problem with steps so short that halving them changes no innovation by more than
    a thousandth of its standard deviation, and whether they were long enough before."""
    before = filter_runs(problem, shared, per_run, levels)
    step, change = problem.fit.predictor.motion.step, np.inf
    for number in range(_HALVINGS):
        finer = eqx.tree_at(lambda p: p.fit.predictor.motion.step, problem, 0.5 * step)
        after = filter_runs(finer, shared, per_run, levels)
        change = np.abs(_whiten(after) - _whiten(before)).max()
        if change < _ACCURATE:
            return problem, number == 0
        problem, before, step = finer, after, 0.5 * step
    raise ValueError(
        f"Steps of {float(step):.2g} s are too long: halving them changes the innovations by "
        f"{change:.2g} standard deviations. Start from other values, or check the model."
    )


def _whiten(filtered: FilteredRun) -> np.ndarray:
    whitening, innovations = filtered.gains.whitening, filtered.innovations
    return np.einsum("btij,btj->bti", np.asarray(whitening), np.asarray(innovations))


def fit_by_prediction(
    problem: PredictionProblem, runs: Runs
) -> tuple[PredictionProblem, FitProblem, Minimum, NoiseLevels, list[str]]:
    """Alternate between gains, noise levels and estimates until they converge.

    **Returns:** the problem with its final steps; the least-squares problem of the last round; its
    minimum; the noise levels; notes.
    """
    shared, per_run = problem.fit.start_coordinates()
    dtype = runs.ts.dtype
    given = NoiseLevels(initial_intensity(problem.noise, dtype), problem.sensor_noise)
    levels = start_levels(problem, shared, per_run, given)
    is_fixed = problem.fit.simulation.dt is not None
    if not is_fixed:
        problem, _ = refine_step(problem, shared, per_run, levels)
    infinite = jnp.asarray(jnp.inf, dtype)
    state = RoundState(shared, per_run, levels, infinite, jnp.array(0))
    state, minimum, fit = advance_round(problem, state)
    first = minimum.first
    while bool(minimum.converged) and int(state.number) < MAX_ROUNDS:
        if float(state.change) < CONVERGED:
            if is_fixed:
                break
            problem, was_accurate = refine_step(problem, state.shared, state.per_run, state.levels)
            if was_accurate:
                break
        state, minimum, fit = advance_round(problem, state)
    minimum = eqx.tree_at(lambda m: m.first, minimum, first)
    notes = []
    if not float(state.change) < CONVERGED:
        minimum = eqx.tree_at(lambda m: m.converged, minimum, jnp.array(False))
        notes.append(
            f"In the last of {int(state.number)} rounds estimates and noise levels changed by "
            f"{float(state.change):.2g} (standard errors, relative change of levels)."
        )
    return problem, fit, minimum, state.levels, notes


def make_prediction_fit(
    problem: PredictionProblem,
    runs: Runs,
    table: ComponentTable,
    notes: list[str],
    covariance: Any = None,
) -> Fit:
    """Return the `Fit` of a prediction-error problem.

    **Arguments:** as of `make_fit`.
    **Errors:** `IdentificationError` and `ValueError` for runs that fail at the start values and
    parameters without effect.
    """
    given = runs.has_noise
    problem, fit_problem, minimum, levels, new_notes = fit_by_prediction(problem, runs)
    runs = rescale_weights(runs, np.asarray(levels.sensors).tolist())
    check_start(fit_problem, runs, table, minimum.first)
    triples = zip(runs.sensors, np.asarray(levels.sensors).tolist(), given, strict=True)
    white = {sensor.name: noise for sensor, noise, known in triples if not known}
    # The filter has scaled the innovations to unit variance, so that their noise counts as known.
    runs = dataclasses.replace(runs, has_noise=(True,) * len(given))
    if any(problem.noise.is_estimated):
        estimates = problem.noise.describe(np.asarray(levels.process))
        new_notes.append(
            f"The process noise was estimated: {estimates}. The standard deviations of the "
            "parameters include its uncertainty."
        )
    added, shared, per_run = None, minimum.shared, minimum.per_run
    filtered = filter_runs(problem, shared, per_run, levels)
    if any(problem.is_estimated):
        added = np.asarray(covariance_from_levels(problem, shared, per_run, levels, filtered))
    fitted = FittedNoise(fit_problem, runs, minimum, white, {}, [], added)
    notes = [*notes, *new_notes]
    fit = make_fit(fitted, table, notes, problem.search, covariance)
    innovations, order = np.asarray(filtered.innovations), sensor_major_order(runs.weights)
    states = _smooth_runs(problem, shared, per_run, filtered)
    return dataclasses.replace(
        fit,
        noise_is_known=all(given),
        residuals=split_residuals(
            runs, innovations.reshape(len(innovations), -1)[:, order], weighted=False
        ),
        process_noise=problem.noise.values(np.asarray(levels.process)),
        smoothed_states=tuple(
            jax.tree.map(lambda x, b=b, n=n: np.asarray(x[b, :n]), states)
            for b, n in enumerate(runs.lengths)
        ),
        log_likelihood=_log_likelihood(filtered, runs),
    )


def _log_likelihood(filtered: FilteredRun, runs: Runs) -> float:
    """Return the logarithm of the likelihood of all samples, in the units of their sensors."""
    weights = np.concatenate([np.asarray(w).ravel() for w in runs.weights])
    used = weights[weights > 0]
    constant = np.sum(np.log(used)) - 0.5 * used.size * np.log(2 * np.pi)
    return float(np.sum(np.asarray(filtered.log_likelihood)) + constant)


@persistent_jit
def _smooth_runs(
    problem: PredictionProblem, shared: Any, per_run: Any, filtered: FilteredRun
) -> State:
    fit, motion = problem.fit, problem.fit.predictor.motion

    def smooth_one(per_run, run, filtered):
        experiment = fit.experiment(fit.run_leaves(shared, per_run, run), run)
        model, _, _ = start_of_run(experiment, run.ts[0])
        changes, _ = smooth_run(filtered)

        def state_at(t, y, xi):
            return model.decode(t, motion.shift(model, t, y, xi))

        return jax.vmap(state_at)(run.ts, filtered.unknowns, changes)

    return jax.vmap(smooth_one)(per_run, fit.runs, filtered)
