r"""The Moore-Penrose inverse, with derivatives at repeated and at zero singular values."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# Singular values below this part of the largest one are taken for zero (or below ten units of
# round-off, which is more in single precision). Where a mechanism comes through a position with
# more freedom (a parallelogram in line), directions of constraints that close to it are noise: the
# motion is carried across by its velocity. Energy then changes, over 10 s at a tolerance of 1e-9,
# by 1.0e-1 J at 1e-7, 1.5e-5 at 1e-6, 1.7e-7 at 1e-5, 9.8e-7 at 1e-4.
_CUTOFF = 1e-5


@jax.custom_jvp
def pseudo_inverse(A: Float[Array, "m n"]) -> Float[Array, "n m"]:
    r"""The Moore-Penrose inverse $A^+$, shape (n, m).

    Its derivative is that at constant rank (Golub and Pereyra 1973, theorem 4.3), which needs no
    derivatives of singular vectors.
    """
    U, s, Vt = jnp.linalg.svd(A, full_matrices=False)
    cutoff = max(_CUTOFF, 10 * float(np.finfo(A.dtype).eps))
    keep = s > cutoff * jnp.max(s, initial=0.0)
    inverse = jnp.where(keep, 1.0 / jnp.where(keep, s, 1.0), 0.0)
    return (Vt.T * inverse) @ U.T


@pseudo_inverse.defjvp
def _pseudo_inverse_jvp(primals, tangents):
    (A,), (dA,) = primals, tangents
    P = pseudo_inverse(A)
    change = -P @ dA @ P
    # What the change of the row and the column space adds.
    change = change + P @ P.T @ (dA.T - dA.T @ A @ P)
    change = change + (dA.T - P @ A @ dA.T) @ P.T @ P
    return P, change
