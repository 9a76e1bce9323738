"""Tail of the chi-square and quantile of Student's distribution, for whole degrees of freedom."""

import math
import statistics

import numpy as np

_NORMAL = statistics.NormalDist()


def chi_square_tail(x: float, freedom: int) -> float:
    r"""Probability that a chi-square variable with `freedom` degrees of freedom exceeds `x`.

    **Errors:** `ValueError` for fewer than one degree of freedom.
    **Source:** Abramowitz and Stegun, *Handbook of Mathematical Functions*, 26.4.4 and 26.4.5.
    """
    _check_freedom(freedom)
    if x <= 0:
        return 1.0
    if freedom % 2 == 0:
        # 1, x/2, (x/2)^2 / 2!, ... times exp(-x/2); the factor goes in first: no overflow.
        ratios = 0.5 * x / np.arange(1, freedom // 2)
        return _sum_of_products(-0.5 * x, ratios)
    tail = math.erfc(math.sqrt(0.5 * x))
    if freedom == 1:
        return tail
    first = 0.5 * math.log(2 * x / math.pi) - 0.5 * x
    return tail + _sum_of_products(first, x / np.arange(3, freedom - 1, 2))


def student_probability(t: float, freedom: int) -> float:
    r"""Probability that Student's variable lies between $-t$ and $t$.

    **Errors:** `ValueError` for fewer than one degree of freedom.
    **Source:** Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    _check_freedom(freedom)
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    if freedom % 2 == 0:
        k = np.arange(2, freedom - 1, 2)
        return sine * float(1 + np.cumprod((k - 1) / k * cosine**2).sum())
    if freedom == 1:
        return 2 * angle / math.pi
    k = np.arange(3, freedom - 1, 2)
    series = cosine * float(1 + np.cumprod((k - 1) / k * cosine**2).sum())
    return 2 / math.pi * (angle + sine * series)


def student_quantile(level: float, freedom: int) -> float:
    r"""The $t$ with probability `level` between $-t$ and $t$.

    **Arguments:** `level`, above 0 and below 1; `freedom`, degrees of freedom, 1 or more.
    **Errors:** `ValueError` for a level outside, or fewer than one degree of freedom.
    """
    check_level(level)
    _check_freedom(freedom)
    constant = math.lgamma(0.5 * (freedom + 1)) - math.lgamma(0.5 * freedom)
    constant -= 0.5 * math.log(freedom * math.pi)
    # The probability is concave in t, and the normal quantile is on the left: Newton is monotone.
    t = normal_quantile(level)
    for _ in range(200):
        density = math.exp(constant - 0.5 * (freedom + 1) * math.log1p(t * t / freedom))
        step = (level - student_probability(t, freedom)) / (2 * density)
        t += step
        if abs(step) <= 1e-13 * t:
            break
    return t


def normal_quantile(level: float) -> float:
    """The number of standard deviations with probability `level` between minus and plus it."""
    check_level(level)
    return _NORMAL.inv_cdf(0.5 * (1 + level))


def check_level(level: float) -> None:
    """Raise `ValueError` unless `level` is a probability above 0 and below 1."""
    if not 0 < level < 1:
        raise ValueError(
            f"A confidence level lies between 0 and 1, such as 0.95 for 95 %; got {level!r}."
        )


def _check_freedom(freedom):
    if freedom < 1:
        raise ValueError(f"There must be at least one degree of freedom; got {freedom}.")


def _sum_of_products(first, ratios):
    """The sum of exp(first), exp(first) r1, exp(first) r1 r2, ..., by logarithms."""
    logs = first + np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    return float(np.exp(logs).sum())
