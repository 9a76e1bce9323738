"""The base class of dense outputs, and those of the implicit and conserving methods."""

import abc

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ...annotations import Scalar, Time, Vector, Y


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

    def fraction(self, t: Time) -> Scalar:
        """Return the fraction of the step until `t`, from 0 to 1; 1 for a step without length."""
        span = self.t1 - self.t0
        return jnp.where(span == 0, 1.0, (t - self.t0) / jnp.where(span == 0, 1.0, span))


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
