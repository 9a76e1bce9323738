"""Dense output of schemes whose invariants hold at their steps."""

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Time, Vector, Y
from ..dense import AbstractDenseOutput

# Part of a step by which a time may miss its end, from round-off of the sum of all steps.
_NEAR = 1e-6


class StepInterpolation(AbstractDenseOutput):
    """A cubic polynomial between the ends of a step, and the ends themselves at their times.

    `k`: increments, step length times rate, at both ends. A time within a millionth of a step of an
    end is taken for it: so multiples of the step length give states with exact invariants.
    """

    t0: Time
    t1: Time
    y0: Vector
    y1: Vector
    k: Float[Array, "2 n"]

    def at(self, t: Time) -> Y:
        """Unknowns at `t`."""
        cubic = diffrax.ThirdOrderHermitePolynomialInterpolation.from_k(
            t0=self.t0, t1=self.t1, y0=self.y0, y1=self.y1, k=self.k
        )
        y = cubic.evaluate(t)
        near = _NEAR * jnp.abs(self.t1 - self.t0)
        at_start, at_end = jnp.abs(t - self.t0) <= near, jnp.abs(t - self.t1) <= near
        # The end that is near; its distance in time counts for derivatives alone.
        slope = jnp.where(at_end, self.k[1], self.k[0]) / (self.t1 - self.t0)
        gap = t - jnp.where(at_end, self.t1, self.t0)
        end = jnp.where(at_end, self.y1, self.y0) + slope * (gap - jax.lax.stop_gradient(gap))
        return jnp.where(at_start | at_end, end, y)
