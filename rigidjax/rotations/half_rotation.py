"""The half of a rotation, from Euler parameters."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from . import guarded, so3


def half_rotation_matrix(p: Float[Array, "4"]) -> Float[Array, "3 3"]:
    r"""$F = p_0 1 + \hat p \hat p^T / (1 + p_0) + \tilde{\hat p}$ with $R(p) = F F$, shape (3, 3).

    $F$ turns about the same axis by half the angle, which is in [0, 2 pi) for $-1 < p_0 \le 1$. At
    $p = -1$, where the axis is lost, the identity.

    **Arguments:** `p`, unit quaternion, shape (4,).

    **Source:** Geradin-Rixen (275), (324).
    """
    p0, p1, p2, p3 = jnp.unstack(p)
    beyond = p0 < 0
    square = p1 * p1 + p2 * p2 + p3 * p3
    # 1 / (1 + p0), but without cancellation for p0 < 0, and zero at p0 = -1.
    near = 1.0 / (1.0 + jnp.where(beyond, 0.0, p0))
    g = jnp.where(beyond, guarded.safe_divide(1.0 - p0, square), near)
    k = jnp.where(beyond & (square == 0), 1.0, p0)
    return so3.axial_matrix(k, 1.0, g, jnp.stack([p1, p2, p3]))
