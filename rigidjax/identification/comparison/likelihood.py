"""Likelihoods of fits of the same data, also of runs that are left out of a fit."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..data.measurements import Runs
from ..result.result import Fit
from ..search.evaluation import evaluate
from ..search.least_squares import minimise
from ..search.losses import Squares
from ..search.optimum import Optimum
from ..search.problem import FitProblem

# Relative difference of samples up to which they are the same.
_ROUND_OFF = 1e-6
# Weight that holds a component, relative to the reciprocal of its standard deviation.
_HOLD = 1e4


@dataclasses.dataclass(frozen=True)
class Likelihood:
    """Likelihood of the data at the estimates.

    **Attributes:** `deviance`, minus twice the logarithm of the probability density of the data;
    `num_parameters`, with the standard deviations of the noise that were estimated; `num_samples`,
    the number of scalar samples.
    """

    deviance: float
    num_parameters: int
    num_samples: int

    @property
    def aic(self) -> float:
        """Akaike's criterion."""
        return self.deviance + 2 * self.num_parameters

    @property
    def aicc(self) -> float:
        """Akaike's criterion, corrected for few samples; infinite for too few of them."""
        rest = self.num_samples - self.num_parameters - 1
        correction = 2 * self.num_parameters * (self.num_parameters + 1)
        return self.aic + correction / rest if rest > 0 else np.inf

    @property
    def bic(self) -> float:
        """Criterion of Schwarz."""
        return self.deviance + self.num_parameters * float(np.log(self.num_samples))


class SensorNoiseScale(NamedTuple):
    """Scale of the noise of one sensor in a fit.

    **Attributes:** `used` (B, T, C), samples that count; `log_std` (B,), sum over the samples of a
    run of the logarithm of the standard deviation that a residual is divided by; `is_estimated`,
    whether the standard deviation of white noise was estimated; `num_parameters` of the noise.
    """

    used: Bool[np.ndarray, "B T C"]
    log_std: Float[np.ndarray, " B"]
    is_estimated: bool
    num_parameters: int


def _noise_scales(optimum: Optimum) -> list[SensorNoiseScale]:
    """Return the scale of the noise of every sensor, in their order.

    The residuals of a sensor with a noise model are innovations. The first sample of a channel
    whose noise has an unknown start has none, and does not count.
    """
    runs, scales = optimum.runs, []
    filters = optimum.problem.runs.whitening or (None,) * len(runs.sensors)
    for weights, filter, known in zip(runs.weights, filters, runs.has_noise, strict=True):
        factor, is_estimated = np.asarray(weights), filter is None and not known
        num_parameters = int(is_estimated)
        if filter is not None:
            factor = factor * np.asarray(filter.scale)
            num_parameters = filter.gain.shape[-1] + 1
        used = factor > 0
        log_std = -np.sum(np.log(np.where(used, factor, 1.0)), axis=(1, 2))
        scales.append(SensorNoiseScale(used, log_std, is_estimated, num_parameters))
    return scales


def likelihood(fit: Fit) -> Likelihood:
    """Return the likelihood of a fit, for independent normal noise or noise models.

    Estimated white noise counts with one parameter per sensor and its most likely standard
    deviation, a noise model with the size of its state plus one.

    **Errors:** `ValueError` for a robust loss, which has no likelihood.
    """
    residuals = fit.optimum.minimum.last.residuals
    if not isinstance(fit.optimum.search.loss, Squares):
        raise ValueError(
            f"A fit with the loss {type(fit.optimum.search.loss).__name__} has no likelihood; "
            "compare fits with `loss=None`."
        )
    scales, deviances = _noise_scales(fit.optimum), _deviances(fit.optimum, residuals)
    return Likelihood(
        float(deviances.sum()),
        len(fit.labels) + sum(scale.num_parameters for scale in scales),
        int(sum(np.count_nonzero(scale.used) for scale in scales)),
    )


