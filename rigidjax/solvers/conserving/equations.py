"""Nonlinear equations of one step."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Vector
from ...native.ops import cross, inverse
from ...rotations.so3 import dot
from ..implicit import AbstractImplicitStep
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
