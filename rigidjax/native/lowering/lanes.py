"""Arithmetic on numbers of W lanes: one LLVM vector for each number of a program.

A number is a NumPy scalar as long as it is known when the kernel is emitted, and an LLVM value
after that: a vector of W lanes, or a scalar if W is 1. What is known is computed here, so that a
sparse Jacobian or a loop counter costs nothing at run time. As with JAX's symbolic zeros, a product
with a known zero is zero, whatever the other factor.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

import numpy as np
from llvmlite import ir

from ..libm.remainders import remainder
from .builder import I64, Builder, TextInstruction, Value, int32
from .complex import Complex, DType, Pair, is_complex, part_dtype, parts

I1, I8 = ir.IntType(1), ir.IntType(8)
POINTER = ir.PointerType()
_CONTRACT = ("contract",)
# Terms from which on they are not added one after the other.
_LONG_SUM = 12
_UNKNOWN = (ir.Value, Pair)
# Of the types of numbers seen: whether those are known.
_KNOWN: dict[type, bool] = {}


def element_type(dtype: DType) -> ir.Type:
    """The LLVM type of one lane's number, or of its parts; booleans are single bits."""
    dtype = part_dtype(dtype)
    if dtype == np.bool_:
        return I1
    if dtype.kind in "iu":
        return ir.IntType(8 * dtype.itemsize)
    if dtype == np.float64:
        return ir.DoubleType()
    if dtype == np.float32:
        return ir.FloatType()
    raise TypeError(f"numbers of type {dtype}")


def is_constant(x: object) -> TypeGuard[int | np.number]:
    """Whether a number is known while the kernel is emitted."""
    kind = type(x)
    known = _KNOWN.get(kind)
    if known is None:
        known = _KNOWN[kind] = not issubclass(kind, _UNKNOWN)
    return known


