"""Cube root, inverse hyperbolic functions and error functions of W lanes at once.

Errors are within two units in the last place in double precision, as in `functions`. Where one
float64 would lose digits, values are sums of two (Muller, Elementary Functions, 3rd edition,
chapter 4). Inverse functions are computed by Halley's iteration.
"""

import fractions
import math

import numpy as np

from ..lowering.complex import LaneValue
from .functions import F64, Functions, log_2, pi, split_into_floats
from .powers import exp_parts, log, log_parts

# Coefficients of (1 + 2x) exp(x^2) erfc(x) for x from 0 to 28, as a polynomial in
# u = 2.28125 x/(x + 4) - 1 between -1 and 1. It interpolates 25 Chebyshev points, computed with 300
# bits, with errors below 5e-17.
_SCALED_ERFC = (
    1.2502885752286792, -0.12224018255844532, -0.01616562354017602, 0.09096180853990239,
    -0.1043684604172016, 0.0810661303147547, -0.048190774367019754, 0.02231330548583166,
    -0.007755296108112423, 0.0017546489195543224, -8.757330690807107e-05, -0.00010387139774031637,
    3.497300035706664e-05, 5.990264143195743e-07, -3.1983013373423237e-06, 4.742574777820326e-07,
    2.4222448626726365e-07, -7.336687056040359e-08, -1.882521935502492e-08, 8.736484466991512e-09,
    1.689915924726237e-09, -8.948726743845268e-10, -1.6697670119874586e-10, 6.001598725424305e-11,
    1.2019520901196915e-11,
)  # fmt: skip
_ERFC_END = np.float64(28.0)

# Coefficients of erf^-1(x) / (x sqrt(1 + w)) with w = -log(1 - x^2), for w from 0 to 39, as a
# polynomial in 2.203125 w/(w + 4) - 1, interpolated likewise with errors below 6e-8. One step of
# Halley's iteration gives the other digits.
_INVERSE_ERF = (
    0.8181256126, 0.1199161213, 0.1032599666, -0.09143266573, -0.02710922858, 0.01316206082,
    0.0509276461, 0.02089577599, -0.01944471154, -0.04781513944, -0.01783248062, 0.03836542801,
    0.03335203189, -0.01599804275, -0.01964293889, 0.00274720721, 0.004431805411,
)  # fmt: skip

_TINY, _INFINITE = np.float64(2.0**-10), np.float64(np.inf)
_ONE = np.float64(1.0)


def _sqrt_as_sum(square: fractions.Fraction) -> list[float]:
    """Return a square root as a sum of two float64 numbers."""
    return split_into_floats(fractions.Fraction(math.isqrt(int(square * 2**400)), 2**200), 2)


_ERF_SLOPE = _sqrt_as_sum(4 / pi(400))


def _map_to_unit_interval(f: Functions, x: LaneValue, factor: float) -> LaneValue:
    """Map x >= 0 to factor x/(x + 4) - 1, the argument of a polynomial."""
    fraction = f.lanes.div(F64, x, f._sum(x, np.float64(4.0)))
    return f._fma(np.float64(factor), fraction, -_ONE)


def _copy_sign(f: Functions, x: LaneValue, size: LaneValue) -> LaneValue:
    """Emit `size`, which is not negative, with the sign of `x`."""
    negative = f.lanes.compare(np.int64, "<", f._bits(x), np.int64(0))
    return f._where(negative, f._neg(size), size)


