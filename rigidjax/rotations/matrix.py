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
