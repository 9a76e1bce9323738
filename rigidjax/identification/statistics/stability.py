"""Comparison of estimates from parts of the data, by single steps of the linearisation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .covariance import Spectrum
from .estimate_covariance import scaled_score_covariance

# Share of the information in a direction below which a part of the data does not determine it.
_NOTHING = 1e-9


class Rows(NamedTuple):
    """Linearised residuals of one run, sample by sample.

    **Attributes:** `jacobian` (T, C, k), derivatives of the weighted residuals; `residuals` (T, C),
    weighted, after the influence function of a robust loss.
    """

    jacobian: np.ndarray
    residuals: np.ndarray

    def scores(self, basis: np.ndarray) -> np.ndarray:
        """Return the scores (T, rank) in the coordinates of `Spectrum.basis`."""
        return np.einsum("tck,tc->tk", self.jacobian, self.residuals) @ basis


def compare_halves(
    runs: Sequence[Rows], spectrum: Spectrum, method: str, slope: float = 1.0
) -> np.ndarray:
    """Return the differences of estimates from the first and the second half of each run.

    They are in standard deviations of the difference. The covariance of the scores is that of the
    residuals of both estimates, since a difference looks like dependence in the residuals of the
    common one.

    **Arguments:** `runs`; `spectrum`, with the covariance of the scores; `method` of that
    covariance; `slope`, mean derivative of the influence function of a robust loss.
    **Returns:** shape (k,), zero where a half does not determine a parameter.
    """
    halves = [
        [Rows(J[half], r[half]) for J, r in runs for half in [_half(len(r), second)]]
        for second in (False, True)
    ]
    omega = spectrum.score_covariance
    if method != "model":
        # The common covariance, except where a difference could pass for dependence.
        corrected = [part for half in halves for part in _with_own_step(half, spectrum, slope)]
        count = len(runs)
        joined = [
            Rows(J, np.concatenate([corrected[b].residuals, corrected[b + count].residuals]))
            for b, (J, _) in enumerate(runs)
        ]
        scores = [run.scores(spectrum.basis) for run in joined]
        squares = sum(float(np.sum(run.residuals**2)) for run in joined)
        omega = scaled_score_covariance(method, scores, squares).matrix / slope**2
    total = np.sum([run.scores(spectrum.basis).sum(axis=0) for run in runs], axis=0)
    return _compare(_flatten(halves[0]), total, spectrum, omega, slope)


def compare_with_rest(
    part: Rows, total: np.ndarray, spectrum: Spectrum, slope: float = 1.0
) -> np.ndarray:
    """Return the differences of estimates from one run and from all others.

    They are in standard deviations of the difference, shape (k,), zero where the run or the others
    do not determine a parameter.

    **Arguments:** `part`, the run; `total` (rank,), sum of all scores; `spectrum` and `slope` as in
    `compare_halves`.
    """
    return _compare(_flatten([part]), total, spectrum, spectrum.score_covariance, slope)


def _half(count: int, second: bool) -> slice:
    return slice(count // 2, None) if second else slice(count // 2)


def _flatten(parts: Sequence[Rows]) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows (M, k) of the Jacobian and all residuals (M,)."""
    jacobian = np.concatenate([J.reshape(-1, J.shape[-1]) for J, _ in parts])
    return jacobian, np.concatenate([r.ravel() for _, r in parts])


def _information(Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the directions (rank, m) that rows determine, and their share of the information."""
    triangle = np.linalg.qr(Q, mode="r") if len(Q) > Q.shape[1] else Q
    _, sizes, vectors = np.linalg.svd(triangle, full_matrices=False)
    share = np.minimum(sizes**2, 1.0)
    return vectors[share > _NOTHING].T, share[share > _NOTHING]


def _with_own_step(parts: Sequence[Rows], spectrum: Spectrum, slope: float) -> list[Rows]:
    """Return a part of the data with the residuals of its own estimate."""
    jacobian, residuals = _flatten(parts)
    Q = jacobian @ spectrum.basis
    directions, share = _information(Q)
    step = -directions @ ((directions.T @ (residuals @ Q)) / share)
    change = spectrum.basis @ step
    return [Rows(J, r + J @ change) for J, r in parts]


def _compare(
    part: tuple[np.ndarray, np.ndarray],
    total: np.ndarray,
    spectrum: Spectrum,
    omega: np.ndarray,
    slope: float,
) -> np.ndarray:
    r"""Return the differences of estimates from a part of the data and from the rest.

    With the share $B = Q^T Q$ of the part in the information, where $Q$ are the rows in the
    coordinates of `Spectrum.basis`, the estimates differ from the common one by $-B^{-1} s$, and
    the covariances of the scores are $B^{1/2} \Omega B^{1/2}$, and for the rest with $1 - B$.
    """
    jacobian, residuals = part
    Q = jacobian @ spectrum.basis
    W, share = _information(Q)
    W, share = W[:, share < 1 - _NOTHING], share[share < 1 - _NOTHING]
    along = spectrum.basis @ W
    is_complete = np.sum(along**2, axis=1) > (1 - 1e-6) * np.sum(spectrum.basis**2, axis=1)
    score = residuals @ Q
    steps = -(W.T @ score) / share + (W.T @ (total - score)) / (1 - share)
    omega = W.T @ omega @ W
    covariance = omega / np.sqrt(np.outer(share, share))
    covariance += omega / np.sqrt(np.outer(1 - share, 1 - share))
    variance = np.einsum("ki,ij,kj->k", along, covariance, along)
    differences = along @ steps / slope
    return np.divide(
        differences,
        np.sqrt(np.maximum(variance, 0.0)),
        out=np.zeros(len(along)),
        where=is_complete & (variance > 0),
    )
