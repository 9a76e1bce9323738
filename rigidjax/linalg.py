r"""Linear algebra by LAPACK that is safe under `jax.vmap`.

Batches are factorised one matrix after another on the CPU. There, jaxlib (0.10) spreads a batch
over the threads that also run the program, and waits for them: two batched factorisations that run
at once on two cores wait for ever. Derivatives are products of matrices.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Num


def one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, applied to one matrix after another in batches on the CPU."""
    mapped = custom_vmap(function)

    @mapped.def_vmap
    def _(axis_size, in_batched, *arrays):
        arrays = [
            array if batched else jnp.broadcast_to(array, (axis_size, *array.shape))
            for array, batched in zip(arrays, in_batched, strict=True)
        ]

        def in_turn(*arrays):
            return jax.lax.map(lambda one: mapped(*one), arrays)

        at_once = jax.vmap(function)
        out = jax.lax.platform_dependent(*arrays, cpu=in_turn, default=at_once)
        return out, jax.tree.map(lambda _: True, out)

    return mapped


_lapack_inverse = one_by_one(jnp.linalg.inv)


@jax.custom_jvp
def inverse(A: Num[Array, "n n"]) -> Num[Array, "n n"]:
    """The inverse of a real or complex matrix; not finite if it has none."""
    return _lapack_inverse(A) if A.size else A


@inverse.defjvp
def _inverse_jvp(primals, tangents):
    (A,), (dA,) = primals, tangents
    X = inverse(A)
    return X, -X @ dA @ X
