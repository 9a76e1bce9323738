r"""The vector part of a unit quaternion as three coordinates of a relative rotation below pi.

If two bodies cannot rotate by pi or more relative to each other, $v = \hat p$ determines
$p_0 = \sqrt{1 - |v|^2} > 0$. The motion then follows an ordinary differential equation in three
coordinates without constraints. Its mass matrix is full, depends on $v$ and is unbounded at pi,
whereas the mass matrix of null-space coordinates is the constant inertia.

**Source:** Lang, remark 4.4.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rigidjax.rotations.base import reduced_mass
from rigidjax.rotations.so3 import skew


def hemisphere_quaternion(v: Float[Array, "3"]) -> Float[Array, "4"]:
    r"""Return the unit quaternion $(\sqrt{1 - |v|^2}, v)$, shape (4,); NaN for $|v| > 1$.

    **Source:** Lang, remark 4.4.
    """
    return jnp.concatenate([jnp.sqrt(1.0 - v @ v)[None], v])


def hemisphere_null_space(v: Float[Array, "3"]) -> Float[Array, "3 3"]:
    r"""Return $T(v) = \frac12 (p_0 1 + \tilde v)$ with $\dot v = T(v)\,\Omega$, shape (3, 3).

    These are the last three rows of Lang's (41). The matrix is singular only at an angle of pi,
    because $\det T = p_0 / 8$.

    **Source:** Lang, remark 4.4, (41).
    """
    p0 = jnp.sqrt(1.0 - v @ v)
    return 0.5 * (p0 * jnp.eye(3, dtype=v.dtype) + skew(v))


def hemisphere_mass_matrix(
    v: Float[Array, "3"], inertia: Float[Array, "3"] | Float[Array, "3 3"]
) -> Float[Array, "3 3"]:
    r"""Return the mass matrix $M(v) = T^{-T} I\,T^{-1}$, kg m^2, shape (3, 3).

    It is full, and the kinetic energy is $\frac12 \dot v^T M \dot v$.

    **Arguments:** `v`; `inertia`, (3,) or (3, 3), kg m^2.
    **Source:** Lang, remark 4.4.
    """
    return reduced_mass(jnp.linalg.inv(hemisphere_null_space(v)), inertia)