class Lanes:
    """Emits arithmetic on vectors of `width` lanes at the end of a builder's block.

    The width may change (see `memory.Rows`).
    """

    def __init__(self, builder: Builder, width: int, flags: tuple[str, ...] = _CONTRACT):
        self.builder, self.width = builder, width
        self.flags = flags
        self.complex = Complex(self)
        self._types: dict[tuple[ir.Type, int], ir.Type] = {}
        self._constants: dict[tuple[np.dtype, bytes, int], ir.Constant] = {}
        # Of vectors of the same number in all lanes, by their addresses: the vector, the number.
        self._scalars: dict[int, tuple[Value, Value]] = {}
        # Quotients and roots, by their addresses: what they are, and of what.
        self._origins: dict[int, tuple[Value, str, tuple[Any, ...]]] = {}

    # Types and constants.

    def type(self, dtype: DType) -> ir.Type:
        """The LLVM type of a number."""
        return self.vector(element_type(dtype))

    def vector(self, element: ir.Type) -> ir.Type:
        if self.width == 1:
            return element
        key = element, self.width
        if key not in self._types:
            self._types[key] = ir.VectorType(element, self.width)
        return self._types[key]

    def value(self, x: Any, dtype: DType) -> Any:
        """A number as an LLVM value (or a pair), the same in all lanes if it is known."""
        if is_complex(dtype):
            return self.complex.value(dtype, x)
        if not is_constant(x):
            return x
        number = np.asarray(x).astype(dtype)
        key = number.dtype, number.tobytes(), self.width
        if key not in self._constants:
            self._constants[key] = self._constant(number)
        return self._constants[key]

    def _constant(self, number: np.ndarray) -> ir.Constant:
        element = element_type(number.dtype)
        one = int(number) if isinstance(element, ir.IntType) else float(number)
        if self.width == 1:
            return ir.Constant(element, one)
        return ir.Constant(self.vector(element), [ir.Constant(element, one)] * self.width)

    def extract_lane(self, vector: Value, k: int) -> Value:
        """The number of lane `k`."""
        if self.width == 1:
            return vector
        return self.builder.extract_element(vector, int32(k))

    def pack_lanes(self, scalars: list[Value]) -> Value:
        """A vector of one scalar for each lane."""
        if self.width == 1:
            return scalars[0]
        out = ir.Constant(ir.VectorType(scalars[0].type, self.width), ir.Undefined)
        for k, scalar in enumerate(scalars):
            out = self.builder.insert_element(out, scalar, int32(k))
        return out

    def splat(self, scalar: Value) -> Value:
        """A vector of the same scalar in each lane."""
        if self.width == 1:
            return scalar
        vector = self.builder.splat(scalar, self.width)
        self._scalars[id(vector)] = vector, scalar
        return vector

    def splat_parts(self, x: Any) -> Any:
        """A real or complex scalar in each lane; parts that are compile-time constants stay so."""
        if isinstance(x, Pair):
            return Pair(*(part if is_constant(part) else self.splat(part) for part in parts(x)))
        return self.splat(x)

    def uniform_scalar(self, x: Any) -> Any:
        """The number that a vector has in all lanes, or a known one; `None` if lanes may differ."""
        if isinstance(x, TextInstruction):
            return self._scalars.get(id(x), (None, None))[1]
        return x if isinstance(x, str) or is_constant(x) else None

    def _scalar_if_uniform(self, method: Callable[..., Any], dtype: DType, *args: Any) -> Any:
        """A method of whole numbers or booleans that are the same in all lanes, done once; `None`
        if they may differ."""
        if self.width == 1 or not self._scalars:
            return None
        scalars = [self.uniform_scalar(x) for x in args]
        if any(one is None for one in scalars):
            return None
        with self.scalar_mode():
            out = method(self, dtype, *scalars)
        return out if is_constant(out) else self.splat(out)

    @contextlib.contextmanager
    def scalar_mode(self) -> Iterator[None]:
        """There is one lane within."""
        width, self.width = self.width, 1
        yield
        self.width = width

    def lane_indices(self) -> Value:
        """The number of each lane, int64."""
        return ir.Constant(ir.VectorType(I64, self.width), list(range(self.width)))

    def phi(self, dtype: DType) -> Any:
        """A number that depends on where its block is entered from."""
        kind = self.type(dtype)
        if is_complex(dtype):
            return Pair(self.builder.phi(kind), self.builder.phi(kind))
        return self.builder.phi(kind)

    def add_incoming(self, dtype: DType, phi: Any, value: Any, block: ir.Block) -> None:
        """What a `phi` is if its block is entered from `block`."""
        value = self.value(value, dtype)
        if isinstance(phi, Pair):
            phi.real.add_incoming(value.real, block)
            phi.imag.add_incoming(value.imag, block)
        else:
            phi.add_incoming(value, block)

    def intrinsic(self, name: str, result: ir.Type, *args: Value) -> Value:
        """Call an LLVM intrinsic that is named by the types in `name`."""
        module = self.builder.module
        function = module.globals.get(name) or ir.Function(
            module, ir.FunctionType(result, [a.type for a in args]), name
        )
        return self.builder.intrinsic(function, args)

    def suffix(self, dtype: DType) -> str:
        kind = np.dtype(dtype)
        letter = "f" if kind.kind == "f" else "i"
        bits = 1 if kind == np.bool_ else 8 * kind.itemsize
        return f"{letter}{bits}" if self.width == 1 else f"v{self.width}{letter}{bits}"

    # Arithmetic; every method takes the dtype of its operands first.

    def add(self, dtype, a, b):
        if type(a) is type(b) is TextInstruction and _is_float(dtype):
            return self.builder.fadd(a, b, self.flags)
        if is_complex(dtype):
            return self.complex.add(dtype, a, b)
        if is_constant(a) and is_constant(b):
            return _fold(dtype, np.add, a, b)
        if _is_equal(a, 0):
            return b
        if _is_equal(b, 0):
            return a
        if (
            not _is_float(dtype)
            and (out := self._scalar_if_uniform(Lanes.add, dtype, a, b)) is not None
        ):
            return out
        a, b = self.value(a, dtype), self.value(b, dtype)
        if _is_float(dtype):
            return self.builder.fadd(a, b, flags=self.flags)
        return self.builder.or_(a, b) if _is_bool(dtype) else self.builder.add(a, b)

    def sum(self, dtype: DType, terms: list[Any]) -> Any:
        """Their sum; of many, four at a time: each addition waits for one of its own before."""
        chains = 4 if len(terms) >= _LONG_SUM else 1
        add = functools.partial(self.add, dtype)
        first = [
            functools.reduce(add, terms[k::chains], np.dtype(dtype).type(0)) for k in range(chains)
        ]
        return functools.reduce(add, first)

    def sub(self, dtype, a, b):
        if is_complex(dtype):
            return self.complex.sub(dtype, a, b)
        if is_constant(a) and is_constant(b):
            return _fold(dtype, np.subtract, a, b)
        if _is_equal(b, 0):
            return a
        if _is_equal(a, 0) and _is_float(dtype):
            return self.neg(dtype, b)
        if (
            not _is_float(dtype)
            and (out := self._scalar_if_uniform(Lanes.sub, dtype, a, b)) is not None
        ):
            return out
        a, b = self.value(a, dtype), self.value(b, dtype)
        if _is_float(dtype):
            return self.builder.fsub(a, b, flags=self.flags)
        return self.builder.sub(a, b)

    def mul(self, dtype, a, b):
        if type(a) is type(b) is TextInstruction and _is_float(dtype):
            return self.builder.fmul(a, b, self.flags)
        if is_complex(dtype):
            return self.complex.mul(dtype, a, b)
        if is_constant(a) and is_constant(b):
            return _fold(dtype, np.multiply, a, b)
        for x, y in ((a, b), (b, a)):
            if _is_equal(x, 0):
                return _zero_of(dtype)
            if _is_equal(x, 1):
                return y
            if _is_float(dtype) and _is_equal(x, -1):
                return self.neg(dtype, y)
        if (
            not _is_float(dtype)
            and (out := self._scalar_if_uniform(Lanes.mul, dtype, a, b)) is not None
        ):
            return out
        a, b = self.value(a, dtype), self.value(b, dtype)
        if _is_float(dtype):
            return self.builder.fmul(a, b, flags=self.flags)
        return self.builder.and_(a, b) if _is_bool(dtype) else self.builder.mul(a, b)

    def div(self, dtype, a, b):
        """Quotient; of integers rounded towards zero, -1 for a divisor of zero, as in XLA."""
        if is_complex(dtype):
            return self.complex.div(dtype, a, b)
        if _is_float(dtype):
            if is_constant(a) and is_constant(b):
                return _fold(dtype, np.divide, a, b)
            if _is_equal(b, 1):
                return a
            if is_constant(b) and b != 0 and math.frexp(float(b))[0] in (0.5, -0.5):
                return self.mul(dtype, a, np.asarray(1.0 / b, dtype)[()])
            out = self.builder.fdiv(self.value(a, dtype), self.value(b, dtype))
            self._origins[id(out)] = out, "div", (a, b)
            return out
        return self._divide_integers(dtype, a, b, "div")

    def rem(self, dtype, a, b):
        """Remainder with the sign of `a`; of integers, `a` for a divisor of zero."""
        if _is_float(dtype):
            if is_constant(a) and is_constant(b):
                return _fold(dtype, np.fmod, a, b)
            a, b = self.value(a, dtype), self.value(b, dtype)
            function = remainder(self.builder.module, np.dtype(dtype), element_type(dtype))
            return self.pack_lanes([
                self.builder.intrinsic(function, [self.extract_lane(x, k) for x in (a, b)])
                for k in range(self.width)
            ])  # fmt: skip
        return self._divide_integers(dtype, a, b, "rem")

    def _divide_integers(self, dtype, a, b, kind):
        signed = np.dtype(dtype).kind == "i"
        if is_constant(a) and is_constant(b):
            if b == 0:
                whole = np.asarray(-1).astype(dtype)[()]
                return whole if kind == "div" else np.asarray(a, dtype)[()]
            q = abs(int(a)) // abs(int(b)) * (1 if (a >= 0) == (b >= 0) else -1)
            exact = q if kind == "div" else int(a) - q * int(b)
            return np.asarray(exact).astype(dtype)[()]
        build = self.builder
        a, b = self.value(a, dtype), self.value(b, dtype)
        zero, one = self.value(0, dtype), self.value(1, dtype)
        minus = self.value(np.asarray(-1).astype(dtype), dtype)
        # The processor stops the program where the quotient has no value.
        undefined = is_zero = build.icmp_signed("==", b, zero)
        if signed:
            lowest = self.value(np.iinfo(dtype).min, dtype)
            overflow = build.and_(
                build.icmp_signed("==", a, lowest), build.icmp_signed("==", b, minus)
            )
            undefined = build.or_(is_zero, overflow)
        safe = build.select(undefined, one, b)
        if kind == "div":
            q = build.sdiv(a, safe) if signed else build.udiv(a, safe)
            return build.select(is_zero, minus, q)
        r = build.srem(a, safe) if signed else build.urem(a, safe)
        return build.select(is_zero, a, r)

    def neg(self, dtype, a):
        if is_complex(dtype):
            return self.complex.neg(dtype, a)
        if is_constant(a):
            return _fold(dtype, np.negative, a)
        return self.builder.fneg(a) if _is_float(dtype) else self.builder.neg(a)

    def fma(self, dtype, a, b, c):
        """a b + c with one rounding."""
        args = (self.value(x, dtype) for x in (a, b, c))
        return self.intrinsic(f"llvm.fma.{self.suffix(dtype)}", self.type(dtype), *args)

    # Comparisons and choices.

    def compare(self, dtype, operator, a, b):
        """A comparison by IEEE's rules: with NaN only `!=` holds."""
        if is_complex(dtype):
            return self.complex.compare(dtype, operator, a, b)
        if is_constant(a) and is_constant(b):
            return np.bool_(COMPARISONS[operator](a, b))
        if not _is_float(dtype):
            if (out := self._scalar_if_uniform(Lanes.compare, dtype, operator, a, b)) is not None:
                return out
        a, b = self.value(a, dtype), self.value(b, dtype)
        if _is_float(dtype):
            build = self.builder.fcmp_unordered if operator == "!=" else self.builder.fcmp_ordered
        else:
            signed = np.dtype(dtype).kind == "i"
            build = self.builder.icmp_signed if signed else self.builder.icmp_unsigned
        return build(operator, a, b)

    def select(self, dtype, condition, yes, no):
        if is_constant(condition):
            return yes if condition else no
        if is_complex(dtype):
            return self.complex.select(dtype, condition, yes, no)
        if yes is no or (is_constant(yes) and is_constant(no) and _is_same(yes, no)):
            return yes
        if _is_bool(dtype) and is_constant(yes) and is_constant(no):
            return condition if yes else self.not_(np.bool_, condition)
        return self.builder.select(condition, self.value(yes, dtype), self.value(no, dtype))

    def max(self, dtype, a, b):
        return self._max_or_min(dtype, a, b, np.maximum, ">")

    def min(self, dtype, a, b):
        return self._max_or_min(dtype, a, b, np.minimum, "<")

    def _max_or_min(self, dtype, a, b, known, operator):
        """The larger or smaller of two numbers; NaN if one of them is, and -0 is less than 0."""
        if is_constant(a) and is_constant(b):
            return _fold(dtype, known, a, b)
        if not _is_float(dtype):
            method = Lanes.max if operator == ">" else Lanes.min
            if (out := self._scalar_if_uniform(method, dtype, a, b)) is not None:
                return out
            return self.select(dtype, self.compare(dtype, operator, a, b), a, b)
        if is_constant(a):
            a, b = b, a
        if _is_equal(b, 0) and np.signbit(b) == (operator == ">"):
            # The zero `a` of either sign is the result, or equal to it.
            operator += "="
        keep = self.compare(dtype, operator, a, b)
        keep = self.or_(np.bool_, keep, self.compare(dtype, "!=", a, a))
        if not is_constant(b):
            b = self._max_or_min_of_zeros(dtype, a, b, operator)
        return self.select(dtype, keep, a, b)

    def _max_or_min_of_zeros(self, dtype, a, b, operator):
        """`b`, or where `a` and `b` are equal the zero with the sign that is right."""
        bits = np.dtype(f"i{np.dtype(dtype).itemsize}")
        method = self.and_ if operator == ">" else self.or_
        both = method(bits, self.bitcast(a, dtype, bits), self.bitcast(b, dtype, bits))
        is_same = self.compare(dtype, "==", a, b)
        return self.select(dtype, is_same, self.bitcast(both, bits, dtype), b)

    def copysign(self, dtype, a, b):
        """`a` with the sign of `b`."""
        if is_constant(a) and is_constant(b):
            return _fold(dtype, np.copysign, a, b)
        args = (self.value(x, dtype) for x in (a, b))
        return self.intrinsic(f"llvm.copysign.{self.suffix(dtype)}", self.type(dtype), *args)

    # Bits.

    def and_(self, dtype, a, b):
        if is_constant(a) and is_constant(b):
            return _fold(dtype, np.bitwise_and, a, b)
        for x, y in ((a, b), (b, a)):
            if is_constant(x) and _is_bool(dtype):
                return y if x else np.bool_(False)
        if (out := self._scalar_if_uniform(Lanes.and_, dtype, a, b)) is not None:
            return out
        return self.builder.and_(self.value(a, dtype), self.value(b, dtype))

    def or_(self, dtype, a, b):
        if is_constant(a) and is_constant(b):
            return _fold(dtype, np.bitwise_or, a, b)
        for x, y in ((a, b), (b, a)):
            if is_constant(x) and _is_bool(dtype):
                return np.bool_(True) if x else y
        if (out := self._scalar_if_uniform(Lanes.or_, dtype, a, b)) is not None:
            return out
        return self.builder.or_(self.value(a, dtype), self.value(b, dtype))

    def xor(self, dtype, a, b):
        if is_constant(a) and is_constant(b):
            return _fold(dtype, np.bitwise_xor, a, b)
        return self.builder.xor(self.value(a, dtype), self.value(b, dtype))

    def not_(self, dtype, a):
        if is_constant(a):
            return _fold(dtype, np.invert, a)
        if (out := self._scalar_if_uniform(Lanes.not_, dtype, a)) is not None:
            return out
        return self.builder.not_(a)

    def shift(self, dtype, kind: str, a, by):
        """Shift of bits: `kind` is shl, lshr or ashr; by too many bits gives XLA's result."""
        bits = 8 * np.dtype(dtype).itemsize
        if is_constant(a) and is_constant(by):
            return _fold_shift(np.dtype(dtype), kind, int(a), int(by))
        build = getattr(self.builder, kind)
        if is_constant(by) and 0 <= by < bits:
            return build(self.value(a, dtype), self.value(by, dtype))
        a, by = self.value(a, dtype), self.value(by, dtype)
        fits = self.builder.icmp_unsigned("<", by, self.value(bits, dtype))
        beyond = self.value(bits - 1 if kind == "ashr" else 0, dtype)
        out = build(a, self.builder.select(fits, by, beyond))
        return out if kind == "ashr" else self.builder.select(fits, out, self.value(0, dtype))

    # Conversions.

    def convert(self, a, old, new):
        """A number of type `old` as one of type `new`; out of range, integers saturate."""
        old, new = np.dtype(old), np.dtype(new)
        if old == new:
            return a
        if self.width > 1 and (one := self._scalars.get(id(a))) is not None:
            with self.scalar_mode():
                out = self.convert(one[1], old, new)
            return self.splat_parts(out)
        if is_constant(a):
            a = np.real(a) if is_complex(old) and not is_complex(new) else a
            saturates = new.kind in "iu" and isinstance(a, float | np.floating)
            return _saturate(a, new) if saturates else np.asarray(a).astype(new)[()]
        if is_complex(old) or is_complex(new):
            return self.complex.convert(a, old, new)
        build, to = self.builder, self.type(new)
        if new == np.bool_:
            return self.compare(old, "!=", a, np.zeros((), old)[()])
        if old == np.bool_:
            if new.kind == "f":
                # LLVM generates code for a conversion slowly, and for all that is before it.
                return self.select(new, a, new.type(1), new.type(0))
            return build.zext(a, to)
        if old.kind == "f" and new.kind == "f":
            return build.fpext(a, to) if new.itemsize > old.itemsize else build.fptrunc(a, to)
        if old.kind == "f":
            name = "fptosi" if new.kind == "i" else "fptoui"
            name = f"llvm.{name}.sat.{self.suffix(new)}.{self.suffix(old)}"
            return self.intrinsic(name, to, a)
        if new.kind == "f":
            return build.sitofp(a, to) if old.kind == "i" else build.uitofp(a, to)
        if new.itemsize < old.itemsize:
            return build.trunc(a, to)
        if new.itemsize == old.itemsize:
            return a
        return build.sext(a, to) if old.kind == "i" else build.zext(a, to)

    def bitcast(self, a, old, new):
        """The same bits read as another type of the same size."""
        if is_constant(a):
            return np.asarray(a, old).view(new)[()]
        if np.dtype(old).kind in "iu" and np.dtype(new).kind in "iu":
            return a
        return self.builder.bitcast(a, self.type(new))

    def unary(self, name: str, dtype, a, known: Callable[..., np.generic]):
        """An LLVM intrinsic of one number, such as `sqrt`."""
        if is_constant(a):
            return _fold(dtype, known, a)
        out = self.intrinsic(f"llvm.{name}.{self.suffix(dtype)}", self.type(dtype), a)
        if name == "sqrt":
            self._origins[id(out)] = out, name, (a,)
        return out

    def simplify_power(self, x: Any, y: Any) -> tuple[Any, Any, Any, bool]:
        """A base, an exponent and a factor that give x^y too, without quotients and roots in `x`.

        A step of a run waits for the power of a norm in its step-size control.

        **Arguments:** `x`, and `y`, which is known.
        **Returns:** also whether there was a root, which no number below zero has.
        """
        factor, of_root = y.dtype.type(1), False
        while id(x) in self._origins and np.isfinite(y):
            _, kind, given = self._origins[id(x)]
            # Powers by whole numbers keep the sign of the root of -0, or have none to compute.
            if kind == "sqrt" and not y.is_integer():
                x, y, of_root = given[0], 0.5 * y, True
            elif kind == "div" and is_constant(given[0]) and given[0] == 1:
                x, y = given[1], -y
            elif kind == "div" and is_constant(given[1]) and 0 < given[1] < np.inf and abs(y) <= 1:
                x, factor = given[0], factor * given[1] ** -y
            else:
                break
        return x, y, factor, of_root

    def any(self, condition):
        """Whether a condition holds in some lane, a single bit."""
        if is_constant(condition):
            return ir.Constant(I1, int(condition))
        if self.width == 1:
            return condition
        return self.intrinsic(f"llvm.vector.reduce.or.v{self.width}i1", I1, condition)

    def all(self, condition):
        """Whether a condition holds in every lane, a single bit."""
        if is_constant(condition) or self.width == 1:
            return self.any(condition)
        return self.intrinsic(f"llvm.vector.reduce.and.v{self.width}i1", I1, condition)

    def max_over_lanes(self, dtype: DType, a: Any) -> Value:
        """The largest whole number of all lanes, a scalar."""
        if self.width == 1:
            return self.value(a, dtype)
        name = f"llvm.vector.reduce.smax.{self.suffix(dtype)}"
        return self.intrinsic(name, element_type(dtype), self.value(a, dtype))

    def count(self, condition):
        """In how many lanes a condition holds, an integer of 64 bits."""
        bits = ir.IntType(self.width)
        ones = self.intrinsic(
            f"llvm.ctpop.i{self.width}", bits, self.builder.bitcast(condition, bits)
        )
        return self.builder.zext(ones, I64)


