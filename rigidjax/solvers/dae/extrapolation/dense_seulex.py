"""Weights of the dense output of the extrapolated linearly implicit Euler method."""

import functools
from typing import NamedTuple

import numpy as np

from .table import StepSequence, lagrange_at_zero, substep_offsets

# The step is divided into this number of parts, and all columns have values at their ends.
_PARTS = 4
_NUMBERS = tuple(_PARTS * j for j in range(1, 9))
SEQUENCE = StepSequence(_NUMBERS, 1, tuple(1.0 + np.cumsum(np.asarray(_NUMBERS) + 1.0)))


class SeulexDenseWeights(NamedTuple):
    """Weights of the coefficients $q_k$ of a `ChordInterpolation`.

    **Attributes:** `inside`, weights of $y - y_0$ at all substeps, for each number of columns,
    (K, q, N); `chord`, weights of $y_1 - y_0$, (q,).
    """

    inside: np.ndarray
    chord: np.ndarray


@functools.lru_cache
def dense_weights() -> SeulexDenseWeights:
    r"""Return the weights of the polynomial of degree 7 through values and rates in the step.

    The polynomial interpolates the values at both ends, and values and rates at 1/4, 1/2 and 3/4 of
    the step. Values and central differences there are extrapolated like the value at the end. The
    code SEULEX uses differences at the end only, which give an expansion about the end that
    converges half as fast over the whole step.

    **Source:** after Hairer-Ostermann, Dense output for extrapolation methods (1990).
    """
    theta = np.arange(1, _PARTS) / _PARTS
    # Values and rates of theta (1 - theta) x^k at the inner points.
    k, x = np.arange(2 * len(theta)), 2.0 * theta[:, None] - 1.0
    bubble, slope = (theta * (1.0 - theta))[:, None], (1.0 - 2.0 * theta)[:, None]
    powers = x**k
    rates = slope * powers + 2.0 * bubble * np.where(k > 0, k * x ** np.maximum(k - 1, 0), 0.0)
    polynomial = np.linalg.inv(np.concatenate([bubble * powers, rates]))
    points = substep_offsets(SEQUENCE)
    table = np.zeros((len(_NUMBERS), len(k), points[-1]))
    for c in range(1, len(_NUMBERS) + 1):
        conditions = np.zeros(table.shape[1:])
        extrapolation = lagrange_at_zero(np.array(_NUMBERS[:c]), 1)
        for j, factor in enumerate(extrapolation):
            for row, part in enumerate(range(1, _PARTS)):
                # Substeps are numbered from 1; y - y_0 is zero at the start.
                index = points[j] + part * (j + 1) - 1
                conditions[row, index] = factor
                slope = conditions[len(theta) + row]
                slope[index + 1] = 0.5 * _NUMBERS[j] * factor
                if index > points[j]:
                    slope[index - 1] = -0.5 * _NUMBERS[j] * factor
        table[c - 1] = polynomial @ conditions
    return SeulexDenseWeights(table, -polynomial @ np.concatenate([theta, np.ones_like(theta)]))
