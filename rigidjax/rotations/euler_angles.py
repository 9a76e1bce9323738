"""Euler angles in all twelve intrinsic sequences."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from . import guarded, so3
from .base import Rates, check_rates
from .conversion import half_rotation_matrix
from .minimal import AbstractMinimalRotation

# Proper Euler angles, then Tait-Bryan angles.
SEQUENCES = (
    *("ZXZ", "XYX", "YZY", "ZYZ", "XZX", "YXY"),
    *("XYZ", "YZX", "ZXY", "XZY", "ZYX", "YXZ"),
)


def _plus(x: Array, y: Array, sign: int) -> Array:
    """Return `x + sign * y` without a multiplication; the sign is static."""
    return x + y if sign > 0 else x - y


class EulerAngles(AbstractMinimalRotation):
    r"""Three angles $(\alpha, \beta, \gamma)$, rad: $R = R_i(\alpha)\,R_j(\beta)\,R_l(\gamma)$.

    The elementary rotations are about successive *body* axes (intrinsic); sequences are named in
    upper case as in SciPy. `"ZXZ"` gives the papers' Euler angles $(\psi, \theta, \phi)$, 3-1-3;
    `"ZYX"` gives the Bryant angles $(\theta, \psi, \phi)$, also called yaw, pitch and roll.

    Sequences with equal first and last axes (proper Euler angles) are singular at $\sin\beta = 0$,
    sequences with three different axes (Tait-Bryan angles) at $\cos\beta = 0$. `from_quaternion`
    returns $\alpha$ and $\gamma$ between -pi and pi, and $\beta$ between 0 and pi (proper) or -pi/2
    and pi/2 (Tait-Bryan). At the singularity only the sum or the difference of $\alpha$ and
    $\gamma$ is defined; the other one, and its derivatives, are zero there.

    **Arguments:** `sequence`, one of ZXZ, XYX, YZY, ZYZ, XZX, YXY, XYZ, YZX, ZXY, XZY, ZYX, YXZ.

    **Source:** Geradin-Rixen, Section 10.
    """

    sequence: str = eqx.field(static=True)

    def __check_init__(self):
        if self.sequence not in SEQUENCES:
            raise ValueError(
                "`EulerAngles(sequence)` must be one of "
                f"{', '.join(SEQUENCES)} (intrinsic, upper case); "
                f"got {self.sequence!r}."
            )

    @property
    def _proper(self) -> bool:
        """Whether the first and the last axis agree."""
        return self.sequence[0] == self.sequence[2]

    @property
    def _axes(self) -> tuple[int, int, int, int]:
        """The axes i, j, the remaining axis k, and the sign of the permutation (i, j, k)."""
        i, j = "XYZ".index(self.sequence[0]), "XYZ".index(self.sequence[1])
        return i, j, 3 - i - j, 1 if (j - i) % 3 == 1 else -1

    def _in_axis_order(self, x: Array, y: Array, z: Array) -> tuple[Array, ...]:
        """Return components along i, j, k in the order of the axes x, y, z."""
        i, j, k, _ = self._axes
        component = {i: x, j: y, k: z}
        return component[0], component[1], component[2]

    def to_matrix(self, a: Vector3) -> Matrix3:
        r"""Return $R = R_i(\alpha)\,R_j(\beta)\,R_l(\gamma)$.

        **Source:** Geradin-Rixen (278), (286).
        """
        *_, sign = self._axes
        s, c = jnp.sin(a), jnp.cos(a)
        s1, s2, s3 = jnp.unstack(s)
        c1, c2, c3 = jnp.unstack(c)
        # Columns in the right-handed basis (e_i, e_j, sign e_k).
        if self._proper:
            s13, c13, s1c3, c1s3 = s1 * s3, c1 * c3, s1 * c3, c1 * s3
            columns = (
                (c2, s2 * s1, -s2 * c1),
                (s2 * s3, c13 - s13 * c2, s1c3 + c1s3 * c2),
                (s2 * c3, -c1s3 - s1c3 * c2, c13 * c2 - s13),
            )
        else:
            s3 = s3 if sign > 0 else -s3
            s13, c13, s1c3, c1s3 = s1 * s3, c1 * c3, s1 * c3, c1 * s3
            columns = (
                (c2 * c3, c1s3 + s1c3 * s2, s13 - c13 * s2),
                (-c2 * s3, c13 - s13 * s2, s1c3 + c1s3 * s2),
                (s2, -c2 * s1, c2 * c1),
            )
        (r11, r21, r31), (r12, r22, r32), (r13, r23, r33) = columns
        if sign < 0:
            r31, r32, r13, r23 = -r31, -r32, -r13, -r23
        columns = self._in_axis_order(
            jnp.stack(self._in_axis_order(r11, r21, r31)),
            jnp.stack(self._in_axis_order(r12, r22, r32)),
            jnp.stack(self._in_axis_order(r13, r23, r33)),
        )
        return jnp.stack(columns, axis=1)

    def to_quaternion(self, a: Vector3) -> Float[Array, "4"]:
        r"""Return the product of the three elementary unit quaternions."""
        *_, sign = self._axes
        s1, s2, s3 = jnp.unstack(jnp.sin(0.5 * a))
        c1, c2, c3 = jnp.unstack(jnp.cos(0.5 * a))
        c13, s13, s1c3, c1s3 = c1 * c3, s1 * s3, s1 * c3, c1 * s3
        if self._proper:
            p0, pi = c2 * (c13 - s13), c2 * (s1c3 + c1s3)
            pj, pk = s2 * (c13 + s13), s2 * (s1c3 - c1s3)
            return jnp.stack([p0, *self._in_axis_order(pi, pj, pk if sign > 0 else -pk)])
        p0 = _plus(c2 * c13, s2 * s13, -sign)
        pi = _plus(c2 * s1c3, s2 * c1s3, sign)
        pj = _plus(s2 * c13, c2 * s13, -sign)
        pk = _plus(c2 * c1s3, s2 * s1c3, sign)
        return jnp.stack([p0, *self._in_axis_order(pi, pj, pk)])

    def from_quaternion(self, p: Float[Array, "4"]) -> Vector3:
        r"""Return the angles in the ranges above, accurate close to the singularity as well.

        Two complex numbers are formed from the quaternion. Half the sum and half the difference of
        the outer angles are their arguments; the tangent of half the middle angle is the ratio of
        their moduli. A rotation by pi/2 about the middle axis reduces Tait-Bryan to proper angles.
        """
        i, j, k, sign = self._axes
        p0, pi, pj, pk = p[0], p[1 + i], p[1 + j], p[1 + k]
        if not self._proper:
            p0, pj = p0 - pj, pj + p0
            pi, pk = _plus(pi, pk, -sign), _plus(pk, pi, sign)
        pk = pk if sign > 0 else -pk
        half_sum = guarded.safe_arctan2(pi, p0)
        half_difference = guarded.safe_arctan2(pk, pj)
        sine = guarded.safe_sqrt(pj * pj + pk * pk)
        cosine = guarded.safe_sqrt(pi * pi + p0 * p0)
        middle = 2.0 * jnp.arctan2(sine, cosine)
        first, last = half_sum + half_difference, half_sum - half_difference
        if not self._proper:
            middle = middle - 0.5 * jnp.pi
            last = -last if sign > 0 else last
        revolution = 2.0 * jnp.pi
        first = first - revolution * jnp.round(first / revolution)
        last = last - revolution * jnp.round(last / revolution)
        return jnp.stack([first, middle, last])

    def rate(self, a: Vector3, omega: Vector3, rates: Rates = "body") -> Vector3:
        r"""Return $(\dot\alpha, \dot\beta, \dot\gamma) = T\,\Omega$, in scalar components."""
        check_rates(rates)
        i, j, k, sign = self._axes
        w = jnp.unstack(omega)
        alpha, beta, gamma = jnp.unstack(a)
        s2, c2 = jnp.sin(beta), jnp.cos(beta)
        # The outer angle whose axis is fixed in the other frame comes first.
        angle = gamma if rates == "body" else alpha
        s, c = jnp.sin(angle), jnp.cos(angle)
        if rates == "body" and not self._proper:
            far = _plus(c * w[i], s * w[j], -sign) / c2
            middle = _plus(c * w[j], s * w[i], sign)
            near = _plus(w[k], s2 * far, -sign)
        elif rates == "body":
            far = _plus(s * w[j], c * w[k], sign) / s2
            middle = _plus(c * w[j], s * w[k], -sign)
            near = w[i] - c2 * far
        elif self._proper:
            far = _plus(s * w[j], c * w[k], -sign) / s2
            middle = _plus(c * w[j], s * w[k], sign)
            near = w[i] - c2 * far
        else:
            far = _plus(c * w[k], s * w[j], -sign) / c2
            middle = _plus(c * w[j], s * w[k], sign)
            near = _plus(w[i], s2 * far, -sign)
        return jnp.stack([far, middle, near] if rates == "body" else [near, middle, far])

    def null_space(self, a: Vector3, rates: Rates = "body") -> Matrix3:
        r"""Return $T$, the inverse of the tangent operator, infinite at the singularity."""
        check_rates(rates)
        *_, sign = self._axes
        alpha, beta, gamma = jnp.unstack(a)
        s2, c2 = jnp.sin(beta), jnp.cos(beta)
        angle = gamma if rates == "body" else alpha
        s, c = jnp.sin(angle), jnp.cos(angle)
        o = jnp.zeros_like(s)
        one = jnp.ones_like(s)
        # Coefficients of the components along i, j, k, as in `rate`.
        if self._proper:
            orientation = sign if rates == "body" else -sign
            far = (o, s / s2, orientation * c / s2)
            middle = (o, c, -orientation * s)
            near = (one, -c2 * far[1], -c2 * far[2])
        elif rates == "body":
            far = (c / c2, -sign * s / c2, o)
            middle = (sign * s, c, o)
            near = (-sign * s2 * far[0], -sign * s2 * far[1], one)
        else:
            far = (o, -sign * s / c2, c / c2)
            middle = (o, c, sign * s)
            near = (one, -sign * s2 * far[1], -sign * s2 * far[2])
        rows = (far, middle, near) if rates == "body" else (near, middle, far)
        return jnp.stack([jnp.stack(self._in_axis_order(*row)) for row in rows])

    def tangent(self, a: Vector3, rates: Rates = "body") -> Matrix3:
        r"""Return $H$, whose columns are the axes of the three angles; singular if coplanar.

        **Source:** Geradin-Rixen (281), (283), (289), (291).
        """
        check_rates(rates)
        columns = self._columns(a, rates)
        return jnp.stack([jnp.stack(self._in_axis_order(*column)) for column in columns], axis=1)

    def angular_velocity(self, a: Vector3, a_dot: Vector3, rates: Rates = "body") -> Vector3:
        r"""Return $\Omega = H\,(\dot\alpha, \dot\beta, \dot\gamma)$ in components."""
        check_rates(rates)
        x, y, z = self._columns(a, rates)
        u, v, w = jnp.unstack(a_dot)
        return jnp.stack(self._in_axis_order(*(x[n] * u + y[n] * v + z[n] * w for n in range(3))))

    def _columns(self, a: Vector3, rates: Rates) -> tuple[tuple[Array, Array, Array], ...]:
        """Return the axes of the three angles, in components along i, j, k."""
        *_, sign = self._axes
        alpha, beta, gamma = jnp.unstack(a)
        s2, c2 = jnp.sin(beta), jnp.cos(beta)
        angle = gamma if rates == "body" else alpha
        s, c = jnp.sin(angle), jnp.cos(angle)
        o = jnp.zeros_like(s)
        one = jnp.ones_like(s)
        if self._proper:
            orientation = sign if rates == "body" else -sign
            far, middle, near = (
                (c2, s2 * s, orientation * s2 * c),
                (o, c, -orientation * s),
                (one, o, o),
            )
        elif rates == "body":
            far, middle, near = (c2 * c, -sign * c2 * s, sign * s2), (sign * s, c, o), (o, o, one)
        else:
            far, middle, near = (sign * s2, -sign * c2 * s, c2 * c), (o, c, sign * s), (one, o, o)
        return (far, middle, near) if rates == "body" else (near, middle, far)

    def singularity(self, a: Vector3) -> Scalar:
        r"""Return the distance of the middle angle from the nearest singular value, rad."""
        middle = a[1] if self._proper else a[1] - 0.5 * jnp.pi
        return jnp.abs(middle - jnp.pi * jnp.round(middle / jnp.pi))

    def singularity_function(self, a: Vector3) -> Scalar:
        r"""Return $\sin\beta$ for proper, $\cos\beta$ for Tait-Bryan angles."""
        return jnp.sin(a[1]) if self._proper else jnp.cos(a[1])

    def center(self) -> Vector3:
        r"""Return $(0, \pi/2, 0)$ for proper, zero for Tait-Bryan angles."""
        return jnp.array([0.0, 0.5 * jnp.pi if self._proper else 0.0, 0.0])

    def half_rotation(self, a: Vector3) -> Matrix3:
        r"""Return $F$ with $R = F F$ and an angle of at most pi/2.

        **Source:** Geradin-Rixen (275).
        """
        return half_rotation_matrix(so3.principal(self.to_quaternion(a)))