def _deviances(
    optimum: Optimum, residuals: Array, out: np.ndarray | None = None
) -> Float[np.ndarray, " B"]:
    """Return the deviance of each run from residuals (B, N).

    **Arguments:** `out` (B,), runs that are left out of the estimate of the noise.
    """
    kept = np.ones(len(residuals), bool) if out is None else ~out
    deviances = np.zeros(len(residuals))
    by_sensor = optimum.runs.by_sensor(residuals)
    for scale, (_, _, r) in zip(_noise_scales(optimum), by_sensor, strict=True):
        count = scale.used.sum(axis=(1, 2))
        squares = np.sum(np.where(scale.used, r, 0.0) ** 2, axis=(1, 2))
        variance = squares[kept].sum() / count[kept].sum() if scale.is_estimated else 1.0
        deviances += squares / variance + 2 * scale.log_std + count * np.log(2 * np.pi * variance)
    return deviances


def check_same_data(fits: Sequence[Fit]) -> None:
    """Raise `ValueError` unless all fits are of the same samples of the same sensors."""
    first = fits[0].optimum.runs
    for number, fit in enumerate(fits[1:], 2):
        if difference := _difference(first, fit.optimum.runs):
            raise ValueError(
                f"`compare_models(fits=...)` takes fits of the same data; fit {number} differs "
                f"from the first one in {difference}."
            )


def _difference(first: Runs, other: Runs) -> str:
    """Return the difference between the data of two fits in words, `""` if they are the same."""
    names = [s.name for s in first.sensors], [s.name for s in other.sensors]
    if names[0] != names[1]:
        return f"the sensors, {names[1]} instead of {names[0]}"
    if first.lengths != other.lengths:
        return f"the numbers of samples of the runs, {other.lengths} instead of {first.lengths}"
    if not np.array_equal(first.ts, other.ts):
        return "the times of the samples"
    for sensor, a, b, used, other_used in zip(
        first.sensors, first.values, other.values, first.weights, other.weights, strict=True
    ):
        counts = np.asarray(used) > 0
        if not np.array_equal(counts, np.asarray(other_used) > 0):
            return f"the mask of the {sensor.name}"
        a, b = (np.asarray(x)[counts.any(axis=-1)] for x in (a, b))
        if not np.allclose(a, b, rtol=0, atol=_ROUND_OFF * np.abs(a).max()):
            return f"the samples of the {sensor.name}"
    return ""


def cross_validate(optimum: Optimum, folds: int) -> Float[np.ndarray, " B"] | None:
    """Return the deviance of every run, predicted by a fit without it.

    The deviance is minus twice the logarithm of the probability density of the samples. Every fold
    of runs is left out once, and the parameters are fitted to the other runs. Parameters with one
    value per run are then fitted to the run that was left out, with the others held. Estimated
    noise is that of the runs that are not left out.

    **Returns:** the deviances; `None` if a fit without a fold does not converge.
    """
    problem, minimum = optimum.problem, optimum.minimum
    search = optimum.search.with_full_horizons()
    start = problem.with_starts(minimum.leaves)
    fold_of_run = np.arange(problem.num_runs) % min(folds, problem.num_runs)
    deviances = np.zeros(problem.num_runs)
    for fold in range(fold_of_run.max() + 1):
        out = fold_of_run == fold
        keep = jnp.asarray(~out)[:, None, None]
        weights = tuple(jnp.where(keep, w, 0.0) for w in start.runs.weights)
        trained = minimise(eqx.tree_at(lambda p: p.runs.weights, start, weights), search)
        if not bool(trained.converged):
            return None
        if problem.per_run_parameters:
            held = _hold_shared(optimum, start.with_starts(trained.leaves))
            refitted = minimise(held, search)
            if not bool(refitted.converged):
                return None
            evaluation = refitted.last
        else:
            evaluation = evaluate(start, trained.shared, trained.per_run)
        deviances[out] = _deviances(optimum, evaluation.residuals, out)[out]
    return deviances


def _hold_shared(optimum: Optimum, problem: FitProblem) -> FitProblem:
    """Return the problem with the shared components held at their start."""
    last = optimum.minimum.last
    size = last.shared.shape[0]
    jacobian = np.asarray(last.component_jacobian_with_prior())[:, :size]
    norms = np.linalg.norm(jacobian, axis=0)
    weights = _HOLD * np.where(norms > 0, norms, 1.0)
    return problem.with_hold(weights, np.zeros(last.per_run.shape))
