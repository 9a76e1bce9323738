"""3x3 matrices from their entries."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float


def matrix(entries: Sequence[Float[Array, ""]]) -> Float[Array, "3 3"]:
    """The 3x3 matrix of nine scalar entries, row by row.

    Rows are stacked one by one: XLA then takes `matrix(...)[i, j]` for the scalar that it is, and
    what is not used is not computed. Through `stack(entries).reshape(3, 3)` it does not see, which
    made a heavy top's step 1.6 times slower.
    """
    rows = (entries[0:3], entries[3:6], entries[6:9])
    return jnp.stack([jnp.stack(list(row)) for row in rows])


def to_space(R: Float[Array, "3 3"], v: Float[Array, "3"]) -> Float[Array, "3"]:
    """The product $R v$ in scalar components: space components of body components `v`."""
    return jnp.stack([R[i, 0] * v[0] + R[i, 1] * v[1] + R[i, 2] * v[2] for i in range(3)])


def to_body(R: Float[Array, "3 3"], v: Float[Array, "3"]) -> Float[Array, "3"]:
    """The product $R^T v$ in scalar components: body components of space components `v`."""
    return jnp.stack([R[0, i] * v[0] + R[1, i] * v[1] + R[2, i] * v[2] for i in range(3)])


def product(A: Float[Array, "3 3"], B: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """The product $A B$ in scalar components (batched 3x3 products are slow)."""
    return matrix(
        [sum(A[i, k] * B[k, j] for k in range(3)) for i in range(3) for j in range(3)]  # pyright: ignore[reportArgumentType]
    )


def relative(A: Float[Array, "3 3"], B: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """The product $A^T B$ in scalar components: the rotation `B` as seen from `A`."""
    return matrix(
        [sum(A[k, i] * B[k, j] for k in range(3)) for i in range(3) for j in range(3)]  # pyright: ignore[reportArgumentType]
    )
