r"""Two other ways from nine drifted numbers back to a rotation, which Lang advises against.

Gram and Schmidt's result depends on which director comes first, and is off the nearest rotation by
as much as the drift; so is that of `rj.Directors().project`, Lang's explicit algorithm. The
logarithm is off in the second order of the drift alone, but takes many times the operations. The
nearest rotation itself, whatever the frame: `rj.projection.MassMetric`.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from . import so3

# Square roots taken of a matrix before its logarithm is a short series.
_ROOTS = 4


def gram_schmidt(
    R: Float[Array, "3 3"], order: tuple[int, int, int] = (0, 1, 2)
) -> Float[Array, "3 3"]:
    r"""Columns of `R` made orthonormal one after the other, shape (3, 3).

    The first in `order` keeps its direction, the second its plane with the first.

    **Arguments:** `R`, near a rotation; `order`, a permutation of 0, 1, 2.
    **Raises:** `ValueError` for another `order`.
    **Source:** Lang, remark 6.3 (a).
    """
    if sorted(order) != [0, 1, 2]:
        raise ValueError(
            f"`gram_schmidt(order=...)` must be a permutation of (0, 1, 2); got {order!r}."
        )
    i, j, k = order
    first = R[:, i] / jnp.linalg.norm(R[:, i])
    second = R[:, j] - (first @ R[:, j]) * first
    second = second / jnp.linalg.norm(second)
    even = (j - i) % 3 == 1
    third = so3.cross(first, second) if even else so3.cross(second, first)
    return jnp.zeros_like(R).at[:, jnp.array([i, j, k])].set(jnp.stack([first, second, third], 1))


def logarithm_projection(R: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    r"""$\exp \gamma$ of the skew part $\gamma$ of $\log R$, shape (3, 3).

    **Arguments:** `R`, near a rotation by less than pi (to 0.01 rad).
    **Source:** Lang, remark 6.3 (b).
    """
    return so3.exp(so3.unskew(matrix_logarithm(R)))


def matrix_logarithm(R: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    r"""Principal logarithm of a matrix near a rotation by less than pi, shape (3, 3).

    Square roots by Denman and Beavers' iteration until it is near 1, then the series of
    $2\,\mathrm{artanh}$.
    """
    one = jnp.eye(3, dtype=R.dtype)

    def root(A, _):
        def better(pair, _):
            Y, Z = pair
            return (0.5 * (Y + jnp.linalg.inv(Z)), 0.5 * (Z + jnp.linalg.inv(Y))), None

        # At pi - 0.01 the error is 0.995 to the power of two to the number of iterations.
        (Y, _), _ = jax.lax.scan(better, (A, one), None, length=14)
        return Y, None

    A, _ = jax.lax.scan(root, R, None, length=_ROOTS)
    X = jnp.linalg.solve((A + one).T, (A - one).T).T
    square, power, total = X @ X, X, X
    for n in range(3, 18, 2):
        power = power @ square
        total = total + power / n
    return 2.0**_ROOTS * 2.0 * total
