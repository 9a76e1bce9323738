"""Sums of few products, for stacks of small matrices and vectors.

Each sum is one primitive, and so are its derivatives, which leaves less to trace, transpose and
compile. Kernels unroll the sum.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Num

_p = Primitive("short_sum")


def short_sum(*factors: Num[Array, "..."], axis: int) -> Num[Array, "..."]:
    """Return `jnp.sum(a * b * ..., axis)` along an axis with few entries.

    **Arguments:** `factors`, arrays whose shapes broadcast; `axis`, of their product.
    """
    rank = max(factor.ndim for factor in factors)
    padded = [factor.reshape((1,) * (rank - factor.ndim) + factor.shape) for factor in factors]
    return _p.bind(*padded, axis=axis % rank)


def _broadcast_shape(factors: Sequence[Any]) -> tuple[int, ...]:
    return np.broadcast_shapes(*(factor.shape for factor in factors))


def _sum_product(*factors: Array, axis: int) -> Array:
    return jnp.sum(functools.reduce(operator.mul, factors), axis)


def _abstract(*factors: ShapedArray, axis: int) -> ShapedArray:
    shape = _broadcast_shape(factors)
    return ShapedArray((*shape[:axis], *shape[axis + 1 :]), factors[0].dtype)


def _jvp(primals: Sequence[Array], tangents: Sequence[Any], *, axis: int) -> tuple[Array, Array]:
    parts = [
        _p.bind(*primals[:k], tangent, *primals[k + 1 :], axis=axis)
        for k, tangent in enumerate(tangents)
        if not isinstance(tangent, ad.Zero)
    ]
    return _p.bind(*primals, axis=axis), functools.reduce(operator.add, parts)


def _transpose(cotangent: Any, *factors: Any, axis: int) -> list[Array | None]:
    if isinstance(cotangent, ad.Zero):
        return [None] * len(factors)
    shape = _broadcast_shape([f.aval if ad.is_undefined_primal(f) else f for f in factors])
    known = [f for f in factors if not ad.is_undefined_primal(f)]
    cotangent = jnp.expand_dims(cotangent, axis)
    return [
        _sum_broadcast_axes([cotangent, *known], factor.aval.shape, shape)
        if ad.is_undefined_primal(factor)
        else None
        for factor in factors
    ]


def _sum_broadcast_axes(
    factors: list[Array], shape: tuple[int, ...], full: tuple[int, ...]
) -> Array:
    """Multiply factors of shape `full` and sum along the axes with extent one in `shape`."""
    for axis, (old, new) in enumerate(zip(shape, full, strict=True)):
        if old != new:
            factors = [jnp.expand_dims(_p.bind(*factors, axis=axis), axis)]
    return jnp.broadcast_to(functools.reduce(operator.mul, factors), shape)


def move_batch_axes_first(arrays: Sequence[Array], dims: Sequence[int | None]) -> list[Array]:
    """Move the batch axis of each array to the front; add one of extent one where it is missing."""
    return [
        x if dim == 0 else jnp.expand_dims(x, 0) if dim is None else jnp.moveaxis(x, dim, 0)
        for x, dim in zip(arrays, dims, strict=True)
    ]


def _batch(factors: Sequence[Array], dims: Sequence[int | None], *, axis: int) -> tuple[Array, int]:
    return _p.bind(*move_batch_axes_first(factors, dims), axis=axis + 1), 0


_p.def_impl(jax.jit(_sum_product, static_argnames="axis"))
_p.def_abstract_eval(_abstract)
ad.primitive_jvps[_p] = _jvp
ad.primitive_transposes[_p] = _transpose
batching.primitive_batchers[_p] = _batch
mlir.register_lowering(_p, mlir.lower_fun(_sum_product, multiple_results=False))
