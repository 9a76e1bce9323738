r"""Multiple shooting: runs in segments whose gaps are closed in stages.

Over a long run of a chaotic system a trajectory depends so strongly on its parameters that the sum
of squares has a local minimum at every turn. Over a segment it does not. So every segment gets a
start of its own, found from its samples, and the gaps between segments count as residuals, with a
weight that grows until they are closed.

**Source:** Bock (1983), in Numerical Treatment of Inverse Problems in Differential and Integral
Equations; the weights of the gaps in place of constraints: Voss, Timmer, Kurths, Int. J.
Bifurcation Chaos 14 (2004) 1905.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...initial.local_coordinates import independent_rates
from ..data.measurements import Runs
from ..fit.least_squares import Minimum
from ..fit.problem import FitProblem
from .block_elimination import solve_step
from .segment_fit import DAMPING, DOWN, MOST, UP, SegmentFit, segment_costs
from .segment_starts import fit_starts, guess_starts
from .segments import LinearSegments, SegmentUnknowns, cut_runs

# Weights of the gaps, relative to their size and the noise, one stage after the other.
_WEIGHTS = (1.0, 3e1, 1e3, 1e5, 1e7)
# Gaps below this part of the size of the motion are closed.
_CLOSED = 1e-7
# Relative decrease of the cost below which a stage ends, and iterations of a stage.
_ENOUGH, _MAX_ITERATIONS = 1e-3, 20


@dataclasses.dataclass(frozen=True)
class ShootingResult:
    """What multiple shooting found: the problem to go on from, and what to report.

    `gap`, the largest at the end, relative to the size of the motion; `iterations`, `failures`.
    """

    problem: FitProblem
    count: int
    gap: float
    iterations: int
    failures: int

    @property
    def closed(self) -> bool:
        """Whether the segments join to one trajectory."""
        return self.gap < _CLOSED

    def notes(self, converged: bool) -> list[str]:
        """Notes for the fit, whose undivided run has `converged` or not."""
        out = [
            f"Multiple shooting: {self.count} segments in each run, {self.iterations} iterations, "
            f"{self.failures} of them with a simulation that failed; the largest gap at the end "
            f"is {self.gap:.2g} of the size of the motion."
        ]
        if not self.closed:
            out.append(
                "The gaps between the segments were not closed: the last trajectories are not "
                "those of whole runs."
            )
        if not converged:
            out.append(
                "The undivided run did not converge from what multiple shooting found. Its parts "
                "may still be fitted as runs of their own."
            )
        return out


def shoot(problem: FitProblem, runs: Runs, segments: int) -> ShootingResult:
    """Parameters and start of a problem from multiple shooting.

    Priors of parameters count in all stages in which these are varied.

    **Arguments:** `segments`, their number in each run, at least 2.
    **Errors:** `ValueError` for more segments than the samples allow, and for a joint with a force
    that depends on turns beyond pi, which a segment does not know of.
    """
    first = jax.tree.map(lambda leaf: leaf[0], problem.runs.state0)
    independent = independent_rates(problem.model, first)
    pieces = cut_runs(runs, segments, 2 * len(independent))
    fit = SegmentFit(problem, pieces, independent, guess_starts(problem, runs, pieces))
    at, found, noise = fit_starts(fit, 1.0 if runs.noise_is_known else None)
    size = _sizes(fit)
    at, found = _close_gaps(fit, at, found, noise, size)
    fit.check_angles(found)
    gap = float(np.abs(found.gaps / size).max())
    leaves = problem.all_leaves(jnp.asarray(at.shared), jnp.asarray(at.per_run))
    return ShootingResult(problem.with_starts(leaves), segments, gap, fit.iterations, fit.failures)


def _sizes(fit: SegmentFit) -> np.ndarray:
    """Size of the motion for every entry of a gap: spread of positions, 1 rad, rms velocities."""

    def rms(x):
        return max(float(np.sqrt(np.mean(np.square(x)))), 1e-12)

    x = np.asarray(fit.bases.position)
    spread = x - x.mean(axis=(0, 1))
    sizes = (rms(spread), 1.0, rms(fit.bases.velocity), rms(fit.bases.angular_velocity))
    return np.repeat(sizes, 3 * x.shape[-2])


def _close_gaps(
    fit: SegmentFit, at: SegmentUnknowns, found: LinearSegments, noise: float, size: np.ndarray
) -> tuple[SegmentUnknowns, LinearSegments]:
    """Parameters and starts with which the gaps are closed: these count more and more."""
    for weight in _WEIGHTS:
        at, found = _fit_all(fit, at, found, weight * noise / size, noise)
        at = fit.rebase(at, found)
        found = fit.linearise(at)
        if np.abs(found.gaps / size).max() < 1e-2 * _CLOSED:
            break
    return at, found


def _fit_all(
    fit: SegmentFit, at: SegmentUnknowns, found: LinearSegments, weight: np.ndarray, noise: float
) -> tuple[SegmentUnknowns, LinearSegments]:
    """Levenberg-Marquardt with the structure of the segments.

    **Arguments:** `weight` of the gaps; `noise` of a weighted residual, which priors are weighed
    against.
    """
    damping, scale = DAMPING, None
    cost = _total_cost(found, weight, noise)
    for _ in range(_MAX_ITERATIONS):
        rows = _weighted_rows(found, weight, noise)
        scale = _column_norms(at, *rows, scale)
        rows = _drop_held_columns(fit, at, *rows)
        step = solve_step(*rows, tuple(np.sqrt(damping) * x for x in scale))
        trial = jax.tree.map(np.add, at, SegmentUnknowns(*map(jnp.asarray, step)))
        shared, per_run = fit.problem.clip(trial.shared, trial.per_run)
        trial = SegmentUnknowns(shared, per_run, trial.change)
        new = fit.linearise(trial)
        new_cost = _total_cost(new, weight, noise)
        if not new_cost < cost:
            damping *= UP
            if damping > MOST:
                break
            continue
        gain, at, found, cost = cost - new_cost, trial, new, new_cost
        damping *= DOWN
        if gain <= _ENOUGH * cost:
            break
    return at, found


def _total_cost(found: LinearSegments, weight: np.ndarray, noise: float) -> float:
    """Sum of squares with gaps and priors; infinite where the simulation fails."""
    of_shared, _, of_runs, _ = found.prior
    gaps = np.sum((weight * found.gaps) ** 2)
    prior = noise**2 * (np.sum(of_shared**2) + np.sum(of_runs**2))
    total = float(np.sum(segment_costs(found)) + gaps + prior)
    return total if np.isfinite(total) else np.inf


def _weighted_rows(found: Any, weight: np.ndarray, noise: float):
    """Residuals, gaps and priors with their derivatives, weighted."""
    data = found.residuals, found.jacobian
    columns = weight[:, None]
    gaps = weight * found.gaps, columns * found.ends, columns * found.starts
    r, shared_jacobian, of_runs, per_run_jacobian = (noise * x for x in found.prior)
    return data, gaps, (r, shared_jacobian, of_runs, per_run_jacobian)


def _drop_held_columns(fit: SegmentFit, at: SegmentUnknowns, data, gaps, prior):
    """The rows without the derivatives by coordinates that their limits hold.

    These are the coordinates on a limit beyond which the sum of squares falls.
    """
    limits = fit.problem.limits()
    if limits is None:
        return data, gaps, prior
    (r, J), (g, ends, starts), (shared_r, shared_jacobian, per_run_r, per_run_jacobian) = (
        data,
        gaps,
        prior,
    )
    S, m = at.shared.size, at.shared.size + at.per_run.shape[1]
    slope = np.einsum("bkn,bknm->bm", r, J[..., :m])
    slope += np.einsum("bkg,bkgm->bm", g, (ends + starts)[..., :m])
    slopes = (
        slope[:, :S].sum(axis=0) + shared_r @ shared_jacobian,
        slope[:, S:] + np.einsum("bq,bqp->bp", per_run_r, per_run_jacobian),
    )
    free = [
        ~(((u <= part.lower) & (slope > 0)) | ((u >= part.upper) & (slope < 0)))
        for u, part, slope in zip((at.shared, at.per_run), limits, slopes, strict=True)
    ]
    per_run = np.asarray(free[1])
    columns = np.concatenate([np.broadcast_to(free[0], (len(per_run), S)), per_run], axis=1)
    columns = np.pad(columns, ((0, 0), (0, J.shape[-1] - m)), constant_values=True)
    columns = columns[:, None, None]
    prior = (
        shared_r,
        shared_jacobian * np.asarray(free[0]),
        per_run_r,
        per_run_jacobian * per_run[:, None],
    )
    return (r, J * columns), (g, ends * columns, starts * columns), prior


def _column_norms(at: SegmentUnknowns, data, gaps, prior, before):
    """Norms of the columns of the Jacobian, the largest so far."""
    (_, J), (_, ends, starts), (_, shared_jacobian, _, per_run_jacobian) = data, gaps, prior
    squares = np.sum(J**2, axis=2)
    squares[:, :-1] += np.sum(ends**2, axis=2)
    squares[:, 1:] += np.sum(starts**2, axis=2)
    S, P = at.shared.size, at.per_run.shape[1]
    sizes = (
        squares[..., :S].sum(axis=(0, 1)) + np.sum(shared_jacobian**2, axis=0),
        squares[..., S : S + P].sum(axis=1) + np.sum(per_run_jacobian**2, axis=1),
        squares[..., S + P :],
    )
    # What nothing depends on, such as the change of a first start, is not moved.
    sizes = [np.sqrt(np.where(x > 0, x, 1.0)) for x in sizes]
    if before is None:
        return sizes
    return [np.maximum(a, b) for a, b in zip(sizes, before, strict=True)]


def restore_starts(problem: FitProblem, minimum: Minimum) -> Minimum:
    """The minimum with the components at the start of this problem as those it started from."""
    shared, per_run = problem.start_coordinates()

    def components(per_run, run):
        experiment = problem.experiment(problem.run_leaves(shared, per_run, run), run)
        return tuple(part.values() for part in problem.parametrised(experiment))

    first, second = jax.vmap(components)(per_run, problem.runs)
    return eqx.tree_at(lambda m: (m.first.shared, m.first.per_run), minimum, (first[0], second))
