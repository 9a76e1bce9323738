"""QUAT.EM by the discrete null-space method, seven equations without the multiplier."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...rotations.so3 import exp_quaternion, left_matrix, multiply, normalize, rotate
from .equations import AbstractMotionStep
from .motion import BodyMotion
from .saddle_point import SaddlePointStep


class NullSpaceStep(AbstractMotionStep):
    r"""Equations for $(\theta, p_{n+1})$ of a body with a fixed point.

    With $q_{n+1} = \exp(\theta/2)\,q_n$ the constraint holds. The first equation is that of the
    saddle-point form; the second one is multiplied by $G(q_{n+1/2})$, which eliminates the
    constraint force.

    **Attributes:** `saddle`, the equations in saddle-point form.

    **Source:** Betsch-Siebert (52)-(54), Appendix D.
    """

    saddle: SaddlePointStep

    def guess(self) -> Float[Array, "7"]:
        """Return the end of a step with constant angular velocity."""
        theta = self.saddle.h * rotate(self.saddle.q0, self.saddle.omega0)
        return jnp.concatenate([theta, self.saddle.guess()[4:8]])

    def unknown_scales(self) -> Float[Array, "7"]:
        """Return the rotation vector and momentum of a rotation by one radian in the step."""
        return self.saddle.unknown_scales()[1:8]

    def phase(self, Z: Float[Array, "7"]) -> tuple[Float[Array, "4"], Float[Array, "4"]]:
        """Return $q_{n+1}$ and $p_{n+1}$."""
        # Without normalisation, round-off of the length would change the angular velocity by twice
        # as much in every step.
        return normalize(multiply(exp_quaternion(Z[:3]), self.saddle.q0)), Z[3:]

    def residual(self, Z: Float[Array, "7"]) -> Float[Array, "7"]:
        q1, p1 = self.phase(Z)
        r = self.saddle.residual(jnp.concatenate([q1, p1, jnp.zeros(1, Z.dtype)]))
        G = left_matrix(0.5 * (self.saddle.q0 + q1))[:, 1:].T
        return jnp.concatenate([r[:4], G @ r[4:8]])

    def end(self, Z: Float[Array, "7"]) -> BodyMotion:
        return self.saddle.end(jnp.concatenate(self.phase(Z)))
