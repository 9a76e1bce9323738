"""Fits with models of dependent noise, estimated alternately."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ...formulations import AbstractFormulation
from ...persistent_jit import persistent_jit
from ...sensors import AbstractSensor
from ..data.measurements import Runs, rescale_weights
from ..noise.kalman import sample_gaps
from ..noise.likelihood import (
    LinearisedFit,
    SensorNoise,
    covariance_from_noise,
    estimate_noise,
    split_coordinates,
)
from ..noise.models import SELECT_ORDER, AbstractNoise, AutoRegressive
from ..statistics.sandwich import fit_autoregression
from .batch_search import fit_sets, replace_data, set_data, stack_sets, summarise_with_point
from .evaluation import evaluate
from .least_squares import Minimum, Search, minimise
from .losses import Squares
from .problem import FitProblem

# Change of the logarithms of noise parameters below which they have converged: a fraction of their
# standard deviation.
_CLOSE = 1e-2
MAX_ROUNDS = 20
# Rounds of fits of many data sets, and number of sets whose noise is estimated at once. The
# restricted likelihood contains the linearised fit, so that the second round is a correction.
_ROUNDS_OF_SETS, _AT_ONCE = 4, 16
_LARGEST_ORDER = 8


class FittedNoise(NamedTuple):
    """A minimum and the noise that was estimated with it.

    **Attributes:** `problem` and `runs`, with their final weights and filters; `minimum`; `white`,
    the standard deviation of each sensor whose white noise was estimated; `models` of dependent
    noise, by sensor; `notes`; `added_covariance` (U, U) of the coordinates, from the uncertainty of
    the noise.
    """

    problem: FitProblem
    runs: Runs
    minimum: Minimum
    white: dict[str, float]
    models: dict[str, AbstractNoise]
    notes: list[str]
    added_covariance: np.ndarray | None = None


def fit_dependent_noise(
    problem: FitProblem, runs: Runs, search: Search, models: Sequence[AbstractNoise | str | None]
) -> FittedNoise:
    """Alternate between fitting whitened residuals and estimating the noise parameters.

    **Arguments:** `models`, see `noise_models`.
    **Errors:** `ValueError` for a robust loss.
    """
    if not isinstance(search.loss, Squares):
        raise ValueError(
            "`identify(noise=...)` filters residuals, in which an outlier spreads to later ones; "
            'use `loss=None`, or noise="white" with a robust loss.'
        )
    first = None
    if SELECT_ORDER in models:
        minimum = minimise(problem, search)
        first, search = minimum.first, search.with_full_horizons()
        models = _select_orders(runs, [minimum.last.residuals], models)
        problem = problem.with_starts(minimum.leaves)
    noise = _begin(problem, runs, models)
    coordinates, added = noise.coordinates, None

    def update(problem: FitProblem, minimum: Minimum) -> FitProblem | str:
        nonlocal coordinates, added
        point = minimum.shared, minimum.per_run, minimum.sides, minimum.leaves
        coordinates, data, more, change = _update(problem, point, noise.sensors, coordinates)
        if float(change) < _CLOSE:
            added = np.asarray(more)
            return ""
        return replace_data(problem, data)

    problem, minimum, reason = alternate(noise.problem, search, update)
    if first is not None:
        minimum = eqx.tree_at(lambda m: m.first, minimum, first)
    fitted = _fitted_models(runs.sensors, noise.sensors, coordinates)
    is_scaled = [not known and m is None for m, known in zip(models, runs.has_noise, strict=True)]
    runs = eqx.tree_at(lambda r: r.weights, noise.runs, problem.runs.weights)
    white = white_noise(runs, is_scaled)
    reason = f"they still changed after {MAX_ROUNDS} rounds" if reason is None else reason
    notes = [_describe_models(runs, white, fitted, reason, problem.model)]
    return FittedNoise(problem, runs, minimum, white, fitted, notes, added)


def alternate(
    problem: FitProblem, search: Search, update: Callable[[FitProblem, Minimum], FitProblem | str]
) -> tuple[FitProblem, Minimum, str | None]:
    """Alternate between fitting and estimating the noise until it converges.

    **Arguments:** `update`, a function of a problem and its minimum that returns the problem with
    new noise, started at the minimum, or why the rounds end: `""` for noise that has converged.
    **Returns:** the problem with the final noise; its minimum, with the start of the first; why the
    noise did not converge, `""` if it did, `None` if it still changed after all rounds.
    """
    minimum, reason = minimise(problem, search), None
    first = minimum.first
    for _ in range(MAX_ROUNDS):
        is_converged = bool(minimum.converged)
        new = update(problem, minimum) if is_converged else "an intermediate fit did not converge"
        if isinstance(new, str):
            reason = new
            break
        problem, minimum = new, minimise(new, search.with_full_horizons())
    return problem, eqx.tree_at(lambda m: m.first, minimum, first), reason


def white_noise(runs: Runs, is_estimated: Sequence[bool]) -> dict[str, float]:
    """Return the white noise of sensors for which it was estimated, by name, from the weights."""
    triples = zip(runs.sensors, map(np.asarray, runs.weights), is_estimated, strict=True)
    return {s.name: 1.0 / float(w.max()) for s, w, estimated in triples if estimated}


def fit_sets_with_noise(
    problems: Sequence[FitProblem],
    all_runs: Sequence[Runs],
    models: Sequence[AbstractNoise | str | None],
    search: Search,
    size: int,
) -> tuple[dict[str, Any], dict[str, AbstractNoise]]:
    """Fit all data sets, and estimate the noise of each, in rounds.

    **Arguments:** `all_runs`, with weights; `models`, see `noise_models`; `size`, the number of
    sets that are fitted at once.
    **Returns:** the estimates, see `fit_sets`, and the fitted models by sensor, stacked.
    """
    fit_all = functools.partial(fit_sets, size=size, summarise=summarise_with_point)
    if SELECT_ORDER in models:
        outputs = fit_all(problems[0], stack_sets(problems), search)
        models = _select_orders(all_runs[0], outputs["residuals"], models)
        problems = [
            p.with_starts(jax.tree.map(lambda x, n=n: x[n], outputs["leaves"]))
            for n, p in enumerate(problems)
        ]
        search = search.with_full_horizons()
    starts = [_begin(p, runs, models) for p, runs in zip(problems, all_runs, strict=True)]
    problem, stacked = starts[0].problem, stack_sets([start.problem for start in starts])
    sensors = jax.tree.map(lambda *x: jnp.stack(x), *(start.sensors for start in starts))
    coordinates = jnp.stack([start.coordinates for start in starts])
    outputs = fit_all(problem, stacked, search)
    for _ in range(_ROUNDS_OF_SETS):
        point = tuple(outputs[k] for k in ("shared", "per_run", "sides", "leaves"))
        coordinates, stacked, added, change = jax.tree.map(
            np.asarray, _update_sets(problem, (stacked, point, sensors, coordinates), size)
        )
        outputs = fit_all(problem, stacked, search.with_full_horizons())
        chain = outputs["chain"]
        outputs["covariance"] = outputs["covariance"] + chain @ added @ chain.swapaxes(1, 2)
        if change.max() < _CLOSE:
            break
    fitted = jax.vmap(functools.partial(_fitted_models, all_runs[0].sensors))(sensors, coordinates)
    return outputs, fitted


@persistent_jit
def _update_sets(problem: FitProblem, stacked: Any, size: int) -> Any:
    """Return the results of `_update` for all sets, with a leading axis.

    **Arguments:** `problem` of any set; `stacked` data, minima, sensors and coordinates.
    """

    def update(arguments):
        data, *rest = arguments
        return _update(replace_data(problem, data), *rest)

    return jax.lax.map(update, stacked, batch_size=min(size, _AT_ONCE))


def _select_orders(
    runs: Runs, residuals: Any, models: Sequence[AbstractNoise | str | None]
) -> tuple[Any, ...]:
    """Return the models with the orders of autoregressive ones selected from white residuals.

    **Arguments:** `residuals` (B, N) of one or several data sets.
    """
    series: list[list[np.ndarray]] = [[] for _ in models]
    for set_residuals in residuals:
        for own, (_, weights, r) in zip(series, runs.by_sensor(set_residuals), strict=True):
            plain = np.where(weights > 0, r, np.nan)
            own += [channel for run in plain for channel in run.T]
    return tuple(
        _select_order(own, len(residuals)) if model == SELECT_ORDER else model
        for own, model in zip(series, models, strict=True)
    )


def _select_order(series: Sequence[np.ndarray], num_sets: int) -> AutoRegressive:
    """Return a model of the order that Schwarz's criterion selects, at least 1."""
    coefficients = fit_autoregression(series, _LARGEST_ORDER, num_sets)
    return AutoRegressive(max(len(coefficients), 1))


