"""Dense output of the Radau methods."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ....annotations import Time, Y
from ...dense import AbstractDenseOutput
from .tableau import lagrange_basis, radau_tableau


class CollocationInterpolation(AbstractDenseOutput):
    r"""The collocation polynomial of a step, $y_0 + \sum_i \ell_i(\theta) z_i$, of degree s.

    The local error is of order s + 1 within the step, and of the order of the method at its end.

    **Attributes:** `y0`, start; `z`, increments of the s stages along the leading axis.
    **Source:** Hairer-Wanner II, IV.8, "continuous output".
    """

    t0: Time
    t1: Time
    y0: Y
    z: PyTree[Float[Array, "s ..."]]

    def evaluate_at(self, t: Time) -> Y:
        """Return the unknowns at `t`, s."""
        theta = self.fraction(t)
        stages = len(jax.tree.leaves(self.z)[0])
        basis = jnp.stack(lagrange_basis(radau_tableau(stages).c, theta))
        return jax.tree.map(
            lambda y, z: y + jnp.tensordot(basis.astype(z.dtype), z, axes=1), self.y0, self.z
        )
