"""Dense output of schemes that conserve their invariants at the ends of steps."""

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Time, Vector, Y
from ..dense import AbstractDenseOutput

# Fraction of a step below which the distance of a time from an end of the step is round-off.
_NEAR = 1e-6


class StepInterpolation(AbstractDenseOutput):
    """Cubic Hermite polynomial between the ends of a step, with the exact states at the ends.

    A time within a millionth of a step of an end gives the state at this end, so that states at
    multiples of the step length have exact invariants.

    **Attributes:** `k`, rates at both ends times the length of the step.
    """

    t0: Time
    t1: Time
    y0: Vector
    y1: Vector
    k: Float[Array, "2 n"]

    def evaluate_at(self, t: Time) -> Y:
        """Return the unknowns at time `t`."""
        cubic = diffrax.ThirdOrderHermitePolynomialInterpolation.from_k(
            t0=self.t0, t1=self.t1, y0=self.y0, y1=self.y1, k=self.k
        )
        y = cubic.evaluate(t)
        near = _NEAR * jnp.abs(self.t1 - self.t0)
        at_start, at_end = jnp.abs(t - self.t0) <= near, jnp.abs(t - self.t1) <= near
        # The distance in time from the near end matters for derivatives only.
        slope = jnp.where(at_end, self.k[1], self.k[0]) / (self.t1 - self.t0)
        gap = t - jnp.where(at_end, self.t1, self.t0)
        end = jnp.where(at_end, self.y1, self.y0) + slope * (gap - jax.lax.stop_gradient(gap))
        return jnp.where(at_start | at_end, end, y)
