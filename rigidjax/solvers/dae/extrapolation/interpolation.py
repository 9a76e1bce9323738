"""Dense output of extrapolation methods."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ....annotations import Time, Y
from ...dense import AbstractDenseOutput


class ChordInterpolation(AbstractDenseOutput):
    r"""Dense output as the chord between the ends of a step plus a polynomial that is zero there.

    $y_0 + \theta \Delta + \theta (1 - \theta) \sum_k q_k x^k$ with $x = 2 \theta - 1$, where
    $\theta$ is the fraction of the step.

    **Attributes:** `y0`, start; `change`, $\Delta$, from the start to the end; `q`, coefficients
    $q_k$ along the leading axis.
    """

    t0: Time
    t1: Time
    y0: Y
    change: Y
    q: PyTree[Float[Array, "q ..."]]

    def evaluate_at(self, t: Time) -> Y:
        """Return the unknowns at `t`, s."""
        s = self.fraction(t)

        def value(y0, change, q):
            theta = s.astype(q.dtype)
            inside = jnp.zeros_like(y0)
            for row in q[::-1]:
                inside = inside * (2.0 * theta - 1.0) + row
            return y0 + theta * (change + (1.0 - theta) * inside)

        return jax.tree.map(value, self.y0, self.change, self.q)
