"""Unit quaternions (Euler parameters)."""

from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from . import so3
from .base import AbstractRotation, Rates, check_rates, reduced_mass, reduced_momentum
from .conversion import half_rotation_matrix, spurrier_klumpp
from .euler_map import euler_map


class Quaternion(AbstractRotation):
    r"""Unit quaternions $p = (\cos\frac\phi2, n \sin\frac\phi2)$, scalar first; four coordinates.

    Free of singularities; one internal constraint. `p` and `-p` describe the same rotation.

    Only `to_quaternion` and `project` normalize. Off the unit sphere `to_matrix` is the Euler map,
    a rotation stretched by $|p|^2$; `null_space` ($T = \frac12 p\,\cdot$) and `tangent`
    ($H = 2\,\Im(\bar p\,\cdot)$) keep their formulas, so that $H T = |p|^2$ and $G T = 0$ exactly.

    **Arguments:**

    - `radial_inertia`: the fictitious moment of inertia $I_0$ of the radial direction, which
      affects `mass_matrix` alone. `"zero"`, Lang's choice, is cheap and gives a singular mass
      matrix. `"half-trace"`, $I_0 = \frac12 \mathrm{tr}(I)$, the choice of Betsch-Siebert, gives a
      regular one, the pull-back of the mass matrix of the directors (Lang, Remark 5.3).

    **Source:** Lang, Section 4; Geradin-Rixen, Sections 6.3 and 7.
    """

    radial_inertia: Literal["zero", "half-trace"] = eqx.field(static=True, default="zero")

    num_coordinates: ClassVar[int] = 4
    num_constraints: ClassVar[int] = 1

    def __check_init__(self):
        if self.radial_inertia not in ("zero", "half-trace"):
            raise ValueError(
                '`Quaternion(radial_inertia=...)` must be "zero" or "half-trace"; '
                f"got {self.radial_inertia!r}."
            )

    def to_matrix(self, a: Float[Array, "4"]) -> Matrix3:
        r"""Return the stretched rotation matrix $R(p)$, a rotation if $|p| = 1$.

        **Source:** Lang (26).
        """
        return euler_map(a)

    def from_matrix(self, R: Matrix3) -> Float[Array, "4"]:
        r"""Return the unit quaternion of $R$ whose largest component is positive."""
        return so3.normalize(spurrier_klumpp(R))

    def to_quaternion(self, a: Float[Array, "4"]) -> Float[Array, "4"]:
        r"""Return the unit quaternion $p / |p|$."""
        return so3.normalize(a)

    def from_quaternion(self, p: Float[Array, "4"]) -> Float[Array, "4"]:
        r"""Return the quaternion unchanged, including its sign."""
        return p

    def rate(
        self, a: Float[Array, "4"], omega: Vector3, rates: Rates = "body"
    ) -> Float[Array, "4"]:
        r"""Return $\dot p = \frac12 p\,\Omega$ (`"space"`: $\frac12 \omega\,p$)."""
        check_rates(rates)
        p0, p1, p2, p3 = jnp.unstack(a)
        w1, w2, w3 = jnp.unstack(omega)
        # The factors carry the sign of the scalar part, so no component has to be negated.
        h1, h2, h3 = -0.5 * w1, -0.5 * w2, -0.5 * w3
        p0_dot = p1 * h1 + p2 * h2 + p3 * h3
        if rates == "body":
            return jnp.stack(
                [
                    p0_dot,
                    p3 * h2 - p2 * h3 - p0 * h1,
                    p1 * h3 - p3 * h1 - p0 * h2,
                    p2 * h1 - p1 * h2 - p0 * h3,
                ]
            )
        return jnp.stack(
            [
                p0_dot,
                p2 * h3 - p3 * h2 - p0 * h1,
                p3 * h1 - p1 * h3 - p0 * h2,
                p1 * h2 - p2 * h1 - p0 * h3,
            ]
        )

    def null_space(self, a: Float[Array, "4"], rates: Rates = "body") -> Float[Array, "4 3"]:
        r"""Return $T(p)$, half the last three columns of $p\,\cdot$.

        **Source:** Lang (41), (46).
        """
        check_rates(rates)
        return 0.25 * self.tangent(a, rates).T

    def tangent(self, a: Float[Array, "4"], rates: Rates = "body") -> Float[Array, "3 4"]:
        r"""Return $H(p) = 2\,\Im(\bar p\,\cdot)$ (`"space"`: $2\,\Im(\cdot\,\bar p)$).

        **Source:** Lang, Lemma 4.1; Geradin-Rixen (208), (250).
        """
        check_rates(rates)
        p0, p1, p2, p3 = jnp.unstack(2.0 * a)
        m1, m2, m3 = -p1, -p2, -p3
        if rates == "body":
            rows = [m1, p0, p3, m2, m2, m3, p0, p1, m3, p2, m1, p0]
        else:
            rows = [m1, p0, m3, p2, m2, p3, p0, m1, m3, m2, p1, p0]
        return jnp.stack(rows).reshape(3, 4)

    def angular_velocity(
        self, a: Float[Array, "4"], a_dot: Float[Array, "4"], rates: Rates = "body"
    ) -> Vector3:
        r"""Return $\Omega = 2\,\Im(\bar p\,\dot p)$ (`"space"`: $2\,\Im(\dot p\,\bar p)$)."""
        check_rates(rates)
        p0, p1, p2, p3 = jnp.unstack(a)
        q0, q1, q2, q3 = jnp.unstack(a_dot + a_dot)
        if rates == "body":
            return jnp.stack(
                [
                    p0 * q1 - p1 * q0 + p3 * q2 - p2 * q3,
                    p0 * q2 - p2 * q0 + p1 * q3 - p3 * q1,
                    p0 * q3 - p3 * q0 + p2 * q1 - p1 * q2,
                ]
            )
        return jnp.stack(
            [
                p0 * q1 - p1 * q0 + p2 * q3 - p3 * q2,
                p0 * q2 - p2 * q0 + p3 * q1 - p1 * q3,
                p0 * q3 - p3 * q0 + p1 * q2 - p2 * q1,
            ]
        )

    def constraint(self, a: Float[Array, "4"], rates: Rates = "body") -> Float[Array, "1"]:
        r"""Return $g(p) = \frac12(|p|^2 - 1)$. **Source:** Lang (34)."""
        check_rates(rates)
        p0, p1, p2, p3 = jnp.unstack(a)
        return 0.5 * jnp.stack([p0 * p0 + p1 * p1 + p2 * p2 + p3 * p3 - 1.0])

    def constraint_jacobian(
        self, a: Float[Array, "4"], rates: Rates = "body"
    ) -> Float[Array, "1 4"]:
        r"""Return $G(p) = p^T$. **Source:** Lang (36)."""
        check_rates(rates)
        return a[None, :]

    def radial_inertia_value(self, inertia: Vector3 | Matrix3) -> Scalar:
        r"""Return the radial moment of inertia $I_0$ (0 or half the trace), kg m^2."""
        if self.radial_inertia == "zero":
            return jnp.zeros((), jnp.result_type(inertia))
        return 0.5 * (jnp.sum(inertia) if inertia.ndim == 1 else jnp.trace(inertia))

    def mass_matrix(self, a: Float[Array, "4"], inertia: Vector3 | Matrix3) -> Float[Array, "4 4"]:
        r"""Return $M(p) = 4 Q(p)\,\mathrm{diag}(I_0, I)\,Q(p)^T$, kg m^2. **Source:** Lang (31)."""
        M = reduced_mass(self.tangent(a), inertia)
        if self.radial_inertia == "zero":
            return M
        return M + 4.0 * self.radial_inertia_value(inertia) * jnp.outer(a, a)

    def momentum(
        self, a: Float[Array, "4"], a_dot: Float[Array, "4"], inertia: Vector3 | Matrix3
    ) -> Float[Array, "4"]:
        r"""Return $M(p)\,\dot p$ without computing the matrix."""
        tangential = reduced_momentum(self.tangent(a), a_dot, inertia)
        if self.radial_inertia == "zero":
            return tangential
        return tangential + 4.0 * self.radial_inertia_value(inertia) * (a @ a_dot) * a

    def project(self, a: Float[Array, "4"]) -> Float[Array, "4"]:
        r"""Return $p / |p|$. **Source:** Lang (63, P)."""
        return so3.normalize(a)

    def project_rate(
        self,
        a: Float[Array, "4"],
        a_dot: Float[Array, "4"],
        inertia: Vector3 | Matrix3 | None = None,
    ) -> Float[Array, "4"]:
        r"""Return $\dot p - \langle p, \dot p\rangle\,p$, in any metric.

        **Source:** Lang (63, V).
        """
        p0, p1, p2, p3 = jnp.unstack(a)
        q0, q1, q2, q3 = jnp.unstack(a_dot)
        radial = p0 * q0 + p1 * q1 + p2 * q2 + p3 * q3
        return jnp.stack([q0 - radial * p0, q1 - radial * p1, q2 - radial * p2, q3 - radial * p3])

    def singularity(self, a: Float[Array, "4"]) -> Scalar:
        r"""Return infinity: there is no singularity."""
        return jnp.full((), jnp.inf, a.dtype)

    def singularity_function(self, a: Float[Array, "4"]) -> Scalar:
        r"""Return 1: there is no singularity."""
        return jnp.ones((), a.dtype)

    def center(self) -> Float[Array, "4"]:
        r"""Return the identity."""
        return jnp.array([1.0, 0.0, 0.0, 0.0])

    def half_rotation(self, a: Float[Array, "4"]) -> Matrix3:
        r"""Return $F$ with $R(p) = F F$, see `half_rotation_matrix`.

        Its angle is half the angle of $p$, which exceeds pi if $p_0 < 0$.

        **Source:** Geradin-Rixen (275), (324).
        """
        return half_rotation_matrix(a)
