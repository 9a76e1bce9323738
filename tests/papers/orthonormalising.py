r"""Two projections of drifted directors onto rotations, which Lang advises against.

The result of the Gram-Schmidt process depends on the order of the directors. Its distance from the
nearest rotation is of the order of the drift, like that of Lang's explicit algorithm,
`rj.Directors().project`. The result of the logarithm differs from the nearest rotation in second
order only, but takes many times the operations. `rj.projection.MassMetric` computes the nearest
rotation itself, independent of the frame.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rigidjax.rotations import so3

# Number of square roots after which a short series gives the logarithm.
_ROOTS = 4


def gram_schmidt(
    R: Float[Array, "3 3"], order: tuple[int, int, int] = (0, 1, 2)
) -> Float[Array, "3 3"]:
    r"""Orthonormalise the columns of `R` one after the other; return the matrix (3, 3).

    The first column in `order`, a permutation of 0, 1, 2, keeps its direction, the second stays in
    its plane with the first.

    **Source:** Lang, remark 6.3 (a).
    """
    i, j, k = order
    first = R[:, i] / jnp.linalg.norm(R[:, i])
    second = R[:, j] - (first @ R[:, j]) * first
    second = second / jnp.linalg.norm(second)
    even = (j - i) % 3 == 1
    third = so3.cross(first, second) if even else so3.cross(second, first)
    return jnp.zeros_like(R).at[:, jnp.array([i, j, k])].set(jnp.stack([first, second, third], 1))


def logarithm_projection(R: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    r"""Return $\exp \gamma$ with the skew part $\gamma$ of $\log R$: Lang, remark 6.3 (b)."""
    return so3.exp(so3.unskew(matrix_logarithm(R)))


def matrix_logarithm(R: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    r"""Return the principal logarithm of a matrix near a rotation by less than pi, shape (3, 3).

    Square roots by the Denman-Beavers iteration bring the matrix near 1; the series of
    $2\,\mathrm{artanh}$ then gives the logarithm.
    """
    identity = jnp.eye(3, dtype=R.dtype)

    def square_root(A, _):
        def iterate(pair, _):
            Y, Z = pair
            return (0.5 * (Y + jnp.linalg.inv(Z)), 0.5 * (Z + jnp.linalg.inv(Y))), None

        # Enough iterations for angles up to pi - 0.01, where the error decreases slowest.
        (Y, _), _ = jax.lax.scan(iterate, (A, identity), None, length=14)
        return Y, None

    A, _ = jax.lax.scan(square_root, R, None, length=_ROOTS)
    X = jnp.linalg.solve((A + identity).T, (A - identity).T).T
    square, power, total = X @ X, X, X
    for n in range(3, 18, 2):
        power = power @ square
        total = total + power / n
    return 2.0**_ROOTS * 2.0 * total
