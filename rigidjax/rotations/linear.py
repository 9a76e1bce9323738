"""The linear parameters."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from ..checks import check
from . import guarded, so3
from .base import Rates, check_rates
from .minimal import AbstractMinimalRotation


class LinearParameters(AbstractMinimalRotation):
    r"""The linear parameters $s = n\sin\phi$, the axial vector of $R$; dimensionless.

    They determine the rotation only together with $s_0 = \cos\phi$, which is not a coordinate but
    the non-negative square root of $1 - |s|^2$. This restricts the rotation to angles up to pi/2,
    where the tangent operator is infinite; `from_quaternion` raises beyond. (The paper has a
    singularity at pi because it treats $s_0$ as independent.) If a step of an integrator leaves the
    unit ball, $s_0$ is 0, and `singularity` and `singularity_function` are negative.

    **Source:** Geradin-Rixen, Section 9.
    """

    def to_matrix(self, a: Vector3) -> Matrix3:
        r"""Return $R = s_0 1 + \frac{1}{1+s_0}ss^T + \tilde s$. **Source:** Geradin-Rixen (269)."""
        s0 = guarded.safe_sqrt(1.0 - so3.dot(a, a))
        return so3.axial_matrix(s0, 1.0, 1.0 / (1.0 + s0), a)

    def to_quaternion(self, a: Vector3) -> Float[Array, "4"]:
        r"""Return the unit quaternion $(\sqrt{(1+s_0)/2}, s/(2p_0))$."""
        s1, s2, s3 = jnp.unstack(a)
        s0 = guarded.safe_sqrt(1.0 - (s1 * s1 + s2 * s2 + s3 * s3))
        p0 = jnp.sqrt(0.5 + 0.5 * s0)
        f = 0.5 / p0
        return jnp.stack([p0, f * s1, f * s2, f * s3])

    def from_quaternion(self, p: Float[Array, "4"]) -> Vector3:
        r"""Return $s = 2p_0\hat p$.

        **Errors:** `ValueError`, or an error at run time under `jit`, if the angle is above pi/2.
        """
        tolerance = 64.0 * float(jnp.finfo(p.dtype).eps)
        p = check(
            p,
            # NaN passes, because it is reported where it arises.
            lambda p: ~(p[0] * p[0] + tolerance < p[1] * p[1] + p[2] * p[2] + p[3] * p[3]),
            "`LinearParameters` represent rotations by at most 90 degrees, but the quaternion "
            "represents a larger rotation. Use them relative to a reference rotation, or use "
            "another parametrization.",
        )
        p0, p1, p2, p3 = jnp.unstack(p)
        f = 2.0 * p0
        return jnp.stack([f * p1, f * p2, f * p3])

    def rate(self, a: Vector3, omega: Vector3, rates: Rates = "body") -> Vector3:
        r"""Return $\frac12[(1+s_0)\Omega + s\times\Omega - \frac{s\cdot\Omega}{1+s_0}s]$."""
        check_rates(rates)
        k = 0.5 + 0.5 * guarded.safe_sqrt(1.0 - so3.dot(a, a))
        return so3.axial_product(k, 0.5 if rates == "body" else -0.5, -0.25 / k, a, omega)

    def null_space(self, a: Vector3, rates: Rates = "body") -> Matrix3:
        r"""Return $\frac12[(1+s_0)\,1 + \tilde s - \frac{1}{1+s_0}ss^T]$, the inverse of (273)."""
        check_rates(rates)
        k = 0.5 + 0.5 * guarded.safe_sqrt(1.0 - so3.dot(a, a))
        return so3.axial_matrix(k, 0.5 if rates == "body" else -0.5, -0.25 / k, a)

    def tangent(self, a: Vector3, rates: Rates = "body") -> Matrix3:
        r"""Return $H = 1 + \frac{1}{1+s_0}(\frac{1}{s_0}ss^T - \tilde s)$, infinite at angle pi/2.

        **Source:** Geradin-Rixen (273), with the sign of $\tilde s$ corrected.
        """
        check_rates(rates)
        s0 = guarded.safe_sqrt(1.0 - so3.dot(a, a))
        f = 1.0 / (1.0 + s0)
        return so3.axial_matrix(1.0, -f if rates == "body" else f, f / s0, a)

    def angular_velocity(self, a: Vector3, a_dot: Vector3, rates: Rates = "body") -> Vector3:
        r"""Return $\Omega = H(s)\,\dot s$ in components. **Source:** Geradin-Rixen (272)."""
        check_rates(rates)
        s0 = guarded.safe_sqrt(1.0 - so3.dot(a, a))
        f = 1.0 / (1.0 + s0)
        return so3.axial_product(1.0, -f if rates == "body" else f, f / s0, a, a_dot)

    def singularity(self, a: Vector3) -> Scalar:
        r"""Return pi/2 minus the rotation angle, rad; negative outside the unit ball."""
        x = so3.dot(a, a)
        height = guarded.safe_sqrt(1.0 - x) - guarded.safe_sqrt(x - 1.0)
        return guarded.safe_arctan2(height, guarded.safe_sqrt(x))

    def singularity_function(self, a: Vector3) -> Scalar:
        r"""Return $s_0^2 = 1 - |s|^2$."""
        return 1.0 - so3.dot(a, a)
