"""Arithmetic on complex numbers of W lanes: pairs of real ones.

A complex number that is known when the kernel is emitted is a NumPy scalar, any other a `Pair`
whose parts are numbers (see `lanes`), each known or not.
"""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from .builder import Value

if TYPE_CHECKING:
    from .lanes import Lanes


class Pair:
    """Real and imaginary part."""

    __slots__ = ("imag", "real")

    def __init__(self, real: Any, imag: Any):
        self.real, self.imag = real, imag


# A number of a program: known when the kernel is emitted, or computed by it.
LaneValue = np.generic | int | float | Value | Pair
DType = np.dtype | type[np.generic]


def is_complex(dtype: DType) -> bool:
    """Whether numbers of a type are pairs."""
    return np.dtype(dtype).kind == "c"


def part_dtype(dtype: DType) -> np.dtype:
    """The type of the parts of a complex number; of a real one its own."""
    dtype = np.dtype(dtype)
    return np.zeros((), dtype).real.dtype if is_complex(dtype) else dtype  # pyright: ignore[reportAttributeAccessIssue]


def parts(x: Any) -> tuple[Any, Any]:
    """Real and imaginary part of a pair or a known number."""
    return x.real, x.imag


def paired(dtype: DType, real: Any, imag: Any) -> Any:
    """The number with these parts: known if both are."""
    if isinstance(real, ir.Value) or isinstance(imag, ir.Value):
        return Pair(real, imag)
    out = np.empty((), dtype)
    out.real, out.imag = real, imag
    return out[()]


