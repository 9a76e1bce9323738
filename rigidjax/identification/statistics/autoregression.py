"""Autoregressions of residuals."""

from collections.abc import Sequence

import numpy as np


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
