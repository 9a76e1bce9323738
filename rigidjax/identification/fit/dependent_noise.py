"""Fits with models of dependent noise, estimated alternately."""

import dataclasses
from collections.abc import Mapping, Sequence
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
from ..noise.likelihood import (
    LinearisedFit,
    LinearisedSensor,
    SensorNoise,
    covariance_from_noise,
    estimate_noise,
    split_coordinates,
)
from ..noise.models import AbstractNoise, AutoRegressive
from ..noise.specification import SELECT_ORDER
from ..noise.whitening import sample_gaps
from ..statistics.autoregression import fit_autoregression
from .evaluation import Evaluation, evaluate_plain
from .least_squares import Minimum, Search, minimise
from .losses import Squares
from .problem import FitProblem

# Change of the logarithms of noise parameters below which they have converged: a fraction of their
# standard deviation.
CLOSE = 1e-2
_MAX_ROUNDS = 20
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
    problem: FitProblem,
    runs: Runs,
    search: Search,
    models: Sequence[AbstractNoise | str | None],
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
    first, notes = None, []
    if SELECT_ORDER in models:
        minimum = minimise(problem, search)
        first, search = minimum.first, search.with_full_horizons()
        models = select_orders(runs, [minimum.last.residuals], models)
        problem = problem.with_starts(minimum.leaves)
    sensors, runs, stds = prepare_noise(runs, models)
    first_filters = tuple(s.first_whitening(std) for s, std in zip(sensors, stds, strict=True))
    problem = replace_noise(problem, runs.weights, first_filters)
    coordinates = guess_coordinates(sensors, runs, stds)
    minimum = minimise(problem, search)
    first = minimum.first if first is None else first
    reason = f"they still changed after {_MAX_ROUNDS} rounds"
    is_scaled = [not known and m is None for m, known in zip(models, runs.has_noise, strict=True)]
    added = None
    for _ in range(_MAX_ROUNDS):
        if not bool(minimum.converged):
            reason = "an intermediate fit did not converge"
            break
        previous = coordinates
        point = minimum.shared, minimum.per_run, minimum.sides
        linear = linearise_fit(problem, *point, sensors)
        coordinates = noise_step(linear, coordinates)
        if bool(jnp.all(jnp.abs(coordinates - previous) < CLOSE)):
            reason, added = "", np.asarray(covariance_from_noise(linear, coordinates))
            break
        problem, coordinates = apply_noise(problem, sensors, coordinates)
        runs = eqx.tree_at(lambda r: r.weights, runs, problem.runs.weights)
        problem = problem.with_starts(minimum.leaves)
        minimum = minimise(problem, search.with_full_horizons())
    minimum = eqx.tree_at(lambda m: m.first, minimum, first)
    fitted = fitted_models(runs.sensors, sensors, coordinates)
    white = {
        s.name: 1.0 / float(np.asarray(w).max())
        for s, w, scaled in zip(runs.sensors, runs.weights, is_scaled, strict=True)
        if scaled
    }
    notes = [_describe_models(runs, white, fitted, reason, problem.model)]
    return FittedNoise(problem, runs, minimum, white, fitted, notes, added)


