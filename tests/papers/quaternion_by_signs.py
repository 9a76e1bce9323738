"""Extraction of a quaternion from a rotation matrix with a square root for each component."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def quaternion_by_signs(R: Float[Array, "3 3"]) -> Float[Array, "4"]:
    r"""Return the quaternion with $p_0 \ge 0$ of a rotation, a square root per component, (4,).

    $p_0 = \frac12 \sqrt{1 + \mathrm{tr} R}$, $|p_k| = \frac12 \sqrt{1 + 2 r_{kk} - \mathrm{tr} R}$,
    with the signs of $\mathrm{vect}(R)$. This is not optimal, as the paper says: small components
    are accurate to $\sqrt\epsilon$ only, derivatives are infinite where a component vanishes, and
    at an angle of pi the signs are undefined (0 here). It serves for comparison; use
    `rigidjax.rotations.conversion`.

    **Source:** Geradin-Rixen (202).
    """
    diagonal, trace = jnp.diagonal(R), jnp.trace(R)
    squares = jnp.concatenate([1.0 + trace[None], 1.0 + 2.0 * diagonal - trace])
    vector = jnp.stack([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    signs = jnp.concatenate([jnp.ones_like(vector[:1]), jnp.sign(vector)])
    return 0.5 * signs * jnp.sqrt(jnp.maximum(squares, 0.0))
