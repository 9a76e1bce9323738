"""Covariance of estimates, including undetermined ones."""

import copy

import numpy as np


def columns_without_effect(jacobian: np.ndarray, magnitudes: np.ndarray) -> np.ndarray:
    """Return which columns of a Jacobian are zero up to round-off, (p,).

    A column counts as round-off if a change of its parameter by its whole magnitude changes the
    readings by a negligible part of the largest effect. A column without a magnitude must be
    exactly zero.

    **Arguments:** `magnitudes`, (p,), see `ComponentTable.magnitudes`.
    """
    size = np.linalg.norm(jacobian, axis=0)
    effect = size * magnitudes
    small = np.finfo(jacobian.dtype).eps ** (2 / 3) * effect.max(initial=0.0)
    return (size == 0) | ((magnitudes > 0) & (effect <= small))


class Spectrum:
    r"""Singular value decomposition of a weighted Jacobian whose columns have norm one.

    With $J\,\mathrm{diag}(s) = U \Sigma V^T$ and $s$ the `scale` that makes each column a unit
    vector, the combination $V_k$ has the standard deviation $\sigma/\Sigma_k$. Combinations with
    $\Sigma_k \le \epsilon\,\Sigma_1$ are not determined at all. Parameters are thus compared by
    their effect on the predictions: neither unit nor value matters, and the value may be zero.

    **Arguments:** `jacobian` (M, p); `tolerance`, $\epsilon$; `magnitudes`, see
    `ComponentTable.magnitudes`; `variance`, $\sigma^2$, of a weighted residual.
    **Attributes:** `variance`; `scale` (p,), `values` (p,), `vectors` (p, p) in columns, `rank`,
    `null` (p, p - rank), an orthonormal basis of the undetermined combinations, in units of
    `scale`; `basis` (p, rank), changes of the parameters for which the Jacobian has orthonormal
    columns; `score_covariance` (rank, rank), covariance of the sum of scores in these coordinates,
    $\sigma^2$ times the identity for independent residuals.
    **Source:** van der Sluis, Numerische Mathematik 14 (1969) 14: among all scalings of columns
    this one has the smallest condition number, up to a factor of at most the square root of p.
    """

    def __init__(
        self, jacobian: np.ndarray, tolerance: float, magnitudes: np.ndarray, variance: float
    ):
        self.variance = variance
        idle = columns_without_effect(jacobian, magnitudes)
        jacobian = np.where(idle, 0.0, jacobian)
        size = np.linalg.norm(jacobian, axis=0)
        self.scale = np.where(
            idle, np.where(magnitudes > 0, magnitudes, 1.0), 1 / np.where(idle, 1.0, size)
        )
        # The triangular factor has the same singular values and fewer rows.
        factor = np.linalg.qr(jacobian * self.scale, mode="r")
        if not np.isfinite(factor).all():  # LAPACK's iteration may not end.
            factor = np.full_like(factor, np.nan)
        _, values, rows = np.linalg.svd(factor, full_matrices=True)
        self.values = np.zeros(len(self.scale))
        self.values[: len(values)] = values
        self.vectors = rows.T
        largest = self.values[0] if len(self.scale) else 0.0
        self.rank = int(np.count_nonzero(self.values > tolerance * largest))
        self.null = self.vectors[:, self.rank :]
        self.basis = self.scale[:, None] * self._scaled_basis()
        self.score_covariance = variance * np.eye(self.rank)

    def with_score_covariance(self, matrix: np.ndarray) -> "Spectrum":
        """Return the decomposition with another `score_covariance`, such as that of a sandwich."""
        spectrum = copy.copy(self)
        spectrum.score_covariance = matrix
        return spectrum

    def _scaled_basis(self) -> np.ndarray:
        return self.vectors[:, : self.rank] / self.values[: self.rank]

    @property
    def condition(self) -> float:
        """Largest over smallest singular value; infinite if a combination is undetermined."""
        if self.rank < len(self.values):
            return float("inf")
        return float(self.values[0] / self.values[-1])

    def undetermined_components(self) -> np.ndarray:
        """Return which parameters occur in an undetermined combination, (p,)."""
        if self.null.shape[1] == 0:
            return np.zeros(len(self.scale), bool)
        part = np.sqrt(np.sum(self.null**2, axis=1))
        return part > 1e-3 * part.max()

    def std_of(self, combination: np.ndarray) -> float:
        """Return the standard deviation of a linear combination (p,) of the parameters.

        It is infinite for an undetermined combination.
        """
        along = self.vectors.T @ (combination * self.scale)
        if np.linalg.norm(along[self.rank :]) > 1e-6 * np.linalg.norm(along):
            return float("inf")
        along = along[: self.rank] / self.values[: self.rank]
        return float(np.sqrt(max(along @ self.score_covariance @ along, 0.0)))

    def covariance(self) -> np.ndarray:
        """Return the covariance (p, p) of the parameters.

        Undetermined parameters have infinite variance, and infinite covariance with each other if
        they can only change together; no entry is NaN.
        """
        basis = self._scaled_basis()
        covariance = basis @ self.score_covariance @ basis.T
        undetermined = self.undetermined_components()
        if undetermined.any():
            covariance[undetermined, :] = 0.0
            covariance[:, undetermined] = 0.0
            shared = self.null @ self.null.T
            together = np.abs(shared) > 1e-6
            both = np.outer(undetermined, undetermined) & together
            covariance[both] = np.sign(shared[both]) * np.inf
        return covariance * np.outer(self.scale, self.scale)

    def correlations(self) -> np.ndarray:
        """Return the correlations (p, p); for undetermined parameters, their limits."""
        basis = self._scaled_basis()
        correlations = _normalise(basis @ self.score_covariance @ basis.T)
        undetermined = self.undetermined_components()
        if undetermined.any():
            limit = _normalise(self.null @ self.null.T)
            correlations[undetermined, :] = limit[undetermined, :]
            correlations[:, undetermined] = limit[:, undetermined]
            np.fill_diagonal(correlations, 1.0)
        return correlations


def _normalise(matrix: np.ndarray) -> np.ndarray:
    size = np.sqrt(np.diag(matrix))
    size = np.where(size > 0, size, 1.0)
    normalised = matrix / np.outer(size, size)
    np.fill_diagonal(normalised, 1.0)
    return normalised
