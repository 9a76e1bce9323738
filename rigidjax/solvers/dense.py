"""The base class of dense outputs."""

import abc

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Time, Y


class AbstractDenseOutput(diffrax.AbstractLocalInterpolation):
    """Dense output of a step from `t0` to `t1`, s: the unknowns at any time in between."""

    t0: eqx.AbstractVar[Time]
    t1: eqx.AbstractVar[Time]

    @abc.abstractmethod
    def evaluate_at(self, t: Time) -> Y:
        """Return the unknowns at `t`, s."""

    def evaluate(self, t0: Time, t1: Time | None = None, left: bool = True) -> Y:
        """Return the unknowns at `t0`, or their increment from `t0` to `t1`."""
        if t1 is None:
            return self.evaluate_at(t0)
        return jax.tree.map(lambda a, b: b - a, self.evaluate_at(t0), self.evaluate_at(t1))

    def fraction(self, t: Time) -> Float[Array, ""]:
        """Return the fraction of the step until `t`, from 0 to 1; 1 for a step without length."""
        span = self.t1 - self.t0
        return jnp.where(span == 0, 1.0, (t - self.t0) / jnp.where(span == 0, 1.0, span))
