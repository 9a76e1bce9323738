"""Error estimates, and choice of order and step of the BDF methods."""

from typing import NamedTuple

import jax.numpy as jnp

from ....annotations import Count, Flag, Norm, Scalar, Vector
from .history import ERROR, LEADING, MAX_ORDER, ROWS, DifferenceCoefficients, Differences

# Ratio of the tolerance to the error that a step aims at; more steps are rejected with DASSL's 2.
_SAFETY = 4.0
# Smallest growth of a step. A smaller one does not pay for the new Jacobian that follows, and a
# larger one, such as DASSL's doubling, takes more steps.
_GROWTH = 1.5


class ErrorEstimates(NamedTuple):
    """Error estimates of a step of order k.

    **Attributes:** `size`, norm of the error of the step; for the choice of the order, `terms`,
    norms of the Taylor terms for order k - 1, k and k + 1, infinite for an order that is not
    available, and `estimates`, norms of the errors of steps of these orders.
    """

    size: Scalar
    terms: tuple[Scalar, Scalar, Scalar]
    estimates: tuple[Scalar, Scalar, Scalar]


def estimate_errors(
    phi: Differences, E: Vector, last: Flag, c: DifferenceCoefficients, order: Count, norm: Norm
) -> ErrorEstimates:
    """Return error estimates for the order k of the step and for the orders k - 1 and k + 1.

    **Arguments:** `phi`, differences for the step, (7, n); `E`, correction, (n,); `last`, whether
    the difference of order k + 1 comes from a step of equal length and order; `c`, coefficients of
    the step; `order`, k; `norm`.
    **Source:** Brenan-Campbell-Petzold 5.2.2, (5.2.15) to (5.2.19), with the error constants of
    `formulas`.
    """
    k = order
    leading, constant = jnp.asarray(LEADING, E.dtype), jnp.asarray(ERROR, E.dtype)
    alpha0 = jnp.sum(jnp.where(jnp.arange(ROWS) < k, c.alpha, 0.0))
    size = norm(E)
    current = (k + 1) * c.sigma[k] * size
    lower = k * c.sigma[k - 1] * norm(phi[k] + E)
    lowest = c.sigma[jnp.maximum(k - 2, 0)] * norm(phi[k] + phi[k - 1] + E)
    # From order 3 on, the terms of both lower orders must be small for the order to fall.
    term = jnp.where(k > 2, jnp.maximum(lower, (k - 1) * lowest), 2.0 * lower)
    term = jnp.where(k > 1, term, jnp.inf)
    higher = norm(E - phi[jnp.minimum(k + 1, ROWS - 1)])
    higher = jnp.where(last & (k < MAX_ORDER), higher, jnp.inf)
    return ErrorEstimates(
        jnp.abs(c.alpha[k] - leading[k] + alpha0) * size,
        (term, current, higher),
        (constant[k - 1] * lower, constant[k] * current, constant[k + 1] * higher),
    )


class StepChoice(NamedTuple):
    """The next order, the factor of the step, and whether the initial phase continues."""

    order: Count
    factor: Scalar
    rising: Flag


def choose_order_and_step(
    e: ErrorEstimates, order: Count, rising: Flag, max_order: int
) -> StepChoice:
    """Choose order and step after an accepted step.

    In the initial phase, while the order has never fallen, the order rises by one and the step
    doubles with every step.
    **Source:** Brenan-Campbell-Petzold 5.2.2 and the code DASSL.
    """
    k = order
    lower, current, higher = e.terms
    falls = lower <= current
    rising = rising & ~falls & (k < max_order)
    rises = ~falls & jnp.where(k > 1, higher < current, higher < 0.5 * current)
    falls = falls | ((k > 1) & (lower <= jnp.minimum(current, higher)))
    order = jnp.where(rising | (rises & ~falls), k + 1, jnp.where(falls, k - 1, k))
    order = jnp.clip(order, 1, max_order)
    estimate = jnp.where(order > k, e.estimates[2], e.estimates[1])
    estimate = jnp.where(order < k, e.estimates[0], estimate)
    factor = _target_factor(estimate, order)
    shorter = jnp.where(factor < 1.0, jnp.clip(factor, 0.5, 0.9), 1.0)
    factor = jnp.where(factor >= _GROWTH, jnp.minimum(factor, 2.0), shorter)
    return StepChoice(order, jnp.where(rising, 2.0, factor), rising)


def retry_factor(e: ErrorEstimates, order: Count) -> Scalar:
    """Return the factor of the step after a rejected step."""
    falls = e.terms[0] <= e.terms[1]
    estimate = jnp.where(falls, e.estimates[0], e.estimates[1])
    order = jnp.where(falls, order - 1, order)
    return jnp.clip(0.9 * _target_factor(estimate, order), 0.25, 0.9)


def _target_factor(estimate: Scalar, order: Count):
    """Return the factor of the step for an error below the tolerance by `_SAFETY`."""
    return (_SAFETY * estimate + 1e-4) ** (-1.0 / (order + 1).astype(estimate.dtype))
