"""Alternation between the gains of the filter, noise levels, and the fit of the innovations."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...native import call_as_kernel, why_too_large_matrices
from ..fit.evaluation import evaluate
from ..fit.least_squares import Minimum, Search, minimise_from
from ..fit.problem import FitProblem
from ..noise.likelihood import covariance_from_noise, estimate_noise
from .kalman import FilteredRun, Gains, Samples, filter_run
from .levels import LevelProblem, NoiseLevels, natural_intensity
from .predictor import sensor_major_order, start_of_run
from .process_noise import ProcessNoise

# Changes of the estimates, in standard errors, and relative changes of noise levels, at which the
# gains have converged; and maximum number of rounds.
CONVERGED = 1e-3
MAX_ROUNDS = 30
# Least noise of a sensor, relative to the first standard deviation. Process noise can explain every
# sample; without a limit the estimate would run to zero.
_LEAST_NOISE = 1e-3


class PredictionProblem(eqx.Module):
    """Problem of a prediction-error fit, which alternates between gains and estimates.

    **Attributes:** `fit`, with a `Predictor`; `noise`; `is_estimated`, for all sources of process
    noise, then for all sensors; `search` of a round; `sensor_noise` (K,), first standard deviations
    of the sensors, in units of the weights.
    """

    fit: FitProblem
    noise: ProcessNoise
    search: Search
    sensor_noise: Float[Array, " K"]
    is_estimated: tuple[bool, ...] = eqx.field(static=True)

    @property
    def sensor_of_channel(self) -> tuple[int, ...]:
        """Index of the sensor of every channel of the readings."""
        weights = self.fit.runs.weights
        return tuple(k for k, w in enumerate(weights) for _ in range(w.shape[-1]))


class RoundState(NamedTuple):
    """State between rounds: coordinates, noise levels, weights of the data, and the last change."""

    shared: Float[Array, " S"]
    per_run: Float[Array, "B P"]
    levels: NoiseLevels
    change: Float[Array, ""]
    number: Array


def filter_runs(
    problem: PredictionProblem, shared: Array, per_run: Array, levels: NoiseLevels
) -> FilteredRun:
    """Filter all runs at these coordinates and noise levels; the result has a leading run axis."""
    fit, motion = problem.fit, problem.fit.predictor.motion
    intensity = problem.noise.spread(levels.process)

    def filter_one(per_run, run):
        experiment = fit.experiment(fit.run_leaves(shared, per_run, run), run)
        model, y0, _ = start_of_run(experiment, run.ts[0])
        samples = Samples.of_run(run.ts, run.values, scaled_weights(run.weights, levels))
        return call_as_kernel(
            fit.simulation.backend, why_too_large_matrices,
            filter_run, motion, model, experiment.sensors, y0, samples, intensity,
        )  # fmt: skip

    return jax.vmap(filter_one)(per_run, fit.runs)


def scaled_weights(weights: tuple[Array, ...], levels: NoiseLevels) -> tuple[Array, ...]:
    """Return the weights of the readings for noise levels of the sensors."""
    return tuple(w / levels.sensors[k] for k, w in enumerate(weights))


def used_channels(fit: FitProblem) -> Bool[Array, "B T C"]:
    """Return which channels of the readings count at each sample."""
    return jnp.concatenate(fit.runs.weights, axis=-1) > 0


def start_levels(
    problem: PredictionProblem, shared: Array, per_run: Array, given: NoiseLevels
) -> NoiseLevels:
    """Return noise levels to start from: given ones, and natural ones where they are NaN."""
    if not any(problem.noise.is_estimated):
        return given
    known = jnp.nan_to_num(given.process)
    filtered = filter_runs(problem, shared, per_run, NoiseLevels(known, given.sensors))
    natural = natural_intensity(filtered, problem.noise)
    return given._replace(process=jnp.where(jnp.isnan(given.process), natural, known))


def _with_gains(problem: PredictionProblem, levels: NoiseLevels, gains: Gains) -> FitProblem:
    """Return the least-squares problem of innovations with these gains."""
    weights = scaled_weights(problem.fit.runs.weights, levels)
    return eqx.tree_at(
        lambda f: (f.runs.weights, f.runs.gains), problem.fit, (weights, gains),
        is_leaf=lambda x: x is None,
    )  # fmt: skip


def level_problem(
    problem: PredictionProblem,
    shared: Array,
    per_run: Array,
    levels: NoiseLevels,
    filtered: FilteredRun,
) -> LevelProblem:
    """Return the noise levels as a problem of their own, linearised at these coordinates.

    **Arguments:** `filtered`, the runs at these coordinates and levels.
    """
    identity = jnp.broadcast_to(
        jnp.eye(filtered.gains.whitening.shape[-1], dtype=shared.dtype),
        filtered.gains.whitening.shape,
    )
    plain = evaluate(
        _with_gains(problem, levels, Gains(filtered.gains.correction, identity)), shared, per_run
    )
    columns = jnp.concatenate([plain.coordinate_rows(), plain.residuals[..., None]], axis=-1)
    by_sample = columns[:, np.argsort(sensor_major_order(problem.fit.runs.weights))]
    is_used = used_channels(problem.fit)
    prior = plain.prior
    return LevelProblem(
        filtered=filtered,
        columns=by_sample.reshape(*is_used.shape, -1),
        is_used=is_used,
        noise=problem.noise,
        levels=NoiseLevels(levels.process, jnp.ones_like(levels.sensors)),
        least=_LEAST_NOISE * problem.sensor_noise / levels.sensors,
        prior=(prior.residuals, prior.coordinate_jacobian(plain.shared_chain, plain.per_run_chain)),
        num_shared=shared.shape[0],
        free=tuple(np.flatnonzero(problem.is_estimated).tolist()),
        sensor_of_channel=problem.sensor_of_channel,
        backend=problem.fit.simulation.backend,
    )


def covariance_from_levels(
    problem: PredictionProblem, shared: Array, per_run: Array, levels: NoiseLevels
) -> Float[Array, "U U"]:
    """Return what the uncertainty of noise levels adds to the covariance of the coordinates."""
    filtered = filter_runs(problem, shared, per_run, levels)
    data = level_problem(problem, shared, per_run, levels, filtered)
    return covariance_from_noise(data, data.start)


def fit_in_gains(
    problem: PredictionProblem, shared: Array, per_run: Array, levels: NoiseLevels
) -> tuple[Minimum, NoiseLevels, FitProblem]:
    """Estimate the noise levels, and minimise the innovations at fixed gains.

    **Returns:** the minimum, the new levels, and the problem with the gains.
    """
    filtered = filter_runs(problem, shared, per_run, levels)
    gains = filtered.gains
    if any(problem.is_estimated):
        data = level_problem(problem, shared, per_run, levels, filtered)
        new = data.levels_at(estimate_noise(data, data.start))
        gains = data.gains_at(new)
        levels = NoiseLevels(new.process, levels.sensors * new.sensors)
    fit = _with_gains(problem, levels, gains)
    return minimise_from(fit, shared, per_run, problem.search), levels, fit


def change_in_standard_errors(minimum: Minimum, shared: Array, per_run: Array) -> Float[Array, ""]:
    """Return the root-mean-square change of the estimates from these coordinates."""
    step = jnp.concatenate([minimum.shared - shared, (minimum.per_run - per_run).reshape(-1)])
    effect = minimum.last.coordinate_jacobian() @ step
    return jnp.sqrt(jnp.sum(effect**2) / max(step.size, 1))


def change_of_levels(old: NoiseLevels, new: NoiseLevels) -> Float[Array, ""]:
    """Return the largest relative change of noise levels."""
    a, b = (jnp.concatenate(levels) for levels in (old, new))
    return jnp.max(jnp.abs(b - a) / jnp.maximum(jnp.maximum(a, b), jnp.finfo(a.dtype).tiny))


def advance_round(
    problem: PredictionProblem, state: RoundState
) -> tuple[RoundState, Minimum, FitProblem]:
    """Perform one round; return also its minimum and its least-squares problem."""
    minimum, levels, fit = fit_in_gains(problem, state.shared, state.per_run, state.levels)
    change = change_in_standard_errors(minimum, state.shared, state.per_run)
    if any(problem.is_estimated):
        change = jnp.maximum(change, change_of_levels(state.levels, levels))
    new = RoundState(minimum.shared, minimum.per_run, levels, change, state.number + 1)
    return new, minimum, fit