class Complex:
    """Emits arithmetic on pairs; methods as those of `Lanes`, with the dtype of the pairs first."""

    def __init__(self, lanes: "Lanes"):
        self.lanes = lanes

    def _apart(self, method, dtype, a, b):
        """A function of two real numbers, for each part."""
        own = part_dtype(dtype)
        (ar, ai), (br, bi) = parts(a), parts(b)
        return paired(dtype, method(own, ar, br), method(own, ai, bi))

    def add(self, dtype, a, b):
        return self._apart(self.lanes.add, dtype, a, b)

    def sub(self, dtype, a, b):
        return self._apart(self.lanes.sub, dtype, a, b)

    def neg(self, dtype, a):
        own, (re, im) = part_dtype(dtype), parts(a)
        return paired(dtype, self.lanes.neg(own, re), self.lanes.neg(own, im))

    def mul(self, dtype, a, b):
        own, lanes = part_dtype(dtype), self.lanes
        (ar, ai), (br, bi) = parts(a), parts(b)
        real = lanes.sub(own, lanes.mul(own, ar, br), lanes.mul(own, ai, bi))
        imag = lanes.add(own, lanes.mul(own, ar, bi), lanes.mul(own, ai, br))
        return paired(dtype, real, imag)

    def square(self, dtype, a):
        """The square, whose real part does not cancel and whose factors do not overflow."""
        own, lanes, (x, y) = part_dtype(dtype), self.lanes, parts(a)
        halves = [lanes.mul(own, part, own.type(0.5)) for part in (x, y)]
        quarter = lanes.mul(own, lanes.sub(own, *halves), lanes.add(own, *halves))
        real, imag = lanes.mul(own, quarter, own.type(4.0)), lanes.mul(own, x, y)
        return paired(dtype, real, lanes.add(own, imag, imag))

    def div(self, dtype, a, b):
        """Quotient; the divisor is scaled, so that its square neither overflows nor vanishes.

        Divisors of zero and of infinite size give infinity and zero, as in C's annex G; infinite is
        also the size of a number with one infinite part and one that is NaN.
        """
        own, lanes = part_dtype(dtype), self.lanes
        sizes = [self._size(own, part) for part in parts(b)]
        are_infinite = [lanes.compare(own, "==", one, own.type(np.inf)) for one in sizes]
        is_infinite = lanes.or_(np.bool_, *are_infinite)
        size = lanes.select(own, is_infinite, own.type(np.inf), lanes.max(own, *sizes))
        is_zero = lanes.compare(own, "==", size, own.type(0))
        is_special = lanes.or_(np.bool_, is_infinite, is_zero)

        def scaled(part, has_unit_size):
            unit = lanes.select(own, has_unit_size, own.type(1), own.type(0))
            unit = lanes.copysign(own, unit, part)
            return lanes.select(own, is_special, unit, lanes.div(own, part, size))

        br = scaled(parts(b)[0], lanes.or_(np.bool_, are_infinite[0], is_zero))
        bi = scaled(parts(b)[1], are_infinite[1])
        square = lanes.add(own, lanes.mul(own, br, br), lanes.mul(own, bi, bi))
        # Large numbers are halved, so that divisor and product do not overflow before the quotient.
        large = np.finfo(own).max * own.type(2.0**-20)
        all_sizes = [size, *(self._size(own, part) for part in parts(a))]
        are_large = [lanes.compare(own, ">", one, large) for one in all_sizes]
        is_large = functools.reduce(functools.partial(lanes.or_, np.bool_), are_large)
        factor = lanes.select(own, is_large, own.type(0.5), own.type(1))
        divisor = lanes.mul(own, square, lanes.mul(own, size, factor))
        a = paired(dtype, *(lanes.mul(own, x, factor) for x in parts(a)))
        # An infinite dividend has the direction of its infinite parts; over zero, parts are apart.
        apart = paired(dtype, *(lanes.mul(own, x, br) for x in parts(a)))
        direction, has_direction = self._direction(dtype, a)
        has_direction = lanes.and_(np.bool_, has_direction, lanes.not_(np.bool_, is_special))
        a = self.select(dtype, has_direction, direction, a)
        product = self.mul(dtype, a, paired(dtype, br, lanes.neg(own, bi)))
        product = self.select(dtype, is_zero, apart, product)
        divisor = lanes.select(own, has_direction, own.type(0), divisor)
        return paired(dtype, *(lanes.div(own, x, divisor) for x in parts(product)))

    def _direction(self, dtype, a):
        """Return the signs of the infinite parts, 0 for others, and whether there is one."""
        own, lanes = part_dtype(dtype), self.lanes
        infinite = own.type(np.inf)
        flags = [lanes.compare(own, "==", self._size(own, x), infinite) for x in parts(a)]
        units = [lanes.select(own, flag, own.type(1), own.type(0)) for flag in flags]
        signs = [lanes.copysign(own, u, x) for u, x in zip(units, parts(a), strict=True)]
        return paired(dtype, *signs), lanes.or_(np.bool_, *flags)

    def abs(self, dtype, a):
        """The modulus, a real number."""
        own, lanes = part_dtype(dtype), self.lanes
        x, y = (self._size(own, part) for part in parts(a))
        large, small = lanes.max(own, x, y), lanes.min(own, x, y)
        limits = [lanes.compare(own, "==", large, own.type(x)) for x in (0, np.inf)]
        has_no_ratio = lanes.or_(np.bool_, *limits)
        ratio = lanes.div(own, small, lanes.select(own, has_no_ratio, own.type(1), large))
        square = lanes.add(own, own.type(1), lanes.mul(own, ratio, ratio))
        return lanes.mul(own, large, lanes.unary("sqrt", own, square, np.sqrt))

    def _size(self, own, x):
        return self.lanes.unary("fabs", own, x, np.abs)

    def compare(self, dtype, operator, a, b):
        """Equal in both parts, or not."""
        own, lanes = part_dtype(dtype), self.lanes
        (ar, ai), (br, bi) = parts(a), parts(b)
        together = {"==": lanes.and_, "!=": lanes.or_}[operator]
        same_real = lanes.compare(own, operator, ar, br)
        return together(np.bool_, same_real, lanes.compare(own, operator, ai, bi))

    def select(self, dtype, condition, yes, no):
        own, lanes = part_dtype(dtype), self.lanes
        (yr, yi), (nr, ni) = parts(yes), parts(no)
        return paired(
            dtype,
            lanes.select(own, condition, yr, nr),
            lanes.select(own, condition, yi, ni),
        )

    def convert(self, a, old, new):
        """From and to complex numbers; a real number is the real part."""
        lanes = self.lanes
        if not is_complex(new):
            return lanes.convert(parts(a)[0], part_dtype(old), new)
        own = part_dtype(new)
        if not is_complex(old):
            return paired(new, lanes.convert(a, old, own), own.type(0))
        return paired(new, *(lanes.convert(x, part_dtype(old), own) for x in parts(a)))

    def value(self, dtype, a):
        """The parts as LLVM values."""
        own = part_dtype(dtype)
        return Pair(*(self.lanes.value(x, own) for x in parts(a)))