def cbrt(f: Functions, x: LaneValue) -> LaneValue:
    """Emit the cube root by Halley's iteration; the last step uses the exact remainder."""
    lanes, size = f.lanes, f._abs(x)
    tiny = f._is(size, "<", np.float64(np.finfo(np.float64).tiny))
    scaled = f._where(tiny, f._product(size, np.float64(2.0**54)), size)
    bits = f._bits(scaled)
    # size = m 2^(3q) with m from 1 to 8; 3 * 341 is the bias of the exponent.
    thirds = lanes.mul(np.int64, lanes.shift(np.int64, "lshr", bits, np.int64(52)), np.int64(43691))
    q = lanes.sub(np.int64, lanes.shift(np.int64, "lshr", thirds, np.int64(17)), np.int64(341))
    exponent = lanes.shift(np.int64, "shl", lanes.mul(np.int64, q, np.int64(3)), np.int64(52))
    m = f._from_bits(lanes.sub(np.int64, bits, exponent))
    # A linear approximation, with errors below 5 per cent.
    t = f._fma(m, np.float64(0.157), np.float64(0.87))
    for _ in range(3):
        cube = f._product(f._product(t, t), t)
        above, below = (f._fma(np.float64(2.0), a, b) for a, b in ((m, cube), (cube, m)))
        t = f._product(t, lanes.div(F64, above, below))
    square, lost = f._two_product(t, t)
    rest = f._fma(lost, t, f._fma(square, t, f._neg(m)))
    t = f._difference(t, lanes.div(F64, rest, f._product(np.float64(3.0), square)))
    q = lanes.sub(np.int64, q, lanes.select(np.int64, tiny, np.int64(18), np.int64(0)))
    t = f._from_bits(lanes.add(np.int64, f._bits(t), lanes.shift(np.int64, "shl", q, np.int64(52))))
    finite = lanes.and_(np.bool_, f._is(size, "<", _INFINITE), f._is(scaled, ">", np.float64(0.0)))
    return f._where(finite, _copy_sign(f, x, t), x)


def _sqrt_of_sum(f: Functions, high: LaneValue, low: LaneValue) -> tuple[LaneValue, LaneValue]:
    """Emit the square root of a sum of two, as a sum of two."""
    root = f.lanes.unary("sqrt", F64, high, np.sqrt)
    rest = f._sum(f._fma(f._neg(root), root, high), low)
    return root, f.lanes.div(F64, rest, f._sum(root, root))


def _log_of_sum(
    f: Functions, high: LaneValue, low: LaneValue, more: LaneValue, more_low: LaneValue
) -> LaneValue:
    """Emit log(high + low) + more + more_low."""
    first, second = log_parts(f, high)
    second = f._sum(second, f._sum(f.lanes.div(F64, low, high), more_low))
    return f._sum(first, f._sum(second, more))


def _log_of_sum_with_root(f: Functions, size: LaneValue, sign: float) -> LaneValue:
    """Emit log(size + sqrt(size^2 + sign))."""
    large = f._is(size, ">", np.float64(2.0**30))
    x = f._where(large, np.float64(2.0), size)
    square, lost = f._two_product(x, x)
    square, other = f._two_sum(square, np.float64(sign))
    root, root_low = _sqrt_of_sum(f, square, f._sum(lost, other))
    high, low = f._two_sum(x, root)
    low = f._sum(low, root_low)
    more = [f._where(large, np.float64(c), np.float64(0.0)) for c in log_2(2)]
    high, low = f._where(large, size, high), f._where(large, np.float64(0.0), low)
    return _log_of_sum(f, high, low, *more)


def asinh(f: Functions, x: LaneValue) -> LaneValue:
    """Emit the inverse hyperbolic sine."""
    size, z = f._abs(x), f._product(x, x)
    out = _log_of_sum_with_root(f, size, 1.0)
    series = f._polynomial(z, [-1 / 6, 3 / 40, -15 / 336, 105 / 3456])
    near = f._fma(f._product(size, z), series, size)
    out = f._where(f._is(size, "<", _TINY), near, out)
    return f._where(f._is(size, "<", _INFINITE), _copy_sign(f, x, out), x)


def acosh(f: Functions, x: LaneValue) -> LaneValue:
    """Emit the inverse hyperbolic cosine."""
    out = _log_of_sum_with_root(f, x, -1.0)
    out = f._where(f._is(x, "==", _ONE), np.float64(0.0), out)
    out = f._where(f._is(x, "==", _INFINITE), _INFINITE, out)
    return f._where(f._is(x, ">=", _ONE), out, np.float64(np.nan))


def atanh(f: Functions, x: LaneValue) -> LaneValue:
    """Emit the inverse hyperbolic tangent."""
    size, z = f._abs(x), f._product(x, x)
    above, above_low = f._two_sum(_ONE, size)
    below, below_low = f._two_sum(_ONE, f._neg(size))
    ratio = f.lanes.div(F64, above, below)
    rest = f._sum(f._fma(f._neg(ratio), below, above), above_low)
    rest = f._fma(f._neg(ratio), below_low, rest)
    low, none = f.lanes.div(F64, rest, below), np.float64(0.0)
    out = f._product(np.float64(0.5), _log_of_sum(f, ratio, low, none, none))
    near = f._fma(f._product(size, z), f._polynomial(z, [1 / 3, 1 / 5, 1 / 7, 1 / 9]), size)
    out = f._where(f._is(size, "<", _TINY), near, out)
    out = f._where(f._is(size, "==", _ONE), _INFINITE, out)
    return f._where(f._is(size, "<=", _ONE), _copy_sign(f, x, out), np.float64(np.nan))


