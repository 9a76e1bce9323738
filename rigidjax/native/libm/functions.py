"""Elementary functions of W lanes at once, without a mathematical library.

Range reduction in the manner of Cody and Waite (for large angles, of Payne and Hanek), then Taylor
polynomials: within two units in the last place in double precision. The formulas are those of
Muller, Elementary Functions, 3rd edition, chapters 11 (reduction) and 4 (extra digits).
"""

import fractions
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ..values.builder import I64, Builder, int64
from ..values.complex import LaneValue
from ..values.lanes import Lanes

F64, U64 = np.dtype(np.float64), np.dtype(np.uint64)
_I128 = ir.IntType(128)


@functools.cache
def pi(bits: int) -> fractions.Fraction:
    """Return pi to this number of bits, by Machin's formula."""

    def inverse_tangent(n: LaneValue) -> LaneValue:
        total, term, k = 0, (1 << bits) // n, 1
        while term:
            total += (term // k) * (1 if k % 4 == 1 else -1)
            term, k = term // (n * n), k + 2
        return total

    return fractions.Fraction(16 * inverse_tangent(5) - 4 * inverse_tangent(239), 1 << bits)


def split_into_floats(x: fractions.Fraction, count: int) -> list[float]:
    """Return `count` float64 numbers with the sum `x`, the largest first."""
    out = []
    for _ in range(count):
        out.append(float(x))
        x -= fractions.Fraction(out[-1])
    return out


@functools.cache
def log_2(count: int) -> list[float]:
    """Return log(2) as a sum of `count` float64 numbers, the largest first."""
    terms = (fractions.Fraction(2, (2 * k + 1) * 3 ** (2 * k + 1)) for k in range(80))
    return split_into_floats(sum(terms, fractions.Fraction(0)), count)


@functools.cache
def _half_pi() -> list[float]:
    return split_into_floats(pi(400) / 2, 3)


@functools.cache
def _two_over_pi_words() -> np.ndarray:
    """Return the bits of 2 / pi in 64-bit words, preceded by a word of zeros."""
    words = 20
    digits = int(2 / pi(1600) * 2 ** (64 * words))
    mask = (1 << 64) - 1
    bits = [(digits >> (64 * (words - 1 - k))) & mask for k in range(words)]
    return np.array([0, *bits], np.uint64)


class Functions:
    """Emitter of functions of float64 values that are not compile-time constants."""

    def __init__(self, lanes: Lanes):
        # Without fast-math flags: the algorithms rely on the rounding errors of single operations.
        self.lanes = Lanes(lanes.builder, lanes.width, flags=())
        self._angle: tuple | None = None

    def _sum(self, a: LaneValue, b: LaneValue) -> LaneValue:
        return self.lanes.add(F64, a, b)

    def _difference(self, a: LaneValue, b: LaneValue) -> LaneValue:
        return self.lanes.sub(F64, a, b)

    def _product(self, a: LaneValue, b: LaneValue) -> LaneValue:
        return self.lanes.mul(F64, a, b)

    def _fma(self, a: LaneValue, b: LaneValue, c: LaneValue) -> LaneValue:
        return self.lanes.fma(F64, a, b, c)

    def _neg(self, a: LaneValue) -> LaneValue:
        return self.lanes.neg(F64, a)

    def _abs(self, a: LaneValue) -> LaneValue:
        return self.lanes.unary("fabs", F64, a, np.abs)

    def _is(self, a: LaneValue, operator: str, b: LaneValue) -> LaneValue:
        return self.lanes.compare(F64, operator, a, b)

    def _where(self, condition: LaneValue, yes: LaneValue, no: LaneValue) -> LaneValue:
        return self.lanes.select(F64, condition, yes, no)

    def _integer(self, a: LaneValue) -> LaneValue:
        return self.lanes.convert(a, F64, np.int64)

    def _real(self, k: LaneValue) -> LaneValue:
        return self.lanes.convert(k, np.int64, F64)

    def _bits(self, a: LaneValue) -> LaneValue:
        return self.lanes.bitcast(a, F64, np.int64)

    def _from_bits(self, k: LaneValue) -> LaneValue:
        return self.lanes.bitcast(k, np.int64, F64)

    def _polynomial(self, x: LaneValue, coefficients: Sequence[float]) -> LaneValue:
        """Evaluate a polynomial by Horner's rule; the constant coefficient comes first."""
        out = np.float64(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            out = self._fma(out, x, np.float64(c))
        return out

    def _two_sum(self, a: LaneValue, b: LaneValue) -> tuple[LaneValue, LaneValue]:
        """Return a sum and its rounding error."""
        s = self._sum(a, b)
        part = self._difference(s, a)
        rest = self._difference(a, self._difference(s, part))
        return s, self._sum(rest, self._difference(b, part))

    def _two_product(self, a: LaneValue, b: LaneValue) -> tuple[LaneValue, LaneValue]:
        p = self._product(a, b)
        return p, self._fma(a, b, self._neg(p))

    def sin(self, x: LaneValue) -> LaneValue:
        return self._circular(x, 0)

    def cos(self, x: LaneValue) -> LaneValue:
        return self._circular(x, 1)

    def _circular(self, x: LaneValue, quarter: int) -> LaneValue:
        k, r, low = self._reduce_angle(x)
        k = self.lanes.add(np.int64, k, np.int64(quarter))
        z = self._product(r, r)
        odd = [(-1) ** n / math.factorial(2 * n + 1) for n in range(1, 10)]
        even = [(-1) ** n / math.factorial(2 * n) for n in range(2, 11)]
        # sin(r + low) = r + (r z P(z) + low (1 - z / 2)), and similarly for the cosine.
        bend = self._fma(z, np.float64(-0.5), np.float64(1.0))
        cubic = self._product(self._product(r, z), self._polynomial(z, odd))
        sine = self._sum(r, self._fma(low, bend, cubic))
        half = self._product(z, np.float64(0.5))
        top = self._difference(np.float64(1.0), half)
        lost = self._difference(self._difference(np.float64(1.0), top), half)
        rest = self._fma(self._product(z, z), self._polynomial(z, even), lost)
        cosine = self._sum(top, self._fma(self._neg(r), low, rest))
        lanes = self.lanes
        is_even = self._is_bit_zero(k, 1)
        out = self._where(is_even, sine, cosine)
        out = self._where(self._is_bit_zero(k, 2), out, self._neg(out))
        # Preserve the sign of zero, and arguments that are too small for the reduction.
        if quarter == 0:
            out = self._where(self._is(self._abs(x), "<", np.float64(1e-150)), x, out)
        infinite = lanes.not_(np.bool_, self._is(self._abs(x), "<", np.float64(np.inf)))
        return self._where(infinite, np.float64(np.nan), out)

    def _is_bit_zero(self, k: LaneValue, bit: int) -> LaneValue:
        """Return whether a bit of an integer is zero."""
        masked = self.lanes.and_(np.int64, k, np.int64(bit))
        return self.lanes.compare(np.int64, "==", masked, np.int64(0))

    def _reduce_angle(self, x: LaneValue) -> list[LaneValue]:
        """Return an integer k and an angle in two parts, at most pi/4, with x = k pi/2 + angle."""
        build = self.lanes.builder
        if self._angle is not None and self._angle[:2] == (x, build.block):
            return self._angle[2]
        first, second, third = _half_pi()
        quarters = self.lanes.unary("rint", F64, self._product(x, np.float64(2 / math.pi)), np.rint)
        # This fma is exact: the result has no bits below those of `first`.
        r = self._fma(quarters, np.float64(-first), x)
        w, w_low = self._two_product(quarters, np.float64(second))
        r, low = self._two_sum(r, self._neg(w))
        low = self._difference(low, w_low)
        low = self._fma(quarters, np.float64(-third), low)
        near = [self._integer(quarters), r, low]
        large = self._is(self._abs(x), ">", np.float64(1e5))
        before = build.block
        with build.if_then(self.lanes.any(large), likely=False):
            far = build.call(_large_angle_function(build.module, self.lanes.width), [x])
            far = [build.extract_value(far, n) for n in range(3)]
            dtypes = (np.dtype(np.int64), F64, F64)
            far = [
                self.lanes.select(d, large, a, b) for d, a, b in zip(dtypes, far, near, strict=True)
            ]
            inside = build.block
        out = []
        for a, b in zip(near, far, strict=True):
            phi = build.phi(a.type)
            phi.add_incoming(a, before)
            phi.add_incoming(b, inside)
            out.append(phi)
        self._angle = x, build.block, out
        return out

    def reduce_large_angle(
        self, x: LaneValue, words: Callable[[LaneValue], LaneValue]
    ) -> list[LaneValue]:
        """Reduce large angles by the relevant bits of 2/pi (Payne and Hanek), see `_reduce_angle`.

        **Arguments:** `words(indices)`, the words of `_two_over_pi_words` for each lane.
        """
        lanes = self.lanes

        def shift(kind, a, by):
            return lanes.shift(U64, kind, a, by)

        bits = self._bits(self._abs(x))
        exponent = lanes.shift(np.int64, "lshr", bits, np.int64(52))
        mantissa = lanes.and_(np.int64, bits, np.int64((1 << 52) - 1))
        mantissa = lanes.or_(np.int64, mantissa, np.int64(1 << 52))
        # x = mantissa 2^e; bits of 2/pi before bit e - 1 contribute multiples of 4 to k.
        e = lanes.sub(np.int64, exponent, np.int64(1075))
        # Lanes with a small or non-finite value must not read beyond the table.
        e = lanes.max(np.int64, lanes.min(np.int64, e, np.int64(971)), np.int64(-36))
        position = lanes.add(np.int64, e, np.int64(62))
        word = lanes.shift(np.int64, "ashr", position, np.int64(6))
        by = lanes.and_(np.int64, position, np.int64(63))
        back = lanes.sub(np.int64, np.int64(64), by)
        read = [words(lanes.add(np.int64, word, np.int64(n))) for n in range(4)]
        window = [
            lanes.or_(U64, shift("shl", read[n], by), shift("lshr", read[n + 1], back))
            for n in range(3)
        ]
        low = [lanes.mul(U64, mantissa, w) for w in window]
        high = [self._high_product(mantissa, w) for w in window]
        middle = lanes.add(U64, low[1], high[2])
        carry = lanes.convert(lanes.compare(U64, "<", middle, low[1]), np.bool_, U64)
        top = lanes.add(U64, lanes.add(U64, low[0], high[1]), carry)
        two, rest = np.uint64(2), np.uint64(62)
        a = lanes.or_(U64, shift("shl", top, two), shift("lshr", middle, rest))
        b = lanes.or_(U64, shift("shl", middle, two), shift("lshr", low[2], rest))
        # The remaining fraction of a right angle lies between -1/2 and 1/2, in units of 2^-64.
        k = lanes.add(U64, shift("lshr", top, rest), shift("lshr", a, np.uint64(63)))
        leading = self._real(a)
        left = self._real(lanes.sub(np.int64, a, self._integer(leading)))
        tail = lanes.convert(b, U64, F64)
        left = self._fma(tail, np.float64(2.0**-64), left)
        f, f_low = self._two_sum(leading, left)
        f, f_low = (self._product(v, np.float64(2.0**-64)) for v in (f, f_low))
        first, second, _ = _half_pi()
        r, low_part = self._two_product(f, np.float64(first))
        low_part = self._fma(f, np.float64(second), low_part)
        low_part = self._fma(f_low, np.float64(first), low_part)
        r, low_part = self._two_sum(r, low_part)
        negative = self._is(x, "<", np.float64(0.0))
        return [
            lanes.select(np.int64, negative, lanes.neg(np.int64, k), k),
            self._where(negative, self._neg(r), r),
            self._where(negative, self._neg(low_part), low_part),
        ]

    def _high_product(self, a: LaneValue, b: LaneValue) -> LaneValue:
        """Return the upper half of the product of unsigned 64-bit integers."""
        build, lanes = self.lanes.builder, self.lanes
        wide = lanes.vector(_I128)
        product = build.mul(*(build.zext(lanes.value(v, U64), wide) for v in (a, b)))
        by = ir.Constant(_I128, 64)
        shift = by if lanes.width == 1 else ir.Constant(wide, [by] * lanes.width)
        return build.trunc(build.lshr(product, shift), lanes.vector(I64))

    def atan(self, x: LaneValue) -> LaneValue:
        """Emit the inverse tangent."""
        size = self._abs(x)
        beyond = self._is(size, ">", np.float64(1 + math.sqrt(2)))
        middle = self._is(size, ">", np.float64(math.sqrt(2) - 1))
        one = np.float64(1.0)
        above = self._where(beyond, np.float64(-1.0), self._difference(size, one))
        above = self._where(middle, above, size)
        below = self._where(beyond, size, self._sum(size, one))
        u = self.lanes.div(F64, above, self._where(middle, below, one))
        first, second, _ = _half_pi()
        half = np.float64(0.5)
        base, more = (
            self._where(beyond, c, self._where(middle, half * c, np.float64(0.0)))
            for c in (np.float64(first), np.float64(second))
        )
        z = self._product(u, u)
        p = self._polynomial(z, [(-1) ** n / (2 * n + 1) for n in range(1, 24)])
        out = self._sum(base, self._sum(u, self._fma(self._product(u, z), p, more)))
        negative = self.lanes.compare(np.int64, "<", self._bits(x), np.int64(0))
        return self._where(negative, self._neg(out), out)


def _large_angle_function(module: ir.Module, width: int) -> Any:
    """Return the function of a module that reduces large angles, emitted at first use."""
    name = f"far_angle_{width}"
    if name in module.globals:
        return module.globals[name]
    vector = lambda kind: kind if width == 1 else ir.VectorType(kind, width)  # noqa: E731
    real, integer = vector(ir.DoubleType()), vector(I64)
    result = ir.LiteralStructType([integer, real, real])
    function = ir.Function(module, ir.FunctionType(result, [real]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = Builder(function.append_basic_block("entry"))
    data = _two_over_pi_words()
    kind = ir.ArrayType(I64, len(data))
    table: Any = ir.GlobalVariable(module, kind, name + "_bits")
    table.global_constant, table.linkage = True, "internal"
    table.initializer = ir.Constant(kind, [int(word) for word in data])
    lanes = Lanes(builder, width)

    def words(indices):
        out = []
        for k in range(width):
            zero = int64(0)
            pointer = builder.gep(table, [zero, lanes.extract_lane(indices, k)], source_etype=kind)
            out.append(builder.load(pointer, typ=I64))
        return lanes.pack_lanes(out)

    parts = Functions(lanes).reduce_large_angle(function.args[0], words)
    out = ir.Constant(result, ir.Undefined)
    for k, part in enumerate(parts):
        out = builder.insert_value(out, part, k)
    builder.ret(out)
    return function
