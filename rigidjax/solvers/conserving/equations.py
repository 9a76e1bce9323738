"""The equations of one step."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Vector
from ...native.ops import cross, inverse
from ...rotations.so3 import dot
from ..implicit import AbstractImplicitStep
from .motion import BodyMotion


class AbstractStepEquations(AbstractImplicitStep):
    """Equations whose solution `Z` leads from the start of a step to its end.

    Everything that the solution depends on is a leaf.
    """

    @abc.abstractmethod
    def measures(self) -> Array:
        """What the unknowns are measured by, of their shape (or flattened).

        An unknown of this size moves a body through a radian or through the size of the system, so
        that the round-off of the pose is about `eps` of it.
        """

    def tolerance(self, largest: Float[Array, ""]) -> Float[Array, ""]:
        r"""The measure of the last increment, $\epsilon^{5/8}$ of the `largest` unknown.

        That is 1.6e-10 in double precision: by quadratic convergence the next increment would be
        below round-off.
        """
        eps = jnp.finfo(largest.dtype).eps
        return jnp.maximum(eps**0.625 * largest, eps)

    def newton_increment(self, Z: Array) -> Array:
        """What a Newton step adds to `Z`."""
        r, J = self.linearize(Z)
        if Z.size == 3:
            return -solve_three(J, r).reshape(Z.shape)
        return -(inverse(J) @ r).reshape(Z.shape)


class AbstractMotionStep(AbstractStepEquations):
    """A step of one body from a motion to a motion."""

    @abc.abstractmethod
    def guess(self) -> Vector:
        """Where Newton's method starts."""

    @abc.abstractmethod
    def end(self, Z: Vector) -> BodyMotion:
        """The motion at the end."""


def solve_three(A: Float[Array, "3 3"], b: Float[Array, "3"]) -> Float[Array, "3"]:
    """Solution of three equations by cofactors."""
    a1, a2, a3 = A[:, 0], A[:, 1], A[:, 2]
    c23 = cross(a2, a3)
    determinant = dot(a1, c23)
    return jnp.stack([dot(b, c23), dot(b, cross(a3, a1)), dot(b, cross(a1, a2))]) / determinant
