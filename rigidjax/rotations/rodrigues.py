"""Rodrigues parameters."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from . import guarded, so3
from .base import Rates, check_rates
from .minimal import AbstractMinimalRotation


class RodriguesParameters(AbstractMinimalRotation):
    r"""Rodrigues parameters $b = n\tan\frac\phi2$, dimensionless; algebraic, no trigonometry.

    They are singular at angle pi, where they are infinite.

    **Source:** Geradin-Rixen, Section 6.2.
    """

    def to_matrix(self, a: Vector3) -> Matrix3:
        r"""Return $R = 1 + \frac{2}{1+|b|^2}(\tilde b + \tilde b\tilde b)$.

        **Source:** Geradin-Rixen (183).
        """
        x = so3.dot(a, a)
        f = 2.0 / (1.0 + x)
        return so3.axial_matrix(0.5 * f * (1.0 - x), f, f, a)

    def to_quaternion(self, a: Vector3) -> Float[Array, "4"]:
        r"""Return the unit quaternion $(1, b) / \sqrt{1+|b|^2}$.

        **Source:** Geradin-Rixen (197).
        """
        b1, b2, b3 = jnp.unstack(a)
        p0 = 1.0 / jnp.sqrt(1.0 + b1 * b1 + b2 * b2 + b3 * b3)
        return jnp.stack([p0, p0 * b1, p0 * b2, p0 * b3])

    def from_quaternion(self, p: Float[Array, "4"]) -> Vector3:
        r"""Return $b = \hat p / p_0$, infinite at angle pi. **Source:** Geradin-Rixen (197)."""
        p0, p1, p2, p3 = jnp.unstack(p)
        return jnp.stack([p1 / p0, p2 / p0, p3 / p0])

    def rate(self, a: Vector3, omega: Vector3, rates: Rates = "body") -> Vector3:
        r"""Return $\dot b = \frac12(\Omega + b\times\Omega + (b\cdot\Omega)\,b)$: 26 operations."""
        check_rates(rates)
        b1, b2, b3 = jnp.unstack(a)
        w1, w2, w3 = jnp.unstack(omega)
        h1, h2, h3 = 0.5 * w1, 0.5 * w2, 0.5 * w3
        d = b1 * h1 + b2 * h2 + b3 * h3
        if rates == "body":
            return jnp.stack(
                [
                    h1 + d * b1 + b2 * h3 - b3 * h2,
                    h2 + d * b2 + b3 * h1 - b1 * h3,
                    h3 + d * b3 + b1 * h2 - b2 * h1,
                ]
            )
        return jnp.stack(
            [
                h1 + d * b1 + b3 * h2 - b2 * h3,
                h2 + d * b2 + b1 * h3 - b3 * h1,
                h3 + d * b3 + b2 * h1 - b1 * h2,
            ]
        )

    def null_space(self, a: Vector3, rates: Rates = "body") -> Matrix3:
        r"""Return $T = \frac12(1 + \tilde b + b b^T)$, the inverse of (192)."""
        check_rates(rates)
        return so3.axial_matrix(0.5, 0.5 if rates == "body" else -0.5, 0.5, a)

    def tangent(self, a: Vector3, rates: Rates = "body") -> Matrix3:
        r"""Return $H = \frac{2}{1+|b|^2}(1 - \tilde b)$. **Source:** Geradin-Rixen (192)."""
        check_rates(rates)
        f = 2.0 / (1.0 + so3.dot(a, a))
        return so3.axial_matrix(f, -f if rates == "body" else f, 0.0, a)

    def angular_velocity(self, a: Vector3, a_dot: Vector3, rates: Rates = "body") -> Vector3:
        r"""Return $\Omega = \frac{2}{1+|b|^2}(\dot b - b\times\dot b)$.

        **Source:** Geradin-Rixen (191).
        """
        check_rates(rates)
        b1, b2, b3 = jnp.unstack(a)
        f = 2.0 / (1.0 + b1 * b1 + b2 * b2 + b3 * b3)
        v1, v2, v3 = jnp.unstack(a_dot)
        if rates == "body":
            return jnp.stack(
                [
                    f * (v1 + b3 * v2 - b2 * v3),
                    f * (v2 + b1 * v3 - b3 * v1),
                    f * (v3 + b2 * v1 - b1 * v2),
                ]
            )
        return jnp.stack(
            [
                f * (v1 + b2 * v3 - b3 * v2),
                f * (v2 + b3 * v1 - b1 * v3),
                f * (v3 + b1 * v2 - b2 * v1),
            ]
        )

    def singularity(self, a: Vector3) -> Scalar:
        r"""Return pi minus the rotation angle, rad."""
        norm = guarded.safe_sqrt(so3.dot(a, a))
        return 2.0 * jnp.arctan2(jnp.ones_like(norm), norm)

    def singularity_function(self, a: Vector3) -> Scalar:
        r"""Return $\cos\frac\phi2 = 1/\sqrt{1+|b|^2}$; zero only at infinity."""
        return 1.0 / jnp.sqrt(1.0 + so3.dot(a, a))