class _NoiseStart(NamedTuple):
    """A problem with first filters, runs with weights that suit it, the noise of its sensors, and
    start coordinates of all noise models."""

    problem: FitProblem
    runs: Runs
    sensors: tuple[SensorNoise, ...]
    coordinates: Float[Array, " d"]


def _begin(problem: FitProblem, runs: Runs, models: Sequence[Any]) -> _NoiseStart:
    """Return the problem with the first filters of its noise models.

    The standard deviation is a parameter of an autoregressive model, so that given noise of such a
    sensor only weighs its samples against each other.
    """
    sensors, factors, filters, starts = [], [], [], []
    spans = np.diff(np.asarray(runs.ts), axis=1)
    interval = float(np.median(spans[spans > 0]))
    for sensor, model, weights, known in zip(
        runs.sensors, models, map(np.asarray, runs.weights), runs.has_noise, strict=True
    ):
        counts_samples = model is not None and model.counts_samples
        is_relative = counts_samples or not known
        typical = float(np.median(weights[weights > 0]))
        factors.append(typical if model is not None and is_relative else 1.0)
        gaps = sample_gaps(
            sensor.name, np.asarray(runs.ts), weights / factors[-1], counts_samples, counts_samples
        )
        sensors.append(SensorNoise(model, gaps, known))
        filters.append(sensors[-1].first_whitening(1 / typical))
        starts.append(sensors[-1].guess(1 / typical, interval))
    runs = rescale_weights(runs, factors)
    coordinates = jnp.asarray(np.concatenate(starts), runs.ts.dtype)
    problem = _replace_noise(problem, runs.weights, tuple(filters))
    return _NoiseStart(problem, runs, tuple(sensors), coordinates)


