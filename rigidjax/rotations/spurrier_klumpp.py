"""Extraction of a quaternion from a rotation matrix without loss of accuracy at any angle."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def spurrier_klumpp(R: Float[Array, "3 3"]) -> Float[Array, "4"]:
    r"""Quaternion $p$, scalar first, of the matrix $R$ in a neighbourhood of SO(3), shape (4,).

    The matrix of all products $4 p_i p_j$ is linear in $R$; its row with the largest diagonal entry
    (at least 1 for a rotation) is divided by the root of that entry. The largest component is
    positive. One of four branches is selected *before* the root and the division, so that values
    and derivatives are finite everywhere, angle pi included.

    $|p| = 1$ if $R$ is a rotation; a drifted-off $R$ gives $|p|$ near 1. The rotation of $p / |p|$
    then agrees with the nearest rotation only up to the order of the drift.

    **Source:** Lang, Section 6 (after Klumpp and Spurrier); Geradin-Rixen (203)-(205).
    """
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = jnp.unstack(R.reshape(9))
    s00 = 1.0 + r11 + r22 + r33
    s11 = 1.0 + r11 - r22 - r33
    s22 = 1.0 - r11 + r22 - r33
    s33 = 1.0 - r11 - r22 + r33
    s01, s02, s03 = r32 - r23, r13 - r31, r21 - r12
    s12, s13, s23 = r12 + r21, r13 + r31, r23 + r32
    rows = [
        [s00, s01, s02, s03],
        [s01, s11, s12, s13],
        [s02, s12, s22, s23],
        [s03, s13, s23, s33],
    ]
    row, largest = rows[0], s00
    for i in (1, 2, 3):
        larger = rows[i][i] > largest
        row = [jnp.where(larger, new, old) for new, old in zip(rows[i], row, strict=True)]
        largest = jnp.where(larger, rows[i][i], largest)
    scale = 0.5 / jnp.sqrt(largest)
    return jnp.stack([scale * component for component in row])


def quaternion_by_signs(R: Float[Array, "3 3"]) -> Float[Array, "4"]:
    r"""Quaternion with $p_0 \ge 0$ of a rotation, every component by a root of its own, shape (4,).

    $p_0 = \frac12 \sqrt{1 + \mathrm{tr} R}$, $|p_k| = \frac12 \sqrt{1 + 2 r_{kk} - \mathrm{tr} R}$,
    with the signs of $\mathrm{vect}(R)$. Not optimal, as the paper says: small components are known
    to $\sqrt\epsilon$ only, derivatives are infinite where one vanishes, and at an angle of pi
    there are no signs (0 here). For comparison; use `spurrier_klumpp`.

    **Source:** Geradin-Rixen (202).
    """
    diagonal, trace = jnp.diagonal(R), jnp.trace(R)
    squares = jnp.concatenate([1.0 + trace[None], 1.0 + 2.0 * diagonal - trace])
    vector = jnp.stack([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    signs = jnp.concatenate([jnp.ones_like(vector[:1]), jnp.sign(vector)])
    return 0.5 * signs * jnp.sqrt(jnp.maximum(squares, 0.0))
