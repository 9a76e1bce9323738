"""Bit-level primitives: counts, bitcasts, reduced precision and the total order of floats."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from llvmlite import ir

from ...passes.analysis import expand
from ...primitives.expansions import expansion
from ...primitives.registry import Equation, rule
from ...values.lanes import I1, is_constant
from ...values.memory import EmittedArray
from ..emitter import Emitter


def signed_integer(dtype: np.dtype) -> np.dtype:
    """Return the signed integer type of the same width."""
    return np.dtype(f"int{8 * np.dtype(dtype).itemsize}")


@rule("population_count")
def _population_count(em: Emitter, equation: Equation, a: EmittedArray):
    dtype = np.dtype(equation.invars[0].aval.dtype)
    return em.map(lambda x: em.lanes.unary("ctpop", dtype, x, _count_ones), dtype, a)


def _count_ones(x: np.integer):
    return x.dtype.type(int(x.view(_unsigned_integer(x.dtype))).bit_count())


@rule("clz")
def _leading_zeros(em: Emitter, equation: Equation, a: EmittedArray):
    dtype = np.dtype(equation.invars[0].aval.dtype)

    def compute(x):
        if is_constant(x):
            bits = np.asarray(x, dtype).view(_unsigned_integer(dtype))
            return dtype.type(8 * dtype.itemsize - int(bits).bit_length())
        name, kind = f"llvm.ctlz.{em.lanes.suffix(dtype)}", em.lanes.type(dtype)
        return em.lanes.intrinsic(name, kind, x, ir.Constant(I1, 0))

    return em.map(compute, dtype, a)


@rule("bitcast_convert_type")
def _bitcast(em: Emitter, equation: Equation, a: EmittedArray):
    old, new = (np.dtype(v.aval.dtype) for v in (equation.invars[0], equation.outvars[0]))
    if old.itemsize != new.itemsize:
        return em.emit(expand(equation), [a])
    return em.map(lambda x: em.lanes.bitcast(x, old, new), new, a, dtypes=[old])


@expansion("bitcast_convert_type")
def _expand_bitcast(x: Array, *, new_dtype: Any):
    """Split elements into narrower ones, lowest bits first, or combine several into a wider one."""
    old, new = np.dtype(x.dtype), np.dtype(new_dtype)
    x = jax.lax.bitcast_convert_type(x, _unsigned_integer(old))
    num_bits = 8 * min(old.itemsize, new.itemsize)
    count = max(old.itemsize, new.itemsize) * 8 // num_bits
    shifts = num_bits * jnp.arange(
        count, dtype=max(_unsigned_integer(old), _unsigned_integer(new), key=lambda t: t.itemsize)
    )
    if new.itemsize < old.itemsize:
        out = (x[..., None] >> shifts).astype(_unsigned_integer(new))
    else:
        out = jnp.sum(
            x.astype(_unsigned_integer(new)) << shifts, axis=-1, dtype=_unsigned_integer(new)
        )
    return jax.lax.bitcast_convert_type(out, new)


def _unsigned_integer(dtype: np.dtype):
    return np.dtype(f"uint{8 * dtype.itemsize}")


@expansion("reduce_precision")
def _reduce_precision(x: Array, *, exponent_bits: Any, mantissa_bits: Any):
    """Round to even; overflow gives infinity, underflow zero."""
    info, integer_dtype = jnp.finfo(x.dtype), signed_integer(x.dtype)
    if mantissa_bits >= info.nmant and exponent_bits >= info.nexp:
        return x
    bits = jax.lax.bitcast_convert_type(x, integer_dtype)
    dropped_bits = info.nmant - mantissa_bits
    if dropped_bits > 0:
        last_bit = (bits >> dropped_bits) & 1
        bits = (bits + last_bit + ((1 << (dropped_bits - 1)) - 1)) & ~((1 << dropped_bits) - 1)
    out = jax.lax.bitcast_convert_type(bits, x.dtype)
    if exponent_bits < info.nexp:
        bias = (1 << (exponent_bits - 1)) - 1
        largest = 2.0**bias * (2.0 - 2.0**-mantissa_bits)
        out = jnp.where(jnp.abs(out) > largest, jnp.copysign(jnp.inf, x), out)
        out = jnp.where(jnp.abs(out) < 2.0 ** (1 - bias), jnp.copysign(0.0, x), out)
    return jnp.where(x != x, x, out).astype(x.dtype)


def _to_ordered_integer(x: Array):
    """Map elements to integers in total order: -0 before 0, NaN at the ends."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    integer_dtype = signed_integer(x.dtype)
    bits = jax.lax.bitcast_convert_type(x, integer_dtype)
    return jnp.where(bits < 0, bits ^ jnp.iinfo(integer_dtype).max, bits)


@expansion("eq_to")
def _eq_to(x: Array, y: Array):
    return _to_ordered_integer(x) == _to_ordered_integer(y)


@expansion("le_to")
def _le_to(x: Array, y: Array):
    return _to_ordered_integer(x) <= _to_ordered_integer(y)


@expansion("lt_to")
def _lt_to(x: Array, y: Array):
    return _to_ordered_integer(x) < _to_ordered_integer(y)
