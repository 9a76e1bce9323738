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


def multiply(p: Float[Array, "... 4"], q: Float[Array, "... 4"]) -> Float[Array, "... 4"]:
    """Return the Hamilton product of quaternions, scalar first."""
    p0, p1, p2, p3 = p[..., 0], p[..., 1], p[..., 2], p[..., 3]
    q0, q1, q2, q3 = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    return jnp.stack(
        [
            p0 * q0 - p1 * q1 - p2 * q2 - p3 * q3,
            p0 * q1 + p1 * q0 + p2 * q3 - p3 * q2,
            p0 * q2 + p2 * q0 + p3 * q1 - p1 * q3,
            p0 * q3 + p3 * q0 + p1 * q2 - p2 * q1,
        ],
        axis=-1,
    )
