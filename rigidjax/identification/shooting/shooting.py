"""Multiple shooting: runs are cut into segments whose gaps are closed in stages.

Over a long run of a chaotic system a trajectory depends so strongly on the parameters that the sum
of squares has very many local minima; over a segment it does not. Every segment therefore has its
own start, estimated from its samples, and the gaps between segments count as residuals, with a
weight that grows until they are closed.

**Source:** Bock (1983), in Numerical Treatment of Inverse Problems in Differential and Integral
Equations; weights of gaps instead of constraints: Voss, Timmer, Kurths, Int. J. Bifurcation Chaos
14 (2004) 1905.
"""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...initial.local_coordinates import independent_rates
from ..data.measurements import Runs
from ..search.least_squares import Minimum
from ..search.problem import FitProblem
from .segment_starts import (
    DAMPING,
    DOWN,
    MOST,
    UP,
    SegmentFit,
    fit_starts,
    guess_starts,
    segment_costs,
)
from .segments import LinearSegments, SegmentUnknowns, cut_runs

# Weights of the gaps in successive stages, relative to the noise and the size of the motion.
_WEIGHTS = (1.0, 3e1, 1e3, 1e5, 1e7)
# Size of the gaps, relative to the motion, below which they are closed.
_CLOSED = 1e-7
# Relative decrease of the cost below which a stage ends, and its maximum number of iterations.
_ENOUGH, _MAX_ITERATIONS = 1e-3, 20


