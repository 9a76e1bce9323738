r"""The vector part of a unit quaternion as three coordinates: relative angles below half a turn.

Where two bodies cannot turn by more than pi against each other, $v = \hat p$ determines
$p_0 = \sqrt{1 - |v|^2} > 0$: an ordinary differential equation without constraint, in as many
unknowns as relative angles have. Its mass matrix is full and depends on $v$, where that of
null-space coordinates is the inertia itself, and it is unbounded at pi.

**Source:** Lang, remark 4.4.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .base import reduced_mass
from .so3 import skew


def hemisphere_quaternion(v: Float[Array, "3"]) -> Float[Array, "4"]:
    r"""Unit quaternion $(\sqrt{1 - |v|^2}, v)$, shape (4,); NaN for $|v| > 1$.

    **Source:** Lang, remark 4.4.
    """
    return jnp.concatenate([jnp.sqrt(1.0 - v @ v)[None], v])


def hemisphere_null_space(v: Float[Array, "3"]) -> Float[Array, "3 3"]:
    r"""$T(v) = \frac12 (p_0 1 + \tilde v)$ with $\dot v = T(v)\,\Omega$, shape (3, 3).

    The last three rows of Lang's (41); $\det T = p_0 / 8$, so that it is singular at an angle of
    pi alone.

    **Source:** Lang, remark 4.4, (41).
    """
    p0 = jnp.sqrt(1.0 - v @ v)
    return 0.5 * (p0 * jnp.eye(3, dtype=v.dtype) + skew(v))


def hemisphere_mass_matrix(
    v: Float[Array, "3"], inertia: Float[Array, "3"] | Float[Array, "3 3"]
) -> Float[Array, "3 3"]:
    r"""The full matrix $M(v) = T^{-T} I\,T^{-1}$ of $\frac12 \dot v^T M \dot v$, kg m^2, (3, 3).

    **Arguments:** `v`; `inertia`, (3,) or (3, 3), kg m^2.
    **Source:** Lang, remark 4.4.
    """
    return reduced_mass(jnp.linalg.inv(hemisphere_null_space(v)), inertia)
