"""QUAT.EM by the discrete null-space method, seven equations without the multiplier."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...rotations.so3 import exp_quaternion, left_matrix, multiply, normalize, rotate
from .equations import AbstractMotionStep
from .motion import BodyMotion
from .saddle_point import SaddlePointStep


class NullSpaceStep(AbstractMotionStep):
    r"""Unknowns $(\theta, p_{n+1})$ of a body with a fixed point, $q_{n+1} = \exp(\theta/2)\,q_n$.

    The first equation of the saddle point as it stands, the second times $G(q_{n+1/2})$, which
    annihilates the constraint force; the constraint holds by the exponential map.

    **Source:** Betsch-Siebert (52)-(54), Appendix D.
    """

    saddle: SaddlePointStep

    def guess(self) -> Float[Array, "7"]:
        """What goes on with the angular velocity of the start."""
        theta = self.saddle.h * rotate(self.saddle.q0, self.saddle.omega0)
        return jnp.concatenate([theta, self.saddle.guess()[4:8]])

    def measures(self) -> Float[Array, "7"]:
        """Of rotation vector and momentum in a step by a radian."""
        return self.saddle.measures()[1:8]

    def phase(self, Z: Float[Array, "7"]) -> tuple[Float[Array, "4"], Float[Array, "4"]]:
        """$q_{n+1}$ and $p_{n+1}$."""
        # Without that, a length that round-off changes would change the angular velocity in every
        # step by twice as much.
        return normalize(multiply(exp_quaternion(Z[:3]), self.saddle.q0)), Z[3:]

    def residual(self, Z: Float[Array, "7"]) -> Float[Array, "7"]:
        q1, p1 = self.phase(Z)
        r = self.saddle.residual(jnp.concatenate([q1, p1, jnp.zeros(1, Z.dtype)]))
        G = left_matrix(0.5 * (self.saddle.q0 + q1))[:, 1:].T
        return jnp.concatenate([r[:4], G @ r[4:8]])

    def end(self, Z: Float[Array, "7"]) -> BodyMotion:
        """The motion at the end."""
        return self.saddle.end(jnp.concatenate(self.phase(Z)))
