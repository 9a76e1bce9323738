"""Numbers as their bits: counts, order of all of them, other types and precisions."""

import jax
import jax.numpy as jnp
import numpy as np
from llvmlite import ir

from ...passes.analysis import expand
from ..emitter import Emitter
from ..expansions import expansion
from ..lanes import I1, is_constant
from ..registry import rule


def whole(dtype) -> np.dtype:
    """The type of whole numbers with sign that is as wide."""
    return np.dtype(f"int{8 * np.dtype(dtype).itemsize}")


@rule("population_count")
def _population_count(em: Emitter, equation, a):
    dtype = np.dtype(equation.invars[0].aval.dtype)
    return em.map(lambda x: em.lanes.unary("ctpop", dtype, x, _ones), dtype, a)


def _ones(x):
    return x.dtype.type(int(x.view(_unsigned(x.dtype))).bit_count())


@rule("clz")
def _leading_zeros(em: Emitter, equation, a):
    dtype = np.dtype(equation.invars[0].aval.dtype)

    def one(x):
        if is_constant(x):
            bits = np.asarray(x, dtype).view(_unsigned(dtype))
            return dtype.type(8 * dtype.itemsize - int(bits).bit_length())
        name, kind = f"llvm.ctlz.{em.lanes.suffix(dtype)}", em.lanes.type(dtype)
        return em.lanes.intrinsic(name, kind, x, ir.Constant(I1, 0))

    return em.map(one, dtype, a)


@rule("bitcast_convert_type")
def _bitcast(em: Emitter, equation, a):
    old, new = (np.dtype(v.aval.dtype) for v in (equation.invars[0], equation.outvars[0]))
    if old.itemsize != new.itemsize:
        return em.emit(expand(equation), [a])
    return em.map(lambda x: em.lanes.bitcast(x, old, new), new, a, dtypes=[old])


@expansion("bitcast_convert_type")
def _parts(x, *, new_dtype):
    """One number as several, the lowest bits first, or several as one."""
    old, new = np.dtype(x.dtype), np.dtype(new_dtype)
    x = jax.lax.bitcast_convert_type(x, _unsigned(old))
    bits = 8 * min(old.itemsize, new.itemsize)
    count = max(old.itemsize, new.itemsize) * 8 // bits
    by = bits * jnp.arange(
        count, dtype=max(_unsigned(old), _unsigned(new), key=lambda t: t.itemsize)
    )
    if new.itemsize < old.itemsize:
        out = (x[..., None] >> by).astype(_unsigned(new))
    else:
        out = jnp.sum(x.astype(_unsigned(new)) << by, axis=-1, dtype=_unsigned(new))
    return jax.lax.bitcast_convert_type(out, new)


def _unsigned(dtype):
    return np.dtype(f"uint{8 * dtype.itemsize}")


@expansion("reduce_precision")
def _reduce_precision(x, *, exponent_bits, mantissa_bits):
    """Rounded to even; too large is infinite, too small is zero."""
    info, kind = jnp.finfo(x.dtype), whole(x.dtype)
    if mantissa_bits >= info.nmant and exponent_bits >= info.nexp:
        return x
    bits = jax.lax.bitcast_convert_type(x, kind)
    lost = info.nmant - mantissa_bits
    if lost > 0:
        last = (bits >> lost) & 1
        bits = (bits + last + ((1 << (lost - 1)) - 1)) & ~((1 << lost) - 1)
    out = jax.lax.bitcast_convert_type(bits, x.dtype)
    if exponent_bits < info.nexp:
        bias = (1 << (exponent_bits - 1)) - 1
        largest = 2.0**bias * (2.0 - 2.0**-mantissa_bits)
        out = jnp.where(jnp.abs(out) > largest, jnp.copysign(jnp.inf, x), out)
        out = jnp.where(jnp.abs(out) < 2.0 ** (1 - bias), jnp.copysign(0.0, x), out)
    return jnp.where(x != x, x, out).astype(x.dtype)


def _ordered(x):
    """Whole numbers in the order of all numbers: -0 before 0, NaN at the ends."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    kind = whole(x.dtype)
    bits = jax.lax.bitcast_convert_type(x, kind)
    return jnp.where(bits < 0, bits ^ jnp.iinfo(kind).max, bits)


@expansion("eq_to")
def _eq_to(x, y):
    return _ordered(x) == _ordered(y)


@expansion("le_to")
def _le_to(x, y):
    return _ordered(x) <= _ordered(y)


@expansion("lt_to")
def _lt_to(x, y):
    return _ordered(x) < _ordered(y)
