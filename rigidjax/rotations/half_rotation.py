"""The half of a rotation, from Euler parameters."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from . import guarded, so3


def half_rotation_matrix(p: Float[Array, "4"]) -> Float[Array, "3 3"]:
    r"""$F = p_0 1 + \hat p \hat p^T / (|p| + p_0) + \tilde{\hat p}$ with $R = F F$, shape (3, 3).

    If $|p| = 1$ a rotation about the same axis by half the angle, which is in [0, 2 pi). With $|p|$
    in the place of the source's 1 the square of $F$ is the Euler map of every $p \ne 0$, stretched
    as it is. At $p = -1$, where the axis is lost, the identity.

    **Arguments:** `p`, quaternion, shape (4,).

    **Source:** Geradin-Rixen (275), (324).
    """
    p0, p1, p2, p3 = jnp.unstack(p)
    square = p1 * p1 + p2 * p2 + p3 * p3
    norm = jnp.sqrt(p0 * p0 + square)
    beyond = p0 < 0
    # 1 / (|p| + p0), but without cancellation for p0 < 0, and zero at p = -1.
    near = 1.0 / (norm + jnp.where(beyond, 0.0, p0))
    g = jnp.where(beyond, guarded.safe_divide(norm - p0, square), near)
    k = jnp.where(beyond & (square == 0), norm, p0)
    return so3.axial_matrix(k, 1.0, g, jnp.stack([p1, p2, p3]))
