"""Dense output of extrapolation methods."""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp


class HermiteInterpolation(diffrax.AbstractLocalInterpolation):
    r"""The polynomial with given derivatives at both ends of a step.

    **Attributes:** `left`, `right`: values, $h \dot y$, $h^2 \ddot y$, ... at the ends, every leaf
    with a leading axis, of three at the most.
    """

    t0: Any
    t1: Any
    left: Any
    right: Any

    def evaluate(self, t0: Any, t1: Any | None = None, left: bool = True) -> Any:
        """Value at `t0`, or the increment from `t0` to `t1`."""
        if t1 is not None:
            first, second = self.evaluate(t0, left=left), self.evaluate(t1, left=left)
            return jax.tree.map(lambda a, b: b - a, first, second)
        span = self.t1 - self.t0
        s = jnp.where(span == 0, 1.0, (t0 - self.t0) / jnp.where(span == 0, 1.0, span))
        return jax.tree.map(lambda a, b: _newton(a, b, s.astype(a.dtype)), self.left, self.right)


def _newton(left, right, s):
    """Newton's form with repeated nodes 0 and 1, by divided differences."""
    nodes = [0] * len(left) + [1] * len(right)
    ends = {0: left, 1: right}
    scale = [1.0, 1.0, 2.0]
    column = [ends[x][0] for x in nodes]
    total, product = column[0], 1.0
    for k in range(1, len(nodes)):
        column = [
            ends[nodes[i]][k] / scale[k] if nodes[i] == nodes[i + k] else column[i + 1] - column[i]
            for i in range(len(nodes) - k)
        ]
        product = product * (s - nodes[k - 1])
        total = total + product * column[0]
    return total
