"""Newton's method for the equations of one step."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...linalg import inverse
from ...rotations.so3 import cross, dot
from ..implicit import solved
from .motion_step import AbstractMotionStep


class Root(NamedTuple):
    """`Z`, solution with the derivatives of the solution; `okay`, whether it is one; number of
    `iterations`."""

    Z: Any
    okay: Bool[Array, ""]
    iterations: Int[Array, ""]


def find_root(step: AbstractMotionStep, Z: Any, limit: int) -> Root:
    r"""Newton iterations from `Z` to round-off, with a Jacobian for each.

    It ends when an increment is below $\epsilon^{5/8}$ of the largest unknown (1.6e-10 in double
    precision): by quadratic convergence the next one would be below round-off.

    **Arguments:** `step`; `Z`, start; `limit`, of iterations.
    """
    tolerance = jnp.finfo(Z.dtype).eps ** 0.625
    fixed, Z = jax.lax.stop_gradient((step, Z))

    def turn(carry):
        k, Z, _, _ = carry
        change = newton_increment(fixed, Z)
        Z = Z + change
        size = jnp.max(jnp.abs(change))
        converged = size <= tolerance * jnp.max(jnp.abs(Z))
        return k + 1, Z, converged, ~jnp.isfinite(size)

    def running(carry):
        k, _, converged, failed = carry
        return ~(converged | failed) & (k < limit)

    no = jnp.array(False)
    count, Z, okay, _ = jax.lax.while_loop(running, turn, (jnp.array(0), Z, no, no))
    return Root(solved(step, Z, okay), okay, count)


def newton_increment(step: AbstractMotionStep, Z: Any) -> Any:
    """What a Newton step adds to `Z`."""
    r, J = step.linearized(Z)
    if Z.size == 3:
        return -solve_three(J, r).reshape(Z.shape)
    return -(inverse(J) @ r).reshape(Z.shape)


def solve_three(A: Float[Array, "3 3"], b: Float[Array, "3"]) -> Float[Array, "3"]:
    """Solution of three equations by cofactors."""
    a1, a2, a3 = A[:, 0], A[:, 1], A[:, 2]
    c23 = cross(a2, a3)
    determinant = dot(a1, c23)
    return jnp.stack([dot(b, c23), dot(b, cross(a3, a1)), dot(b, cross(a1, a2))]) / determinant
