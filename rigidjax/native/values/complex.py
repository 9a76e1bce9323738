"""Arithmetic on complex elements of W lanes: pairs of real ones.

A complex compile-time constant is a NumPy scalar. Any other complex element is a `Pair`, whose
parts are real elements (see `lanes`), constants among them.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from llvmlite import ir

if TYPE_CHECKING:
    from .lanes import Lanes


class Pair:
    """Real and imaginary part."""

    __slots__ = ("imag", "real")

    def __init__(self, real: Any, imag: Any):
        self.real, self.imag = real, imag


# An element of an array in all lanes: a compile-time constant (np.generic, int or float), an LLVM
# value, or a `Pair` of these. Type checkers cannot tell which from the dtype and `is_constant`.
LaneValue: TypeAlias = Any
DType = np.dtype | type[np.generic]


def is_complex(dtype: DType) -> bool:
    """Return whether elements of a type are pairs."""
    return np.dtype(dtype).kind == "c"


def part_dtype(dtype: DType) -> np.dtype:
    """Return the type of the parts of a complex type, or a real type itself."""
    dtype = np.dtype(dtype)
    return np.zeros((), dtype).real.dtype if is_complex(dtype) else dtype  # pyright: ignore[reportAttributeAccessIssue]


def parts(x: Any) -> tuple[Any, Any]:
    """Return the real and imaginary part of a pair or a constant."""
    return x.real, x.imag


def make_pair(dtype: DType, real: Any, imag: Any) -> Any:
    """Return the element with these parts: a constant if both are."""
    if isinstance(real, ir.Value) or isinstance(imag, ir.Value):
        return Pair(real, imag)
    out = np.empty((), dtype)
    out.real, out.imag = real, imag
    return out[()]


class Complex:
    """Emits arithmetic on pairs.

    Methods are those of `Lanes`; their first argument is the dtype of the pairs.
    """

    def __init__(self, lanes: "Lanes"):
        self.lanes = lanes

    def _map_parts(self, method: Callable[..., Any], dtype: DType, a: Any, b: Any) -> Any:
        """Apply a function of two real elements to each part."""
        real_dtype = part_dtype(dtype)
        (ar, ai), (br, bi) = parts(a), parts(b)
        return make_pair(dtype, method(real_dtype, ar, br), method(real_dtype, ai, bi))

    def add(self, dtype: DType, a: Any, b: Any) -> Any:
        return self._map_parts(self.lanes.add, dtype, a, b)

    def sub(self, dtype: DType, a: Any, b: Any) -> Any:
        return self._map_parts(self.lanes.sub, dtype, a, b)

    def neg(self, dtype: DType, a: Any) -> Any:
        real_dtype, (re, im) = part_dtype(dtype), parts(a)
        return make_pair(dtype, self.lanes.neg(real_dtype, re), self.lanes.neg(real_dtype, im))

    def mul(self, dtype: DType, a: Any, b: Any) -> Any:
        real_dtype, lanes = part_dtype(dtype), self.lanes
        (ar, ai), (br, bi) = parts(a), parts(b)
        real = lanes.sub(real_dtype, lanes.mul(real_dtype, ar, br), lanes.mul(real_dtype, ai, bi))
        imag = lanes.add(real_dtype, lanes.mul(real_dtype, ar, bi), lanes.mul(real_dtype, ai, br))
        return make_pair(dtype, real, imag)

    def square(self, dtype: DType, a: Any) -> Any:
        """Return the square; its real part has no cancellation and its factors no overflow."""
        real_dtype, lanes, (x, y) = part_dtype(dtype), self.lanes, parts(a)
        halves = [lanes.mul(real_dtype, part, real_dtype.type(0.5)) for part in (x, y)]
        quarter = lanes.mul(
            real_dtype, lanes.sub(real_dtype, *halves), lanes.add(real_dtype, *halves)
        )
        real, imag = (
            lanes.mul(real_dtype, quarter, real_dtype.type(4.0)),
            lanes.mul(real_dtype, x, y),
        )
        return make_pair(dtype, real, lanes.add(real_dtype, imag, imag))

    def div(self, dtype: DType, a: Any, b: Any) -> Any:
        """Divide; the divisor is scaled, so that its square neither overflows nor underflows.

        Division by zero and by infinity gives infinity and zero as in annex G of C. A number with
        an infinite part counts as infinite even if its other part is NaN.
        """
        real_dtype, lanes = part_dtype(dtype), self.lanes
        magnitudes = [self._magnitude(real_dtype, part) for part in parts(b)]
        infinite_flags = [
            lanes.compare(real_dtype, "==", magnitude, real_dtype.type(np.inf))
            for magnitude in magnitudes
        ]
        is_infinite = lanes.or_(np.bool_, *infinite_flags)
        magnitude = lanes.select(
            real_dtype, is_infinite, real_dtype.type(np.inf), lanes.max(real_dtype, *magnitudes)
        )
        is_zero = lanes.compare(real_dtype, "==", magnitude, real_dtype.type(0))
        is_special = lanes.or_(np.bool_, is_infinite, is_zero)

        def scale_part(part, is_unit):
            unit = lanes.select(real_dtype, is_unit, real_dtype.type(1), real_dtype.type(0))
            unit = lanes.copysign(real_dtype, unit, part)
            return lanes.select(
                real_dtype, is_special, unit, lanes.div(real_dtype, part, magnitude)
            )

        br = scale_part(parts(b)[0], lanes.or_(np.bool_, infinite_flags[0], is_zero))
        bi = scale_part(parts(b)[1], infinite_flags[1])
        square = lanes.add(real_dtype, lanes.mul(real_dtype, br, br), lanes.mul(real_dtype, bi, bi))
        # Large operands are halved, so that the product does not overflow before the division.
        large = np.finfo(real_dtype).max * real_dtype.type(2.0**-20)
        all_magnitudes = [magnitude, *(self._magnitude(real_dtype, part) for part in parts(a))]
        large_flags = [
            lanes.compare(real_dtype, ">", magnitude, large) for magnitude in all_magnitudes
        ]
        is_large = functools.reduce(functools.partial(lanes.or_, np.bool_), large_flags)
        factor = lanes.select(real_dtype, is_large, real_dtype.type(0.5), real_dtype.type(1))
        divisor = lanes.mul(real_dtype, square, lanes.mul(real_dtype, magnitude, factor))
        a = make_pair(dtype, *(lanes.mul(real_dtype, part, factor) for part in parts(a)))
        # An infinite dividend is replaced by the signs of its infinite parts. Division by zero
        # treats the parts separately.
        separate_product = make_pair(dtype, *(lanes.mul(real_dtype, part, br) for part in parts(a)))
        signs, is_infinite_dividend = self._infinite_signs(dtype, a)
        is_infinite_dividend = lanes.and_(
            np.bool_, is_infinite_dividend, lanes.not_(np.bool_, is_special)
        )
        a = self.select(dtype, is_infinite_dividend, signs, a)
        product = self.mul(dtype, a, make_pair(dtype, br, lanes.neg(real_dtype, bi)))
        product = self.select(dtype, is_zero, separate_product, product)
        divisor = lanes.select(real_dtype, is_infinite_dividend, real_dtype.type(0), divisor)
        return make_pair(dtype, *(lanes.div(real_dtype, x, divisor) for x in parts(product)))

    def _infinite_signs(self, dtype: DType, a: Any) -> tuple[Any, Any]:
        """Return the signs of the infinite parts (0 if finite), and whether one is infinite."""
        real_dtype, lanes = part_dtype(dtype), self.lanes
        infinite = real_dtype.type(np.inf)
        flags = [
            lanes.compare(real_dtype, "==", self._magnitude(real_dtype, x), infinite)
            for x in parts(a)
        ]
        units = [
            lanes.select(real_dtype, flag, real_dtype.type(1), real_dtype.type(0)) for flag in flags
        ]
        signs = [lanes.copysign(real_dtype, u, x) for u, x in zip(units, parts(a), strict=True)]
        return make_pair(dtype, *signs), lanes.or_(np.bool_, *flags)

    def abs(self, dtype: DType, a: Any) -> Any:
        """Return the modulus, a real element."""
        real_dtype, lanes = part_dtype(dtype), self.lanes
        x, y = (self._magnitude(real_dtype, part) for part in parts(a))
        large, small = lanes.max(real_dtype, x, y), lanes.min(real_dtype, x, y)
        limits = [lanes.compare(real_dtype, "==", large, real_dtype.type(x)) for x in (0, np.inf)]
        has_no_ratio = lanes.or_(np.bool_, *limits)
        ratio = lanes.div(
            real_dtype, small, lanes.select(real_dtype, has_no_ratio, real_dtype.type(1), large)
        )
        square = lanes.add(real_dtype, real_dtype.type(1), lanes.mul(real_dtype, ratio, ratio))
        return lanes.mul(real_dtype, large, lanes.unary("sqrt", real_dtype, square, np.sqrt))

    def _magnitude(self, real_dtype: np.dtype, x: LaneValue) -> Any:
        return self.lanes.unary("fabs", real_dtype, x, np.abs)

    def compare(self, dtype: DType, operator: str, a: Any, b: Any) -> Any:
        """Compare by `==` (both parts are equal) or `!=` (a part differs)."""
        real_dtype, lanes = part_dtype(dtype), self.lanes
        (ar, ai), (br, bi) = parts(a), parts(b)
        combine = {"==": lanes.and_, "!=": lanes.or_}[operator]
        same_real = lanes.compare(real_dtype, operator, ar, br)
        return combine(np.bool_, same_real, lanes.compare(real_dtype, operator, ai, bi))

    def select(self, dtype: DType, condition: LaneValue, yes: Any, no: Any) -> Any:
        real_dtype, lanes = part_dtype(dtype), self.lanes
        (yr, yi), (nr, ni) = parts(yes), parts(no)
        return make_pair(
            dtype,
            lanes.select(real_dtype, condition, yr, nr),
            lanes.select(real_dtype, condition, yi, ni),
        )

    def convert(self, a: Any, old: DType, new: DType) -> Any:
        """Convert from and to complex types; the real part becomes the real element."""
        lanes = self.lanes
        if not is_complex(new):
            return lanes.convert(parts(a)[0], part_dtype(old), new)
        real_dtype = part_dtype(new)
        if not is_complex(old):
            return make_pair(new, lanes.convert(a, old, real_dtype), real_dtype.type(0))
        return make_pair(new, *(lanes.convert(x, part_dtype(old), real_dtype) for x in parts(a)))

    def value(self, dtype: DType, a: Any) -> Pair:
        """Return the parts as LLVM values."""
        real_dtype = part_dtype(dtype)
        return Pair(*(self.lanes.value(x, real_dtype) for x in parts(a)))
