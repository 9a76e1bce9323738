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

    Increments are measured by `step.sizes`. The iteration ends when one is below $\epsilon^{5/8}$
    of the largest unknown (1.6e-10 in double precision): by quadratic convergence the next one
    would be below round-off. In slow motion unknowns are small, and forces that cancel leave their
    round-off: it also ends when an increment is round-off of the pose, or `is_at_rest`.

    **Arguments:** `step`; `Z`, start; `limit`, of iterations.
    """
    eps = jnp.finfo(Z.dtype).eps
    fixed, Z = jax.lax.stop_gradient((step, Z))
    sizes = jnp.reshape(fixed.sizes(), Z.shape)

    def turn(carry):
        k, Z, last, _, _ = carry
        change = newton_increment(fixed, Z)
        Z = Z + change
        size, largest = (jnp.max(jnp.abs(u) / sizes) for u in (change, Z))
        converged = size <= jnp.maximum(eps**0.625 * largest, eps)
        return k + 1, Z, size, converged | is_at_rest(size, last), ~jnp.isfinite(size)

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
