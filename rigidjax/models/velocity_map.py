"""Conversion of generalised velocities, forces and mass matrices to those of other programs."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class VelocityMap(eqx.Module):
    r"""Conversion from generalised velocities $\nu$ of the trees to those of another program.

    $v = B \nu$ and $\dot v = B \dot\nu + b$. The mass matrix $M$ and the bias forces $h$ of
    `model.mass_matrix` and `model.bias_forces` become $B^{-T} M B^{-1}$ and
    $B^{-T} (h - M B^{-1} b)$, generalised forces $B^{-T} \tau$.

    **Attributes:** `matrix`, $B$, (f, f); `bias`, $b$, (f,).
    """

    matrix: Float[Array, "f f"]
    bias: Float[Array, " f"]

    def velocities(self, nu: Float[Array, " f"]) -> Float[Array, " f"]:
        """Return the velocities of the other program."""
        return self.matrix @ nu

    def accelerations(self, nu_dot: Float[Array, " f"]) -> Float[Array, " f"]:
        """Return the accelerations of the other program from derivatives of `nu`."""
        return self.matrix @ nu_dot + self.bias

    def forces(self, tau: Float[Array, " f"]) -> Float[Array, " f"]:
        """Return the generalised forces of the other program."""
        return jnp.linalg.solve(self.matrix.T, tau)

    def forces_from(self, tau: Float[Array, " f"]) -> Float[Array, " f"]:
        """Return generalised forces on `nu` from those of the other program."""
        return self.matrix.T @ tau

    def mass_matrix(self, M: Float[Array, "f f"]) -> Float[Array, "f f"]:
        """Return the mass matrix of the other program."""
        half = jnp.linalg.solve(self.matrix.T, M)
        return jnp.linalg.solve(self.matrix.T, half.T).T

    def bias_forces(self, h: Float[Array, " f"], M: Float[Array, "f f"]) -> Float[Array, " f"]:
        """Return the bias forces of the other program; `M`, the mass matrix on `nu`."""
        return self.forces(h - M @ jnp.linalg.solve(self.matrix, self.bias))
