"""The simplified Newton iteration of a Radau step."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .stages import Step, stage_residual
from .tableau import Tableau


class Outcome(NamedTuple):
    """How an iteration ended.

    **Attributes:** `Z`, increments (s, n); `converged`; `theta`, rate of convergence, 0 after a
    single iteration; `eta`, the factor of the last increment that estimates the error; `count`,
    of iterations.
    """

    Z: Any
    converged: Any
    theta: Any
    eta: Any
    count: Any


def iterate(
    step: Step,
    Z: Any,
    inverse: Any,
    eta: Any,
    tolerance: Any,
    norm: Any,
    limit: int,
    tableau: Tableau,
) -> Outcome:
    r"""Solve the stage equations from `Z` with a fixed inverse of the Newton matrix.

    **Arguments:** `step`; `Z`, (s, n), start; `inverse`, (s n, s n); `eta`, of the last step;
    `tolerance`; `norm`, of increments (s, n); `limit`, of iterations; `tableau`.
    **Returns:** an `Outcome`.
    **Source:** Hairer-Wanner II, IV.8 (8.10), (8.11).
    """
    eps = jnp.finfo(Z.dtype).eps
    one, no = jnp.ones((), Z.dtype), jnp.array(False)

    def turn(carry):
        k, Z, size, ratio, _, _, _, _ = carry
        change = -(inverse @ stage_residual(step, Z, tableau).ravel()).reshape(Z.shape)
        new_size = norm(change)
        new_ratio = new_size / jnp.where(size > 0, size, 1.0)
        # From the third iteration on the mean of the last two.
        theta = jnp.where(k > 1, jnp.sqrt(new_ratio * ratio), new_ratio)
        theta = jnp.where(k > 0, theta, 0.0)
        slow = (k > 0) & ~(theta < 0.99)
        rest = theta / jnp.where(slow, 1.0, 1.0 - theta)
        new_eta = jnp.where(k > 0, rest, jnp.maximum(eta, eps) ** 0.8)
        error = new_eta * new_size
        converged = (error <= tolerance) & ~slow
        # What the remaining iterations would leave.
        hopeless = (k > 0) & (theta ** (limit - 1 - k) * error > tolerance)
        failed = slow | ~jnp.isfinite(new_size) | (~converged & (hopeless | (k == limit - 1)))
        return k + 1, Z + change, new_size, new_ratio, theta, new_eta, converged, failed

    def running(carry):
        return ~(carry[-1] | carry[-2])

    start = jnp.array(0), Z, one, one, jnp.zeros_like(one), one, no, no
    count, Z, _, _, theta, eta, converged, failed = jax.lax.while_loop(running, turn, start)
    return Outcome(Z, converged & ~failed, theta, eta, count)
