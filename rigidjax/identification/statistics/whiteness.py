"""Tests for whiteness of residuals: Ljung and Box, and Wald and Wolfowitz."""

import dataclasses
from collections.abc import Sequence

import numpy as np

_LAGS = 10
# Number of residuals below which the number of runs of signs is not nearly normal.
_FEWEST_SIGNS = 20


@dataclasses.dataclass(frozen=True)
class Whiteness:
    """Result of the tests for whiteness of Ljung and Box, and of Wald and Wolfowitz.

    **Attributes:** `statistic`, that of Ljung and Box, chi-square distributed for independent
    residuals; `lags`, its degrees of freedom; `p_value`, the probability of a statistic at least as
    large for independent residuals; `num_samples`, the number of residuals; `signs_p_value`, that
    of the runs of signs, see `runs_test`, `None` for too few residuals.
    """

    statistic: float
    lags: int
    p_value: float
    num_samples: int
    signs_p_value: float | None = None

    @property
    def p_values(self) -> list[float]:
        """The p-values of both tests, where there are enough residuals."""
        return [p for p in (self.p_value, self.signs_p_value) if p is not None]

    def __str__(self) -> str:
        """Return the results in words."""
        text = f"p = {self.p_value:.2g} (Q = {self.statistic:.4g}, {self.lags} lags)"
        if self.signs_p_value is None:
            return text
        return f"{text}, runs of signs p = {self.signs_p_value:.2g}"


def ljung_box(runs: Sequence[np.ndarray], lags: int | None = None) -> Whiteness | None:
    r"""Test the independence of residuals with mean zero, by their first `lags` autocorrelations.

    $Q = n(n+2)\sum_k r_k^2/m_k$ with $r_k = \sum_t e_t e_{t-k} / \sum_t e_t^2$ over all runs, $n$
    the number of residuals and $m_k$ the number of products in $r_k$. For one run $m_k = n - k$ and
    $Q$ is the statistic of Ljung and Box. The variance of $r_k$ is exactly $m_k/(n(n+2))$ for
    normal residuals with known mean zero, for any number of runs. Gaps (NaN) are skipped: lags
    count existing samples, not seconds. The degrees of freedom are not reduced by the fitted
    parameters, which is accurate for many more samples than parameters.

    **Arguments:** `runs`, residuals of one channel, (T,) each; `lags`, by default 10, or a fifth of
    the samples if they are few.
    **Returns:** the result, or `None` if residuals are too few or all zero.
    **Errors:** `ValueError` for fewer than one lag.
    **Source:** G. M. Ljung, G. E. P. Box, *On a measure of lack of fit in time series models*,
    Biometrika 65 (1978) 297-303.
    """
    # Imported here because it takes long.
    from scipy import special

    if lags is not None and lags < 1:
        raise ValueError(f"`ljung_box(lags=...)` must be 1 or more; got {lags}.")
    series = [r[np.isfinite(r)] for r in map(np.asarray, runs)]
    count = sum(len(r) for r in series)
    total = float(sum(r @ r for r in series))
    num_lags = min(_LAGS, count // 5) if lags is None else lags
    pairs = [sum(max(len(r) - k, 0) for r in series) for k in range(1, num_lags + 1)]
    num_lags = sum(m > 0 for m in pairs)
    if num_lags < 1 or not total > 0:
        return None
    squares = correlations(series, num_lags) ** 2 / pairs[:num_lags]
    statistic = count * (count + 2) * float(np.sum(squares))
    tail = float(special.chdtrc(num_lags, statistic))
    return Whiteness(statistic, num_lags, tail, count)


def assess_whiteness(runs: Sequence[np.ndarray]) -> Whiteness | None:
    """Apply `ljung_box` and `runs_test` to the residuals of one channel, (T,) each."""
    result = ljung_box(runs)
    return result and dataclasses.replace(result, signs_p_value=runs_test(runs))


def reject_jointly(p_values: Sequence[float], level: float) -> np.ndarray:
    """Return which hypotheses are rejected, such that any false rejection has probability `level`.

    **Source:** Holm, Scandinavian J. Statistics 6 (1979) 65.
    """
    values = np.asarray(p_values, float)
    order = np.argsort(values)
    passes = values[order] * np.arange(len(values), 0, -1) <= level
    rejected = np.zeros(len(values), bool)
    rejected[order[: len(values) if passes.all() else int(np.argmin(passes))]] = True
    return rejected


def runs_test(runs: Sequence[np.ndarray]) -> float | None:
    """Return the p-value of the test of Wald and Wolfowitz for the order of the signs of residuals.

    A run of signs is a stretch of residuals of one sign. Too few of them indicate residuals that
    change slowly, whatever their distribution, so that outliers do not matter. Given the numbers of
    both signs, the number of runs of signs is nearly normal under independence; it is summed over
    all runs of the data. Gaps (NaN) and zeros are skipped.

    **Arguments:** `runs`, residuals of one channel, (T,) each.
    **Returns:** the two-sided p-value, or `None` for fewer than 20 residuals with signs.
    **Source:** Wald, Wolfowitz, Ann. Math. Statist. 11 (1940) 147.
    """
    from scipy import special

    excess, variance, count = 0.0, 0.0, 0
    for run in map(np.asarray, runs):
        signs = np.sign(run[np.isfinite(run) & (run != 0)])
        n, positive = len(signs), int(np.count_nonzero(signs > 0))
        if n < 2:
            continue
        pairs = 2.0 * positive * (n - positive)
        excess += 1 + np.count_nonzero(signs[1:] != signs[:-1]) - (1 + pairs / n)
        variance += pairs * (pairs - n) / (n**2 * (n - 1))
        count += n
    if count < _FEWEST_SIGNS or not variance > 0:
        return None
    return float(special.erfc(abs(excess) / np.sqrt(2 * variance)))


def correlations(series: Sequence[np.ndarray], lags: int) -> np.ndarray:
    """Return the autocorrelations $r_k$ of `ljung_box`, (lags,), of residuals without gaps."""
    total = float(sum(r @ r for r in series)) or 1.0
    return np.array([sum(r[k:] @ r[:-k] for r in series) / total for k in range(1, lags + 1)])


def successive_correlation(runs: Sequence[np.ndarray]) -> float:
    """Return the correlation of successive residuals, (T, C) each, pooled over runs and channels.

    Gaps (NaN) are skipped.
    """
    products, squares = 0.0, 0.0
    for run in runs:
        for channel in np.asarray(run).T:
            r = channel[np.isfinite(channel)]
            products += float(r[1:] @ r[:-1])
            squares += 0.5 * float(r[1:] @ r[1:] + r[:-1] @ r[:-1])
    return products / squares if squares > 0 else 0.0
