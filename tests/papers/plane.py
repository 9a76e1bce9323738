r"""Plane rotations about the first axis: a quaternion becomes a complex number $p_0 + i\,p_1$.

Null-space coordinates have three unknowns $(p_0, p_1, \Omega_1)$ and a constraint, from which
numerical solutions drift. The angle $\alpha$ has two unknowns and no constraint.

**Source:** Lang, remark 4.5.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rigidjax.rotations.euler_map import euler_map


def plane_coordinates(alpha: Float[Array, ""]) -> Float[Array, "2"]:
    r"""Return $(p_0, p_1) = (\cos\frac\alpha2, \sin\frac\alpha2)$ of an angle, rad, (2,)."""
    return jnp.stack([jnp.cos(0.5 * alpha), jnp.sin(0.5 * alpha)])


def plane_matrix(p: Float[Array, "2"]) -> Float[Array, "3 3"]:
    r"""Return the rotation matrix $R(p)$, with the directors as columns."""
    return euler_map(jnp.concatenate([p, jnp.zeros_like(p)]))


def plane_null_space(p: Float[Array, "2"]) -> Float[Array, "2"]:
    r"""Return $T(p) = \frac12 (-p_1, p_0)$ with $\dot p = T(p)\,\Omega_1$."""
    return 0.5 * jnp.stack([-p[1], p[0]])
