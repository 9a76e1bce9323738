"""Sums of products with few terms, for stacks of small matrices and vectors.

One operation of a program each, derivatives too, so that there is less to trace, transpose and
compile; kernels write them out.
"""

import functools
import operator
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Num

_p = Primitive("short_sum")


def short_sum(*factors: Num[Array, "..."], axis: int) -> Num[Array, "..."]:
    """The sum along an axis of a few entries: `jnp.sum(a * b, axis)`, or `jnp.sum(a, axis)`.

    **Arguments:** `factors`, arrays whose shapes broadcast; `axis`, of the product.
    """
    rank = max(factor.ndim for factor in factors)
    same = [factor.reshape((1,) * (rank - factor.ndim) + factor.shape) for factor in factors]
    return _p.bind(*same, axis=axis % rank)


def _broadcast_shape(factors) -> tuple[int, ...]:
    return np.broadcast_shapes(*(factor.shape for factor in factors))


def _sum_product(*factors, axis):
    return jnp.sum(functools.reduce(operator.mul, factors), axis)


def _abstract(*factors, axis):
    shape = _broadcast_shape(factors)
    return ShapedArray((*shape[:axis], *shape[axis + 1 :]), factors[0].dtype)


def _jvp(primals, tangents, *, axis):
    parts = [
        _p.bind(*primals[:k], tangent, *primals[k + 1 :], axis=axis)
        for k, tangent in enumerate(tangents)
        if not isinstance(tangent, ad.Zero)
    ]
    return _p.bind(*primals, axis=axis), functools.reduce(operator.add, parts)


def _transpose(cotangent, *factors, axis):
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


def _sum_broadcast_axes(factors, shape, full):
    """The product of factors, summed over axes along which `shape` has one entry, `full` more."""
    for axis, (one, many) in enumerate(zip(shape, full, strict=True)):
        if one != many:
            factors = [jnp.expand_dims(_p.bind(*factors, axis=axis), axis)]
    return jnp.broadcast_to(functools.reduce(operator.mul, factors), shape)


def move_batch_axes_first(arrays: Sequence[Array], dims: Sequence[int | None]) -> list[Array]:
    """Members of a batch with their axis first; one entry where an array has none."""
    return [
        x if dim == 0 else jnp.expand_dims(x, 0) if dim is None else jnp.moveaxis(x, dim, 0)
        for x, dim in zip(arrays, dims, strict=True)
    ]


def _batch(factors, dims, *, axis):
    return _p.bind(*move_batch_axes_first(factors, dims), axis=axis + 1), 0


_p.def_impl(jax.jit(_sum_product, static_argnames="axis"))
_p.def_abstract_eval(_abstract)
ad.primitive_jvps[_p] = _jvp
ad.primitive_transposes[_p] = _transpose
batching.primitive_batchers[_p] = _batch
mlir.register_lowering(_p, mlir.lower_fun(_sum_product, multiple_results=False))