@persistent_jit
def _update(
    problem: FitProblem, point: Any, sensors: Sequence[SensorNoise], coordinates: Float[Array, " d"]
) -> tuple[Float[Array, " d"], Any, Float[Array, "U U"], Float[Array, ""]]:
    """Return the noise estimated at a minimum, and the data of the problem with its filters.

    Coordinates that are not finite are replaced by the given ones.

    **Arguments:** `point`, the coordinates of the minimum, their `sides`, and its leaves.
    **Returns:** coordinates of the noise; data; the increase of the covariance of the fit by the
    uncertainty of the noise; the largest change of the noise's coordinates.
    """
    shared, per_run, sides, leaves = point
    linear = _linearise_fit(problem, shared, per_run, sides, sensors)
    new = estimate_noise(linear, coordinates)
    new = jnp.where(jnp.all(jnp.isfinite(new)), new, coordinates)
    added = covariance_from_noise(linear, new)
    change = jnp.max(jnp.abs(new - coordinates), initial=0.0)
    problem, new = _apply_noise(problem.with_starts(leaves), sensors, new)
    return new, set_data(problem), added, change


def _linearise_fit(
    problem: FitProblem,
    shared: Float[Array, " S"],
    per_run: Float[Array, "B P"],
    sides: Int[Array, " U"],
    sensors: Sequence[SensorNoise],
) -> LinearisedFit:
    """Return the fit, linearised at a minimum. **Arguments:** `sides`, see `Minimum`."""
    plain, num_shared = evaluate(problem.without_whitening(), shared, per_run), shared.shape[0]
    own_sides = sides[num_shared:].reshape(per_run.shape)
    shared_sides = jnp.broadcast_to(sides[:num_shared], (len(per_run), num_shared))
    is_free = jnp.concatenate([shared_sides, own_sides], axis=1) == 0
    rows = jnp.where(is_free[:, None], plain.coordinate_rows(), 0.0)
    columns = jnp.concatenate([rows, plain.residuals[..., None]], axis=-1)
    weights = problem.runs.weights
    parts = jnp.split(columns, np.cumsum([w[0].size for w in weights])[:-1], axis=1)
    return LinearisedFit(
        sensors=tuple(sensors),
        columns=tuple(x.reshape(*w.shape, -1) for x, w in zip(parts, weights, strict=True)),
        prior=(plain.prior.residuals, jnp.where(sides != 0, 0.0, plain.prior_jacobian())),
        num_shared=num_shared,
    )


def _apply_noise(
    problem: FitProblem, sensors: Sequence[SensorNoise], coordinates: Array
) -> tuple[FitProblem, Array]:
    """Return the problem with filters and weights of these coordinates.

    White noise scales the present weights; its coordinate, the logarithm of a factor, becomes zero.
    """
    weights, filters, rest = [], [], []
    parts = split_coordinates(coordinates, sensors)
    for sensor, own, w in zip(sensors, parts, problem.runs.weights, strict=True):
        is_scaled = sensor.model is None and own.size > 0
        weights.append(w * jnp.exp(-own[0]) if is_scaled else w)
        rest.append(jnp.zeros_like(own) if is_scaled else own)
        filters.append(sensor.whitening(own))
    problem = _replace_noise(problem, tuple(weights), tuple(filters))
    return problem, jnp.concatenate(rest)


def _replace_noise(problem: FitProblem, weights: Any, whitening: Any) -> FitProblem:
    """Return the problem with these weights and filters of its sensors."""
    return dataclasses.replace(
        problem, runs=dataclasses.replace(problem.runs, weights=weights, whitening=whitening)
    )


def _fitted_models(
    sensors: Sequence[AbstractSensor], noise: Sequence[SensorNoise], coordinates: Array
) -> dict[str, AbstractNoise]:
    """Return the models of dependent noise with their parameters, by sensor."""
    models = {}
    parts = split_coordinates(coordinates, noise)
    for sensor, sensor_noise, own in zip(sensors, noise, parts, strict=True):
        if (model := sensor_noise.model_at(own)) is not None:
            models[sensor.name] = model
    return models


def _describe_models(
    runs: Runs,
    white: Mapping[str, float],
    models: Mapping[str, AbstractNoise],
    reason: str,
    model: AbstractFormulation,
) -> str:
    """Return a note on the noise models, with the reason if they did not converge."""
    units = {s.name: s.unit_in(model) for s in runs.sensors}
    parts = [f"{name}: {m.describe(units[name])}" for name, m in models.items()]
    parts += [f"{name}: white, {value:.4g} {units[name]}" for name, value in white.items()]
    text = "; ".join(parts)
    if not reason:
        return f"Noise models, estimated with the fit: {text}."
    return f"The noise models did not converge (last: {text}): {reason}."
