"""The Cartesian rotation vector."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from . import guarded, so3
from .base import Rates, check_rates
from .minimal import AbstractMinimalRotation


class RotationVector(AbstractMinimalRotation):
    r"""The rotation vector $\psi = n\phi$, axis times angle in rad; $R = \exp(\tilde\psi)$.

    It is singular at the angles 2 pi, 4 pi, ..., where the rates grow without bound, and regular at
    zero. `from_quaternion` returns $|\psi| \le \pi$.

    **Source:** Geradin-Rixen, Section 6.1.
    """

    def to_matrix(self, a: Vector3) -> Matrix3:
        r"""Return $R = \exp(\tilde\psi)$. **Source:** Geradin-Rixen (165)."""
        return so3.exp(a)

    def to_quaternion(self, a: Vector3) -> Float[Array, "4"]:
        r"""Return the unit quaternion $(\cos\frac\phi2, n\sin\frac\phi2)$."""
        return so3.exp_quaternion(a)

    def from_quaternion(self, p: Float[Array, "4"]) -> Vector3:
        r"""Return the rotation vector with $|\psi| \le \pi$."""
        return so3.log_quaternion(p)

    def rate(self, a: Vector3, omega: Vector3, rates: Rates = "body") -> Vector3:
        r"""Return $\dot\psi = T(\psi)\,\Omega$, see `so3.dexp_inv`."""
        return so3.dexp_inv(a, omega, rates)

    def null_space(self, a: Vector3, rates: Rates = "body") -> Matrix3:
        r"""Return $T = (1 - e\phi^2)\,1 + \frac12\tilde\psi + e\,\psi\psi^T$, the inverse of (171).

        Here $e = (1 - \frac\phi2 \cot\frac\phi2) / \phi^2$.
        """
        check_rates(rates)
        x = so3.dot(a, a)
        e = guarded.dexp_inverse_ratio(x)
        return so3.axial_matrix(1.0 - e * x, 0.5 if rates == "body" else -0.5, e, a)

    def tangent(self, a: Vector3, rates: Rates = "body") -> Matrix3:
        r"""Return $H(\psi)$, regular for every angle below 2 pi.

        **Source:** Geradin-Rixen (171).
        """
        check_rates(rates)
        x = so3.dot(a, a)
        versine = guarded.versine_ratio(x)
        s = -versine if rates == "body" else versine
        return so3.axial_matrix(guarded.sine_ratio(x), s, guarded.sine_excess_ratio(x), a)

    def angular_velocity(self, a: Vector3, a_dot: Vector3, rates: Rates = "body") -> Vector3:
        r"""Return $\Omega = H(\psi)\,\dot\psi$, see `so3.dexp`."""
        return so3.dexp(a, a_dot, rates)

    def singularity(self, a: Vector3) -> Scalar:
        r"""Return the distance of the angle to the nearest positive multiple of 2 pi, rad."""
        angle = guarded.safe_sqrt(so3.dot(a, a))
        revolutions = jnp.maximum(jnp.round(angle / (2.0 * jnp.pi)), 1.0)
        return jnp.abs(angle - 2.0 * jnp.pi * revolutions)

    def singularity_function(self, a: Vector3) -> Scalar:
        r"""Return $\sin\frac\phi2 / \frac\phi2$."""
        return guarded.sine_ratio(0.25 * so3.dot(a, a))

    def half_rotation(self, a: Vector3) -> Matrix3:
        r"""Return $F = \exp(\frac12\tilde\psi)$."""
        return so3.exp(0.5 * a)
