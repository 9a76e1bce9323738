"""Whether residuals are white: the test of Ljung and Box."""

import dataclasses
from collections.abc import Sequence

import numpy as np

_LAGS = 10


@dataclasses.dataclass(frozen=True)
class Whiteness:
    """Result of a test of whiteness.

    **Attributes:** `statistic`, chi-square distributed with `lags` degrees of freedom if the
    residuals are independent; `p_value`, the probability of one as large or larger if they are;
    `num_samples`.
    """

    statistic: float
    lags: int
    p_value: float
    num_samples: int


def ljung_box(runs: Sequence[np.ndarray], lags: int | None = None) -> Whiteness | None:
    r"""Test that residuals with mean zero are independent, by their first `lags` correlations.

    $Q = n(n+2)\sum_k r_k^2/m_k$ with $r_k = \sum_t e_t e_{t-k} / \sum_t e_t^2$ over all runs, $n$
    the number of residuals and $m_k$ the number of products in $r_k$: for one run $m_k = n - k$,
    and this is the statistic of Ljung and Box. The variance of $r_k$ is exactly $m_k/(n(n+2))$ for
    normal residuals with known mean zero, whatever the runs. Gaps (NaN) are skipped: lags count
    the samples that are there, not seconds. No degrees of freedom are taken off for fitted
    parameters, which is right for many more samples than parameters.

    **Arguments:** `runs`, residuals of one channel, (T,) each; `lags`, `None` for 10, or a fifth of
    the samples if they are few.
    **Returns:** the result, or `None` if residuals are too few or all zero.
    **Errors:** `ValueError` for fewer than one lag.
    **Source:** G. M. Ljung, G. E. P. Box, *On a measure of lack of fit in time series models*,
    Biometrika 65 (1978) 297-303.
    """
    # When it is needed: as long as a third of all imports.
    from scipy import special

    if lags is not None and lags < 1:
        raise ValueError(f"`ljung_box(lags=...)` must be 1 or more; got {lags}.")
    series = [r[np.isfinite(r)] for r in map(np.asarray, runs)]
    count = sum(len(r) for r in series)
    total = float(sum(r @ r for r in series))
    wanted = min(_LAGS, count // 5) if lags is None else lags
    pairs = [sum(max(len(r) - k, 0) for r in series) for k in range(1, wanted + 1)]
    wanted = sum(m > 0 for m in pairs)
    if wanted < 1 or not total > 0:
        return None
    squares = correlations(series, wanted) ** 2 / pairs[:wanted]
    statistic = count * (count + 2) * float(np.sum(squares))
    tail = float(special.chdtrc(wanted, statistic))
    return Whiteness(statistic, wanted, tail, count)


def correlations(series: Sequence[np.ndarray], lags: int) -> np.ndarray:
    """Correlations $r_k$ of `ljung_box`, (lags,), of residuals without gaps, (T,) each."""
    total = float(sum(r @ r for r in series)) or 1.0
    return np.array([sum(r[k:] @ r[:-k] for r in series) / total for k in range(1, lags + 1)])


def successive_correlation(runs: Sequence[np.ndarray]) -> float:
    """Correlation of successive residuals, pooled over runs and channels, (T, C) each.

    Gaps (NaN) are skipped: successive are those that are there.
    """
    products, squares = 0.0, 0.0
    for run in runs:
        for channel in np.asarray(run).T:
            r = channel[np.isfinite(channel)]
            products += float(r[1:] @ r[:-1])
            squares += 0.5 * float(r[1:] @ r[1:] + r[:-1] @ r[:-1])
    return products / squares if squares > 0 else 0.0
