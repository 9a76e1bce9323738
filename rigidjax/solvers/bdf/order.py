"""Choice of order and step of the BDF methods."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from .history import MAX_ORDER, ROWS


class Errors(NamedTuple):
    """Estimates of a step of order k: `size`, of its own error; and for a choice of the order
    `terms` of order k - 1, k, k + 1 (infinite where there is none) and `estimates` alike."""

    size: Any
    terms: tuple[Any, Any, Any]
    estimates: tuple[Any, Any, Any]


def errors(phi: Any, E: Any, last: Any, c: Any, order: Any, norm: Any) -> Errors:
    """Error estimates at the orders next to that of the step.

    **Arguments:** `phi`, differences for the step, (7, n); `E`, correction, (n,); `last`, whether
    the difference beyond is that of a step of equal length and order; `c`, `Coefficients`.
    **Source:** Brenan-Campbell-Petzold 5.2.2, (5.2.15) to (5.2.19).
    """
    k = order
    harmonic = jnp.cumsum(1.0 / jnp.arange(1, ROWS, dtype=E.dtype))[k - 1]
    alpha0 = jnp.sum(jnp.where(jnp.arange(ROWS) < k, c.alpha, 0.0))
    constant = jnp.abs(c.alpha[k] - harmonic + alpha0)
    size = norm(E)
    own = c.sigma[k] * size
    lower = c.sigma[k - 1] * norm(phi[k] + E)
    lowest = c.sigma[jnp.maximum(k - 2, 0)] * norm(phi[k] + phi[k - 1] + E)
    # From order 3 on the terms of both lower orders have to be small.
    term = k * lower
    term = jnp.where(k > 2, jnp.maximum(term, (k - 1) * lowest), 2.0 * term)
    term = jnp.where(k > 1, term, jnp.inf)
    higher = norm(E - phi[jnp.minimum(k + 1, ROWS - 1)]) / (k + 2)
    can_rise = last & (k < MAX_ORDER)
    higher_term = jnp.where(can_rise, (k + 2) * higher, jnp.inf)
    return Errors(
        jnp.maximum(constant, c.alpha[k]) * size,
        (term, (k + 1) * own, higher_term),
        (lower, own, higher),
    )


class Choice(NamedTuple):
    """The next order, the factor of the step, and whether the start phase goes on."""

    order: Any
    factor: Any
    rising: Any


def choose(e: Errors, order: Any, rising: Any, max_order: int) -> Choice:
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
    factor = (2.0 * estimate + 1e-4) ** (-1.0 / (order + 1))
    factor = jnp.where(factor >= 2.0, 2.0, jnp.where(factor <= 1.0, factor, 1.0))
    factor = jnp.where(factor < 1.0, jnp.clip(factor, 0.5, 0.9), factor)
    return Choice(order, jnp.where(rising, 2.0, factor), rising)


def retry_factor(e: Errors, order: Any) -> Any:
    """Factor of the step after one with too large an error."""
    falls = e.terms[0] <= e.terms[1]
    estimate = jnp.where(falls, e.estimates[0], e.estimates[1])
    order = jnp.where(falls, order - 1, order)
    return jnp.clip(0.9 * (2.0 * estimate + 1e-4) ** (-1.0 / (order + 1)), 0.25, 0.9)
