"""Rotation by half the angle, from Euler parameters."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3
from . import guarded, so3


def half_rotation_matrix(p: Float[Array, "4"]) -> Matrix3:
    r"""Return $F = p_0 1 + \hat p \hat p^T / (|p| + p_0) + \tilde{\hat p}$ with $R = F F$, (3, 3).

    If $|p| = 1$, $F$ is a rotation about the axis of $R$ by half its angle, which is in [0, 2 pi).
    The source has 1 instead of $|p|$; with $|p|$ the square of $F$ is the Euler map of every
    $p \ne 0$, including its stretch. At $p = -1$, where the axis is undefined, $F$ is the identity.

    **Arguments:** `p`, quaternion, shape (4,).

    **Source:** Geradin-Rixen (275), (324).
    """
    p0, p1, p2, p3 = jnp.unstack(p)
    square = p1 * p1 + p2 * p2 + p3 * p3
    norm = jnp.sqrt(p0 * p0 + square)
    is_large = p0 < 0
    # 1 / (|p| + p0), but without cancellation for p0 < 0, and zero at p = -1.
    near = 1.0 / (norm + jnp.where(is_large, 0.0, p0))
    g = jnp.where(is_large, guarded.safe_divide(norm - p0, square), near)
    k = jnp.where(is_large & (square == 0), norm, p0)
    return so3.axial_matrix(k, 1.0, g, jnp.stack([p1, p2, p3]))
