"""Choice of order and step of the BDF methods."""

from typing import NamedTuple

import jax.numpy as jnp

from ....annotations import Count, Flag, Norm, Scalar, Vector
from .formulas import ERROR, LEADING, MAX_ORDER
from .history import ROWS, DifferenceCoefficients, Differences

# Of a step's error that the next one aims at; with 2, as in DASSL, a tenth of the steps fail on
# van der Pol's equation.
_SAFETY = 4.0
# Smallest growth of a step that is made: a new step takes a new Jacobian sooner or later. DASSL's
# doubling takes a tenth more steps, 1.2 a tenth more evaluations.
_GROWTH = 1.5


class ErrorEstimates(NamedTuple):
    """Estimates of a step of order k: `size`, of its own error; and for a choice of the order
    `terms`, Taylor's, of order k - 1, k, k + 1 (infinite where there is none) and `estimates`, of
    the errors of steps of these orders."""

    size: Scalar
    terms: tuple[Scalar, Scalar, Scalar]
    estimates: tuple[Scalar, Scalar, Scalar]


def estimate_errors(
    phi: Differences, E: Vector, last: Flag, c: DifferenceCoefficients, order: Count, norm: Norm
) -> ErrorEstimates:
    """Error estimates at the orders next to that of the step.

    **Arguments:** `phi`, differences for the step, (7, n); `E`, correction, (n,); `last`, whether
    the difference beyond is that of a step of equal length and order; `c`, `Coefficients`.
    **Source:** Brenan-Campbell-Petzold 5.2.2, (5.2.15) to (5.2.19), for the formulas' constants.
    """
    k = order
    leading, constant = jnp.asarray(LEADING, E.dtype), jnp.asarray(ERROR, E.dtype)
    alpha0 = jnp.sum(jnp.where(jnp.arange(ROWS) < k, c.alpha, 0.0))
    size = norm(E)
    own = (k + 1) * c.sigma[k] * size
    lower = k * c.sigma[k - 1] * norm(phi[k] + E)
    lowest = c.sigma[jnp.maximum(k - 2, 0)] * norm(phi[k] + phi[k - 1] + E)
    # From order 3 on the terms of both lower orders have to be small.
    term = jnp.where(k > 2, jnp.maximum(lower, (k - 1) * lowest), 2.0 * lower)
    term = jnp.where(k > 1, term, jnp.inf)
    higher = norm(E - phi[jnp.minimum(k + 1, ROWS - 1)])
    higher = jnp.where(last & (k < MAX_ORDER), higher, jnp.inf)
    return ErrorEstimates(
        jnp.abs(c.alpha[k] - leading[k] + alpha0) * size,
        (term, own, higher),
        (constant[k - 1] * lower, constant[k] * own, constant[k + 1] * higher),
    )


class StepChoice(NamedTuple):
    """The next order, the factor of the step, and whether the start phase goes on."""

    order: Count
    factor: Scalar
    rising: Flag


def choose_order_and_step(
    e: ErrorEstimates, order: Count, rising: Flag, max_order: int
) -> StepChoice:
    """Order and step after an accepted step.

    While the order has never fallen, both rise with every step.
    **Source:** Brenan-Campbell-Petzold 5.2.2 and the code DASSL.
    """
    k = order
    lower, own, higher = e.terms
    falls = lower <= own
    rising = rising & ~falls & (k < max_order)
    rises = ~falls & jnp.where(k > 1, higher < own, higher < 0.5 * own)
    falls = falls | ((k > 1) & (lower <= jnp.minimum(own, higher)))
    order = jnp.where(rising | (rises & ~falls), k + 1, jnp.where(falls, k - 1, k))
    order = jnp.clip(order, 1, max_order)
    estimate = jnp.where(order > k, e.estimates[2], e.estimates[1])
    estimate = jnp.where(order < k, e.estimates[0], estimate)
    factor = _target_factor(estimate, order)
    shorter = jnp.where(factor < 1.0, jnp.clip(factor, 0.5, 0.9), 1.0)
    factor = jnp.where(factor >= _GROWTH, jnp.minimum(factor, 2.0), shorter)
    return StepChoice(order, jnp.where(rising, 2.0, factor), rising)


def retry_factor(e: ErrorEstimates, order: Count) -> Scalar:
    """Factor of the step after one with too large an error."""
    falls = e.terms[0] <= e.terms[1]
    estimate = jnp.where(falls, e.estimates[0], e.estimates[1])
    order = jnp.where(falls, order - 1, order)
    return jnp.clip(0.9 * _target_factor(estimate, order), 0.25, 0.9)


def _target_factor(estimate: Scalar, order: Count):
    return (_SAFETY * estimate + 1e-4) ** (-1.0 / (order + 1).astype(estimate.dtype))
