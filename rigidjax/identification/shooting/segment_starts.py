"""Starts of segments, from the samples of each segment alone."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...sensors import improve_states
from ...state import State
from ..data.first_samples import first_valid_values
from ..data.measurements import Runs
from ..fit.problem import FitProblem
from .segment_fit import DAMPING, DOWN, MOST, UP, SegmentFit, segment_costs
from .segments import LinearSegments, SegmentSamples, SegmentUnknowns

# Relative decrease of the cost below which a fit ends, and its iterations.
_ENOUGH, _MAX_ITERATIONS = 1e-3, 15
# Parts of a segment whose samples count for its start, one after the other, before all do.
_HORIZONS = (0.1, 0.3)
# A segment whose residuals are this many times the median of all has a wrong start.
_BAD = 3.0


def fit_starts(
    fit: SegmentFit, noise: float | None
) -> tuple[SegmentUnknowns, LinearSegments, float]:
    """Starts that fit the segments each for itself, with the parameters as they are.

    **Arguments:** `noise` of a weighted residual, `None` to find it from what is left.
    **Returns:** parameters and starts, the segments there, and the noise.
    """
    shared, per_run = fit.problem.start_coordinates()
    shape = (*fit.cut.ts.shape[:2], 2 * len(fit.independent))
    at = SegmentUnknowns(shared, per_run, jnp.zeros(shape, per_run.dtype))
    whole = _horizon_mask(fit, 1.0)
    for horizon in _HORIZONS:
        at, _ = _fit_segments(fit, at, _horizon_mask(fit, horizon), noise)
    at, found = _fit_segments(fit, at, whole, noise)
    for _ in range(shape[1]):
        cost = segment_costs(found)
        bad = ~(cost <= _BAD**2 * np.median(cost, axis=1, keepdims=True))
        # One behind another that is bad is guessed when that is good.
        again = np.pad(bad[:, 1:] & ~bad[:, :-1], ((0, 0), (1, 0)))
        if not again.any():
            break
        before = fit.bases
        fit.bases = _continue_from_previous(before, found.final, again)
        at, new = _fit_segments(fit, at, whole, noise)
        better = again & (segment_costs(new) < cost)
        fit.bases = _where_segments(better, fit.bases, before)
        found = _select_segments(better, new, found)
        if not better.any():
            break
    found = fit.linearise(at)
    if noise is None:
        counts = sum(np.count_nonzero(w) for w in fit.cut.weights)
        noise = float(np.sqrt(np.sum(segment_costs(found)) / counts))
    return at, found, noise


def _horizon_mask(fit: SegmentFit, horizon: float) -> np.ndarray:
    """Which residuals lie in this part of their segment, (N,), three samples at least."""
    length = fit.cut.ts.shape[2]
    first = np.arange(length) < max(3, np.ceil(horizon * length))
    return np.concatenate([np.repeat(first, w.shape[-1]) for w in fit.cut.weights])


def _fit_segments(
    fit: SegmentFit, at: SegmentUnknowns, within: np.ndarray, noise: float | None
) -> tuple[SegmentUnknowns, LinearSegments]:
    """Levenberg-Marquardt for every segment at once, each with a damping of its own."""
    found = fit.linearise(at)
    damping = np.full(at.change.shape[:2], DAMPING)
    # A part of what is left, or of the noise.
    least = np.count_nonzero(within) * (noise or 0.0) ** 2
    for _ in range(_MAX_ITERATIONS):
        step = _damped_steps(found, within, at.change.shape[-1], damping)
        trial = eqx.tree_at(lambda u: u.change, at, at.change + step)
        new = fit.linearise(trial)
        old_cost, new_cost = segment_costs(found, within), segment_costs(new, within)
        better = new_cost < old_cost
        change = np.where(better[..., None], trial.change, at.change)
        at = eqx.tree_at(lambda u: u.change, at, change)
        found = _select_segments(better, new, found)
        damping = np.clip(damping * np.where(better, DOWN, UP), 0.0, MOST)
        if not np.any(better & (old_cost - new_cost > _ENOUGH * (old_cost + least))):
            break
    return fit.rebase(at, found), found


def guess_starts(problem: FitProblem, runs: Runs, pieces: SegmentSamples) -> State:
    """The start state of the run at every node, improved by what sensors read there."""
    shape = pieces.ts.shape[:2]
    given = jax.tree.map(lambda x: np.repeat(np.asarray(x), shape[1], 0), problem.runs.state0)
    first = [
        first_valid_values(*(np.asarray(x).reshape(-1, *x.shape[2:]) for x in pair))
        for pair in zip(pieces.values, pieces.weights, strict=True)
    ]
    found = improve_states(problem.model, runs.sensors, given, first)
    return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), found)


def _damped_steps(found: Any, within: np.ndarray, n: int, damping: np.ndarray) -> np.ndarray:
    """Damped steps of the starts of all segments, (B, K, n)."""
    use = found.okay[..., None] & within
    J = np.where(use[..., None], found.jacobian[..., -n:], 0.0)
    r = np.where(use, found.residuals, 0.0)
    size = np.linalg.norm(J, axis=2)
    D = np.sqrt(damping)[..., None] * np.where(size > 0, size, 1.0)
    rows = np.concatenate([J, D[..., None] * np.eye(n)], axis=2)
    right = np.concatenate([r, np.zeros_like(D)], axis=2)
    return -(np.linalg.pinv(rows) @ right[..., None])[..., 0]


def _select_segments(
    better: np.ndarray, new: LinearSegments, old: LinearSegments
) -> LinearSegments:
    """`new` in the segments where it is better. Gaps belong to no segment: they are left as old."""

    def fields(found):
        return [
            found.residuals,
            found.jacobian,
            found.states,
            found.final,
            found.angles,
            found.okay,
        ]

    return eqx.tree_at(fields, old, _where_segments(better, fields(new), fields(old)))


def _where_segments(mask: np.ndarray, first: Any, second: Any) -> Any:
    """`first` in the segments of the mask, `second` in the others."""

    def pick(a, b):
        return np.where(mask.reshape(*mask.shape, *(1,) * (a.ndim - 2)), a, b)

    return jax.tree.map(pick, first, second)


def _continue_from_previous(bases: State, final: State, again: np.ndarray) -> State:
    """Bases of these segments where the segments before them end."""
    shifted = jax.tree.map(lambda x: np.concatenate([x[:, :1], x[:, :-1]], axis=1), final)
    return _where_segments(again, shifted, bases)
