"""QUAT.EM in saddle-point form, nine equations with the multiplier."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...bodies.euler_equations import solve_inertia
from ...bodies.fixed_point import FixedPointBody
from ...rotations.euler_map import euler_map
from ...rotations.so3 import (
    conjugate,
    exp_quaternion,
    left_matrix,
    multiply,
    normalize,
    pure,
    rotate,
)
from .equations import AbstractMotionStep
from .increments import conformal
from .invariants import discrete_gradient, invariants, quaternion_momentum
from .motion import BodyMotion


class SaddlePointStep(AbstractMotionStep):
    r"""Equations for $(q_{n+1}, p_{n+1}, \lambda)$ of a body with a fixed point.

    **Attributes:** `body`; `t0`, start of the step, and `h`, its length, s; `q0`, unit quaternion
    at its start; `omega0`, angular velocity at its start, rad/s, body components.
    **Source:** Betsch-Siebert (51).
    """

    body: FixedPointBody
    t0: Float[Array, ""]
    h: Float[Array, ""]
    q0: Float[Array, "4"]
    omega0: Float[Array, "3"]

    @property
    def p0(self) -> Float[Array, "4"]:
        """Momentum at the start."""
        return quaternion_momentum(self.body.inertia, self.q0, self.omega0)

    def guess(self) -> Float[Array, "9"]:
        """Return the end of a step with constant angular velocity and a zero multiplier."""
        q1 = multiply(self.q0, conformal(self.h * self.omega0).quaternion)
        p1 = quaternion_momentum(self.body.inertia, q1, self.omega0)
        return jnp.concatenate([q1, p1, jnp.zeros(1, q1.dtype)])

    def unknown_scales(self) -> Float[Array, "9"]:
        """Return the scales of quaternion, momentum and multiplier for one radian per step."""
        inertia = self._trace_of_inertia
        h = jnp.abs(self.h)
        parts = jnp.ones_like(h), inertia / h, inertia / h**2
        return jnp.repeat(jnp.stack(parts), np.array([4, 4, 1]), total_repeat_length=9)

    @property
    def _trace_of_inertia(self) -> Float[Array, ""]:
        inertia = self.body.inertia
        return jnp.sum(inertia) if inertia.ndim == 1 else jnp.trace(inertia)

    def residual(self, Z: Float[Array, "9"]) -> Float[Array, "9"]:
        body, h, q0, p0 = self.body, self.h, self.q0, self.p0
        q1, p1, lam = Z[:4], Z[4:8], Z[8]
        q, p = 0.5 * (q0 + q1), 0.5 * (p0 + p1)
        total = invariants(q0, p0) + invariants(q1, p1)
        radial = total[0] / (0.5 * self._trace_of_inertia)
        across = solve_inertia(body.inertia, total[1:])
        rate = jnp.concatenate([radial[None], across])
        # [p  -G(p)^T] x = p o conj(x)
        move = q1 - q0 - 0.125 * h * multiply(q, rate)
        push = p1 - p0 + 0.125 * h * multiply(p, conjugate(rate)) + h * lam * q
        if body.potential is not None:
            potential = body.potential
            push = push + h * discrete_gradient(lambda q: potential(euler_map(q)), q0, q1)
        if body.moment is not None:
            square = jnp.sum(q * q)
            omega = 0.25 * solve_inertia(body.inertia, total[1:])
            moment = body.extra_moment(self.t0 + 0.5 * h, euler_map(q) / square, omega)
            push = push - 2.0 * h * multiply(q, pure(moment)) / square
        return jnp.concatenate([move, push, 0.5 * (jnp.sum(q1 * q1) - 1.0)[None]])

    def end(self, Z: Float[Array, "9"]) -> BodyMotion:
        q1, p1 = Z[:4], Z[4:8]
        omega = 0.5 * solve_inertia(self.body.inertia, invariants(q1, p1)[1:])
        return BodyMotion(q1, omega)


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
