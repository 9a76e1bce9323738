r"""Newton's method for the equations of a step with multipliers.

The unknowns are increments of the bodies and multipliers, $F(Z) = 0$, with a Jacobian
$\begin{pmatrix} K & \bar G^T \\ G & 0\end{pmatrix}$ that is singular where constraints are
redundant. A small negative shift of the lower right block, relative to $G M^{-1} G^T$, makes it
regular: the residual decides what is solved, so that only the number of iterations depends on it,
and multipliers that nothing determines stay next to those they start with.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ....linalg import one_by_one
from ....system.jointed import JointedMechanics
from ...implicit import AbstractImplicitStep, solved

# The shift, in parts of the largest entry of G M^-1 G^T.
_SHIFT = 1e-11
_MAX_ITERATIONS = 25

_solve = one_by_one(jnp.linalg.solve)


class AbstractSaddle(AbstractImplicitStep):
    """Equations of increments of all bodies (L, 6) and multipliers (m,), one after the other."""

    mechanics: eqx.AbstractVar[JointedMechanics]

    @abc.abstractmethod
    def residual(self, Z: Float[Array, " n"]) -> Float[Array, " n"]:
        """Balances of momentum, flattened, then constraints."""

    def unpacked(self, Z: Float[Array, " n"]) -> tuple[Float[Array, "L 6"], Float[Array, " m"]]:
        """Increments and multipliers."""
        size = 6 * self.mechanics.num_bodies
        return Z[:size].reshape(-1, 6), Z[size:]

    def jacobian(self, Z: Float[Array, " n"]) -> Float[Array, "n n"]:
        """With the shift that makes it regular."""
        A = jax.jacfwd(self.residual)(Z)
        size = 6 * self.mechanics.num_bodies
        G = A[size:, :size]
        scale = jnp.max(jnp.sum(G / _mass_scale(self.mechanics) * G, axis=1), initial=0.0)
        shift = jnp.where(jnp.arange(Z.size) < size, 0.0, -_SHIFT * scale)
        return A + jnp.diag(shift.astype(A.dtype))


class Root(NamedTuple):
    """A root with the derivatives of the solution, whether it is one, number of iterations."""

    increments: Any
    multipliers: Any
    found: Any
    count: Any


def saddle_root(step: AbstractSaddle, guess: Float[Array, " n"]) -> Root:
    r"""Root of the equations of a step, to round-off.

    Newton iterations until an increment is at round-off, or small and no longer decreasing.

    **Arguments:** `step`; `guess`, increments and multipliers.
    """
    fixed, guess = jax.lax.stop_gradient((step, guess))
    eps = jnp.finfo(guess.dtype).eps

    def turn(carry):
        k, Z, last, _, _ = carry
        change = -_solve(fixed.jacobian(Z), fixed.residual(Z)[:, None])[:, 0]
        length = jnp.max(jnp.abs(fixed.unpacked(change)[0]))
        found = (length <= 50 * eps) | ((length <= eps**0.6) & (length >= 0.25 * last))
        failed = ~jnp.isfinite(length) | (k + 1 == _MAX_ITERATIONS)
        return k + 1, Z + change, length, found, failed & ~found

    no = jnp.array(False)
    start = jnp.array(0), guess, jnp.asarray(jnp.inf, guess.dtype), no, no
    count, Z, _, found, _ = jax.lax.while_loop(lambda c: ~(c[-1] | c[-2]), turn, start)
    return Root(*step.unpacked(solved(step, Z, found)), found, count)


def _mass_scale(mechanics: JointedMechanics) -> Float[Array, " k"]:
    """A scale of the mass of every increment; for a thin rod it is not zero."""
    inertias = mechanics.inertias
    sums = jnp.sum(inertias, axis=1) if inertias.ndim == 2 else jnp.trace(inertias, 0, 1, 2)
    both = jnp.stack([mechanics.masses, sums], axis=1)
    return jnp.repeat(both, 3, axis=1).ravel()
