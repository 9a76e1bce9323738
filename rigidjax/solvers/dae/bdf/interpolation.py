"""Dense output of the BDF methods."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ....annotations import Time, Y
from ...dense import AbstractDenseOutput


class DifferenceInterpolation(AbstractDenseOutput):
    r"""The polynomial through the last k + 1 values, in modified divided differences.

    **Attributes:** `phi`, differences at `t1` along the leading axis, zero beyond the order k;
    `psi`, lengths of time from the earlier values to `t1`, s.
    **Source:** Brenan-Campbell-Petzold 5.2.4.
    """

    t0: Time
    t1: Time
    phi: PyTree[Float[Array, "7 ..."]]
    psi: Float[Array, "6"]

    def evaluate_at(self, t: Time) -> Y:
        """Return the unknowns at `t`, s."""
        time = jnp.asarray(t - self.t1, self.psi.dtype)
        weights = [jnp.ones_like(time)]
        offset = time
        for psi in self.psi[: len(jax.tree.leaves(self.phi)[0]) - 1]:
            weights.append(weights[-1] * offset / psi)
            offset = time + psi
        w = jnp.stack(weights)
        return jax.tree.map(lambda phi: jnp.tensordot(w, phi, axes=1), self.phi)
