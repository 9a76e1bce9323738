"""Newton's method for the equations of a step."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..implicit import attach_derivatives
from .equations import AbstractStepEquations


class Root(NamedTuple):
    """Result of Newton's method.

    **Attributes:** `Z`, the last iterate, with the derivatives of the solution; `okay`, whether the
    iteration converged; `iterations`, their number.
    """

    Z: Array
    okay: Bool[Array, ""]
    iterations: Int[Array, ""]


def find_root(step: AbstractStepEquations, Z: Array, limit: int) -> Root:
    r"""Solve the equations of a step by Newton's method with a new Jacobian in every iteration.

    The size of an increment is relative to `step.unknown_scales`. The iteration ends when this size
    is below `step.tolerance`. In slow motion the unknowns are so small that the round-off of forces
    that cancel exceeds the tolerance; the iteration therefore also ends when `has_stagnated`.

    **Arguments:** `step`, the equations; `Z`, the initial iterate; `limit`, the largest number of
    iterations.
    """
    fixed, Z = jax.lax.stop_gradient((step, Z))
    scales = jnp.reshape(fixed.unknown_scales(), Z.shape)

    def iterate(carry):
        k, Z, last, _, _ = carry
        change = fixed.newton_increment(Z)
        Z = Z + change
        size, largest = (jnp.max(jnp.abs(u) / scales) for u in (change, Z))
        converged = (size <= fixed.tolerance(largest)) | has_stagnated(size, last)
        return k + 1, Z, size, converged, ~jnp.isfinite(size)

    def is_running(carry):
        k, _, _, converged, failed = carry
        return ~(converged | failed) & (k < limit)

    no, infinite = jnp.array(False), jnp.asarray(jnp.inf, Z.dtype)
    start = jnp.array(0), Z, infinite, no, no
    count, Z, _, okay, _ = jax.lax.while_loop(is_running, iterate, start)
    return Root(attach_derivatives(step, Z, okay), okay, count)


def has_stagnated(size: Float[Array, ""], last: Float[Array, ""]) -> Bool[Array, ""]:
    r"""Return whether Newton increments are small and have stopped to decrease, which is round-off.

    The limit for small increments is $\epsilon^{3/5}$ (4e-10 in double precision). This is two
    million times the round-off of a pose and allows for forces that are as much larger than their
    sum.

    **Arguments:** `size`, of the increment, and `last`, of the previous one, both relative to the
    scales of the unknowns.
    """
    return (size <= jnp.finfo(size.dtype).eps ** 0.6) & (size >= 0.5 * last)
