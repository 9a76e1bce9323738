"""Extraction of a quaternion from a rotation matrix, accurate at every angle."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3


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
