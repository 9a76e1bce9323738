"""Exponential function, logarithm and powers of W lanes at once, by tables.

A table for the leading bits and a short polynomial for the rest (Muller, Elementary Functions, 3rd
edition, chapter 6) take half the time of a long polynomial. This matters because every step of a
run waits for the power in its step-size control. Errors are within one unit in the last place in
double precision.
"""

import fractions
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ..values.builder import Value, int64
from ..values.complex import LaneValue
from ..values.lanes import is_constant
from .functions import F64, Functions, log_2

_BITS = 7
_ENTRIES = 1 << _BITS
_STEP = 1 << (52 - _BITS)
_TINY, _INFINITE = np.float64(np.finfo(np.float64).tiny), np.float64(np.inf)
# Adding this constant to a small number rounds the number to an integer, which is found in the last
# bits of the sum.
_ROUNDER = np.float64(1.5 * 2.0**52)
_ROUNDER_BITS = _ROUNDER.view(np.int64)
# Bits of 0.7051, the smallest argument of the logarithm that is not scaled by a power of two. With
# this choice 1 is in the middle of a table entry.
_LEAST_BITS = np.float64(1.0).view(np.int64) - np.int64(75 * _STEP + _STEP // 2)
# Multiples of 1 / `_GRID`, times integers up to 2048, are summed without rounding.
_GRID = 2**42
# The exponential function is computed scaled by 2^512 or 2^-512, so that no intermediate result
# overflows or underflows.
_SHIFT = 512


def _log_of_ratio(above: int, below: int) -> fractions.Fraction:
    """Return log(above / below) of a ratio near 1, to 160 bits."""
    difference, total = above - below, above + below
    term, out = (difference << 160) // total, 0
    for k in range(1, 64, 2):
        out += term // k
        term = term * difference * difference // (total * total)
    return fractions.Fraction(2 * out, 1 << 160)


def _round_to_grid(x: fractions.Fraction) -> tuple[float, float]:
    """Return the nearest multiple of 1 / `_GRID`, and the remainder."""
    first = fractions.Fraction(round(x * _GRID), _GRID)
    return float(first), float(x - first)


@functools.cache
def _reciprocals_and_logarithms() -> np.ndarray:
    """Return, for each table entry, 1/c and log(c) as a sum of two; c is close to its arguments z.

    1/c is a multiple of 1/128 or 1/256, such that z/c - 1 is computed without rounding.
    """
    out = np.zeros((_ENTRIES, 4))
    for k in range(_ENTRIES):
        low, high = (_LEAST_BITS + np.array([k, k + 1]) * _STEP).view(np.float64).tolist()
        # Number of fractional bits of the arguments in this entry.
        digits = 53 if low < 1 else 52
        candidates = []
        for n in (128, 256):
            near = round(2 * n / (low + high))
            for m in (near - 1, near, near + 1):
                largest = max(abs(low * m / n - 1), abs(high * m / n - 1))
                if math.ldexp(largest * n, digits) <= 2.0**53:
                    candidates.append((largest, n, m))
        _, above, below = min(candidates)
        out[k, :3] = below / above, *_round_to_grid(_log_of_ratio(above, below))
    return out


@functools.cache
def _powers_of_two() -> np.ndarray:
    """Return, for each k, 2^(k/128) as a float64 and the relative error of the float64.

    `k * _STEP` is subtracted from the bits of the float64; `exp_parts` adds it again together with
    the exponent.
    """
    bits = 160
    root = 2 << bits
    for _ in range(_BITS):
        root = math.isqrt(root << bits)
    out, power = np.zeros((_ENTRIES, 2)), 1 << bits
    for k in range(_ENTRIES):
        near = (power + (1 << (bits - 53))) >> (bits - 52)
        entry = np.float64(near * 2.0**-52).view(np.int64) - np.int64(k * _STEP)
        rest = power - (near << (bits - 52))
        out[k] = entry.view(np.float64), rest / power
        power = power * root >> bits
    return out


# llvmlite declares the initializer of a global variable as `None`.
_global: Any = ir.GlobalVariable


def _look_up(
    f: Functions, table: Callable[[], np.ndarray], index: LaneValue, columns: int
) -> Sequence[LaneValue]:
    """Load the first `columns` entries of a table row, whose index differs between lanes."""
    lanes, build = f.lanes, f.lanes.builder
    rows, length = table().shape
    kind = ir.ArrayType(ir.DoubleType(), rows * length)
    name = f"table{table.__name__}"
    data = build.module.globals.get(name)
    if data is None:
        data = _global(build.module, kind, name)
        data.global_constant, data.linkage = True, "internal"
        data.initializer = ir.Constant(kind, [float(x) for x in table().ravel()])
    starts = [build.mul(lanes.extract_lane(index, k), int64(length)) for k in range(lanes.width)]
    out = []
    for column in range(columns):
        indices = [build.add(start, int64(column)) for start in starts]
        entries: list[Value] = [
            build.load(build.gep(data, [int64(0), k], source_etype=kind), typ=ir.DoubleType())
            for k in indices
        ]
        out.append(lanes.pack_lanes(entries))
    return out


def exp_parts(
    f: Functions, x: LaneValue, rest: LaneValue | None = None
) -> tuple[LaneValue, LaneValue, LaneValue]:
    """Return a scale, a small tail and a factor with exp(x + rest) = (scale + scale tail) factor.

    `x` must lie between -1060 and 709.79; otherwise the scale is meaningless.
    """
    lanes = f.lanes
    first, second = (c / _ENTRIES for c in log_2(2))
    shifted = f._fma(x, np.float64(_ENTRIES / math.log(2)), _ROUNDER)
    k = lanes.sub(np.int64, f._bits(shifted), _ROUNDER_BITS)
    multiple = f._difference(shifted, _ROUNDER)
    r = f._fma(multiple, np.float64(-first), x)
    r = f._fma(multiple, np.float64(-second), r)
    r = r if rest is None else f._sum(r, rest)
    index = lanes.and_(np.int64, k, np.int64(_ENTRIES - 1))
    power, correction = _look_up(f, _powers_of_two, index, 2)
    below = f._is(x, "<", np.float64(0.0))
    shift = lanes.select(np.int64, below, np.int64(_SHIFT << 52), np.int64(-(_SHIFT << 52)))
    k = lanes.shift(np.int64, "shl", k, np.int64(52 - _BITS))
    bits = lanes.add(np.int64, f._bits(power), shift)
    scale = f._from_bits(lanes.add(np.int64, bits, k))
    factor = f._where(below, np.float64(2.0**-_SHIFT), np.float64(2.0**_SHIFT))
    square = f._product(r, r)
    high = f._fma(r, np.float64(1 / 120), np.float64(1 / 24))
    high = f._fma(square, np.float64(1 / 720), high)
    low = f._fma(r, np.float64(1 / 6), np.float64(1 / 2))
    bend = f._product(square, f._fma(square, high, low))
    return scale, f._sum(f._sum(r, correction), bend), factor


def exp(f: Functions, x: LaneValue, rest: LaneValue | None = None) -> LaneValue:
    """Emit the exponential function of `x`, or of `x + rest`."""
    scale, tail, factor = exp_parts(f, x, rest)
    out = f._product(f._fma(scale, tail, scale), factor)
    edge = f._where(f._is(x, ">", np.float64(0.0)), _INFINITE, np.float64(0.0))
    edge = f._where(f._is(x, "!=", x), x, edge)
    usual = f.lanes.and_(
        np.bool_, f._is(x, "<", np.float64(709.79)), f._is(x, ">", np.float64(-745.2))
    )
    return f._where(usual, out, edge)


def log_parts(f: Functions, x: LaneValue) -> tuple[LaneValue, LaneValue]:
    """Emit the logarithm of a positive finite number as a sum of two, accurate to some 65 bits.

    The second part is up to 1e-6 of the first one, which is available earlier: operations that need
    the leading part alone do not wait for the other.
    """
    lanes, half = f.lanes, np.float64(-0.5)
    above = lanes.sub(np.int64, f._bits(x), _LEAST_BITS)
    index = lanes.shift(np.int64, "ashr", above, np.int64(52 - _BITS))
    index = lanes.and_(np.int64, index, np.int64(_ENTRIES - 1))
    k = lanes.shift(np.int64, "ashr", above, np.int64(52))
    z = lanes.sub(np.int64, f._bits(x), lanes.shift(np.int64, "shl", k, np.int64(52)))
    inverse, base, base_low = _look_up(f, _reciprocals_and_logarithms, index, 3)
    # Convert the integer to float64 by means of its bits in a large number.
    exponent = f._difference(f._from_bits(lanes.add(np.int64, k, _ROUNDER_BITS)), _ROUNDER)
    first, second = _round_to_grid(sum(map(fractions.Fraction, log_2(3)), fractions.Fraction(0)))
    base = f._fma(exponent, np.float64(first), base)
    low = f._fma(exponent, np.float64(second), base_low)
    r = f._fma(f._from_bits(z), inverse, np.float64(-1.0))
    high = f._sum(base, r)
    low = f._sum(low, f._sum(f._difference(base, high), r))
    bent = f._product(half, r)
    square = f._product(r, bent)
    out = f._sum(high, square)
    low = f._sum(low, f._fma(bent, r, f._neg(square)))
    low = f._sum(low, f._sum(f._difference(high, out), square))
    # r^3/3 - r^4/4 + ...
    square = f._product(r, r)
    terms = [f._fma(r, np.float64(-1 / (n + 1)), np.float64(1 / n)) for n in (3, 5, 7)]
    tail = f._fma(square, np.float64(1 / 9), terms[2])
    tail = f._fma(square, f._fma(square, tail, terms[1]), terms[0])
    return out, f._fma(f._product(square, r), tail, low)


def _has_logarithm(f: Functions, x: LaneValue) -> LaneValue:
    """Emit whether `x` is finite and a positive normal number; subnormal ones count as zero."""
    return f.lanes.and_(np.bool_, f._is(x, ">=", _TINY), f._is(x, "<", _INFINITE))


def _log_of_special_values(f: Functions, x: LaneValue) -> LaneValue:
    """Emit the logarithm of values that are excluded by `_has_logarithm`."""
    out = f._where(f._is(x, ">", np.float64(-_TINY)), -_INFINITE, np.float64(np.nan))
    return f._where(f._is(x, ">=", _TINY), _INFINITE, out)


def log(f: Functions, x: LaneValue) -> LaneValue:
    """Emit the natural logarithm."""
    out = f._sum(*log_parts(f, x))
    return f._where(_has_logarithm(f, x), out, _log_of_special_values(f, x))


def pow(f: Functions, x: LaneValue, y: LaneValue, of_root: bool = False) -> LaneValue:
    """Emit x^y with the special values of IEEE 754; `y` may be a compile-time constant.

    **Arguments:** `of_root`, whether the power replaces one of the square root of `x`, which is NaN
    for minus infinity as well.
    """
    if is_constant(y) and y == 0:
        return np.float64(1.0)
    lanes, one, zero = f.lanes, np.float64(1.0), np.float64(0.0)
    x = lanes.value(x, F64)
    size = f._abs(x)
    high, low = log_parts(f, size)
    p = f._product(y, high)
    p_low = f._fma(y, low, f._fma(y, high, f._neg(p)))
    out = exp(f, p, p_low)
    is_integer = f._is(lanes.unary("floor", F64, y, np.floor), "==", y)
    half = f._product(y, np.float64(0.5))
    is_even = f._is(lanes.unary("floor", F64, half, np.floor), "==", half)
    odd = lanes.and_(np.bool_, is_integer, lanes.not_(np.bool_, is_even))
    finite = f._is(f._abs(y), "<", _INFINITE)
    no_root = lanes.and_(np.bool_, f._is(x, "<", zero), lanes.not_(np.bool_, is_integer))
    has_logarithm = _has_logarithm(f, size)
    usual = lanes.and_(np.bool_, has_logarithm, finite)
    usual = lanes.and_(np.bool_, usual, lanes.not_(np.bool_, no_root))
    # Special values: base or exponent is zero, infinite or NaN, or a root of a negative number.
    edge = f._product(y, f._where(has_logarithm, high, _log_of_special_values(f, size)))
    edge = f._where(f._is(edge, "<", zero), zero, edge)
    finite_base = np.True_ if of_root else f._is(size, "<", _INFINITE)
    edge = f._where(lanes.and_(np.bool_, no_root, finite_base), np.float64(np.nan), edge)
    # The result is 1 for -1 to an infinite power, for an exponent of zero and for a base of one.
    unit = lanes.and_(np.bool_, f._is(size, "==", one), f._is(f._abs(y), "==", _INFINITE))
    unit = lanes.or_(np.bool_, unit, f._is(y, "==", zero))
    unit = lanes.or_(np.bool_, unit, f._is(x, "==", one))
    out = f._where(usual, out, f._where(unit, one, edge))
    negative = lanes.compare(np.int64, "<", f._bits(x), np.int64(0))
    return f._where(lanes.and_(np.bool_, negative, odd), f._neg(out), out)
