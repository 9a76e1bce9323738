r"""Least squares for chains of segments, at a cost linear in their number.

Unknowns are the starts of the segments $s_1, \dots, s_K$ of every run, the parameters of every run,
and the shared parameters. The rows of a segment contain its start and the parameters, the rows of a
gap two starts. Orthogonal transformations eliminate one start after the other, then the parameters
of the runs, without forming $J^T J$.
"""

from typing import Any

import numpy as np


def solve_step(
    data: tuple[np.ndarray, np.ndarray],
    gaps: tuple[np.ndarray, np.ndarray, np.ndarray],
    prior: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    damping: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return the step $\min |J\delta + r|^2 + |D\delta|^2$.

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
        R = _triangular_factor(np.concatenate(rows, axis=1))
        factors.append(R[:, :n])
        carry = R[:, n:, n:]
    num_per_run = d_per_run.shape[1]
    # There is no start after the last segment.
    extended = np.concatenate(
        [per_run_J, np.zeros((*per_run_r.shape, shared)), per_run_r[..., None]], axis=2
    )
    R = np.concatenate([carry[:, :, n:], extended, _diagonal_rows(d_per_run, m + 1)], axis=1)
    R = _triangular_factor(R)
    remaining = R[:, num_per_run:, num_per_run:].reshape(-1, shared + 1)
    extended = np.concatenate([shared_J, shared_r[:, None]], axis=1)
    remaining = np.concatenate([remaining, extended, _diagonal_rows(d_shared[None], shared + 1)[0]])
    remaining = _triangular_factor(remaining)
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


def _triangular_factor(rows: np.ndarray) -> Any:
    """Return the triangular factors of stacked matrices."""
    return np.linalg.qr(rows, mode="r")


def _diagonal_rows(d: np.ndarray, columns: int) -> np.ndarray:
    """Return rows (B, n, columns) with `d` (B, n) on their diagonal."""
    rows = np.zeros((*d.shape, columns))
    index = np.arange(d.shape[1])
    rows[:, index, index] = d
    return rows


def _back_substitute(R: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the solution of R x = -right."""
    return -np.linalg.solve(R, right[..., None])[..., 0]
