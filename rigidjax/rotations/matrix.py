"""3x3 matrices from their entries."""

from collections.abc import Sequence

import jax.numpy as jnp

from ..annotations import Matrix3, Scalar, Vector3
from ..small_arrays import short_sum


def matrix(entries: Sequence[Scalar]) -> Matrix3:
    """Return the 3x3 matrix of nine scalar entries, given row by row."""
    # Rows are stacked one by one, so that XLA simplifies `matrix(...)[i, j]` to the scalar and
    # omits unused entries. It cannot do that through `stack(entries).reshape(3, 3)`.
    rows = (entries[0:3], entries[3:6], entries[6:9])
    return jnp.stack([jnp.stack(list(row)) for row in rows])


# These functions are for batches. Under `jax.vmap` each one is two operations, which compile faster
# than scalar components and run equally fast.


def to_space(R: Matrix3, v: Vector3) -> Vector3:
    """Return $R v$, the space components of a vector with body components `v`."""
    return short_sum(R, v[None, :], axis=1)


def to_body(R: Matrix3, v: Vector3) -> Vector3:
    """Return $R^T v$, the body components of a vector with space components `v`."""
    return short_sum(R, v[:, None], axis=0)


def product(A: Matrix3, B: Matrix3) -> Matrix3:
    """Return the product $A B$."""
    return short_sum(A[:, :, None], B[None], axis=1)


def relative(A: Matrix3, B: Matrix3) -> Matrix3:
    """Return $A^T B$, the rotation `B` relative to `A`."""
    return short_sum(A[:, :, None], B[:, None, :], axis=0)
