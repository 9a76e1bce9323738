"""The conformal rotation vector."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from . import guarded, so3
from .base import Rates, check_rates
from .minimal import AbstractMinimalRotation


class ConformalRotationVector(AbstractMinimalRotation):
    r"""The conformal rotation vector $c = 4n\tan\frac\phi4$, dimensionless; algebraic.

    It is four times the modified Rodrigues parameters, and close to the rotation vector at small
    angles. It is singular at angle 2 pi, where the coordinates are infinite; $|c| = 4$ at angle pi.
    `from_quaternion` returns $|c| \le 4$. The formulas use $c_0 = \frac18(16 - |c|^2)$ (254).

    **Source:** Geradin-Rixen, Section 8.
    """

    def to_matrix(self, a: Vector3) -> Matrix3:
        r"""Return $R = \frac{1}{(4-c_0)^2}[(c_0^2+8c_0-16)\,1 + 2cc^T + 2c_0\tilde c]$.

        **Source:** Geradin-Rixen (256).
        """
        x = so3.dot(a, a)
        c0 = 2.0 - 0.125 * x
        f = 1.0 / (2.0 + 0.125 * x)
        g = 2.0 * f * f
        return so3.axial_matrix(1.0 - g * x, g * c0, g, a)

    def to_quaternion(self, a: Vector3) -> Float[Array, "4"]:
        r"""Return the unit quaternion $(c_0, c) / (4 - c_0)$. **Source:** Geradin-Rixen (252)."""
        c1, c2, c3 = jnp.unstack(a)
        eighth = 0.125 * (c1 * c1 + c2 * c2 + c3 * c3)
        f = 1.0 / (2.0 + eighth)
        return jnp.stack([(2.0 - eighth) * f, c1 * f, c2 * f, c3 * f])

    def from_quaternion(self, p: Float[Array, "4"]) -> Vector3:
        r"""Return $c = 4\hat p / (1 + p_0)$ for the sign of $p$ with $p_0 \ge 0$: $|c| \le 4$.

        **Source:** Geradin-Rixen (252).
        """
        p0, p1, p2, p3 = jnp.unstack(so3.principal(p))
        f = 4.0 / (1.0 + p0)
        return jnp.stack([f * p1, f * p2, f * p3])

    def rate(self, a: Vector3, omega: Vector3, rates: Rates = "body") -> Vector3:
        r"""Return $\frac{c_0}{2}\Omega + \frac12 c\times\Omega + \frac18(c\cdot\Omega)\,c$."""
        check_rates(rates)
        k = 1.0 - 0.0625 * so3.dot(a, a)
        return so3.axial_product(k, 0.5 if rates == "body" else -0.5, 0.125, a, omega)

    def null_space(self, a: Vector3, rates: Rates = "body") -> Matrix3:
        r"""Return $T = \frac12[c_0 1 + \tilde c + \frac14 cc^T]$, the inverse of (266)."""
        check_rates(rates)
        k = 1.0 - 0.0625 * so3.dot(a, a)
        return so3.axial_matrix(k, 0.5 if rates == "body" else -0.5, 0.125, a)

    def tangent(self, a: Vector3, rates: Rates = "body") -> Matrix3:
        r"""Return $H = \frac{2}{(4-c_0)^2}[c_0 1 + \frac14cc^T - \tilde c]$.

        **Source:** Geradin-Rixen (266).
        """
        check_rates(rates)
        k, s, g = self._tangent_coefficients(a)
        return so3.axial_matrix(k, -s if rates == "body" else s, g, a)

    def angular_velocity(self, a: Vector3, a_dot: Vector3, rates: Rates = "body") -> Vector3:
        r"""Return $\Omega = H(c)\,\dot c$ in components. **Source:** Geradin-Rixen (265)."""
        check_rates(rates)
        k, s, g = self._tangent_coefficients(a)
        return so3.axial_product(k, -s if rates == "body" else s, g, a, a_dot)

    def _tangent_coefficients(self, a: Vector3) -> tuple[Array, Array, Array]:
        """Return the coefficients of 1, -c~ and c c^T in the tangent operator (266)."""
        eighth = 0.125 * so3.dot(a, a)
        f = 1.0 / (2.0 + eighth)
        s = 2.0 * f * f
        return s * (2.0 - eighth), s, 0.25 * s

    def singularity(self, a: Vector3) -> Scalar:
        r"""Return 2 pi minus the rotation angle, rad."""
        norm = guarded.safe_sqrt(so3.dot(a, a))
        return 4.0 * jnp.arctan2(jnp.full_like(norm, 4.0), norm)

    def singularity_function(self, a: Vector3) -> Scalar:
        r"""Return $\cos\frac\phi4 = 1/\sqrt{1+|c|^2/16}$; zero only at infinity."""
        return 1.0 / jnp.sqrt(1.0 + 0.0625 * so3.dot(a, a))

    def half_rotation(self, a: Vector3) -> Matrix3:
        r"""Return $F = \frac{1}{4-c_0}[c_0 1 + \frac14cc^T + \tilde c]$ with $R(c) = F F$.

        It is the rotation of the Rodrigues parameters $c/4$.

        **Source:** Geradin-Rixen (259); in (258) a factor 1/4 is missing.
        """
        eighth = 0.125 * so3.dot(a, a)
        f = 1.0 / (2.0 + eighth)
        return so3.axial_matrix(f * (2.0 - eighth), f, 0.25 * f, a)
