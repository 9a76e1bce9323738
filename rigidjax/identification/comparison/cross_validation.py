"""Prediction of runs that are left out of a fit."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..fit.evaluation import evaluate
from ..fit.least_squares import minimise
from ..fit.optimum import Optimum
from ..fit.problem import FitProblem
from .likelihood import noise_scales

# Weight of a change of a held component, in units of one over its standard deviation.
_HOLD = 1e4


def cross_validate(optimum: Optimum, folds: int) -> Float[np.ndarray, " B"] | None:
    """Return the deviance of every run, predicted by a fit without it.

    The deviance is minus twice the logarithm of the probability density of the samples. Every fold
    of runs is left out once, and the parameters are fitted to the other runs. Parameters with one
    value per run are then fitted to the run that was left out, with the others held. Estimated
    noise is that of the runs that are not left out.

    **Returns:** `None` if a fit without a fold does not converge.
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
        deviances[out] = _deviances(optimum, evaluation.residuals, out)
    return deviances


def _hold_shared(optimum: Optimum, problem: FitProblem) -> FitProblem:
    """Return the problem with the shared components held at their start."""
    last = optimum.minimum.last
    size = last.shared.shape[0]
    jacobian = np.asarray(last.component_jacobian_with_prior())[:, :size]
    norms = np.linalg.norm(jacobian, axis=0)
    weights = _HOLD * np.where(norms > 0, norms, 1.0)
    return problem.with_hold(weights, np.zeros(last.per_run.shape))


def _deviances(
    optimum: Optimum, residuals: Float[Array, "B N"], out: Bool[np.ndarray, " B"]
) -> np.ndarray:
    """Return the deviance of each run that was left out."""
    deviance = np.zeros(len(out))
    by_sensor = optimum.runs.by_sensor(residuals)
    for scale, (_, _, r) in zip(noise_scales(optimum), by_sensor, strict=True):
        count = scale.used.sum(axis=(1, 2))
        squares = np.sum(np.where(scale.used, r, 0.0) ** 2, axis=(1, 2))
        variance = 1.0
        if scale.is_estimated:
            variance = squares[~out].sum() / count[~out].sum()
        deviance += squares / variance + 2 * scale.log_std + count * np.log(2 * np.pi * variance)
    return deviance[out]
