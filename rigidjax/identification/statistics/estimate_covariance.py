"""Covariances of estimates by several methods, side by side."""

import dataclasses
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from .covariance import Spectrum
from .sandwich import ScoreCovariance, cluster_covariance, hac_covariance

CovarianceMethod: TypeAlias = Literal["model", "sandwich", "hac", "cluster"]
# Names of the methods, and what each assumes of the residuals.
METHODS = {
    "model": "independent residuals",
    "hac": "dependence within a run that fades with the lag",
    "cluster": "any dependence within a run, independent runs",
}
# Number of runs from which their scatter is preferred to lags within them.
_MANY_RUNS = 30


@dataclasses.dataclass(frozen=True)
class EstimateCovariance:
    """A covariance of estimates by one method.

    **Attributes:** `method`, of `METHODS`; `matrix` (k, k), in the units of the estimates;
    `freedom` (k,), degrees of freedom of Student's distribution for their intervals, infinite for
    the normal one; `scores`, `Spectrum.score_covariance`.
    """

    method: str
    matrix: np.ndarray
    freedom: np.ndarray
    scores: np.ndarray

    @property
    def std(self) -> np.ndarray:
        """Standard deviations (k,)."""
        # A variance of zero may be negative by round-off.
        return np.sqrt(np.maximum(np.diag(self.matrix), 0.0))

    def quantile(self, level: float, one_sided: bool = False) -> np.ndarray:
        """Return half the widths of the intervals at a confidence level, in units of `std`, (k,).

        They are infinite without degrees of freedom.

        **Arguments:** `level`, in (0, 1); `one_sided`, for intervals with one end.
        **Errors:** `ValueError` for another level.
        """
        # Imported here because it takes long.
        from scipy import special

        if not 0 < level < 1:
            raise ValueError(
                f"A confidence level lies between 0 and 1, such as 0.95 for 95 %; got {level!r}."
            )
        tail = level if one_sided else 0.5 + 0.5 * level
        usable = self.freedom > 0
        finite = np.isfinite(self.freedom)
        student = special.stdtrit(np.where(usable & finite, self.freedom, 1.0), tail)
        quantile = np.where(finite, student, special.ndtri(tail))
        return np.where(usable, quantile, np.inf)


def check_covariance(name: str, covariance: str | None) -> None:
    """Raise `ValueError` for an unknown `covariance` of the function `name`."""
    if covariance not in (None, "sandwich", *METHODS):
        raise ValueError(
            f'`{name}(covariance=...)` must be "model", "sandwich", "hac", "cluster" or None, '
            f"which decides by tests of the residuals; got {covariance!r}."
        )


def model_covariance(spectrum: Spectrum, freedom: float) -> EstimateCovariance:
    """Return the covariance for independent residuals."""
    matrix = spectrum.covariance()
    return EstimateCovariance(
        "model", matrix, np.full(len(matrix), float(freedom)), spectrum.score_covariance
    )


def sandwich_covariance(
    method: str,
    spectrum: Spectrum,
    scores: Sequence[np.ndarray],
    squares: float,
    prior: np.ndarray | None = None,
    slope: float = 1.0,
) -> EstimateCovariance:
    r"""Return a sandwich covariance, for residuals that are not independent.

    **Arguments:** `method`, "hac" or "cluster"; `spectrum`, of the Jacobian; `scores`, run by run,
    (T, rank) in the coordinates of `Spectrum.basis`; `squares`, $\sum r^2$; `prior`, rows of priors
    (R, k), scaled to the variance of the residuals; `slope`, mean derivative of the influence
    function $\psi$ of a robust loss, whose values are then the residuals of the scores.
    """
    found = scaled_score_covariance(method, scores, squares)
    matrix = found.matrix / slope**2
    if prior is not None:
        rows = prior @ spectrum.basis
        matrix = matrix + spectrum.variance * rows.T @ rows
    return EstimateCovariance(
        method,
        spectrum.with_score_covariance(matrix).covariance(),
        found.freedom_along(spectrum.basis),
        matrix,
    )


def scaled_score_covariance(
    method: str, scores: Sequence[np.ndarray], squares: float
) -> ScoreCovariance:
    r"""Return the covariance of the sum of scores, scaled for the size of residuals of a fit.

    The trace of $\Omega$ is the sum of squares that a fit removes, so that squares of errors are
    larger than those of residuals by $1 + \operatorname{tr}\Omega / \sum r^2$; for independent
    residuals this is N / (N - k).

    **Arguments:** `method`, "hac" or "cluster"; `scores`, run by run; `squares`, $\sum r^2$.
    """
    found = (hac_covariance if method == "hac" else cluster_covariance)(scores)
    factor = 1 + np.trace(found.matrix) / squares if squares > 0 else 1.0
    return ScoreCovariance(factor * found.matrix, found.freedom)


def preferred_sandwich(num_runs: int, has_per_run_parameters: bool) -> str:
    """Return the sandwich that suits the data.

    Clusters by run need many runs, and say nothing of parameters of a run, whose scores sum to zero
    in it.
    """
    return "cluster" if num_runs >= _MANY_RUNS and not has_per_run_parameters else "hac"
