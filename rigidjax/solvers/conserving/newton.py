"""Newton's method for the equations of one step."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..implicit import solved
from .equations import AbstractStepEquations


class Root(NamedTuple):
    """`Z`, solution with the derivatives of the solution; `okay`, whether it is one; number of
    `iterations`."""

    Z: Array
    okay: Bool[Array, ""]
    iterations: Int[Array, ""]


def find_root(step: AbstractStepEquations, Z: Array, limit: int) -> Root:
    r"""Newton iterations from `Z` to round-off, with a Jacobian for each.

    Increments are measured by `step.measures`. The iteration ends when one is below
    `step.tolerance`. In slow motion unknowns are small, and forces that cancel leave their
    round-off: so it also ends when an increment `is_at_rest`.

    **Arguments:** `step`; `Z`, start; `limit`, of iterations.
    """
    fixed, Z = jax.lax.stop_gradient((step, Z))
    measures = jnp.reshape(fixed.measures(), Z.shape)

    def turn(carry):
        k, Z, last, _, _ = carry
        change = fixed.newton_increment(Z)
        Z = Z + change
        size, largest = (jnp.max(jnp.abs(u) / measures) for u in (change, Z))
        converged = (size <= fixed.tolerance(largest)) | is_at_rest(size, last)
        return k + 1, Z, size, converged, ~jnp.isfinite(size)

    def running(carry):
        k, _, _, converged, failed = carry
        return ~(converged | failed) & (k < limit)

    no, infinite = jnp.array(False), jnp.asarray(jnp.inf, Z.dtype)
    start = jnp.array(0), Z, infinite, no, no
    count, Z, _, okay, _ = jax.lax.while_loop(running, turn, start)
    return Root(solved(step, Z, okay), okay, count)


def is_at_rest(size: Float[Array, ""], last: Float[Array, ""]) -> Bool[Array, ""]:
    r"""Whether increments have stopped to decrease, and are small: what is left is round-off.

    **Arguments:** `size` of an increment and that of the `last` one, 1 for a motion through a
    radian or through the size of the system. Small is $\epsilon^{3/5}$ (4e-10 in double precision):
    two million times the round-off of a pose, for forces that are by as much larger than their
    sum.
    """
    return (size <= jnp.finfo(size.dtype).eps ** 0.6) & (size >= 0.5 * last)
