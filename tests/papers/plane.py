r"""Plane rotations about the first axis: a quaternion becomes a complex number $p_0 + i\,p_1$.

Null-space coordinates have three unknowns $(p_0, p_1, \Omega_1)$ and a constraint, from which
numerical solutions drift. The angle $\alpha$ is regular on all of SO(2); it has two unknowns,
$(\alpha, \Omega_1)$, and no constraint.

**Source:** Lang, remark 4.5.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rigidjax.rotations.euler_map import euler_map


def plane_coordinates(alpha: Float[Array, ""]) -> Float[Array, "2"]:
    r"""Return $(p_0, p_1) = (\cos\frac\alpha2, \sin\frac\alpha2)$ of an angle, rad, (2,)."""
    return jnp.stack([jnp.cos(0.5 * alpha), jnp.sin(0.5 * alpha)])


def plane_matrix(p: Float[Array, "2"]) -> Float[Array, "3 3"]:
    r"""Return the rotation matrix $R(p)$, shape (3, 3), with the directors as columns.

    For $|p| = 1$ they are $d_1 = i$, $d_2 = (p_0^2 - p_1^2)\,j + 2 p_0 p_1\,k$ and
    $d_3 = d_1 \times d_2$.

    **Source:** Lang, remark 4.5.
    """
    return euler_map(jnp.concatenate([p, jnp.zeros_like(p)]))


def plane_null_space(p: Float[Array, "2"]) -> Float[Array, "2"]:
    r"""Return $T(p) = \frac12 (-p_1, p_0)$ with $\dot p = T(p)\,\Omega_1$, shape (2,).

    **Source:** Lang, remark 4.5.
    """
    return 0.5 * jnp.stack([-p[1], p[0]])
