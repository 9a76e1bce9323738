"""Dense output of the BDF methods."""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp


class DifferenceInterpolation(diffrax.AbstractLocalInterpolation):
    r"""The polynomial through the last k + 1 values, from their modified divided differences.

    **Attributes:** `phi`, differences at `t1`, zero beyond the order k, every leaf with a leading
    axis; `psi`, lengths of time from the values before to `t1`.
    **Source:** Brenan-Campbell-Petzold 5.2.4.
    """

    t0: Any
    t1: Any
    phi: Any
    psi: Any

    def evaluate(self, t0: Any, t1: Any | None = None, left: bool = True) -> Any:
        """Value at `t0`, or the increment from `t0` to `t1`."""
        if t1 is not None:
            first, second = self.evaluate(t0, left=left), self.evaluate(t1, left=left)
            return jax.tree.map(lambda a, b: b - a, first, second)
        back = (t0 - self.t1).astype(self.psi.dtype)
        weights = [jnp.ones_like(back)]
        offset = back
        for psi in self.psi[: len(jax.tree.leaves(self.phi)[0]) - 1]:
            weights.append(weights[-1] * offset / psi)
            offset = back + psi
        w = jnp.stack(weights)
        return jax.tree.map(lambda phi: jnp.tensordot(w, phi, axes=1), self.phi)
