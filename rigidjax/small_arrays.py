"""Array functions with an efficient form in kernels, for small arrays of physics."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .native import variants
from .native.ops import (
    block_diagonal as block_diagonal,
    cross as cross,
    divide_by_invariant as divide_by_invariant,
    householder_qr as householder_qr,
    inverse as inverse,
    lapack_primitive as lapack_primitive,
    segment_sum as segment_sum,
    sequential_vmap_on_cpu as sequential_vmap_on_cpu,
    short_sum as short_sum,
    stack_rows as stack_rows,
    take as take,
    vmap_rows as vmap_rows,
)


def finite_svd(
    A: Float[Array, "m n"], full_matrices: bool = True
) -> tuple[Float[Array, "m a"], Float[Array, " k"], Float[Array, "b n"]]:
    """Return the singular value decomposition, NaN for a matrix that is not finite.

    LAPACK's iteration, which XLA calls, may not end for such a matrix.
    """

    def decompose(A):
        return tuple(jnp.linalg.svd(A, full_matrices))

    def decompose_or_nan():
        is_finite = jnp.all(jnp.isfinite(A))
        parts = decompose(jnp.where(is_finite, A, 0.0))
        return jax.tree.map(lambda x: jnp.where(is_finite, x, jnp.nan), parts)

    return variants(sequential=lambda: decompose(A), batched=decompose_or_nan)