def select_orders(
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


def prepare_noise(
    runs: Runs, models: Sequence[Any]
) -> tuple[tuple[SensorNoise, ...], Runs, list[float]]:
    """Return the noise of the sensors, runs whose weights suit it, and first standard deviations.

    The standard deviation is a parameter of an autoregressive model, so that given noise of such a
    sensor only weighs its samples against each other.
    """
    sensors, factors, stds = [], [], []
    for sensor, model, weights, known in zip(
        runs.sensors, models, map(np.asarray, runs.weights), runs.has_noise, strict=True
    ):
        counts_samples = model is not None and model.counts_samples
        is_relative = counts_samples or not known
        typical = float(np.median(weights[weights > 0]))
        factors.append(typical if model is not None and is_relative else 1.0)
        stds.append(1 / typical)
        gaps = sample_gaps(
            sensor.name, np.asarray(runs.ts), weights / factors[-1], counts_samples, counts_samples
        )
        gaps = jax.tree.map(jnp.asarray, gaps)
        sensors.append(SensorNoise(model, gaps, known))
    return tuple(sensors), rescale_weights(runs, factors), stds


def guess_coordinates(sensors: Sequence[SensorNoise], runs: Runs, stds: Sequence[float]) -> Array:
    """Return the start coordinates of all noise models."""
    parts = []
    for sensor, std in zip(sensors, stds, strict=True):
        gap = np.diff(np.asarray(runs.ts), axis=1)
        parts.append(sensor.guess(std, float(np.median(gap[gap > 0]))))
    return jnp.asarray(np.concatenate(parts), runs.ts.dtype)


@persistent_jit
def noise_step(linear: LinearisedFit, coordinates: Array) -> Array:
    """Return the coordinates of the noise at a minimum; the given ones if they are not finite."""
    new = estimate_noise(linear, coordinates)
    return jnp.where(jnp.all(jnp.isfinite(new)), new, coordinates)


@persistent_jit
def linearise_fit(
    problem: FitProblem,
    shared: Float[Array, " S"],
    per_run: Float[Array, "B P"],
    sides: Int[Array, " U"],
    sensors: Sequence[SensorNoise],
) -> LinearisedFit:
    """Return the fit, linearised at a minimum. **Arguments:** `sides`, see `Minimum`."""
    plain = evaluate_plain(problem, shared, per_run)
    num_shared = shared.shape[0]
    own = sides[num_shared:].reshape(per_run.shape)
    prior = plain.prior.coordinate_jacobian(plain.shared_chain, plain.per_run_chain)
    return LinearisedFit(
        sensors=tuple(sensors),
        linearised=tuple(_linearised_sensors(problem, plain, sides[:num_shared], own)),
        prior=(plain.prior.residuals, jnp.where(sides != 0, 0.0, prior)),
        num_shared=num_shared,
    )


def _linearised_sensors(
    problem: FitProblem, plain: Evaluation, shared_sides: Array, own_sides: Array
) -> list[LinearisedSensor]:
    """Return plain residuals and derivatives by free coordinates, sensor by sensor."""

    shared = jnp.broadcast_to(shared_sides, (len(own_sides), *shared_sides.shape))
    is_free = jnp.concatenate([shared, own_sides], axis=1) == 0
    rows = jnp.where(is_free[:, None], plain.coordinate_rows(), 0.0)
    linearised, begin = [], 0
    for weights in problem.runs.weights:
        end = begin + weights[0].size
        shape = weights.shape
        linearised.append(
            LinearisedSensor(
                plain.residuals[:, begin:end].reshape(shape),
                rows[:, begin:end].reshape(*shape, -1),
            )
        )
        begin = end
    return linearised


def apply_noise(
    problem: FitProblem, sensors: Sequence[SensorNoise], coordinates: Array
) -> tuple[FitProblem, Array]:
    """Return the problem with filters and weights of these coordinates.

    The coordinate of white noise is a factor on present weights, and returns as zero.
    """
    weights, filters, rest = [], [], []
    parts = split_coordinates(coordinates, sensors)
    for sensor, own, w in zip(sensors, parts, problem.runs.weights, strict=True):
        is_scaled = sensor.model is None and own.size > 0
        weights.append(w * jnp.exp(-own[0]) if is_scaled else w)
        rest.append(jnp.zeros_like(own) if is_scaled else own)
        filters.append(sensor.whitening(own))
    problem = replace_noise(problem, tuple(weights), tuple(filters))
    return problem, jnp.concatenate(rest)


def replace_noise(problem: FitProblem, weights: Any, whitening: Any) -> FitProblem:
    """Return the problem with these weights and filters of its sensors."""
    return dataclasses.replace(
        problem, runs=dataclasses.replace(problem.runs, weights=weights, whitening=whitening)
    )


def fitted_models(
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