def _erf_near_zero(f: Functions, x: LaneValue) -> tuple[LaneValue, LaneValue]:
    """Emit erf(x) as a sum of two, for |x| up to 1."""
    z = f._product(x, x)
    series = [(-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(1, 20)]
    first, second = _ERF_SLOPE
    bent = f._product(z, f._polynomial(z, series))
    high, low = f._two_product(x, np.float64(first))
    more = f._fma(np.float64(first), bent, np.float64(second))
    return high, f._fma(x, more, low)


def _erfc(f: Functions, x: LaneValue) -> tuple[LaneValue, LaneValue]:
    """Emit erfc(x) for x >= 0, and exp(-x^2)."""
    lanes = f.lanes
    x = f._where(f._is(x, "<", _ERFC_END), x, _ERFC_END)
    square, lost = f._two_product(x, x)
    scale, tail, factor = exp_parts(f, f._neg(square), f._neg(lost))
    e, e_low = f._two_sum(scale, f._product(scale, tail))
    u = _map_to_unit_interval(f, x, 2.28125)
    first, *others = _SCALED_ERFC
    p = f._product(u, f._polynomial(u, others))
    p, p_low = f._two_sum(np.float64(first), p)
    d, d_low = f._two_sum(_ONE, f._product(np.float64(2.0), x))
    top, top_low = f._two_product(e, p)
    top_low = f._fma(e, p_low, f._fma(e_low, p, top_low))
    inverse = lanes.div(F64, _ONE, d)
    q = f._product(top, inverse)
    rest = f._sum(f._fma(f._neg(q), d, top), f._fma(f._neg(q), d_low, top_low))
    return f._product(f._fma(rest, inverse, q), factor), f._product(e, factor)


def erfc(f: Functions, x: LaneValue) -> LaneValue:
    """Emit the complementary error function."""
    size = f._abs(x)
    above, _ = _erfc(f, size)
    negative = f._is(x, "<", np.float64(0.0))
    out = f._where(negative, f._difference(np.float64(2.0), above), above)
    near = f._difference(_ONE, f._sum(*_erf_near_zero(f, x)))
    out = f._where(f._is(size, "<", np.float64(0.35)), near, out)
    return f._where(f._is(x, "!=", x), x, out)


def erf(f: Functions, x: LaneValue) -> LaneValue:
    """Emit the error function."""
    size = f._abs(x)
    above, _ = _erfc(f, size)
    near = f._sum(*_erf_near_zero(f, size))
    out = f._where(f._is(size, "<", np.float64(0.7)), near, f._difference(_ONE, above))
    return f._where(f._is(x, "!=", x), x, _copy_sign(f, x, out))


def erf_inv(f: Functions, x: LaneValue) -> LaneValue:
    """Emit the inverse error function."""
    size = f._abs(x)
    inside = f._is(size, "<", _ONE)
    a = f._where(inside, size, np.float64(0.5))
    above = f._difference(_ONE, a)
    w = f._neg(log(f, f._product(above, f._sum(_ONE, a))))
    u = _map_to_unit_interval(f, w, 2.203125)
    root = f.lanes.unary("sqrt", F64, f._sum(_ONE, w), np.sqrt)
    y = f._product(f._product(a, root), f._polynomial(u, list(_INVERSE_ERF)))
    high, low = _erf_near_zero(f, y)
    complement, density = _erfc(f, y)
    near = f._sum(f._difference(high, a), low)
    error = f._where(f._is(y, "<", np.float64(0.7)), near, f._difference(above, complement))
    step = f.lanes.div(F64, error, f._product(np.float64(_ERF_SLOPE[0]), density))
    y = f._difference(y, f.lanes.div(F64, step, f._fma(y, step, _ONE)))
    # For tiny arguments the error of the guess has no correct digits, but the inverse is linear.
    first, second = (np.float64(c) for c in _sqrt_as_sum(pi(400) / 4))
    line = f._fma(a, first, f._product(a, second))
    y = f._where(f._is(size, "<", np.float64(2.0**-30)), line, y)
    y = f._where(f._is(size, "==", _ONE), _INFINITE, y)
    return f._where(f._is(size, "<=", _ONE), _copy_sign(f, x, y), np.float64(np.nan))
