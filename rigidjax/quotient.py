"""Quotients by numbers that stay the same during a run, such as masses and moments of inertia.

One operation of a program, as a quotient is, but a native kernel multiplies with the reciprocal,
which is computed before the run: two thirds of the quotients of a rigid body's step are of this
kind, and each takes as long as six products.
"""

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

_p = Primitive("quotient")


def quotient(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """`a / b` to round-off, for a divisor `b` that is the same throughout a run."""
    dtype = jnp.result_type(a, b)
    a, b = jnp.broadcast_arrays(jnp.asarray(a, dtype), jnp.asarray(b, dtype))
    return _p.bind(a, b)


def _jvp(primals, tangents):
    (a, b), (da, db) = primals, tangents
    out = _p.bind(a, b)
    if isinstance(db, ad.Zero):
        return out, _p.bind(da, b)
    rest = -out * db if isinstance(da, ad.Zero) else da - out * db
    return out, _p.bind(rest, b)


def _transpose(cotangent, a, b):
    return [ad.Zero(a.aval) if isinstance(cotangent, ad.Zero) else _p.bind(cotangent, b), None]


batching.defbroadcasting(_p)
_p.def_impl(jax.jit(jax.lax.div))
_p.def_abstract_eval(lambda a, b: a)
ad.primitive_jvps[_p] = _jvp
ad.primitive_transposes[_p] = _transpose
mlir.register_lowering(_p, mlir.lower_fun(jax.lax.div, multiple_results=False))
