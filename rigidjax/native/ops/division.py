"""Division by divisors that are invariant during a run, such as masses and moments of inertia.

A native kernel computes the reciprocals of these divisors before the time loop and multiplies
inside: a division takes several times as long as a multiplication, and most divisions in a step of
a rigid body have an invariant divisor.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

# The primitive has the name of JAX's own division, so that tools that count or print operations
# treat it as a division. The lowering distinguishes both by identity.
division_p = Primitive("div")


def divide_by_invariant(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return `a / b` up to round-off, for a divisor `b` that does not change during a run.

    The reciprocal of `b` must be a normal floating-point number: in native kernels the result is
    zero for divisors beyond a quarter of the largest number (4e307, in single precision 8e37).
    """
    dtype = jnp.result_type(a, b)
    a, b = jnp.broadcast_arrays(jnp.asarray(a, dtype), jnp.asarray(b, dtype))
    return division_p.bind(a, b)


def _jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    (a, b), (da, db) = primals, tangents
    out = division_p.bind(a, b)
    if isinstance(db, ad.Zero):
        return out, division_p.bind(da, b)
    rest = -out * db if isinstance(da, ad.Zero) else da - out * db
    return out, division_p.bind(rest, b)


def _transpose(cotangent: Any, a: Any, b: Array) -> list[Any]:
    if isinstance(cotangent, ad.Zero):
        return [ad.Zero(a.aval), None]
    divided = division_p.bind(cotangent, b)
    axes = [k for k, n in enumerate(a.aval.shape) if n != divided.shape[k]]
    return [jnp.sum(divided, axes, keepdims=True) if axes else divided, None]


def _abstract(a: ShapedArray, b: ShapedArray) -> ShapedArray:
    # `jax.vmap` gives an operand without a batch axis an axis of extent one.
    return ShapedArray(np.broadcast_shapes(a.shape, b.shape), a.dtype)


batching.defbroadcasting(division_p)
division_p.def_impl(jax.jit(jax.lax.div))
division_p.def_abstract_eval(_abstract)
ad.primitive_jvps[division_p] = _jvp
ad.primitive_transposes[division_p] = _transpose
mlir.register_lowering(division_p, mlir.lower_fun(jax.lax.div, multiple_results=False))
