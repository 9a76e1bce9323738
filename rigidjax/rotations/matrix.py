"""3x3 matrices from their entries."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..native.ops import short_sum


def matrix(entries: Sequence[Float[Array, ""]]) -> Float[Array, "3 3"]:
    """The 3x3 matrix of nine scalar entries, row by row.

    Rows are stacked one by one: XLA then takes `matrix(...)[i, j]` for the scalar that it is, and
    what is not used is not computed. Through `stack(entries).reshape(3, 3)` it does not see, which
    made a heavy top's step 1.6 times slower.
    """
    rows = (entries[0:3], entries[3:6], entries[6:9])
    return jnp.stack([jnp.stack(list(row)) for row in rows])


# For many at once: under `jax.vmap` these are two operations each, which compile ten times faster
# than scalar components and run as fast there.


def to_space(R: Float[Array, "3 3"], v: Float[Array, "3"]) -> Float[Array, "3"]:
    """The product $R v$: space components of body components `v`."""
    return short_sum(R, v[None, :], axis=1)


def to_body(R: Float[Array, "3 3"], v: Float[Array, "3"]) -> Float[Array, "3"]:
    """The product $R^T v$: body components of space components `v`."""
    return short_sum(R, v[:, None], axis=0)


def product(A: Float[Array, "3 3"], B: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """The product $A B$."""
    return short_sum(A[:, :, None], B[None], axis=1)


def relative(A: Float[Array, "3 3"], B: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """The product $A^T B$: the rotation `B` as seen from `A`."""
    return short_sum(A[:, :, None], B[:, None, :], axis=0)
