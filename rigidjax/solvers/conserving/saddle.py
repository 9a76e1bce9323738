r"""The equations of a step of all bodies with multipliers.

The unknowns are increments of the bodies and multipliers, $F(Z) = 0$, with a Jacobian
$\begin{pmatrix} K & \bar G^T \\ G & 0\end{pmatrix}$ that is singular where constraints are
redundant. A small negative shift of the lower right block, relative to $G M^{-1} G^T$, makes it
regular: the residual decides what is solved, so that only the number of iterations depends on it,
and multipliers that nothing determines stay next to those they start with. Bodies free in space are
the case of no multipliers.

Nothing here depends on units: increments are measured by the size of the system and by a radian,
equations are solved in units of the masses of the bodies and of each constraint.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...mechanics.mechanics import SystemMechanics
from ...native.ops import sequential_vmap_on_cpu
from .equations import AbstractStepEquations

# The shift, in parts of the entry of G M^-1 G^T on the diagonal.
_SHIFT = 1e-11

_solve = sequential_vmap_on_cpu(jnp.linalg.solve)


class AbstractSaddle(AbstractStepEquations):
    """Equations of increments of all bodies (L, 6) and multipliers (m,), one after the other.

    **Attributes:** `mechanics`; `sizes`, (L, 6), what increments are measured by: their round-off
    is about `eps` of it.
    """

    mechanics: eqx.AbstractVar[SystemMechanics]
    sizes: eqx.AbstractVar[Float[Array, "L 6"]]

    @abc.abstractmethod
    def residual(self, Z: Float[Array, " n"]) -> Float[Array, " n"]:
        """Balances of momentum, flattened, then constraints."""

    def measures(self) -> Float[Array, " n"]:
        """Those of the increments; multipliers do not count."""
        number = self.mechanics.num_joint_constraints
        return jnp.concatenate([self.sizes.ravel(), jnp.full(number, jnp.inf, self.sizes.dtype)])

    def tolerance(self, largest: Float[Array, ""]) -> Float[Array, ""]:
        """Round-off of the pose: joints are closed to it."""
        if self.mechanics.is_free:
            return super().tolerance(largest)
        return 50 * jnp.finfo(largest.dtype).eps * jnp.ones_like(largest)

    def unpacked(self, Z: Float[Array, " n"]) -> tuple[Float[Array, "L 6"], Float[Array, " m"]]:
        """Increments and multipliers."""
        size = 6 * self.mechanics.num_bodies
        return Z[:size].reshape(-1, 6), Z[size:]

    def linearize(self, Z: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """The residual and its derivative, with the shift that makes that regular."""
        r, A = super().linearize(Z)
        size = 6 * self.mechanics.num_bodies
        shift = -_SHIFT * self._inverse_masses(A)
        return r, A + jnp.diag(jnp.where(jnp.arange(Z.size) < size, 0.0, shift))

    def newton_increment(self, Z: Float[Array, " n"]) -> Float[Array, " n"]:
        """What a Newton step adds, from equations in units of masses and constraints."""
        r, A = self.linearize(Z)
        inverse = self._inverse_masses(A)
        unit = jnp.sqrt(jnp.where(inverse > 0, inverse, 1.0))
        unit = jnp.where(jnp.arange(Z.size) < 6 * self.mechanics.num_bodies, unit, 1.0 / unit)
        return -unit * _solve(unit[:, None] * A * unit[None], (unit * r)[:, None])[:, 0]

    def _inverse_masses(self, A: Float[Array, "n n"]) -> Float[Array, " n"]:
        r"""Of the increments, and of the constraints, the diagonal of $G M^{-1} G^T$."""
        inverse = 1.0 / _mass_scale(self.mechanics)
        G = A[inverse.size :, : inverse.size]
        return jnp.concatenate([inverse, jnp.sum(G * inverse[None] * G, axis=1)])


def _mass_scale(mechanics: SystemMechanics) -> Float[Array, " k"]:
    """A scale of the mass of every increment; for a thin rod or without mass it is not zero."""
    inertias = mechanics.inertias
    sums = jnp.sum(inertias, axis=1) if inertias.ndim == 2 else jnp.trace(inertias, 0, 1, 2)
    masses = jnp.where(mechanics.masses > 0, mechanics.masses, jnp.max(mechanics.masses))
    sums = jnp.where(sums > 0, sums, masses * mechanics.lengths**2)
    both = jnp.stack([masses, sums], axis=1)
    return jnp.repeat(both, 3, axis=1).ravel()
