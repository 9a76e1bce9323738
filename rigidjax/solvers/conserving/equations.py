"""Nonlinear equations of one step, with and without multipliers, and their Newton iteration."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Count, Flag, Matrix, Matrix3, Scalar, Vector, Vector3
from ...mechanics.stacked.system import PreparedSystem
from ...rotations.so3 import dot
from ...small_arrays import cross, inverse, sequential_vmap_on_cpu
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

    def tolerance(self, largest: Scalar) -> Scalar:
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


def solve_three(A: Matrix3, b: Vector3) -> Vector3:
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
    okay: Flag
    iterations: Count


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


def has_stagnated(size: Scalar, last: Scalar) -> Flag:
    r"""Return whether Newton increments are small and have stopped to decrease, which is round-off.

    The limit for small increments is $\epsilon^{3/5}$ (4e-10 in double precision). This is two
    million times the round-off of a pose and allows for forces that are as much larger than their
    sum.

    **Arguments:** `size`, of the increment, and `last`, of the previous one, both relative to the
    scales of the unknowns.
    """
    return (size <= jnp.finfo(size.dtype).eps ** 0.6) & (size >= 0.5 * last)


# Shift relative to the diagonal entry of G M^-1 G^T.
_SHIFT = 1e-11

_solve = sequential_vmap_on_cpu(jnp.linalg.solve)


class AbstractMultiplierEquations(AbstractStepEquations):
    r"""Equations for the increments of all bodies, (L, 6), followed by the multipliers, (m,).

    Their Jacobian, $\begin{pmatrix} K & \bar G^T \\ G & 0\end{pmatrix}$, is singular where
    constraints are redundant. A small negative shift of the lower right block, relative to
    $G M^{-1} G^T$, makes it regular. The shift does not enter the residual, so that it affects the
    number of iterations but not the solution, and multipliers that are not unique stay near their
    initial iterates. A system of free bodies has no multipliers.

    Nothing depends on units: increments are relative to the size of the system and one radian, and
    the linear equations are scaled by the masses of the bodies and by each constraint.

    **Attributes:** `prepared`; `scales`, of the increments, whose round-off is about `eps` times
    their scale.
    """

    prepared: eqx.AbstractVar[PreparedSystem]
    scales: eqx.AbstractVar[Float[Array, "L 6"]]

    @abc.abstractmethod
    def residual(self, Z: Vector) -> Vector:
        """Return the flattened residuals of the momentum balances, followed by the constraints."""

    def unknown_scales(self) -> Vector:
        """Return the scales of the increments; those of multipliers are infinite."""
        count = self.prepared.num_constraints
        return jnp.concatenate([self.scales.ravel(), jnp.full(count, jnp.inf, self.scales.dtype)])

    def tolerance(self, largest: Scalar) -> Scalar:
        """Return the round-off of the pose, to which joints are closed."""
        if self.prepared.is_free:
            return super().tolerance(largest)
        return 50 * jnp.finfo(largest.dtype).eps * jnp.ones_like(largest)

    def split_unknowns(self, Z: Vector) -> tuple[Float[Array, "L 6"], Float[Array, " m"]]:
        """Split the unknowns into increments and multipliers."""
        size = 6 * self.prepared.num_bodies
        return Z[:size].reshape(-1, 6), Z[size:]

    def linearize(self, Z: Vector) -> tuple[Vector, Matrix]:
        """Return the residual and its derivative with the shift that makes it regular."""
        r, A = super().linearize(Z)
        size = 6 * self.prepared.num_bodies
        shift = -_SHIFT * self._inverse_masses(A)
        return r, A + jnp.diag(jnp.where(jnp.arange(Z.size) < size, 0.0, shift))

    def newton_increment(self, Z: Vector) -> Vector:
        """Return the Newton increment from equations scaled by masses and constraints."""
        r, A = self.linearize(Z)
        inverse = self._inverse_masses(A)
        unit = jnp.sqrt(jnp.where(inverse > 0, inverse, 1.0))
        unit = jnp.where(jnp.arange(Z.size) < 6 * self.prepared.num_bodies, unit, 1.0 / unit)
        return -unit * _solve(unit[:, None] * A * unit[None], (unit * r)[:, None])[:, 0]

    def _inverse_masses(self, A: Matrix) -> Vector:
        r"""Return the inverse masses of the increments and the diagonal of $G M^{-1} G^T$."""
        inverse = 1.0 / _mass_scales(self.prepared)
        G = A[inverse.size :, : inverse.size]
        return jnp.concatenate([inverse, jnp.sum(G * inverse[None] * G, axis=1)])


def _mass_scales(prepared: PreparedSystem) -> Float[Array, " k"]:
    """Return a scale of the mass of every increment, not zero for thin rods or massless bodies."""
    inertias = prepared.inertias
    sums = jnp.sum(inertias, axis=1) if inertias.ndim == 2 else jnp.trace(inertias, 0, 1, 2)
    masses = jnp.where(prepared.masses > 0, prepared.masses, jnp.max(prepared.masses))
    sums = jnp.where(sums > 0, sums, masses * prepared.lengths**2)
    both = jnp.stack([masses, sums], axis=1)
    return jnp.repeat(both, 3, axis=1).ravel()