def solve_step(
    data: tuple[np.ndarray, np.ndarray],
    gaps: tuple[np.ndarray, np.ndarray, np.ndarray],
    prior: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    damping: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return the step $\min |J\delta + r|^2 + |D\delta|^2$ at a cost linear in the segments.

    Unknowns are the starts of the segments of every run, the parameters of every run, and the
    shared parameters. The rows of a segment contain its start and the parameters, the rows of a gap
    two starts. Orthogonal transformations eliminate one start after the other, then the parameters
    of the runs, without forming $J^T J$.

    **Arguments:**

    - `data`: residuals (B, K, N) and their derivatives with respect to (shared, per-run, start),
      (B, K, N, S+P+n).
    - `gaps`: (B, K-1, G), their derivatives with respect to the unknowns of the segment before and
      of the segment after, (B, K-1, G, S+P+n).
    - `prior`: residuals of the shared parameters (R,) and their derivatives (R, S); residuals of
      the per-run parameters (B, Q) and their derivatives (B, Q, P).
    - `damping`: the diagonal $D$ for shared (S,), per-run (B, P), starts (B, K, n).

    **Returns:** the step in the shape of `damping`.
    """
    triangular_factor: Any = functools.partial(np.linalg.qr, mode="r")
    (r, J), (g, before, after) = data, gaps
    shared_r, shared_J, per_run_r, per_run_J = prior
    d_shared, d_per_run, d_start = damping
    runs, count, n = d_start.shape
    shared = d_shared.shape[0]
    m = shared + d_per_run.shape[1]
    # Columns: start, next start, (own, shared), right-hand side.
    order = np.concatenate([np.arange(shared, m), np.arange(shared)])
    carry, factors = np.zeros((runs, 0, n + m + 1)), []
    for k in range(count):
        nothing = np.zeros((runs, J.shape[2], n))
        rows = [np.concatenate([J[:, k, :, m:], nothing, J[:, k][..., order], r[:, k, :, None]], 2)]
        rows.append(_diagonal_rows(d_start[:, k], 2 * n + m + 1))
        rows.append(np.insert(carry, np.full(n, n), 0.0, axis=2))
        if k + 1 < count:
            both = before[:, k][..., order] + after[:, k][..., order]
            blocks = [before[:, k, :, m:], after[:, k, :, m:], both, g[:, k, :, None]]
            rows.append(np.concatenate(blocks, 2))
        R = triangular_factor(np.concatenate(rows, axis=1))
        factors.append(R[:, :n])
        carry = R[:, n:, n:]
    num_per_run = d_per_run.shape[1]
    # There is no start after the last segment.
    extended = np.concatenate(
        [per_run_J, np.zeros((*per_run_r.shape, shared)), per_run_r[..., None]], axis=2
    )
    R = np.concatenate([carry[:, :, n:], extended, _diagonal_rows(d_per_run, m + 1)], axis=1)
    R = triangular_factor(R)
    remaining = R[:, num_per_run:, num_per_run:].reshape(-1, shared + 1)
    extended = np.concatenate([shared_J, shared_r[:, None]], axis=1)
    remaining = np.concatenate([remaining, extended, _diagonal_rows(d_shared[None], shared + 1)[0]])
    remaining = triangular_factor(remaining)
    step_shared = _back_substitute(remaining[None, :shared, :shared], remaining[None, :shared, -1])[
        0
    ]
    right = R[:, :num_per_run, -1] + R[:, :num_per_run, num_per_run:-1] @ step_shared
    step_per_run = _back_substitute(R[:, :num_per_run, :num_per_run], right)
    parameters = np.concatenate(
        [step_per_run, np.broadcast_to(step_shared, (runs, shared))], axis=1
    )
    steps = np.zeros((runs, count + 1, n))
    for k in reversed(range(count)):
        F = factors[k]
        extended = np.concatenate([steps[:, k + 1], parameters, np.ones((runs, 1))], axis=1)
        steps[:, k] = _back_substitute(F[:, :, :n], np.einsum("bij,bj->bi", F[:, :, n:], extended))
    return step_shared, step_per_run, steps[:, :-1]


def _diagonal_rows(d: np.ndarray, columns: int) -> np.ndarray:
    """Return rows (B, n, columns) with `d` (B, n) on their diagonal."""
    rows = np.zeros((*d.shape, columns))
    index = np.arange(d.shape[1])
    rows[:, index, index] = d
    return rows


def _back_substitute(R: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the solution of R x = -right."""
    return -np.linalg.solve(R, right[..., None])[..., 0]


@dataclasses.dataclass(frozen=True)
class ShootingResult:
    """Result of multiple shooting: the problem to continue with, and statistics.

    `gap`, the largest at the end, relative to the size of the motion; `iterations`, `failures`.
    """

    problem: FitProblem
    count: int
    gap: float
    iterations: int
    failures: int

    @property
    def is_closed(self) -> bool:
        """Whether the segments form one trajectory."""
        return self.gap < _CLOSED

    def notes(self, converged: bool) -> list[str]:
        """Return notes for the fit; `converged` tells whether the fit of whole runs did."""
        notes = [
            f"Multiple shooting: {self.count} segments in each run, {self.iterations} iterations, "
            f"{self.failures} of them with a simulation that failed; the largest gap at the end "
            f"is {self.gap:.2g} of the size of the motion."
        ]
        if not self.is_closed:
            notes.append(
                "The gaps between the segments were not closed: the last trajectories are not "
                "those of whole runs."
            )
        if not converged:
            notes.append(
                "The undivided run did not converge from what multiple shooting found. Its parts "
                "may still be fitted as runs of their own."
            )
        return notes


def shoot(problem: FitProblem, runs: Runs, segments: int) -> ShootingResult:
    """Estimate parameters and start of a problem by multiple shooting.

    Priors of parameters count in all stages that vary the parameters.

    **Arguments:** `segments`, their number in each run, at least 2.
    **Errors:** `ValueError` for more segments than the samples allow, and for a force that depends
    on a joint angle beyond pi, which a segment does not know.
    """
    first = jax.tree.map(lambda leaf: leaf[0], problem.runs.state0)
    independent = independent_rates(problem.model, first)
    pieces = cut_runs(runs, segments, 2 * len(independent))
    fit = SegmentFit(problem, pieces, independent, guess_starts(problem, runs, pieces))
    unknowns, linear, noise = fit_starts(fit, 1.0 if runs.noise_is_known else None)
    size = _sizes(fit)
    unknowns, linear = _close_gaps(fit, unknowns, linear, noise, size)
    fit.check_angles(linear)
    gap = float(np.abs(linear.gaps / size).max())
    leaves = problem.all_leaves(jnp.asarray(unknowns.shared), jnp.asarray(unknowns.per_run))
    return ShootingResult(problem.with_starts(leaves), segments, gap, fit.iterations, fit.failures)


def _sizes(fit: SegmentFit) -> np.ndarray:
    """Return the size of the motion per gap entry: spread of positions, 1 rad, RMS velocities."""

    def rms(x):
        return max(float(np.sqrt(np.mean(np.square(x)))), 1e-12)

    x = np.asarray(fit.bases.position)
    spread = x - x.mean(axis=(0, 1))
    sizes = (rms(spread), 1.0, rms(fit.bases.velocity), rms(fit.bases.angular_velocity))
    return np.repeat(sizes, 3 * x.shape[-2])


def _close_gaps(
    fit: SegmentFit,
    unknowns: SegmentUnknowns,
    linear: LinearSegments,
    noise: float,
    size: np.ndarray,
) -> tuple[SegmentUnknowns, LinearSegments]:
    """Return unknowns with closed gaps, from fits with increasing weights of the gaps."""
    for weight in _WEIGHTS:
        unknowns, linear = _fit_all(fit, unknowns, linear, weight * noise / size, noise)
        unknowns = fit.rebase(unknowns, linear)
        linear = fit.linearise(unknowns)
        if np.abs(linear.gaps / size).max() < 1e-2 * _CLOSED:
            break
    return unknowns, linear


def _fit_all(
    fit: SegmentFit,
    unknowns: SegmentUnknowns,
    linear: LinearSegments,
    weight: np.ndarray,
    noise: float,
) -> tuple[SegmentUnknowns, LinearSegments]:
    """Minimise by Levenberg-Marquardt steps that use the structure of the segments.

    **Arguments:** `weight` of the gaps; `noise` of a weighted residual, relative to which priors
    are weighed.
    """
    damping, scale = DAMPING, None
    cost = _total_cost(linear, weight, noise)
    for _ in range(_MAX_ITERATIONS):
        rows = _weighted_rows(linear, weight, noise)
        scale = _column_norms(unknowns, *rows, scale)
        rows = _drop_held_columns(fit, unknowns, *rows)
        step = solve_step(*rows, tuple(np.sqrt(damping) * x for x in scale))
        trial = jax.tree.map(np.add, unknowns, SegmentUnknowns(*map(jnp.asarray, step)))
        shared, per_run = fit.problem.clip(trial.shared, trial.per_run)
        trial = SegmentUnknowns(shared, per_run, trial.change)
        new = fit.linearise(trial)
        new_cost = _total_cost(new, weight, noise)
        if not new_cost < cost:
            damping *= UP
            if damping > MOST:
                break
            continue
        gain, unknowns, linear, cost = cost - new_cost, trial, new, new_cost
        damping *= DOWN
        if gain <= _ENOUGH * cost:
            break
    return unknowns, linear


def _total_cost(linear: LinearSegments, weight: np.ndarray, noise: float) -> float:
    """Return the sum of squares with gaps and priors; infinite where the simulation fails."""
    shared_residuals, _, run_residuals, _ = linear.prior
    gaps = np.sum((weight * linear.gaps) ** 2)
    prior = noise**2 * (np.sum(shared_residuals**2) + np.sum(run_residuals**2))
    total = float(np.sum(segment_costs(linear)) + gaps + prior)
    return total if np.isfinite(total) else np.inf


def _weighted_rows(linear: Any, weight: np.ndarray, noise: float) -> tuple[Any, Any, Any]:
    """Return weighted residuals, gaps and priors with their derivatives."""
    data = linear.residuals, linear.jacobian
    columns = weight[:, None]
    gaps = weight * linear.gaps, columns * linear.ends, columns * linear.starts
    r, shared_jacobian, run_residuals, per_run_jacobian = (noise * x for x in linear.prior)
    return data, gaps, (r, shared_jacobian, run_residuals, per_run_jacobian)


def _drop_held_columns(
    fit: SegmentFit, unknowns: SegmentUnknowns, data: Any, gaps: Any, prior: Any
) -> tuple[Any, Any, Any]:
    """Return the rows with zero derivatives for coordinates on active limits.

    A limit is active if the sum of squares falls beyond it.
    """
    limits = fit.problem.limits()
    if limits is None:
        return data, gaps, prior
    (r, J), (g, ends, starts), (shared_r, shared_jacobian, per_run_r, per_run_jacobian) = (
        data,
        gaps,
        prior,
    )
    S, m = unknowns.shared.size, unknowns.shared.size + unknowns.per_run.shape[1]
    slope = np.einsum("bkn,bknm->bm", r, J[..., :m])
    slope += np.einsum("bkg,bkgm->bm", g, (ends + starts)[..., :m])
    slopes = (
        slope[:, :S].sum(axis=0) + shared_r @ shared_jacobian,
        slope[:, S:] + np.einsum("bq,bqp->bp", per_run_r, per_run_jacobian),
    )
    free = [
        ~(((u <= part.lower) & (slope > 0)) | ((u >= part.upper) & (slope < 0)))
        for u, part, slope in zip((unknowns.shared, unknowns.per_run), limits, slopes, strict=True)
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


def _column_norms(
    unknowns: SegmentUnknowns, data: Any, gaps: Any, prior: Any, previous: list[np.ndarray] | None
) -> list[np.ndarray]:
    """Return the norms of the columns of the Jacobian, each the largest so far."""
    (_, J), (_, ends, starts), (_, shared_jacobian, _, per_run_jacobian) = data, gaps, prior
    squares = np.sum(J**2, axis=2)
    squares[:, :-1] += np.sum(ends**2, axis=2)
    squares[:, 1:] += np.sum(starts**2, axis=2)
    S, P = unknowns.shared.size, unknowns.per_run.shape[1]
    sizes = (
        squares[..., :S].sum(axis=(0, 1)) + np.sum(shared_jacobian**2, axis=0),
        squares[..., S : S + P].sum(axis=1) + np.sum(per_run_jacobian**2, axis=1),
        squares[..., S + P :],
    )
    # A column of zeros, such as that of the change of a first start, is not moved.
    sizes = [np.sqrt(np.where(x > 0, x, 1.0)) for x in sizes]
    if previous is None:
        return sizes
    return [np.maximum(a, b) for a, b in zip(sizes, previous, strict=True)]


def restore_starts(problem: FitProblem, minimum: Minimum) -> Minimum:
    """Return the minimum with the components at the start of this problem as its start."""
    shared, per_run = problem.start_coordinates()

    def components(per_run, run):
        experiment = problem.experiment(problem.run_leaves(shared, per_run, run), run)
        return tuple(part.values() for part in problem.parametrise(experiment))

    shared_values, per_run_values = jax.vmap(components)(per_run, problem.runs)
    return eqx.tree_at(
        lambda m: (m.first.shared, m.first.per_run), minimum, (shared_values[0], per_run_values)
    )
