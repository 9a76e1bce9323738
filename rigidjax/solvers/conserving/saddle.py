r"""Equations of a step of all bodies with multipliers, in saddle-point form.

The unknowns $Z$ are the increments of the bodies and the multipliers. The Jacobian of $F(Z) = 0$,
$\begin{pmatrix} K & \bar G^T \\ G & 0\end{pmatrix}$, is singular where constraints are redundant.
A small negative shift of the lower right block, relative to $G M^{-1} G^T$, makes it regular. The
shift does not enter the residual, so that it affects the number of iterations but not the solution,
and multipliers that are not unique stay near their initial iterates. A system of free bodies has no
multipliers.

Nothing depends on units: increments are relative to the size of the system and one radian, and the
linear equations are scaled by the masses of the bodies and by each constraint.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...mechanics.stacked.system import PreparedSystem
from ...small_arrays import sequential_vmap_on_cpu
from .equations import AbstractStepEquations

# Shift relative to the diagonal entry of G M^-1 G^T.
_SHIFT = 1e-11

_solve = sequential_vmap_on_cpu(jnp.linalg.solve)


class AbstractMultiplierEquations(AbstractStepEquations):
    """Equations for the increments of all bodies, (L, 6), followed by the multipliers, (m,).

    **Attributes:** `prepared`; `scales`, of the increments, whose round-off is about `eps` times
    their scale.
    """

    prepared: eqx.AbstractVar[PreparedSystem]
    scales: eqx.AbstractVar[Float[Array, "L 6"]]

    @abc.abstractmethod
    def residual(self, Z: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return the flattened residuals of the momentum balances, followed by the constraints."""

    def unknown_scales(self) -> Float[Array, " n"]:
        """Return the scales of the increments; those of multipliers are infinite."""
        count = self.prepared.num_constraints
        return jnp.concatenate([self.scales.ravel(), jnp.full(count, jnp.inf, self.scales.dtype)])

    def tolerance(self, largest: Float[Array, ""]) -> Float[Array, ""]:
        """Return the round-off of the pose, to which joints are closed."""
        if self.prepared.is_free:
            return super().tolerance(largest)
        return 50 * jnp.finfo(largest.dtype).eps * jnp.ones_like(largest)

    def split_unknowns(
        self, Z: Float[Array, " n"]
    ) -> tuple[Float[Array, "L 6"], Float[Array, " m"]]:
        """Split the unknowns into increments and multipliers."""
        size = 6 * self.prepared.num_bodies
        return Z[:size].reshape(-1, 6), Z[size:]

    def linearize(self, Z: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Return the residual and its derivative with the shift that makes it regular."""
        r, A = super().linearize(Z)
        size = 6 * self.prepared.num_bodies
        shift = -_SHIFT * self._inverse_masses(A)
        return r, A + jnp.diag(jnp.where(jnp.arange(Z.size) < size, 0.0, shift))

    def newton_increment(self, Z: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return the Newton increment from equations scaled by masses and constraints."""
        r, A = self.linearize(Z)
        inverse = self._inverse_masses(A)
        unit = jnp.sqrt(jnp.where(inverse > 0, inverse, 1.0))
        unit = jnp.where(jnp.arange(Z.size) < 6 * self.prepared.num_bodies, unit, 1.0 / unit)
        return -unit * _solve(unit[:, None] * A * unit[None], (unit * r)[:, None])[:, 0]

    def _inverse_masses(self, A: Float[Array, "n n"]) -> Float[Array, " n"]:
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
