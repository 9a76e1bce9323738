r"""Conversion between parametrizations, composition, increments, and change of the reference.

All functions work by way of unit quaternions, so they serve every parametrization.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Vector, Vector3
from ..checks import ArrayInput
from . import guarded, so3
from .base import AbstractRotation, Rates, check_rates


def spurrier_klumpp(R: Matrix3) -> Float[Array, "4"]:
    r"""Return the quaternion, scalar first, of a matrix $R$ in a neighbourhood of SO(3), (4,).

    The matrix of all products $4 p_i p_j$ is linear in $R$. Its row with the largest diagonal entry
    (at least 1 for a rotation), divided by the square root of that entry, is $2p$; the largest
    component is positive. One of four branches is selected *before* the square root and the
    division, so that values and derivatives are finite everywhere, also at angle pi.

    $|p| = 1$ if $R$ is a rotation. For a matrix near a rotation $|p|$ is near 1, and the rotation
    of $p / |p|$ agrees with the nearest rotation only to the order of the deviation.

    **Source:** Lang, Section 6 (after Klumpp and Spurrier); Geradin-Rixen (203)-(205).
    """
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = jnp.unstack(R.reshape(9))
    s00 = 1.0 + r11 + r22 + r33
    s11 = 1.0 + r11 - r22 - r33
    s22 = 1.0 - r11 + r22 - r33
    s33 = 1.0 - r11 - r22 + r33
    s01, s02, s03 = r32 - r23, r13 - r31, r21 - r12
    s12, s13, s23 = r12 + r21, r13 + r31, r23 + r32
    rows = [[s00, s01, s02, s03], [s01, s11, s12, s13], [s02, s12, s22, s23], [s03, s13, s23, s33]]
    row, largest = rows[0], s00
    for i in (1, 2, 3):
        larger = rows[i][i] > largest
        row = [jnp.where(larger, new, old) for new, old in zip(rows[i], row, strict=True)]
        largest = jnp.where(larger, rows[i][i], largest)
    scale = 0.5 / jnp.sqrt(largest)
    return jnp.stack([scale * component for component in row])


def half_rotation_matrix(p: Float[Array, "4"]) -> Matrix3:
    r"""Return $F = p_0 1 + \hat p \hat p^T / (|p| + p_0) + \tilde{\hat p}$ with $R = F F$, (3, 3).

    If $|p| = 1$, $F$ is a rotation about the axis of $R$ by half its angle, which is in [0, 2 pi).
    The source has 1 instead of $|p|$; with $|p|$ the square of $F$ is the Euler map of every
    $p \ne 0$, including its stretch. At $p = -1$, where the axis is undefined, $F$ is the identity.

    **Arguments:** `p`, quaternion, shape (4,).

    **Source:** Geradin-Rixen (275), (324).
    """
    p0, p1, p2, p3 = jnp.unstack(p)
    square = p1 * p1 + p2 * p2 + p3 * p3
    norm = jnp.sqrt(p0 * p0 + square)
    is_large = p0 < 0
    # 1 / (|p| + p0), but without cancellation for p0 < 0, and zero at p = -1.
    near = 1.0 / (norm + jnp.where(is_large, 0.0, p0))
    g = jnp.where(is_large, guarded.safe_divide(norm - p0, square), near)
    k = jnp.where(is_large & (square == 0), norm, p0)
    return so3.axial_matrix(k, 1.0, g, jnp.stack([p1, p2, p3]))


def convert(
    a: ArrayInput, source: AbstractRotation, target: AbstractRotation
) -> Float[Array, " m"]:
    r"""Return the coordinates of a rotation in another parametrization, shape (m,).

    **Arguments:** `a`, coordinates in `source`, shape (n,); `source`, `target`, parametrizations.
    """
    return target.from_quaternion(source.to_quaternion(jnp.asarray(a)))


def compose(rotation: AbstractRotation, a: Vector, b: Vector) -> Vector:
    r"""Return the coordinates of $R(a)\,R(b)$, shape (n,). **Source:** Geradin-Rixen (226)."""
    p, q = rotation.to_quaternion(a), rotation.to_quaternion(b)
    return rotation.from_quaternion(so3.multiply(p, q))


def inverse(rotation: AbstractRotation, a: Vector) -> Vector:
    r"""Return the coordinates of $R(a)^T$, shape (n,)."""
    return rotation.from_quaternion(so3.conjugate(rotation.to_quaternion(a)))


def relative(rotation: AbstractRotation, reference: Vector, a: Vector) -> Vector:
    r"""Return the coordinates of $R_{rel} = R_0^T R$, shape (n,).

    **Source:** Geradin-Rixen (155), (159).
    """
    p, q = rotation.to_quaternion(reference), rotation.to_quaternion(a)
    return rotation.from_quaternion(so3.multiply(so3.conjugate(p), q))


def update(
    rotation: AbstractRotation, a: Vector, increment: Vector3, rates: Rates = "body"
) -> Vector:
    r"""Return the coordinates after a finite rotation increment, shape (n,).

    The rotation becomes $R(a)\exp(\tilde\Theta)$ for an increment $\Theta$ in body components, or
    $\exp(\tilde\theta)R(a)$ for $\theta$ in space components (`rates="space"`).

    **Arguments:** `increment`, a rotation vector, shape (3,), rad.

    **Source:** Geradin-Rixen, Section 5.4.
    """
    check_rates(rates)
    p, q = rotation.to_quaternion(a), so3.exp_quaternion(increment)
    return rotation.from_quaternion(so3.multiply(p, q) if rates == "body" else so3.multiply(q, p))


def rechart(
    rotation: AbstractRotation, reference: Float[Array, "4"], a: Vector
) -> tuple[Float[Array, "4"], Vector]:
    r"""Move the reference rotation so that the coordinates are far from singularities.

    The total rotation $R(Q)\,R(a)$ does not change. The angular velocity and all increments in body
    components do not depend on the reference (160), so no other state has to be converted.

    **Arguments:** `reference`, the unit quaternion $Q$, shape (4,); `a`, shape (n,).

    **Returns:** the new $Q$, of unit length, and the new coordinates, `rotation.center()`.

    **Source:** Geradin-Rixen, Section 5.4.
    """
    center = rotation.center().astype(a.dtype)
    back = so3.conjugate(rotation.to_quaternion(center))
    total = so3.multiply(reference, rotation.to_quaternion(a))
    return so3.normalize(so3.multiply(total, back)), center
