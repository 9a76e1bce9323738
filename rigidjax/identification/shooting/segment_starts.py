"""Start states of segments, each from its own samples."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...initial.local_coordinates import Directions, loop_rows_at, num_rates, selection
from ...sensors import improve_states
from ...state import State
from ..data.measurements import Runs
from ..search.problem import FitProblem
from ..starts.first_samples import first_valid_values
from .segments import LinearSegments, Segments, SegmentSamples, SegmentUnknowns, linearise

# Initial damping relative to the columns of the Jacobian, its factors after good and bad steps, and
# its maximum.
DAMPING, DOWN, UP, MOST = 1e-2, 0.2, 5.0, 1e12
# Minimum of `max_steps` of a segment.
_MIN_STEPS = 128


# Relative decrease of the cost below which a fit ends, and its maximum number of iterations.
_ENOUGH, _MAX_ITERATIONS = 1e-3, 15
# Fractions of a segment that are fitted one after the other, before the whole segment.
_HORIZONS = (0.1, 0.3)
# Ratio of a segment's residuals to the median above which its start is considered wrong.
_BAD = 3.0


class SegmentFit:
    """The segments of a problem and their base states, which move along with the starts.

    **Attributes:** `problem`; `cut`; `independent`, indices of independent generalised velocities;
    `bases`, with leading axes (B, K); `iterations`, the number of simulations of all segments, and
    `failures`, how many of them failed.
    """

    def __init__(
        self,
        problem: FitProblem,
        pieces: SegmentSamples,
        independent: tuple[int, ...],
        bases: State,
    ):
        how = problem.simulation
        # All segments wait for the slowest: a trial with far too fast motion should fail early.
        steps = max(_MIN_STEPS, 2 * how.max_steps // pieces.ts.shape[1])
        how = dataclasses.replace(how, max_steps=min(how.max_steps, steps))
        self.problem = dataclasses.replace(problem, simulation=how)
        self.cut, self.independent, self.bases = pieces, independent, bases
        self.iterations = self.failures = 0

    def linearise(self, unknowns: SegmentUnknowns) -> Any:
        """Return all segments linearised at these unknowns, as NumPy arrays."""
        segments = Segments(self.problem, self.cut, self.bases, self.directions())
        linear = jax.tree.map(np.asarray, linearise(segments, jax.tree.map(jnp.asarray, unknowns)))
        self.iterations += 1
        self.failures += not linear.okay.all()
        return linear

    def directions(self) -> Directions:
        """Return the directions in which the starts are changed, at the base states."""
        model, shape = self.problem.model, self.cut.ts.shape[:2]
        f, k = num_rates(model), len(self.independent)
        if k == f:
            single = selection(self.independent, f, str(self.cut.ts.dtype))
            return jax.tree.map(lambda x: jnp.broadcast_to(x, (*shape, *x.shape)), single)
        # The null space of the loops at the start of the segment is regular at every joint.
        J = loop_rows_at(model.system, self.bases)
        basis = np.swapaxes(np.linalg.svd(J)[2], -1, -2)
        return Directions(jnp.asarray(basis[..., f - k :]), jnp.asarray(basis[..., : f - k]))

    def rebase(self, unknowns: SegmentUnknowns, linear: LinearSegments) -> SegmentUnknowns:
        """Move the base states to the current starts; return the unknowns with zero changes."""
        self.bases = jax.tree.map(jnp.asarray, linear.states)
        return eqx.tree_at(lambda u: u.change, unknowns, np.zeros_like(unknowns.change))

    def check_angles(self, linear: LinearSegments) -> None:
        """Raise `ValueError` if a force depends on revolutions, which a segment does not know."""
        system = self.problem.model.multibody
        for j in sorted({*system.force_joints} & {*system.tracked_joints}):
            if np.abs(linear.final.angles[system.joints[j].name]).max() > np.pi:
                raise ValueError(
                    f"`identify(segments=...)`: a force depends on the angle of the joint "
                    f"{system.joints[j].name!r}, which goes beyond pi. A segment starts in "
                    "(-pi, pi] and does not know of earlier turns; fit without `segments`."
                )


def segment_costs(linear: LinearSegments, within: np.ndarray | bool = True) -> np.ndarray:
    """Return the sum of squares of every segment; infinite where the simulation fails."""
    return np.where(linear.okay, np.sum(linear.residuals**2, axis=2, where=within), np.inf)


def fit_starts(
    fit: SegmentFit, noise: float | None
) -> tuple[SegmentUnknowns, LinearSegments, float]:
    """Fit the start of each segment separately, with the parameters held fixed.

    **Arguments:** `noise` of a weighted residual, `None` to estimate it from the residuals.
    **Returns:** the unknowns, the segments linearised there, and the noise.
    """
    shared, per_run = fit.problem.start_coordinates()
    shape = (*fit.cut.ts.shape[:2], 2 * len(fit.independent))
    unknowns = SegmentUnknowns(shared, per_run, jnp.zeros(shape, per_run.dtype))
    all_samples = _horizon_mask(fit, 1.0)
    for horizon in _HORIZONS:
        unknowns, _ = _fit_segments(fit, unknowns, _horizon_mask(fit, horizon), noise)
    unknowns, linear = _fit_segments(fit, unknowns, all_samples, noise)
    for _ in range(shape[1]):
        cost = segment_costs(linear)
        bad = ~(cost <= _BAD**2 * np.median(cost, axis=1, keepdims=True))
        # A bad segment is retried only if the one before it is good, from whose end it continues.
        retried = np.pad(bad[:, 1:] & ~bad[:, :-1], ((0, 0), (1, 0)))
        if not retried.any():
            break
        old_bases = fit.bases
        fit.bases = _continue_from_previous(old_bases, linear.final, retried)
        unknowns, new = _fit_segments(fit, unknowns, all_samples, noise)
        better = retried & (segment_costs(new) < cost)
        fit.bases = _where_segments(better, fit.bases, old_bases)
        linear = _select_segments(better, new, linear)
        if not better.any():
            break
    linear = fit.linearise(unknowns)
    if noise is None:
        counts = sum(np.count_nonzero(w) for w in fit.cut.weights)
        noise = float(np.sqrt(np.sum(segment_costs(linear)) / counts))
    return unknowns, linear, noise


def _horizon_mask(fit: SegmentFit, horizon: float) -> np.ndarray:
    """Return which residuals are in this fraction of their segment, (N,); at least 3 samples."""
    length = fit.cut.ts.shape[2]
    first = np.arange(length) < max(3, np.ceil(horizon * length))
    return np.concatenate([np.repeat(first, w.shape[-1]) for w in fit.cut.weights])


def _fit_segments(
    fit: SegmentFit, unknowns: SegmentUnknowns, within: np.ndarray, noise: float | None
) -> tuple[SegmentUnknowns, LinearSegments]:
    """Fit all segments at once by Levenberg-Marquardt, each with its own damping."""
    linear = fit.linearise(unknowns)
    damping = np.full(unknowns.change.shape[:2], DAMPING)
    # The decrease is relative to the cost, or to that of the noise.
    smallest = np.count_nonzero(within) * (noise or 0.0) ** 2
    for _ in range(_MAX_ITERATIONS):
        step = _damped_steps(linear, within, unknowns.change.shape[-1], damping)
        trial = eqx.tree_at(lambda u: u.change, unknowns, unknowns.change + step)
        new = fit.linearise(trial)
        old_cost, new_cost = segment_costs(linear, within), segment_costs(new, within)
        better = new_cost < old_cost
        change = np.where(better[..., None], trial.change, unknowns.change)
        unknowns = eqx.tree_at(lambda u: u.change, unknowns, change)
        linear = _select_segments(better, new, linear)
        damping = np.clip(damping * np.where(better, DOWN, UP), 0.0, MOST)
        if not np.any(better & (old_cost - new_cost > _ENOUGH * (old_cost + smallest))):
            break
    return fit.rebase(unknowns, linear), linear


def guess_starts(problem: FitProblem, runs: Runs, pieces: SegmentSamples) -> State:
    """Return the start state of the run at every node, improved by the sensor readings there."""
    shape = pieces.ts.shape[:2]
    given = jax.tree.map(lambda x: np.repeat(np.asarray(x), shape[1], 0), problem.runs.state0)
    first = [
        first_valid_values(*(np.asarray(x).reshape(-1, *x.shape[2:]) for x in pair))
        for pair in zip(pieces.values, pieces.weights, strict=True)
    ]
    improved_states = improve_states(problem.model, runs.sensors, given, first)
    return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), improved_states)


def _damped_steps(
    linear: LinearSegments, within: np.ndarray, n: int, damping: np.ndarray
) -> np.ndarray:
    """Return damped steps of the starts of all segments, (B, K, n)."""
    use = linear.okay[..., None] & within
    J = np.where(use[..., None], linear.jacobian[..., -n:], 0.0)
    r = np.where(use, linear.residuals, 0.0)
    size = np.linalg.norm(J, axis=2)
    D = np.sqrt(damping)[..., None] * np.where(size > 0, size, 1.0)
    rows = np.concatenate([J, D[..., None] * np.eye(n)], axis=2)
    right = np.concatenate([r, np.zeros_like(D)], axis=2)
    return -(np.linalg.pinv(rows) @ right[..., None])[..., 0]


def _select_segments(
    better: np.ndarray, new: LinearSegments, old: LinearSegments
) -> LinearSegments:
    """Return `new` in segments where it is better, else `old`; gaps are those of `old`."""

    def fields(segments):
        return [
            segments.residuals,
            segments.jacobian,
            segments.states,
            segments.final,
            segments.angles,
            segments.okay,
        ]

    return eqx.tree_at(fields, old, _where_segments(better, fields(new), fields(old)))


def _where_segments(mask: np.ndarray, first: Any, second: Any) -> Any:
    """Return `first` in the segments of the mask, `second` in the others."""

    def pick(a, b):
        return np.where(mask.reshape(*mask.shape, *(1,) * (a.ndim - 2)), a, b)

    return jax.tree.map(pick, first, second)


def _continue_from_previous(bases: State, final: State, retried: np.ndarray) -> State:
    """Return base states that continue from the end of the previous segment, where `retried`."""
    shifted = jax.tree.map(lambda x: np.concatenate([x[:, :1], x[:, :-1]], axis=1), final)
    return _where_segments(retried, shifted, bases)
