r"""Covariances of estimates that hold for residuals that are not independent.

At the optimum the estimates differ from the truth by $-A^{-1}\sum_t s_t$, where $s_t = J_t^T r_t$
are the scores, one vector per sample time, and $A = J^T J$. Their covariance is the sandwich
$A^{-1} \Omega A^{-1}$ with $\Omega$ the covariance of $\sum_t s_t$. It is estimated here from the
scores, assuming only that distant residuals are independent.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Largest sum of autoregressive coefficients: a longer memory looks like a trend.
_LARGEST_SUM = 0.97


def fit_autoregression(series: Sequence[np.ndarray], orders: int, num_sets: int = 1) -> np.ndarray:
    r"""Return the coefficients $a$ of $x_t = \sum_i a_i x_{t-i} + e_t$, at most `orders` of them.

    Burg's recursion over all series together, which always returns a stable autoregression; the
    order has the smallest criterion of Schwarz.

    **Arguments:** `series`, independent ones of one process with mean zero, (T,) each, NaN where a
    sample is missing; `orders`; `num_sets`, the number of data sets that will have coefficients of
    their own, which the criterion counts.
    **Source:** Burg, Modern Spectrum Analysis (1978) 42; Schwarz, Ann. Statist. 6 (1978) 461.
    """
    count = sum(int(np.isfinite(x).sum()) for x in series)
    power = sum(float(np.nansum(x**2)) for x in series) / max(count, 1)
    best, polynomial = np.zeros(0), np.ones(1)
    if not power > 0:
        return best
    penalty = num_sets * np.log(max(count / num_sets, 1.0))
    forward = backward = [np.asarray(x, float) for x in series]
    lowest = count * np.log(power)
    for order in range(1, orders + 1):
        pairs = [(f[1:], b[:-1]) for f, b in zip(forward, backward, strict=True)]
        used = [np.isfinite(f * b) for f, b in pairs]
        f = np.concatenate([f[u] for (f, _), u in zip(pairs, used, strict=True)])
        b = np.concatenate([b[u] for (_, b), u in zip(pairs, used, strict=True)])
        size = float(f @ f + b @ b)
        if not size > 0 or len(f) <= 2 * order:
            break
        reflection = 2 * float(f @ b) / size
        padded = np.append(polynomial, 0.0)
        polynomial = padded - reflection * padded[::-1]
        forward = [f - reflection * b for f, b in pairs]
        backward = [b - reflection * f for f, b in pairs]
        power *= 1 - reflection**2
        if not power > 0:
            break
        criterion = count * np.log(power) + order * penalty
        if criterion < lowest:
            lowest, best = criterion, -polynomial[1:]
    return best


@dataclasses.dataclass(frozen=True)
class ScoreCovariance:
    r"""Estimated covariance $\Omega$ of a sum of scores.

    **Attributes:** `matrix`, (k, k); `freedom`, (k,), equivalent degrees of freedom of the diagonal
    entries: each is nearly distributed like a multiple of a chi-square variable with these degrees.
    """

    matrix: np.ndarray
    freedom: np.ndarray

    def freedom_along(self, combinations: np.ndarray) -> np.ndarray:
        """Return the equivalent degrees of freedom of the variances of combinations (n, k).

        They are the harmonic mean of those of the entries, weighted by the parts of the variance,
        which is exact for equal ones.
        """
        parts = combinations**2 * np.diag(self.matrix)
        total, inverse = np.sum(parts, axis=1), np.sum(parts / self.freedom, axis=1)
        return np.divide(total, inverse, out=np.full(len(parts), np.inf), where=inverse > 0)


class _Whitened(NamedTuple):
    """Scores filtered by their autoregressions.

    **Attributes:** `scores`, run by run; `gain` (k,), of the filters' inverse at frequency zero;
    `spread` (k,), variances of the logarithms of its square.
    """

    scores: list[np.ndarray]
    gain: np.ndarray
    spread: np.ndarray


def hac_covariance(
    runs: Sequence[np.ndarray], *, orders: int | None = None, bandwidth: float | None = None
) -> ScoreCovariance:
    r"""Return the covariance of the sum of scores that is consistent under dependence (HAC).

    Each column is prewhitened by an autoregression, whose order is selected by Schwarz's criterion
    and whose sum of coefficients is corrected for its bias in short series; the covariance of the
    whitened scores is a sum of their autocovariances weighted by the quadratic-spectral window,
    with the automatic bandwidth of Andrews. Means are subtracted first.

    **Arguments:** `runs`, scores of independent runs, (T, k) each, in orthonormal coordinates;
    `orders`, the largest order, `None` for the cube root of the longest run, 0 for no prewhitening;
    `bandwidth` in samples, `None` for the automatic one.
    **Source:** Andrews, Econometrica 59 (1991) 817, (2.7), (6.2), (6.4); prewhitening: Andrews,
    Monahan, Econometrica 60 (1992) 953; orders: den Haan, Levin, Handbook of Statistics 15 (1997)
    299; bias: Kendall, Biometrika 41 (1954) 403.
    """
    count = sum(len(run) for run in runs)
    mean = np.sum([np.sum(run, axis=0) for run in runs], axis=0) / max(count, 1)
    centred = [run - mean for run in runs if len(run)]
    if orders is None:
        orders = round(max(map(len, centred), default=0) ** (1 / 3))
    whitened = _prewhiten(centred, orders)
    if bandwidth is None:
        bandwidth = _andrews_bandwidth(whitened.scores)
    matrix = np.zeros((len(mean), len(mean)))
    for run in whitened.scores:
        matrix += run.T @ _weigh_lags(run, bandwidth)
    matrix *= np.outer(whitened.gain, whitened.gain)
    # The window makes it positive semidefinite, up to round-off.
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
    # The window has a squared integral of one.
    spread = 2 * max(bandwidth, 1.0) / np.maximum(_effective_counts(centred), 1) + whitened.spread
    return ScoreCovariance(matrix, 2 / spread)


def cluster_covariance(runs: Sequence[np.ndarray]) -> ScoreCovariance:
    r"""Return the covariance of the sum of scores of independent runs, each of any dependence.

    $\Omega = \frac{G}{G-1} \sum_g (s_g - \bar s)(s_g - \bar s)^T$ with $s_g$ the sum of the scores
    of run $g$.

    **Arguments:** `runs`, scores, (T, k) each.
    **Errors:** `ValueError` for fewer than two runs.
    **Source:** Liang, Zeger, Biometrika 73 (1986) 13; factor and degrees of freedom: Cameron,
    Miller, J. Human Resources 50 (2015) 317, Section VI.
    """
    if len(runs) < 2:
        raise ValueError(
            f"A covariance clustered by run needs two runs or more; got {len(runs)}. Use "
            '"hac", which weighs the lags within a run.'
        )
    sums = np.stack([np.sum(run, axis=0) for run in runs])
    sums = sums - np.mean(sums, axis=0)
    freedom = len(runs) - 1
    return ScoreCovariance(
        len(runs) / freedom * sums.T @ sums, np.full(sums.shape[1], float(freedom))
    )


def _prewhiten(runs: Sequence[np.ndarray], orders: int) -> _Whitened:
    """Filter each column of the scores by an autoregression of at most this order."""
    columns = runs[0].shape[1] if runs else 0
    count = sum(len(run) for run in runs)
    gain, spread, effective = np.ones(columns), np.zeros(columns), _effective_counts(runs)
    whitened = [run.copy() for run in runs]
    for j in range(columns):
        series = [run[:, j] for run in runs]
        coefficients = fit_autoregression(series, orders)
        order = len(coefficients)
        if not order:
            continue
        rows = np.concatenate([_stack_lags(x, order) for x in series])
        errors = rows[:, 0] - rows[:, 1:] @ coefficients
        total = float(np.sum(coefficients))
        # A mean was subtracted, and autocorrelations of short series are too small.
        total = min(total + (1 + 3 * total) / effective[j], _LARGEST_SUM)
        gain[j] = 1 / (1 - total)
        along = np.linalg.pinv(rows[:, 1:].T @ rows[:, 1:], hermitian=True)
        spread[j] = np.mean(errors**2) * np.sum(along) * 4 * gain[j] ** 2
        # Samples without a complete history have no prediction error; the others represent them.
        factor, first = np.sqrt(count / len(rows)), 0
        for run, x in zip(whitened, series, strict=True):
            size = max(len(x) - order, 0)
            run[:, j] = 0.0
            run[order:, j] = factor * errors[first : first + size]
            first += size
    return _Whitened(whitened, gain, spread)


def _effective_counts(runs: Sequence[np.ndarray]) -> np.ndarray:
    """Return the effective number of samples of each column, (k,), given its power by run."""
    lengths = np.array([len(run) for run in runs])
    power = np.array([np.sum(run**2, axis=0) for run in runs])
    total, share = np.sum(power, axis=0), np.sum(power**2 / lengths[:, None], axis=0)
    return np.divide(
        total**2, share, out=np.full(len(total), float(lengths.sum())), where=share > 0
    )


def _stack_lags(x: np.ndarray, order: int) -> np.ndarray:
    """Return the rows $(x_t, x_{t-1}, ..., x_{t-p})$, (T - p, p + 1)."""
    count = max(len(x) - order, 0)
    return np.stack([x[order - i : order - i + count] for i in range(order + 1)], axis=1)


def _andrews_bandwidth(runs: Sequence[np.ndarray]) -> float:
    """Return the automatic bandwidth of the quadratic-spectral window, in samples.

    It uses a first-order autoregression of each column.
    """
    count = sum(len(run) for run in runs)
    products = sum(np.sum(run[1:] * run[:-1], axis=0) for run in runs)
    squares = sum(np.sum(run[:-1] ** 2, axis=0) for run in runs)
    rho = np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0)
    rho = np.clip(rho, -_LARGEST_SUM, _LARGEST_SUM)
    errors = sum(np.sum((run[1:] - rho * run[:-1]) ** 2, axis=0) for run in runs)
    size = (errors / max(count, 1)) ** 2
    below = np.sum(size / (1 - rho) ** 4)
    ratio = np.sum(4 * rho**2 * size / (1 - rho) ** 8) / below if below > 0 else 0.0
    return float(1.3221 * (ratio * count) ** 0.2)


def _weigh_lags(run: np.ndarray, bandwidth: float) -> np.ndarray:
    """Return for each sample the sum of all samples, weighted by the window of their lag."""
    count = len(run)
    if count < 2 or bandwidth < 1e-2:
        return run
    size = 2 ** int(np.ceil(np.log2(2 * count)))
    weights = np.zeros(size)
    weights[:count] = quadratic_spectral(np.arange(count) / bandwidth)
    weights[size - count + 1 :] = weights[count - 1 : 0 : -1]
    spectrum = np.fft.rfft(weights)[:, None] * np.fft.rfft(run, size, axis=0)
    return np.fft.irfft(spectrum, size, axis=0)[:count]


def quadratic_spectral(x: np.ndarray) -> np.ndarray:
    """Return the quadratic-spectral window, one at zero; Andrews (1991), (2.7)."""
    z = 6 * np.pi / 5 * np.asarray(x, float)
    near = np.abs(z) < 1e-2
    far = np.where(near, 1.0, z)
    return np.where(near, 1 - z**2 / 10, 3 / far**2 * (np.sin(far) / far - np.cos(far)))
