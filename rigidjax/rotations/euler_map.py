r"""The Euler map from quaternions to stretched rotations, its differential, and its inverse.

A quaternion of any length gives a rotation stretched by $|p|^2$: $R(\eta p) = \eta^2 R(p)$. Unit
quaternions cover SO(3) twice, $R(-p) = R(p)$.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3
from .matrix import matrix


def _entries(p: Float[Array, "4"]) -> list[Array]:
    """Return the nine entries of the Euler map, column by column."""
    p0, p1, p2, p3 = jnp.unstack(p)
    t1, t2, t3 = p1 + p1, p2 + p2, p3 + p3
    p01, p02, p03 = p0 * t1, p0 * t2, p0 * t3
    p12, p13, p23 = p1 * t2, p1 * t3, p2 * t3
    s0, s1, s2, s3 = p0 * p0, p1 * p1, p2 * p2, p3 * p3
    even, odd = s0 + s1, s0 - s1
    plus, minus = s2 + s3, s2 - s3
    return [
        *(even - plus, p12 + p03, p13 - p02),
        *(p12 - p03, odd + minus, p23 + p01),
        *(p13 + p02, p23 - p01, odd - minus),
    ]


def euler_map(p: Float[Array, "4"]) -> Matrix3:
    r"""Return the stretched rotation $R(p)$, shape (3, 3).

    $R(p) = (2 p_0^2 - |p|^2)\,1 + 2 \hat p \hat p^T + 2 p_0 \tilde{\hat p}$ with the vector part
    $\hat p$.

    **Source:** Lang (26)-(28).
    """
    c = _entries(p)
    return matrix([c[0], c[3], c[6], c[1], c[4], c[7], c[2], c[5], c[8]])


def euler_map_directors(p: Float[Array, "4"]) -> Float[Array, "9"]:
    r"""Return the columns $d = \varphi(p)$ of the Euler map, stacked, shape (9,).

    **Source:** Lang (47).
    """
    return jnp.stack(_entries(p))


def euler_differential(p: Float[Array, "4"]) -> Float[Array, "9 4"]:
    r"""Return the differential $D\varphi(p)$ with $\dot d = D\varphi(p)\,\dot p$, shape (9, 4).

    **Source:** Lang (48).
    """
    p0, p1, p2, p3 = jnp.unstack(2.0 * p)
    m1, m2, m3, m0 = -p1, -p2, -p3, -p0
    return jnp.stack(
        [
            *(p0, p1, m2, m3),
            *(p3, p2, p1, p0),
            *(m2, p3, m0, p1),
            *(m3, p2, p1, m0),
            *(p0, m1, p2, m3),
            *(p1, p0, p3, p2),
            *(p2, p3, p0, p1),
            *(m1, m0, p3, p2),
            *(p0, m1, m2, p3),
        ]
    ).reshape(9, 4)


def euler_differential_inverse(p: Float[Array, "4"]) -> Float[Array, "4 9"]:
    r"""Return the Moore-Penrose inverse $D\varphi(p)^\natural$ for $p \ne 0$, shape (4, 9).

    **Source:** Lang, Lemma 5.1, (55).
    """
    D = euler_differential(p)
    n = p @ p
    # Since D p = 2 phi(p), the dyadic part needs no product with the matrix.
    radial = jnp.outer(p, euler_map_directors(p)) / (3.0 * n)
    return (0.5 * D.T - radial) / (4.0 * n)
