r"""Linear algebra by LAPACK that is safe under `jax.vmap`.

Batches are factorised one matrix after another on the CPU. There, jaxlib (0.10) spreads a batch
over the threads that also run the program, and waits for them: two batched factorisations that run
at once on two cores wait for ever. Derivatives are products of matrices.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Num, PyTree

from ..lowering.expansions import EXPANSIONS


def sequential_vmap_on_cpu(function: Callable[..., PyTree[Array]]) -> Callable[..., PyTree[Array]]:
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


def lapack_primitive(
    name: str,
    lapack: Callable[..., PyTree[Array]],
    loop: Callable[..., PyTree[Array]],
    jvp: Callable[..., tuple[Array, Array]],
    transpose: Callable[..., list[Array | None]] | None = None,
) -> Callable[..., PyTree[Array]]:
    """Return an operation on a matrix by LAPACK, which native kernels know by its name.

    Its derivatives are rules of a primitive, not of `jax.custom_jvp`: `jax.checkpoint` forgets
    those where it computes a function again, and then differentiates LAPACK.

    **Arguments:** `name`, of the operation in a jaxpr; `lapack`; `loop`, the JAX code of which
    kernels without a rule for the operation are made: functions of arrays with one array as a
    result, of the shape of the last argument; the first one is the matrix. `jvp(primals,
    tangents)`, whose tangents may be `ad.Zero`; `transpose(cotangent, *arrays)`, of operations that
    are linear in some of the arrays.
    """
    operation = Primitive(name)
    EXPANSIONS[name] = loop
    operation.def_impl(jax.jit(lapack))
    operation.def_abstract_eval(lambda *arrays: arrays[-1])

    def batched(arrays, axes):
        (size,) = {x.shape[k] for x, k in zip(arrays, axes, strict=True) if k is not None}
        arrays = [
            jnp.broadcast_to(x, (size, *x.shape)) if k is None else jnp.moveaxis(x, k, 0)
            for x, k in zip(arrays, axes, strict=True)
        ]

        def in_turn(*arrays):
            return jax.lax.map(lambda one: operation.bind(*one), arrays)

        at_once = jax.vmap(lapack)
        return jax.lax.platform_dependent(*arrays, cpu=in_turn, default=at_once), 0

    batching.primitive_batchers[operation] = batched
    mlir.register_lowering(operation, mlir.lower_fun(lapack, multiple_results=False))
    ad.primitive_jvps[operation] = jvp
    if transpose is not None:
        ad.primitive_transposes[operation] = transpose
    return operation.bind


def gauss_jordan(A: Num[Array, "n n"]) -> Num[Array, "n n"]:
    """The inverse without LAPACK: elimination in place, the pivot the largest of a column."""
    n = len(A)
    index = jnp.arange(n)

    def column(k, carry):
        A, free, rows = carry
        of_pivots = jax.lax.dynamic_slice_in_dim(A, k, 1, axis=1)[:, 0]
        p = jnp.argmax(jnp.where(free, _magnitude(of_pivots), -1.0))
        row = jax.lax.dynamic_slice_in_dim(A, p, 1)[0]
        at_row, at_column = index == p, index == k
        pivot = 1.0 / row[k]
        row = jnp.where(at_column, pivot, row * pivot)
        rest = jnp.where(at_column[None], 0.0, A) - of_pivots[:, None] * row[None]
        A = jnp.where(at_row[:, None], row[None], rest)
        return A, free & ~at_row, jnp.where(at_column, p, rows)

    start = A, jnp.ones(n, bool), jnp.zeros(n, index.dtype)
    A, _, rows = jax.lax.fori_loop(0, n, column, start)
    columns = jnp.zeros_like(rows).at[rows].set(index)
    return A[rows][:, columns]


def _magnitude(z):
    return jnp.abs(z.real) + jnp.abs(z.imag) if jnp.iscomplexobj(z) else jnp.abs(z)


def _inverse_jvp(primals, tangents):
    X = _inverse(*primals)
    return X, -X @ tangents[0] @ X


_inverse = lapack_primitive("inverse", jnp.linalg.inv, gauss_jordan, _inverse_jvp)


def inverse(A: Num[Array, "n n"]) -> Num[Array, "n n"]:
    """Return the inverse of a real or complex matrix; not finite if it has none."""
    return _inverse(A) if A.size else A


def block_diagonal(blocks: Num[Array, "L k k"]) -> Num[Array, "n n"]:
    """The square matrix with these blocks on its diagonal."""
    count, size = blocks.shape[:2]
    own = jnp.eye(count, dtype=bool)[:, None, :, None]
    return jnp.where(own, blocks[:, :, None, :], 0).reshape(count * size, count * size)
