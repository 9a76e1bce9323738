"""Nonlinear equations of one step."""

import abc
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...annotations import Vector
from ...rotations.so3 import dot
from ...small_arrays import cross, inverse
from ..base.implicit import AbstractImplicitStep, attach_derivatives
from .motion import BodyMotion


class AbstractStepEquations(AbstractImplicitStep):
    """Equations whose solution `Z` determines the end of a step.

    Everything that the solution depends on is a leaf of the pytree.
    """

    @abc.abstractmethod
    def unknown_scales(self) -> Array:
        """Return the scales of the unknowns, with the shape of `Z` or flattened.

        An increment of an unknown by its scale moves a body by one radian or by the size of the
        system. The round-off of the pose is then about `eps` times the scale.
        """

    def tolerance(self, largest: Float[Array, ""]) -> Float[Array, ""]:
        r"""Return the size of the last Newton increment, $\epsilon^{5/8}$ of the `largest` unknown.

        Both are relative to the scales. The convergence is quadratic, so that an increment after
        one of this size (1.6e-10 in double precision) would be below round-off.
        """
        eps = jnp.finfo(largest.dtype).eps
        return jnp.maximum(eps**0.625 * largest, eps)

    def newton_increment(self, Z: Array) -> Array:
        """Return the Newton increment at `Z`."""
        r, J = self.linearize(Z)
        if Z.size == 3:
            return -solve_three(J, r).reshape(Z.shape)
        return -(inverse(J) @ r).reshape(Z.shape)


class AbstractMotionStep(AbstractStepEquations):
    """Equations of a step of one body."""

    @abc.abstractmethod
    def guess(self) -> Vector:
        """Return the initial iterate of Newton's method."""

    @abc.abstractmethod
    def end(self, Z: Vector) -> BodyMotion:
        """Return the motion of the body at the end of the step for the solution `Z`."""


def solve_three(A: Float[Array, "3 3"], b: Float[Array, "3"]) -> Float[Array, "3"]:
    """Solve three linear equations by cofactors."""
    a1, a2, a3 = A[:, 0], A[:, 1], A[:, 2]
    c23 = cross(a2, a3)
    determinant = dot(a1, c23)
    return jnp.stack([dot(b, c23), dot(b, cross(a3, a1)), dot(b, cross(a1, a2))]) / determinant


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
