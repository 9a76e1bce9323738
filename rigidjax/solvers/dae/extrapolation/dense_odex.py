"""Weights of the dense output of Gragg-Bulirsch-Stoer extrapolation."""

import functools
import math
from typing import NamedTuple

import numpy as np

from .table import StepSequence, lagrange_at_zero, substep_offsets

# Halves of these numbers are odd. At the middle, an odd substep, the error has an expansion in even
# powers of the step.
_NUMBERS = (2, 6, 10, 14, 18, 22, 26, 30)
SEQUENCE = StepSequence(_NUMBERS, 2, tuple(1.0 + np.cumsum(_NUMBERS)))


class OdexDenseWeights(NamedTuple):
    r"""Weights of the coefficients $q_k$ of a `ChordInterpolation`, for each number of columns.

    **Attributes:** `inside`, weights of $h f$ at all substeps, (K, q, N); `ends`, weights of
    $y_1 - y_0$, $h f_0$ and $h f_1$, (K, q, 3).
    """

    inside: np.ndarray
    ends: np.ndarray


@functools.lru_cache
def dense_weights() -> OdexDenseWeights:
    r"""Return the weights of the polynomial through both ends and the middle of a step.

    The polynomial interpolates $y$ and $\dot y$ at both ends, and derivatives of $y$ in the middle.
    With c columns these are the derivatives up to order 2 c - 2, from extrapolated central
    differences of f, and the polynomial is of degree 2 c + 2.

    **Source:** Hairer-Ostermann, Dense output for extrapolation methods (1990);
    Hairer-Norsett-Wanner I, II.9 "Dense output for the GBS method".
    """
    K, N = len(_NUMBERS), sum(_NUMBERS)
    table = np.zeros((K, 2 * K + 1, 3 + N))
    for c in range(1, K + 1):
        q = _chord_form(_midpoint_weights(c))
        table[c - 1, : len(q)] = q
    return OdexDenseWeights(table[:, :, 3:], table[:, :, :3])


def _midpoint_weights(columns: int):
    r"""Return the weights of the derivatives in the middle of a step, (2 c - 1, 3 + N).

    Row k has the weights of $h^k y^{(k)}$, and row 0 those of $y - y_0$.
    """
    points = substep_offsets(SEQUENCE)
    weights = np.zeros((2 * columns - 1, 3 + points[-1]))
    for k in range(len(weights)):
        used = [j for j in range(columns) if _NUMBERS[j] // 2 + 1 >= k]
        extrapolation = lagrange_at_zero(np.array([_NUMBERS[j] for j in used]), 2)
        for j, factor in zip(used, extrapolation, strict=True):
            n, f = _NUMBERS[j], np.zeros(_NUMBERS[j] + 1)
            middle = n // 2
            if k == 0:
                # Substeps of double length, from y_0 + h f_0 / n on.
                f[0], f[2:middle:2] = 1.0 / n, 2.0 / n
            for i in range(k):
                f[middle + k - 1 - 2 * i] = (-1) ** i * math.comb(k - 1, i) * (n / 2) ** (k - 1)
            weights[k, 1] += factor * f[0]
            weights[k, 3 + points[j] : 3 + points[j + 1]] += factor * f[1:]
    return weights


def _chord_form(middle: np.ndarray):
    """Return the weights of the coefficients $q_k$ from those of the derivatives in the middle."""
    size, width = middle.shape
    chord, left, right = np.eye(3, width)
    q = np.zeros((size + 2, width))
    # The cubic polynomial through values and rates at the ends, and its powers of x.
    q[0], q[1] = 0.5 * (left - right), chord - 0.5 * (left + right)
    cubic = [0.5 * chord + 0.25 * q[0], 0.5 * chord + 0.25 * q[1], -0.25 * q[0], -0.25 * q[1]]
    # The remainder in powers of x; it is divided by theta^2 (1 - theta)^2 = (1 - x^2)^2 / 16.
    rest = np.stack([row / (math.factorial(k) * 2.0**k) for k, row in enumerate(middle)])
    for k in range(min(size, 4)):
        rest[k] -= cubic[k]
    for k in range(size):
        term = sum(4.0 * (i + 1) * rest[k - 2 * i] for i in range(k // 2 + 1))
        q[k] += term
        q[k + 2] -= term
    return q
