"""Exponential function, logarithm and powers of W lanes at once, by tables.

A table for the leading bits and a short polynomial for the rest (Muller, Elementary Functions, 3rd
edition, chapter 6) take half the time of a long polynomial: a step of a run waits for the power in
its step-size control. Within one unit in the last place in double precision.
"""

import fractions
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ..lowering.builder import Value, int64
from ..lowering.lanes import is_constant
from .functions import F64, Functions, log_2

_BITS = 7
_ENTRIES = 1 << _BITS
_STEP = 1 << (52 - _BITS)
_TINY, _INFINITE = np.float64(np.finfo(np.float64).tiny), np.float64(np.inf)
# Adding it to a small number rounds that to a whole one, which its last bits then are.
_ROUNDER = np.float64(1.5 * 2.0**52)
_ROUNDER_BITS = _ROUNDER.view(np.int64)
# The least number that is taken with its own exponent, 0.7051: 1 is in the middle of an entry.
_LEAST_BITS = np.float64(1.0).view(np.int64) - np.int64(75 * _STEP + _STEP // 2)
# Multiples of it, times whole numbers up to 2048, are summed without rounding.
_GRID = 2**42
# The exponential function is computed times or over that power, so that nothing overflows early.
_SHIFT = 512


def _log_of_ratio(above: int, below: int) -> fractions.Fraction:
    """The natural logarithm of a ratio near 1, to 160 bits."""
    difference, total = above - below, above + below
    term, out = (difference << 160) // total, 0
    for k in range(1, 64, 2):
        out += term // k
        term = term * difference * difference // (total * total)
    return fractions.Fraction(2 * out, 1 << 160)


def _round_to_grid(x: fractions.Fraction) -> tuple[float, float]:
    """A number as a multiple of the grid and what is left."""
    first = fractions.Fraction(round(x * _GRID), _GRID)
    return float(first), float(x - first)


@functools.cache
def _reciprocals_and_logarithms() -> np.ndarray:
    """For each entry 1/c, and log(c) as a sum of two, c close to the numbers of the entry.

    1/c is a multiple of 1/128 or 1/256 such that z/c - 1 is computed without rounding.
    """
    out = np.zeros((_ENTRIES, 4))
    for k in range(_ENTRIES):
        low, high = (_LEAST_BITS + np.array([k, k + 1]) * _STEP).view(np.float64).tolist()
        # Digits behind the point of the numbers of the entry.
        digits = 53 if low < 1 else 52
        found = []
        for n in (128, 256):
            near = round(2 * n / (low + high))
            for m in (near - 1, near, near + 1):
                largest = max(abs(low * m / n - 1), abs(high * m / n - 1))
                if math.ldexp(largest * n, digits) <= 2.0**53:
                    found.append((largest, n, m))
        _, above, below = min(found)
        out[k, :3] = below / above, *_round_to_grid(_log_of_ratio(above, below))
    return out


@functools.cache
def _powers_of_two() -> np.ndarray:
    """For each entry k the bits of 2^(k/128) less k/128 of an exponent, and the relative rest."""
    bits = 160
    root = 2 << bits
    for _ in range(_BITS):
        root = math.isqrt(root << bits)
    out, power = np.zeros((_ENTRIES, 2)), 1 << bits
    for k in range(_ENTRIES):
        near = (power + (1 << (bits - 53))) >> (bits - 52)
        own = np.float64(near * 2.0**-52).view(np.int64) - np.int64(k * _STEP)
        rest = power - (near << (bits - 52))
        out[k] = own.view(np.float64), rest / power
        power = power * root >> bits
    return out


# llvmlite's types say that a variable starts from nothing.
_global: Any = ir.GlobalVariable


def _look_up(f: Functions, table: Callable[[], np.ndarray], index, columns: int) -> Sequence:
    """The first entries of the row of a table that each lane asks for."""
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
        places = [build.add(start, int64(column)) for start in starts]
        found: list[Value] = [
            build.load(build.gep(data, [int64(0), place], source_etype=kind), typ=ir.DoubleType())
            for place in places
        ]
        out.append(lanes.pack_lanes(found))
    return out


def exp_parts(f: Functions, x, rest=None):
    """A scale, a small tail and a factor with exp(x + rest) = (scale + scale tail) factor.

    For `x` from -1060 to 709.79; beyond, the scale is meaningless.
    """
    lanes = f.lanes
    first, second = (c / _ENTRIES for c in log_2(2))
    shifted = f._fma(x, np.float64(_ENTRIES / math.log(2)), _ROUNDER)
    k = lanes.sub(np.int64, f._bits(shifted), _ROUNDER_BITS)
    turns = f._difference(shifted, _ROUNDER)
    r = f._fma(turns, np.float64(-first), x)
    r = f._fma(turns, np.float64(-second), r)
    r = r if rest is None else f._sum(r, rest)
    index = lanes.and_(np.int64, k, np.int64(_ENTRIES - 1))
    root, more = _look_up(f, _powers_of_two, index, 2)
    below = f._is(x, "<", np.float64(0.0))
    moved = lanes.select(np.int64, below, np.int64(_SHIFT << 52), np.int64(-(_SHIFT << 52)))
    k = lanes.shift(np.int64, "shl", k, np.int64(52 - _BITS))
    bits = lanes.add(np.int64, f._bits(root), moved)
    scale = f._from_bits(lanes.add(np.int64, bits, k))
    factor = f._where(below, np.float64(2.0**-_SHIFT), np.float64(2.0**_SHIFT))
    square = f._product(r, r)
    high = f._fma(r, np.float64(1 / 120), np.float64(1 / 24))
    high = f._fma(square, np.float64(1 / 720), high)
    low = f._fma(r, np.float64(1 / 6), np.float64(1 / 2))
    bend = f._product(square, f._fma(square, high, low))
    return scale, f._sum(f._sum(r, more), bend), factor


def exp(f: Functions, x, rest=None):
    """The exponential function of `x`, or of `x + rest`."""
    scale, tail, factor = exp_parts(f, x, rest)
    out = f._product(f._fma(scale, tail, scale), factor)
    edge = f._where(f._is(x, ">", np.float64(0.0)), _INFINITE, np.float64(0.0))
    edge = f._where(f._is(x, "!=", x), x, edge)
    usual = f.lanes.and_(
        np.bool_, f._is(x, "<", np.float64(709.79)), f._is(x, ">", np.float64(-745.2))
    )
    return f._where(usual, out, edge)


def log_parts(f: Functions, x):
    """The logarithm of a positive finite number as a sum of two, good to some 65 bits.

    The second is up to 1e-6 of the first; who waits for the first alone can go on sooner.
    """
    lanes, half = f.lanes, np.float64(-0.5)
    above = lanes.sub(np.int64, f._bits(x), _LEAST_BITS)
    index = lanes.shift(np.int64, "ashr", above, np.int64(52 - _BITS))
    index = lanes.and_(np.int64, index, np.int64(_ENTRIES - 1))
    k = lanes.shift(np.int64, "ashr", above, np.int64(52))
    z = lanes.sub(np.int64, f._bits(x), lanes.shift(np.int64, "shl", k, np.int64(52)))
    inverse, base, base_low = _look_up(f, _reciprocals_and_logarithms, index, 3)
    # A whole number of few digits as the last bits of a large one.
    turns = f._difference(f._from_bits(lanes.add(np.int64, k, _ROUNDER_BITS)), _ROUNDER)
    first, second = _round_to_grid(sum(map(fractions.Fraction, log_2(3)), fractions.Fraction(0)))
    base = f._fma(turns, np.float64(first), base)
    low = f._fma(turns, np.float64(second), base_low)
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


def _has_logarithm(f: Functions, x):
    """Whether `x` is positive, finite and not so small that it counts as zero."""
    return f.lanes.and_(np.bool_, f._is(x, ">=", _TINY), f._is(x, "<", _INFINITE))


def _log_of_special_values(f: Functions, x):
    """The logarithm of what `_has_logarithm` leaves out."""
    out = f._where(f._is(x, ">", np.float64(-_TINY)), -_INFINITE, np.float64(np.nan))
    return f._where(f._is(x, ">=", _TINY), _INFINITE, out)


def log(f: Functions, x):
    """The natural logarithm."""
    out = f._sum(*log_parts(f, x))
    return f._where(_has_logarithm(f, x), out, _log_of_special_values(f, x))


def pow(f: Functions, x, y, of_root: bool = False):
    """x^y with the rules of IEEE 754 for its edges; `y` may be known.

    **Arguments:** `of_root`, whether it is that of a square root of `x`: not a number for minus
    infinity too.
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
    whole = f._is(lanes.unary("floor", F64, y, np.floor), "==", y)
    half = f._product(y, np.float64(0.5))
    split_in_two = f._is(lanes.unary("floor", F64, half, np.floor), "==", half)
    odd = lanes.and_(np.bool_, whole, lanes.not_(np.bool_, split_in_two))
    finite = f._is(f._abs(y), "<", _INFINITE)
    no_root = lanes.and_(np.bool_, f._is(x, "<", zero), lanes.not_(np.bool_, whole))
    has_logarithm = _has_logarithm(f, size)
    usual = lanes.and_(np.bool_, has_logarithm, finite)
    usual = lanes.and_(np.bool_, usual, lanes.not_(np.bool_, no_root))
    # What is left: a base or an exponent that is zero, infinite or undefined, roots of less than 0.
    edge = f._product(y, f._where(has_logarithm, high, _log_of_special_values(f, size)))
    edge = f._where(f._is(edge, "<", zero), zero, edge)
    finite_base = np.True_ if of_root else f._is(size, "<", _INFINITE)
    edge = f._where(lanes.and_(np.bool_, no_root, finite_base), np.float64(np.nan), edge)
    # -1 to an infinite power, and everything to the power of zero.
    unit = lanes.and_(np.bool_, f._is(size, "==", one), f._is(f._abs(y), "==", _INFINITE))
    unit = lanes.or_(np.bool_, unit, f._is(y, "==", zero))
    unit = lanes.or_(np.bool_, unit, f._is(x, "==", one))
    out = f._where(usual, out, f._where(unit, one, edge))
    negative = lanes.compare(np.int64, "<", f._bits(x), np.int64(0))
    return f._where(lanes.and_(np.bool_, negative, odd), f._neg(out), out)
