"""Alternation between the gains of the filter, noise levels, and the fit of the innovations.

Noise levels have the largest restricted likelihood. Along a filtered motion the model is linear:
other intensities have other gains, and their innovations follow from a linear Kalman filter of the
difference, without another integration.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...annotations import Scalar
from ...native import call_as_kernel, why_too_large_matrices
from ...persistent_jit import persistent_jit
from ..experiment.linearised_runs import sensor_major_order
from ..noise.kalman import predict_covariance, update
from ..noise.likelihood import AbstractLinearisedFit, covariance_from_noise, estimate_noise
from ..search.evaluation import evaluate
from ..search.least_squares import Minimum, Search, minimise_from
from ..search.problem import FitProblem
from .kalman import FilteredRun, Gains, Samples, filter_run, start_of_run
from .process_noise import ProcessNoise

# Least level, relative to the level whose effect over one interval is as large as the noise of the
# sensors: below it process noise has no effect.
_LEAST = 1e-6


# Changes of the estimates, in standard errors, and relative changes of noise levels, at which the
# gains have converged; and maximum number of rounds.
CONVERGED = 1e-3
MAX_ROUNDS = 30
# Least noise of a sensor, relative to the first standard deviation. Process noise can explain every
# sample; without a limit the estimate would run to zero.
_LEAST_NOISE = 1e-3


class NoiseLevels(NamedTuple):
    """Intensities of the process noise (S,), and noise of the sensors (K,) in units of the weights
    of a problem."""

    process: Float[Array, " S"]
    sensors: Float[Array, " K"]


@persistent_jit
def _natural_intensity(filtered: FilteredRun, noise: ProcessNoise) -> Float[Array, " S"]:
    """Return the intensity of each source whose effect over one interval is, in the root mean
    square over samples and channels, as large as the noise of the sensors."""
    # Readings at each sample, and the effect of the interval before it.
    H, Q = filtered.readings[:, 1:], filtered.effect[:, :-1]
    per_channel = jnp.einsum("btci,btmij,btcj->m", H, Q, H)
    sources = np.array([channel.source for channel in noise.channels], int)
    total = jax.ops.segment_sum(per_channel, sources, len(noise.sources))
    count = H.shape[0] * H.shape[1] * H.shape[2]
    return 1 / jnp.sqrt(jnp.maximum(total / count, 1e-300))


def _refilter(
    run: FilteredRun,
    columns: Float[Array, "T C F"],
    is_used: Bool[Array, "T C"],
    intensity: Float[Array, " m"],
    scale: Float[Array, " C"],
) -> tuple[Float[Array, "T C F"], Float[Array, "T C"], Gains]:
    """Return whitened columns at other noise levels, the logarithms of variances, and the gains.

    The gains are for residuals in units of the new noise.

    **Arguments:** `columns`, innovations and derivatives of them at the gains of the run;
    `intensity` of each channel of the process noise; `scale`, noise of each channel of the
    readings, in units of the weights.
    """

    def step(carry, sample):
        mean, P = carry
        e, H, F, Q, K, used = sample
        e_new, H_new = (e + H @ mean) / scale[:, None], H / scale[:, None]
        done = update(P, H_new)
        nu = done.whitening @ e_new
        logs = done.log_variances + jnp.where(used, 2 * jnp.log(scale), 0.0)
        mean = F @ (mean + K @ e - done.correction @ e_new)
        P = predict_covariance(done.covariance, F, jnp.tensordot(intensity**2, Q, 1))
        return (mean, P), (nu, logs, Gains(done.correction, done.whitening))

    n = run.transition.shape[-1]
    dtype = run.transition.dtype
    start = jnp.zeros((n, columns.shape[-1]), dtype), jnp.zeros((n, n), dtype)
    samples = (
        columns, run.readings, run.transition, run.effect, run.gains.correction, is_used
    )  # fmt: skip
    _, outputs = jax.lax.scan(step, start, samples)
    return outputs


def _whiten_columns(*args: Any) -> tuple[Array, Array]:
    return _refilter(*args)[:2]


def _gains(*args: Any) -> Gains:
    return _refilter(*args)[2]


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
    def free(self) -> np.ndarray:
        """Indices of the levels that are estimated."""
        return np.flatnonzero(self.is_estimated)

    def with_gains(self, levels: NoiseLevels, gains: Gains) -> FitProblem:
        """Return the least-squares problem of innovations with these gains."""
        return eqx.tree_at(
            lambda f: (f.runs.weights, f.runs.gains), self.fit,
            (_scaled_weights(self.fit.runs.weights, levels), gains), is_leaf=lambda x: x is None,
        )  # fmt: skip


class RoundState(NamedTuple):
    """State between rounds: coordinates, noise levels, and the last change."""

    shared: Float[Array, " S"]
    per_run: Float[Array, "B P"]
    levels: NoiseLevels
    change: Scalar
    number: Array


class LevelProblem(AbstractLinearisedFit):
    """Filtered runs, linearised in the parameters, as a function of the noise levels.

    The coordinates are logarithms of the levels that are estimated: intensities, then the noise of
    sensors relative to that in `filtered`.

    **Attributes:** `problem`; `filtered` runs with a leading axis; `columns` (B, T, C, E + 1),
    derivatives of the plain innovations in the coordinates of parameters, and these; `levels`,
    given and first ones; `least` noise of the sensors (K,); see `AbstractLinearisedFit`.
    """

    problem: PredictionProblem
    filtered: FilteredRun
    columns: Float[Array, "B T C F"]
    levels: NoiseLevels
    least: Float[Array, " K"]
    prior: tuple[Float[Array, " R"], Float[Array, "R U"]]
    num_shared: int = eqx.field(static=True)

    @property
    def start(self) -> Float[Array, " d"]:
        """The coordinates of `levels`; of natural ones where process noise is zero."""
        natural = _natural_intensity(self.filtered, self.problem.noise)
        process = jnp.where(self.levels.process > 0, self.levels.process, natural)
        # From zero, where the likelihood does not depend on the logarithm, no step leads away.
        return jnp.log(jnp.concatenate([process, self.levels.sensors])[self.problem.free])

    def levels_at(self, coordinates: Float[Array, " d"]) -> NoiseLevels:
        """Return the noise levels, within their limits; process noise without effect is zero."""
        count = len(self.problem.noise.sources)
        values = jnp.concatenate(self.levels).at[self.problem.free].set(jnp.exp(coordinates))
        least = _LEAST * _natural_intensity(self.filtered, self.problem.noise)
        process = jnp.where(values[:count] > least, values[:count], 0.0)
        return NoiseLevels(process, jnp.maximum(values[count:], self.least))

    def whiten_at(self, coordinates: Float[Array, " d"]) -> tuple[Float[Array, "B N F"], Scalar]:
        rows, logs = self.refilter(_whiten_columns, self.levels_at(coordinates))
        return rows.reshape(rows.shape[0], -1, rows.shape[-1]), jnp.sum(logs)

    def refilter(self, function: Any, levels: NoiseLevels) -> Any:
        """Return a part of the results of `_refilter` for all runs, at other noise levels."""
        fit = self.problem.fit
        channels = [w.shape[-1] for w in fit.runs.weights]
        scale = levels.sensors[np.repeat(np.arange(len(channels)), channels)]
        intensity = self.problem.noise.spread(levels.process)

        def refilter_run(run, columns, weights):
            used = jnp.concatenate(weights, axis=-1) > 0
            return call_as_kernel(
                fit.simulation.backend, why_too_large_matrices,
                function, run, columns, used, intensity, scale,
            )  # fmt: skip

        return jax.vmap(refilter_run)(self.filtered, self.columns, fit.runs.weights)


# An executable of its own: it takes longest to compile, and every stage of a fit calls it.
@persistent_jit
def filter_runs(
    problem: PredictionProblem, shared: Array, per_run: Array, levels: NoiseLevels
) -> FilteredRun:
    """Filter all runs at these coordinates and noise levels; the result has a leading run axis."""
    fit, motion = problem.fit, problem.fit.predictor.motion
    intensity = problem.noise.spread(levels.process)

    def filter_one(per_run, run):
        experiment = fit.experiment(fit.run_leaves(shared, per_run, run), run)
        model, y0, _ = start_of_run(experiment, run.ts[0])
        samples = Samples.of_run(run.ts, run.values, _scaled_weights(run.weights, levels))
        return call_as_kernel(
            fit.simulation.backend, why_too_large_matrices,
            filter_run, motion, model, experiment.sensors, y0, samples, intensity,
        )  # fmt: skip

    return jax.vmap(filter_one)(per_run, fit.runs)


def _scaled_weights(weights: tuple[Array, ...], levels: NoiseLevels) -> tuple[Array, ...]:
    """Return the weights of the readings for noise levels of the sensors."""
    return tuple(w / levels.sensors[k] for k, w in enumerate(weights))


def start_levels(
    problem: PredictionProblem, shared: Array, per_run: Array, given: NoiseLevels
) -> NoiseLevels:
    """Return noise levels to start from: given ones, and natural ones where they are NaN."""
    if not any(problem.noise.is_estimated):
        return given
    known = jnp.nan_to_num(given.process)
    filtered = filter_runs(problem, shared, per_run, given._replace(process=known))
    natural = _natural_intensity(filtered, problem.noise)
    return given._replace(process=jnp.where(jnp.isnan(given.process), natural, known))


def _level_problem(
    problem: PredictionProblem,
    shared: Array,
    per_run: Array,
    levels: NoiseLevels,
    filtered: FilteredRun,
) -> LevelProblem:
    """Return the noise levels as a problem of their own, linearised at these coordinates.

    **Arguments:** `filtered`, the runs at these coordinates and levels.
    """
    shape = filtered.gains.whitening.shape
    identity = jnp.broadcast_to(jnp.eye(shape[-1], dtype=shared.dtype), shape)
    gains = Gains(filtered.gains.correction, identity)
    plain = evaluate(problem.with_gains(levels, gains), shared, per_run)
    columns = jnp.concatenate([plain.coordinate_rows(), plain.residuals[..., None]], axis=-1)
    by_sample = columns[:, np.argsort(sensor_major_order(problem.fit.runs.weights))]
    return LevelProblem(
        problem=problem,
        filtered=filtered,
        columns=by_sample.reshape(*shape[:-1], -1),
        levels=NoiseLevels(levels.process, jnp.ones_like(levels.sensors)),
        least=_LEAST_NOISE * problem.sensor_noise / levels.sensors,
        prior=(plain.prior.residuals, plain.prior_jacobian()),
        num_shared=shared.shape[0],
    )


@persistent_jit
def covariance_from_levels(
    problem: PredictionProblem,
    shared: Array,
    per_run: Array,
    levels: NoiseLevels,
    filtered: FilteredRun,
) -> Float[Array, "U U"]:
    """Return the increase of the coordinates' covariance by the uncertainty of the noise levels.

    **Arguments:** `filtered`, the runs at these coordinates and levels.
    """
    data = _level_problem(problem, shared, per_run, levels, filtered)
    return covariance_from_noise(data, data.start)


def advance_round(
    problem: PredictionProblem, state: RoundState
) -> tuple[RoundState, Minimum, FitProblem]:
    """Estimate the noise levels, and minimise the innovations at fixed gains.

    The change is the root-mean-square one of the estimates, in standard errors, or the largest
    relative one of the levels.

    **Returns:** also the minimum, and its least-squares problem.
    """
    filtered = filter_runs(problem, state.shared, state.per_run, state.levels)
    return _advance_filtered(problem, state, filtered)


@persistent_jit
def _advance_filtered(problem: PredictionProblem, state: RoundState, filtered: FilteredRun) -> Any:
    shared, per_run, levels = state.shared, state.per_run, state.levels
    gains = filtered.gains
    if problem.free.size:
        data = _level_problem(problem, shared, per_run, levels, filtered)
        new = data.levels_at(estimate_noise(data, data.start))
        gains = data.refilter(_gains, new)
        levels = NoiseLevels(new.process, levels.sensors * new.sensors)
    fit = problem.with_gains(levels, gains)
    minimum = minimise_from(fit, shared, per_run, problem.search)
    step = jnp.concatenate([minimum.shared - shared, (minimum.per_run - per_run).reshape(-1)])
    effect = minimum.last.coordinate_jacobian() @ step
    change = jnp.sqrt(jnp.sum(effect**2) / max(step.size, 1))
    if problem.free.size:
        a, b = (jnp.concatenate(x) for x in (state.levels, levels))
        largest = jnp.maximum(jnp.maximum(a, b), jnp.finfo(a.dtype).tiny)
        change = jnp.maximum(change, jnp.max(jnp.abs(b - a) / largest))
    new_state = RoundState(minimum.shared, minimum.per_run, levels, change, state.number + 1)
    return new_state, minimum, fit
