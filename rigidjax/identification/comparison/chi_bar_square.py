"""Chi-bar-square distributions: likelihood ratios of parameters on their bounds."""

import itertools
from typing import Any

import numpy as np
from jaxtyping import Float


def chi_bar_square_weights(covariance: Float[np.ndarray, "q q"]) -> Float[np.ndarray, " q+1"]:
    r"""Return the weights $w_j$ of $\chi^2_j$, j = 0 to q, for q parameters on their bounds.

    If all q true values are on lower bounds (the sign of those on upper bounds is reversed), the
    estimates are the projection of normal variables on the positive orthant in the metric of the
    covariance. $w_j$ is the probability that j of the projected values are positive. One parameter
    has the weights 1/2, 1/2.

    **Arguments:** `covariance` (q, q) of the estimates without bounds.
    **Source:** Kudo, Biometrika 50 (1963) 403; Self and Liang, J. Amer. Statist. Assoc. 82 (1987)
    605.
    """
    size = len(covariance)
    weights = np.zeros(size + 1)
    for count in range(size + 1):
        for positive in map(list, itertools.combinations(range(size), count)):
            zero = [k for k in range(size) if k not in positive]
            inverse = np.linalg.inv(covariance[np.ix_(zero, zero)])
            across = covariance[np.ix_(positive, zero)]
            given_zero = covariance[np.ix_(positive, positive)] - across @ inverse @ across.T
            weights[count] += orthant_probability(inverse) * orthant_probability(given_zero)
    return weights / weights.sum()


def orthant_probability(covariance: Float[np.ndarray, "q q"]) -> float:
    """Return the probability that all of q normal variables with mean zero are positive.

    Up to three variables it is exact, beyond that by quasi-Monte Carlo integration to 1e-5.

    **Source:** Genz and Bretz, Computation of Multivariate Normal and t Probabilities (2009),
    section 1.2.1.
    """
    size = len(covariance)
    if size < 2:
        return 0.5**size
    std = np.sqrt(np.diag(covariance))
    correlation = np.clip(covariance / np.outer(std, std), -1.0, 1.0)
    if size <= 3:
        angles = np.arcsin(correlation[np.triu_indices(size, 1)])
        return 0.5**size + float(np.sum(angles)) / (2.0 ** (size - 1) * np.pi)
    from scipy import stats

    normal: Any = stats.multivariate_normal
    return float(normal(np.zeros(size), correlation, seed=0).cdf(np.zeros(size)))


def chi_bar_square_tail(
    statistic: float, weights: Float[np.ndarray, " q+1"], interior: int = 0
) -> float:
    r"""Return the probability of a larger statistic under $\sum_j w_j \chi^2_{j+p}$.

    **Arguments:** `statistic`; `weights` of `chi_bar_square_weights`; `interior`, p, the number of
    parameters that are not on bounds.
    """
    from scipy import special

    freedom = interior + np.arange(len(weights))
    tails = special.chdtrc(np.maximum(freedom, 1), max(statistic, 0.0))
    # Zero degrees of freedom: the statistic is zero.
    tails = np.where(freedom == 0, float(statistic <= 0), tails)
    return float(weights @ tails)
