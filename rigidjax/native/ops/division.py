"""Quotients by numbers that stay the same during a run, such as masses and moments of inertia.

A native kernel multiplies with their reciprocals, which are computed before the run: two thirds of
the quotients of a rigid body's step are of this kind, and each takes as long as six products.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

# By this name programs show it as the quotient that it is, to whoever counts operations, say.
division_p = Primitive("div")


def divide_by_invariant(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return `a / b` to round-off, for a divisor `b` that is the same throughout a run.

    The reciprocal of `b` must be a normal number: divisors beyond a quarter of the largest number
    (4e307, in single precision 8e37) give zero in native kernels.
    """
    dtype = jnp.result_type(a, b)
    a, b = jnp.broadcast_arrays(jnp.asarray(a, dtype), jnp.asarray(b, dtype))
    return division_p.bind(a, b)


def _jvp(primals, tangents):
    (a, b), (da, db) = primals, tangents
    out = division_p.bind(a, b)
    if isinstance(db, ad.Zero):
        return out, division_p.bind(da, b)
    rest = -out * db if isinstance(da, ad.Zero) else da - out * db
    return out, division_p.bind(rest, b)


def _transpose(cotangent, a, b):
    if isinstance(cotangent, ad.Zero):
        return [ad.Zero(a.aval), None]
    found = division_p.bind(cotangent, b)
    axes = [k for k, n in enumerate(a.aval.shape) if n != found.shape[k]]
    return [jnp.sum(found, axes, keepdims=True) if axes else found, None]


def _abstract(a, b):
    # `jax.vmap` gives what is no batch an axis of one entry.
    return ShapedArray(np.broadcast_shapes(a.shape, b.shape), a.dtype)


batching.defbroadcasting(division_p)
division_p.def_impl(jax.jit(jax.lax.div))
division_p.def_abstract_eval(_abstract)
ad.primitive_jvps[division_p] = _jvp
ad.primitive_transposes[division_p] = _transpose
mlir.register_lowering(division_p, mlir.lower_fun(jax.lax.div, multiple_results=False))