def _fold(dtype, function, *args):
    kind = np.dtype(dtype).type
    return kind(function(*(a if type(a) is kind else kind(a) for a in args)))


def _fold_shift(dtype: np.dtype, kind: str, a: int, by: int):
    """Return a shifted integer; all bits are shifted out by as many or more, or by less than 0."""
    bits = 8 * dtype.itemsize
    # As an integer without sign, and with it: arithmetic shifts of unsigned ones repeat bits too.
    whole = a % (1 << bits)
    signed = whole - (whole >> (bits - 1) << bits)
    if kind == "ashr":
        shifted = signed >> (by if 0 <= by < bits else bits - 1)
    elif 0 <= by < bits:
        shifted = whole << by if kind == "shl" else whole >> by
    else:
        shifted = 0
    return np.array(shifted % (1 << bits), f"u{dtype.itemsize}").view(dtype)[()]


def _saturate(a, new):
    """A real number as a whole one: the nearest that there is, zero for NaN."""
    info = np.iinfo(new)
    if not np.isfinite(a):
        return new.type(0 if np.isnan(a) else info.max if a > 0 else info.min)
    return new.type(min(max(int(a), info.min), info.max))


def _zero_of(dtype):
    return np.zeros((), dtype)[()]


def _is_equal(x, number) -> bool:
    return is_constant(x) and bool(x == number)


def _is_same(a, b) -> bool:
    if isinstance(a, np.complexfloating):
        return _is_same(a.real, b.real) and _is_same(a.imag, b.imag)
    return bool(a == b) and math.copysign(1, a) == math.copysign(1, b)


def _is_float(dtype) -> bool:
    return np.dtype(dtype).kind == "f"


def _is_bool(dtype) -> bool:
    return np.dtype(dtype) == np.bool_


COMPARISONS = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
