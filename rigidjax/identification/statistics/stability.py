"""Comparison of estimates from parts of the data, by single steps of the linearisation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .covariance import Spectrum
from .estimate_covariance import EstimateCovariance, scaled_score_covariance

# Share of the information in a direction below which a part of the data does not determine it.
_NOTHING = 1e-9


class Rows(NamedTuple):
    """Linearised residuals of one run, sample by sample.

    **Attributes:** `jacobian` (T, C, e), derivatives of the weighted residuals with respect to the
    parameters of the run, at `columns` (e,) of all; `residuals` (T, C), weighted, after the
    influence function of a robust loss.
    """

    jacobian: np.ndarray
    residuals: np.ndarray
    columns: np.ndarray

    def scores(self, basis: np.ndarray) -> np.ndarray:
        """Return the scores (T, rank) in the coordinates of `Spectrum.basis`."""
        return np.einsum("tce,tc->te", self.jacobian, self.residuals) @ basis[self.columns]

    def part(self, samples: slice) -> "Rows":
        """Return the rows of some samples."""
        return Rows(self.jacobian[samples], self.residuals[samples], self.columns)


class Differences(NamedTuple):
    """Differences of estimates from a part of the data and from the rest.

    **Attributes:** `values` (k,), in standard deviations of the difference, zero where the part or
    the rest does not determine a parameter; `freedom` (k,), of Student's distribution.
    """

    values: np.ndarray
    freedom: np.ndarray


def compare_halves(
    runs: Sequence[Rows], spectrum: Spectrum, used: EstimateCovariance, slope: float = 1.0
) -> Differences:
    """Return the differences of estimates from the first and the second half of each run.

    The covariance of dependent scores is estimated from the residuals of both estimates, since a
    difference looks like dependence in the residuals of the common one.

    **Arguments:** `runs`; `spectrum`; the covariance that is `used`; `slope`, mean derivative of
    the influence function of a robust loss.
    """
    omega, freedom = used.scores, used.freedom
    middles = [len(run.residuals) // 2 for run in runs]
    first = [run.part(slice(middle)) for run, middle in zip(runs, middles, strict=True)]
    if used.method != "model":
        second = [run.part(slice(m, None)) for run, m in zip(runs, middles, strict=True)]
        corrected = [_residuals_of_own_step(half, spectrum) for half in (first, second)]
        joined = [
            run._replace(residuals=np.concatenate(residuals))
            for run, *residuals in zip(runs, *corrected, strict=True)
        ]
        scores = [run.scores(spectrum.basis) for run in joined]
        squares = sum(float(np.sum(run.residuals**2)) for run in joined)
        separate = scaled_score_covariance(used.method, scores, squares)
        omega, freedom = separate.matrix / slope**2, separate.freedom_along(spectrum.basis)
    total = np.sum([run.scores(spectrum.basis).sum(axis=0) for run in runs], axis=0)
    values = _compare(_project(first, spectrum), total, spectrum, omega, slope)
    return Differences(values, freedom)


def compare_with_rest(
    part: Rows, total: np.ndarray, spectrum: Spectrum, used: EstimateCovariance, slope: float = 1.0
) -> Differences:
    """Return the differences of estimates from one run and from all others.

    **Arguments:** `part`, the run; `total` (rank,), sum of all scores; the others as in
    `compare_halves`.
    """
    values = _compare(_project([part], spectrum), total, spectrum, used.scores, slope)
    return Differences(values, used.freedom)


def _project(parts: Sequence[Rows], spectrum: Spectrum) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows (M, rank) in the coordinates of the spectrum, and all residuals (M,)."""
    rows = [run.jacobian @ spectrum.basis[run.columns] for run in parts]
    rows = [J.reshape(-1, J.shape[-1]) for J in rows]
    return np.concatenate(rows), np.concatenate([run.residuals.ravel() for run in parts])


def _information(Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the directions (rank, m) that rows determine, and their share of the information."""
    triangle = np.linalg.qr(Q, mode="r") if len(Q) > Q.shape[1] else Q
    _, sizes, vectors = np.linalg.svd(triangle, full_matrices=False)
    share = np.minimum(sizes**2, 1.0)
    return vectors[share > _NOTHING].T, share[share > _NOTHING]


def _residuals_of_own_step(parts: Sequence[Rows], spectrum: Spectrum) -> list[np.ndarray]:
    """Return the residuals (T, C) of each part at the common estimate of the parts."""
    Q, residuals = _project(parts, spectrum)
    directions, share = _information(Q)
    step = -directions @ ((directions.T @ (residuals @ Q)) / share)
    change = spectrum.basis @ step
    return [run.residuals + run.jacobian @ change[run.columns] for run in parts]


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
    Q, residuals = part
    W, share = _information(Q)
    W, share = W[:, share < 1 - _NOTHING], share[share < 1 - _NOTHING]
    along = spectrum.basis @ W
    is_complete = ~spectrum.undetermined_components()
    is_complete &= np.sum(along**2, axis=1) > (1 - 1e-6) * np.sum(spectrum.basis**2, axis=1)
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
