r"""Plane rotations about the first axis: a quaternion becomes a complex number $p_0 + i\,p_1$.

Null-space coordinates have three unknowns $(p_0, p_1, \Omega_1)$ and a constraint that a method
drifts from; the angle $\alpha$, regular on all of SO(2), has two, $(\alpha, \Omega_1)$, and none.

**Source:** Lang, remark 4.5.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .euler_map import euler_map


def plane_coordinates(alpha: Float[Array, ""]) -> Float[Array, "2"]:
    r"""$(p_0, p_1) = (\cos\frac\alpha2, \sin\frac\alpha2)$ of an angle in rad, shape (2,)."""
    return jnp.stack([jnp.cos(0.5 * alpha), jnp.sin(0.5 * alpha)])


def plane_matrix(p: Float[Array, "2"]) -> Float[Array, "3 3"]:
    r"""$R(p)$, shape (3, 3), with the directors as columns; for $|p| = 1$
    $d_1 = i$, $d_2 = (p_0^2 - p_1^2)\,j + 2 p_0 p_1\,k$ and $d_3 = d_1 \times d_2$.

    **Source:** Lang, remark 4.5.
    """
    return euler_map(jnp.concatenate([p, jnp.zeros_like(p)]))


def plane_null_space(p: Float[Array, "2"]) -> Float[Array, "2"]:
    r"""$T(p) = \frac12 (-p_1, p_0)$ with $\dot p = T(p)\,\Omega_1$, shape (2,).

    **Source:** Lang, remark 4.5.
    """
    return 0.5 * jnp.stack([-p[1], p[0]])
