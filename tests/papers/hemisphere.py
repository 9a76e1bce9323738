r"""The vector part of a unit quaternion as three coordinates of a relative rotation below pi.

$v = \hat p$ determines $p_0 = \sqrt{1 - |v|^2} > 0$. The motion follows an ordinary differential
equation without constraints, but its mass matrix is full, depends on $v$ and is unbounded at pi.

**Source:** Lang, remark 4.4.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rigidjax.rotations.base import reduced_mass
from rigidjax.rotations.so3 import skew


def hemisphere_quaternion(v: Float[Array, "3"]) -> Float[Array, "4"]:
    r"""Return the unit quaternion $(\sqrt{1 - |v|^2}, v)$; NaN for $|v| > 1$."""
    return jnp.concatenate([jnp.sqrt(1.0 - v @ v)[None], v])


def hemisphere_null_space(v: Float[Array, "3"]) -> Float[Array, "3 3"]:
    r"""Return $T(v) = \frac12 (p_0 1 + \tilde v)$ with $\dot v = T(v)\,\Omega$.

    These are the last three rows of Lang's (41). The matrix is singular only at an angle of pi,
    because $\det T = p_0 / 8$.
    """
    p0 = jnp.sqrt(1.0 - v @ v)
    return 0.5 * (p0 * jnp.eye(3, dtype=v.dtype) + skew(v))


def hemisphere_mass_matrix(
    v: Float[Array, "3"], inertia: Float[Array, "3"] | Float[Array, "3 3"]
) -> Float[Array, "3 3"]:
    r"""Return the mass matrix $M(v) = T^{-T} I\,T^{-1}$ of $\dot v$."""
    return reduced_mass(jnp.linalg.inv(hemisphere_null_space(v)), inertia)
