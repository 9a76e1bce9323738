r"""Linear algebra by LAPACK that is safe under `jax.vmap`.

Batches are factorised one matrix after another on the CPU. jaxlib (0.10) distributes a batched
factorisation over the threads that also execute the computation, and waits for them: with two
cores, two batched factorisations at the same time deadlock. Derivatives are matrix products.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Num, PyTree

from ..primitives.expansions import EXPANSIONS


def sequential_vmap_on_cpu(function: Callable[..., PyTree[Array]]) -> Callable[..., PyTree[Array]]:
    """Return the function with a `jax.vmap` rule that maps sequentially on the CPU.

    On other devices the rule is that of the function itself. See
    `jax.custom_batching.sequential_vmap`.
    """
    mapped = custom_vmap(function)

    @mapped.def_vmap
    def _(axis_size, in_batched, *arrays):
        arrays = [
            array if batched else jnp.broadcast_to(array, (axis_size, *array.shape))
            for array, batched in zip(arrays, in_batched, strict=True)
        ]

        def map_sequentially(*arrays):
            return jax.lax.map(lambda element: mapped(*element), arrays)

        vectorised = jax.vmap(function)
        out = jax.lax.platform_dependent(*arrays, cpu=map_sequentially, default=vectorised)
        return out, jax.tree.map(lambda _: True, out)

    return mapped


def lapack_primitive(
    name: str,
    lapack: Callable[..., PyTree[Array]],
    loop: Callable[..., PyTree[Array]],
    jvp: Callable[..., tuple[Array, Array]],
    transpose: Callable[..., list[Array | None]] | None = None,
) -> Callable[..., PyTree[Array]]:
    """Return a matrix operation that is one primitive, computed by LAPACK outside of kernels.

    Its derivatives are rules of the primitive and not of `jax.custom_jvp`, because
    `jax.checkpoint` drops the latter when it recomputes a function, and then differentiates LAPACK.

    **Arguments:**

    - `name`: name of the primitive.
    - `lapack`: implementation by LAPACK. It takes arrays, the matrix first, and returns one array
      with the shape of the last argument.
    - `loop`: JAX code with the same signature, for kernels without a rule for the primitive.
    - `jvp`: JVP rule `jvp(primals, tangents)`; tangents may be `ad.Zero`.
    - `transpose`: transpose rule `transpose(cotangent, *arrays)`, for an operation that is linear
      in some of its arguments.
    """
    operation = Primitive(name)
    EXPANSIONS[name] = loop
    operation.def_impl(jax.jit(lapack))
    operation.def_abstract_eval(lambda *arrays: arrays[-1])

    def batch(arrays, axes):
        (size,) = {x.shape[k] for x, k in zip(arrays, axes, strict=True) if k is not None}
        arrays = [
            jnp.broadcast_to(x, (size, *x.shape)) if k is None else jnp.moveaxis(x, k, 0)
            for x, k in zip(arrays, axes, strict=True)
        ]

        def map_sequentially(*arrays):
            return jax.lax.map(lambda element: operation.bind(*element), arrays)

        vectorised = jax.vmap(lapack)
        return jax.lax.platform_dependent(*arrays, cpu=map_sequentially, default=vectorised), 0

    batching.primitive_batchers[operation] = batch
    mlir.register_lowering(operation, mlir.lower_fun(lapack, multiple_results=False))
    ad.primitive_jvps[operation] = jvp
    if transpose is not None:
        ad.primitive_transposes[operation] = transpose
    return operation.bind


def gauss_jordan(A: Num[Array, "n n"]) -> Num[Array, "n n"]:
    """Return the inverse by Gauss-Jordan elimination in place, with partial pivoting."""
    n = len(A)
    index = jnp.arange(n)

    def column(k, carry):
        A, free, rows = carry
        candidates = jax.lax.dynamic_slice_in_dim(A, k, 1, axis=1)[:, 0]
        p = jnp.argmax(jnp.where(free, _magnitude(candidates), -1.0))
        row = jax.lax.dynamic_slice_in_dim(A, p, 1)[0]
        at_row, at_column = index == p, index == k
        pivot = 1.0 / row[k]
        row = jnp.where(at_column, pivot, row * pivot)
        rest = jnp.where(at_column[None], 0.0, A) - candidates[:, None] * row[None]
        A = jnp.where(at_row[:, None], row[None], rest)
        return A, free & ~at_row, jnp.where(at_column, p, rows)

    start = A, jnp.ones(n, bool), jnp.zeros(n, index.dtype)
    A, _, rows = jax.lax.fori_loop(0, n, column, start)
    columns = jnp.zeros_like(rows).at[rows].set(index)
    return A[rows][:, columns]


def _magnitude(z: Array) -> Array:
    return jnp.abs(z.real) + jnp.abs(z.imag) if jnp.iscomplexobj(z) else jnp.abs(z)


def _inverse_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    X = _inverse(*primals)
    return X, -X @ tangents[0] @ X


_inverse = lapack_primitive("inverse", jnp.linalg.inv, gauss_jordan, _inverse_jvp)


def inverse(A: Num[Array, "n n"]) -> Num[Array, "n n"]:
    """Return the inverse of a real or complex matrix; not finite for a singular matrix."""
    return _inverse(A) if A.size else A


def block_diagonal(blocks: Num[Array, "L k k"]) -> Num[Array, "n n"]:
    """Return the block-diagonal matrix of the given blocks, n = L k."""
    count, size = blocks.shape[:2]
    is_diagonal = jnp.eye(count, dtype=bool)[:, None, :, None]
    return jnp.where(is_diagonal, blocks[:, :, None, :], 0).reshape(count * size, count * size)
