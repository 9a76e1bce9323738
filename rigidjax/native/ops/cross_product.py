"""The cross product as one operation of a program.

Written out it is nine operations, of which five move numbers about, and a derivative by reverse
mode of 30. Programs of mechanisms are a third of cross products, and what a program costs to trace,
transpose and compile goes by the number of its operations.
"""

import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from .sums import move_batch_axes_first

_p = Primitive("cross_product")


def cross(u: Float[Array, "... 3"], v: Float[Array, "... 3"]) -> Float[Array, "... 3"]:
    r"""The cross product $u \times v$ of vectors, or of stacks of the same rank that broadcast."""
    dtype = jnp.result_type(u, v)
    return _p.bind(jnp.asarray(u, dtype), jnp.asarray(v, dtype))


def _expand(u, v):
    u, v = jnp.concatenate([u, u], -1), jnp.concatenate([v, v], -1)
    return u[..., 1:4] * v[..., 2:5] - u[..., 2:5] * v[..., 1:4]


def _abstract(u, v):
    return ShapedArray(np.broadcast_shapes(u.shape, v.shape), u.dtype)


def _jvp(primals, tangents):
    (u, v), (du, dv) = primals, tangents
    parts = [] if isinstance(du, ad.Zero) else [_p.bind(du, v)]
    parts += [] if isinstance(dv, ad.Zero) else [_p.bind(u, dv)]
    return _p.bind(u, v), functools.reduce(operator.add, parts)


def _transpose(cotangent, u, v):
    if isinstance(cotangent, ad.Zero):
        return [None, None]
    if ad.is_undefined_primal(u):
        return [_sum_broadcast_axes(_p.bind(v, cotangent), u.aval.shape), None]
    return [None, _sum_broadcast_axes(_p.bind(cotangent, u), v.aval.shape)]


def _sum_broadcast_axes(x, shape):
    """The sum along axes along which `shape` has one entry, `x` more."""
    axes = [k for k, (one, many) in enumerate(zip(shape, x.shape, strict=True)) if one != many]
    return jnp.sum(x, axes, keepdims=True) if axes else x


def _batch(vectors, dims):
    return _p.bind(*move_batch_axes_first(vectors, dims)), 0


_p.def_impl(jax.jit(_expand))
_p.def_abstract_eval(_abstract)
ad.primitive_jvps[_p] = _jvp
ad.primitive_transposes[_p] = _transpose
batching.primitive_batchers[_p] = _batch
mlir.register_lowering(_p, mlir.lower_fun(_expand, multiple_results=False))
