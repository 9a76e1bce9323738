"""Sums of products with few terms, for stacks of small matrices and vectors.

On the CPU, XLA (jaxlib 0.10) gives large reductions to a library that takes ten times as long as
the products under the sum. Written out, term by term, they are part of the loop over the stack.
Small stacks are the faster for a reduction. Which is which is not known when a function is traced
(`jax.vmap` makes stacks of it later), but when it is lowered.
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

# Products from which on a sum is written out on the CPU.
_REDUCTION_LIMIT = 3000
# Terms above which a sum is never written out.
_TERMS_LIMIT = 8
# Products of entries up to which a product of matrices is such a sum.
_PRODUCT_LIMIT = 1024

_p = Primitive("short_sum")


def short_sum(*factors: Num[Array, "..."], axis: int) -> Num[Array, "..."]:
    """The sum along an axis of a few entries: `jnp.sum(a * b, axis)`, or `jnp.sum(a, axis)`.

    **Arguments:** `factors`, arrays whose shapes broadcast; `axis`, of the product.
    """
    rank = max(factor.ndim for factor in factors)
    same = [factor.reshape((1,) * (rank - factor.ndim) + factor.shape) for factor in factors]
    return _p.bind(*same, axis=axis % rank)


def small_product(A: Num[Array, "m k"], B: Num[Array, "..."]) -> Num[Array, "..."]:
    """The product $A B$ with a matrix or vector, a sum like that of `short_sum` if of few terms.

    XLA calls a library for products of matrices, which a loop in one kernel cannot have.
    """
    if A.size * (B.size // max(len(B), 1)) > _PRODUCT_LIMIT:
        return A @ B
    if B.ndim == 1:
        return short_sum(A, B, axis=1)
    return short_sum(A[:, :, None], B[None], axis=1)


def _shape(factors) -> tuple[int, ...]:
    return np.broadcast_shapes(*(factor.shape for factor in factors))


def _reduced(*factors, axis):
    product = functools.reduce(operator.mul, factors)
    return jnp.sum(product, axis)


def _written_out(*factors, axis):
    count = _shape(factors)[axis]
    if not 0 < count <= _TERMS_LIMIT:
        return _reduced(*factors, axis=axis)

    def term(k):
        entries = (
            jax.lax.index_in_dim(factor, min(k, factor.shape[axis] - 1), axis, keepdims=False)
            for factor in factors
        )
        return functools.reduce(operator.mul, entries)

    return functools.reduce(operator.add, map(term, range(count)))


def _for_cpu(*factors, axis):
    size = functools.reduce(operator.mul, _shape(factors), 1)
    form = _reduced if size < _REDUCTION_LIMIT else _written_out
    return form(*factors, axis=axis)


def _abstract(*factors, axis):
    shape = _shape(factors)
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
    shape = _shape([f.aval if ad.is_undefined_primal(f) else f for f in factors])
    known = [f for f in factors if not ad.is_undefined_primal(f)]
    cotangent = jnp.expand_dims(cotangent, axis)
    return [
        _to_shape([cotangent, *known], factor.aval.shape, shape)
        if ad.is_undefined_primal(factor)
        else None
        for factor in factors
    ]


def _to_shape(factors, shape, full):
    """The product of factors, summed over axes along which `shape` has one entry, `full` more."""
    for axis, (one, many) in enumerate(zip(shape, full, strict=True)):
        if one != many:
            factors = [jnp.expand_dims(_p.bind(*factors, axis=axis), axis)]
    return jnp.broadcast_to(functools.reduce(operator.mul, factors), shape)


def in_front(arrays: Sequence[Array], dims: Sequence[int | None]) -> list[Array]:
    """Members of a batch with their axis first; one entry where an array has none."""
    return [
        jnp.expand_dims(x, 0) if dim is None else jnp.moveaxis(x, dim, 0)
        for x, dim in zip(arrays, dims, strict=True)
    ]


def _batched(factors, dims, *, axis):
    return _p.bind(*in_front(factors, dims), axis=axis + 1), 0


_p.def_impl(jax.jit(_for_cpu, static_argnames="axis"))
_p.def_abstract_eval(_abstract)
ad.primitive_jvps[_p] = _jvp
ad.primitive_transposes[_p] = _transpose
batching.primitive_batchers[_p] = _batched
mlir.register_lowering(_p, mlir.lower_fun(_written_out, multiple_results=False))
mlir.register_lowering(_p, mlir.lower_fun(_for_cpu, multiple_results=False), platform="cpu")
