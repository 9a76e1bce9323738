"""Quaternions of Euler angles for the exact solutions."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def quaternion_zxz(
    phi: Float[Array, "..."], theta: Float[Array, "..."], psi: Float[Array, "..."]
) -> Float[Array, "... 4"]:
    r"""Return the quaternion (..., 4) of $R_z(\varphi) R_x(\theta) R_z(\psi)$; angles in rad.

    The scalar comes first. The quaternion is continuous in all three angles, which are not reduced
    to one revolution.
    """
    plus, minus = 0.5 * (phi + psi), 0.5 * (phi - psi)
    c, s = jnp.cos(0.5 * theta), jnp.sin(0.5 * theta)
    return jnp.stack(
        [c * jnp.cos(plus), s * jnp.cos(minus), s * jnp.sin(minus), c * jnp.sin(plus)], axis=-1
    )
