"""Dense output of the BDF methods."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ....annotations import Time, Y
from ...dense import AbstractDenseOutput


class DifferenceInterpolation(AbstractDenseOutput):
    r"""The polynomial through the last k + 1 values, from their modified divided differences.

    **Attributes:** `phi`, differences at `t1`, zero beyond the order k, every leaf with a leading
    axis; `psi`, lengths of time from the values before to `t1`.
    **Source:** Brenan-Campbell-Petzold 5.2.4.
    """

    t0: Time
    t1: Time
    phi: PyTree[Float[Array, "7 ..."]]
    psi: Float[Array, "6"]

    def evaluate_at(self, t: Time) -> Y:
        """Unknowns at `t`."""
        back = jnp.asarray(t - self.t1, self.psi.dtype)
        weights = [jnp.ones_like(back)]
        offset = back
        for psi in self.psi[: len(jax.tree.leaves(self.phi)[0]) - 1]:
            weights.append(weights[-1] * offset / psi)
            offset = back + psi
        w = jnp.stack(weights)
        return jax.tree.map(lambda phi: jnp.tensordot(w, phi, axes=1), self.phi)
