"""Arithmetic on W lanes: one LLVM vector for each element of an array.

An element is a NumPy scalar as long as it is a compile-time constant, and otherwise an LLVM value:
a vector of W lanes, or a scalar if W is 1. Constants are folded during emission, so that structural
zeros of a Jacobian and loop counters cost nothing at run time. As with JAX's symbolic zeros, a
product with a constant zero is zero, whatever the other factor.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

import numpy as np
from llvmlite import ir

from .builder import I64, Builder, TextInstruction, Value, int32
from .complex import Complex, DType, LaneValue, Pair, is_complex, part_dtype, parts
from .remainders import remainder

I1, I8 = ir.IntType(1), ir.IntType(8)
POINTER = ir.PointerType()
_CONTRACT = ("contract",)
# Smallest number of terms of a sum that is split into several independent chains of additions.
_LONG_SUM = 12
_RUN_TIME_TYPES = (ir.Value, Pair)
# Cache of `is_constant` by type.
_IS_CONSTANT_TYPE: dict[type, bool] = {}


def element_type(dtype: DType) -> ir.Type:
    """Return the LLVM type of an element in one lane, or of its parts; booleans are single bits."""
    dtype = part_dtype(dtype)
    if dtype == np.bool_:
        return I1
    if dtype.kind in "iu":
        return ir.IntType(8 * dtype.itemsize)
    if dtype == np.float64:
        return ir.DoubleType()
    if dtype == np.float32:
        return ir.FloatType()
    raise TypeError(f"Kernels have no elements of type {dtype}.")


def is_constant(x: object) -> TypeGuard[int | np.number]:
    """Return whether an element is a compile-time constant."""
    type_ = type(x)
    is_constant_type = _IS_CONSTANT_TYPE.get(type_)
    if is_constant_type is None:
        is_constant_type = _IS_CONSTANT_TYPE[type_] = not issubclass(type_, _RUN_TIME_TYPES)
    return is_constant_type


class Lanes:
    """Emits arithmetic on vectors of `width` lanes at the end of a builder's block.

    `memory.RowVectors` changes the width temporarily.
    """

    def __init__(self, builder: Builder, width: int, flags: tuple[str, ...] = _CONTRACT):
        # `Any`, because type checkers cannot tell LLVM values from constants.
        self.builder: Any = builder
        self.width = width
        self.flags = flags
        self.complex = Complex(self)
        self._types: dict[tuple[ir.Type, int], ir.Type] = {}
        self._constants: dict[tuple[np.dtype, bytes, int], ir.Constant] = {}
        # Splat vectors by their ids: the vector and its scalar.
        self._splat_scalars: dict[int, tuple[Value, Value]] = {}
        # Divisions and square roots by their ids: the result, the operation and its operands.
        self._definitions: dict[int, tuple[Value, str, tuple[Any, ...]]] = {}

    # Types and constants.

    def type(self, dtype: DType) -> ir.Type:
        """Return the LLVM type of an element in all lanes."""
        return self.vector(element_type(dtype))

    def vector(self, element: ir.Type) -> ir.Type:
        if self.width == 1:
            return element
        key = element, self.width
        if key not in self._types:
            self._types[key] = ir.VectorType(element, self.width)
        return self._types[key]

    def value(self, x: Any, dtype: DType) -> Any:
        """Return an element as an LLVM value (or a pair of them); constants are splat."""
        if is_complex(dtype):
            return self.complex.value(dtype, x)
        if not is_constant(x):
            return x
        constant = np.asarray(x).astype(dtype)
        key = constant.dtype, constant.tobytes(), self.width
        if key not in self._constants:
            self._constants[key] = self._constant(constant)
        return self._constants[key]

    def _constant(self, constant: np.ndarray) -> ir.Constant:
        element = element_type(constant.dtype)
        value = int(constant) if isinstance(element, ir.IntType) else float(constant)
        if self.width == 1:
            return ir.Constant(element, value)
        return ir.Constant(self.vector(element), [ir.Constant(element, value)] * self.width)

    def extract_lane(self, vector: Any, k: int) -> Value:
        """Return the value of lane `k`."""
        if self.width == 1:
            return vector
        return self.builder.extract_element(vector, int32(k))

    def pack_lanes(self, scalars: list[Value]) -> Value:
        """Return a vector of one scalar per lane."""
        if self.width == 1:
            return scalars[0]
        out = ir.Constant(ir.VectorType(scalars[0].type, self.width), ir.Undefined)
        for k, scalar in enumerate(scalars):
            out = self.builder.insert_element(out, scalar, int32(k))
        return out

    def splat(self, scalar: Value) -> Value:
        """Return a vector with the same scalar in every lane."""
        if self.width == 1:
            return scalar
        vector = self.builder.splat(scalar, self.width)
        self._splat_scalars[id(vector)] = vector, scalar
        return vector

    def splat_parts(self, x: Any) -> Any:
        """Splat a real or complex scalar; constant parts stay constants."""
        if isinstance(x, Pair):
            return Pair(*(part if is_constant(part) else self.splat(part) for part in parts(x)))
        return self.splat(x)

    def uniform_scalar(self, x: Any) -> Any:
        """Return the scalar of a uniform value, or a constant; `None` if lanes may diverge."""
        if isinstance(x, TextInstruction):
            return self._splat_scalars.get(id(x), (None, None))[1]
        return x if isinstance(x, str) or is_constant(x) else None

    def _scalar_if_uniform(self, method: Callable[..., Any], dtype: DType, *args: Any) -> Any:
        """Apply a method to integer or boolean scalars if all operands are uniform, else `None`."""
        if self.width == 1 or not self._splat_scalars:
            return None
        scalars = [self.uniform_scalar(x) for x in args]
        if any(scalar is None for scalar in scalars):
            return None
        with self.scalar_mode():
            out = method(self, dtype, *scalars)
        return out if is_constant(out) else self.splat(out)

    @contextlib.contextmanager
    def scalar_mode(self) -> Iterator[None]:
        """Emit scalar instructions inside the context."""
        width, self.width = self.width, 1
        yield
        self.width = width

    def lane_indices(self) -> Value:
        """Return the vector 0, ..., W - 1, int64."""
        return ir.Constant(ir.VectorType(I64, self.width), list(range(self.width)))

    def phi(self, dtype: DType) -> Any:
        """Emit a phi node, or a pair of them for a complex element."""
        type_ = self.type(dtype)
        if is_complex(dtype):
            return Pair(self.builder.phi(type_), self.builder.phi(type_))
        return self.builder.phi(type_)

    def add_incoming(self, dtype: DType, phi: Any, value: Any, block: ir.Block) -> None:
        """Add the incoming value of a phi node for the predecessor `block`."""
        value = self.value(value, dtype)
        if isinstance(phi, Pair):
            phi.real.add_incoming(value.real, block)
            phi.imag.add_incoming(value.imag, block)
        else:
            phi.add_incoming(value, block)

    def intrinsic(self, name: str, result: ir.Type, *args: Any) -> Value:
        """Call an LLVM intrinsic, whose name contains its types."""
        module = self.builder.module
        function = module.globals.get(name) or ir.Function(
            module, ir.FunctionType(result, [a.type for a in args]), name
        )
        return self.builder.intrinsic(function, args)

    def suffix(self, dtype: DType) -> str:
        """Return the suffix that names a type in intrinsics, such as `v4f64`."""
        kind = np.dtype(dtype)
        letter = "f" if kind.kind == "f" else "i"
        bits = 1 if kind == np.bool_ else 8 * kind.itemsize
        return f"{letter}{bits}" if self.width == 1 else f"v{self.width}{letter}{bits}"

    # Arithmetic. The first argument of every method is the dtype of its operands.

    def add(self, dtype: DType, a: LaneValue, b: LaneValue) -> Any:
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
        """Return a sum; long ones in four chains, since additions of one chain wait for each other.

        **Arguments:** `dtype`; `terms`.
        """
        chains = 4 if len(terms) >= _LONG_SUM else 1
        add = functools.partial(self.add, dtype)
        partial_sums = [
            functools.reduce(add, terms[k::chains], np.dtype(dtype).type(0)) for k in range(chains)
        ]
        return functools.reduce(add, partial_sums)

    def sub(self, dtype: DType, a: LaneValue, b: LaneValue) -> Any:
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

    def mul(self, dtype: DType, a: LaneValue, b: LaneValue) -> Any:
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

    def div(self, dtype: DType, a: LaneValue, b: LaneValue) -> Any:
        """Divide; integers are rounded towards zero, and division by zero gives -1, as in XLA."""
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
            self._definitions[id(out)] = out, "div", (a, b)
            return out
        return self._divide_integers(dtype, a, b, "div")

    def rem(self, dtype: DType, a: LaneValue, b: LaneValue) -> Any:
        """Return the remainder with the sign of `a`; `a` if the integer `b` is zero."""
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

    def _divide_integers(self, dtype: DType, a: LaneValue, b: LaneValue, operation: str) -> Any:
        """Return the quotient (`"div"`) or the remainder (`"rem"`) of integers."""
        signed = np.dtype(dtype).kind == "i"
        if is_constant(a) and is_constant(b):
            if b == 0:
                minus_one = np.asarray(-1).astype(dtype)[()]
                return minus_one if operation == "div" else np.asarray(a, dtype)[()]
            q = abs(int(a)) // abs(int(b)) * (1 if (a >= 0) == (b >= 0) else -1)
            exact = q if operation == "div" else int(a) - q * int(b)
            return np.asarray(exact).astype(dtype)[()]
        builder = self.builder
        a, b = self.value(a, dtype), self.value(b, dtype)
        zero, one = self.value(0, dtype), self.value(1, dtype)
        minus_one = self.value(np.asarray(-1).astype(dtype), dtype)
        # The processor traps on a division by zero and on overflow.
        undefined = is_zero = builder.icmp_signed("==", b, zero)
        if signed:
            lowest = self.value(np.iinfo(dtype).min, dtype)
            overflow = builder.and_(
                builder.icmp_signed("==", a, lowest), builder.icmp_signed("==", b, minus_one)
            )
            undefined = builder.or_(is_zero, overflow)
        safe = builder.select(undefined, one, b)
        if operation == "div":
            q = builder.sdiv(a, safe) if signed else builder.udiv(a, safe)
            return builder.select(is_zero, minus_one, q)
        r = builder.srem(a, safe) if signed else builder.urem(a, safe)
        return builder.select(is_zero, a, r)

    def neg(self, dtype: DType, a: LaneValue) -> Any:
        if is_complex(dtype):
            return self.complex.neg(dtype, a)
        if is_constant(a):
            return _fold(dtype, np.negative, a)
        return self.builder.fneg(a) if _is_float(dtype) else self.builder.neg(a)

    def fma(self, dtype: DType, a: LaneValue, b: LaneValue, c: LaneValue) -> Any:
        """Return a b + c with one rounding."""
        args = (self.value(x, dtype) for x in (a, b, c))
        return self.intrinsic(f"llvm.fma.{self.suffix(dtype)}", self.type(dtype), *args)

    # Comparisons and choices.

    def compare(self, dtype: DType, operator: str, a: LaneValue, b: LaneValue) -> Any:
        """Compare as IEEE 754 does: with NaN only `!=` is true."""
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

    def select(self, dtype: DType, condition: LaneValue, yes: LaneValue, no: LaneValue) -> Any:
        if is_constant(condition):
            return yes if condition else no
        if is_complex(dtype):
            return self.complex.select(dtype, condition, yes, no)
        if yes is no or (is_constant(yes) and is_constant(no) and _is_same(yes, no)):
            return yes
        if _is_bool(dtype) and is_constant(yes) and is_constant(no):
            return condition if yes else self.not_(np.bool_, condition)
        return self.builder.select(condition, self.value(yes, dtype), self.value(no, dtype))

    def max(self, dtype: DType, a: LaneValue, b: LaneValue) -> Any:
        return self._max_or_min(dtype, a, b, np.maximum, ">")

    def min(self, dtype: DType, a: LaneValue, b: LaneValue) -> Any:
        return self._max_or_min(dtype, a, b, np.minimum, "<")

    def _max_or_min(
        self,
        dtype: DType,
        a: LaneValue,
        b: LaneValue,
        numpy_function: Callable[..., np.generic],
        operator: str,
    ) -> Any:
        """Return the larger or smaller element; NaN if either is, and -0 is less than 0."""
        if is_constant(a) and is_constant(b):
            return _fold(dtype, numpy_function, a, b)
        if not _is_float(dtype):
            method = Lanes.max if operator == ">" else Lanes.min
            if (out := self._scalar_if_uniform(method, dtype, a, b)) is not None:
                return out
            return self.select(dtype, self.compare(dtype, operator, a, b), a, b)
        if is_constant(a):
            a, b = b, a
        if _is_equal(b, 0) and np.signbit(b) == (operator == ">"):
            # `a` may then be a zero of either sign, and is the right result in both cases.
            operator += "="
        keep = self.compare(dtype, operator, a, b)
        keep = self.or_(np.bool_, keep, self.compare(dtype, "!=", a, a))
        if not is_constant(b):
            b = self._max_or_min_of_zeros(dtype, a, b, operator)
        return self.select(dtype, keep, a, b)

    def _max_or_min_of_zeros(self, dtype: DType, a: LaneValue, b: LaneValue, operator: str) -> Any:
        """Return `b`, or the zero of the right sign where `a` and `b` are equal."""
        bits = np.dtype(f"i{np.dtype(dtype).itemsize}")
        method = self.and_ if operator == ">" else self.or_
        both = method(bits, self.bitcast(a, dtype, bits), self.bitcast(b, dtype, bits))
        is_same = self.compare(dtype, "==", a, b)
        return self.select(dtype, is_same, self.bitcast(both, bits, dtype), b)

    def copysign(self, dtype: DType, a: LaneValue, b: LaneValue) -> Any:
        """Return `a` with the sign of `b`."""
        if is_constant(a) and is_constant(b):
            return _fold(dtype, np.copysign, a, b)
        args = (self.value(x, dtype) for x in (a, b))
        return self.intrinsic(f"llvm.copysign.{self.suffix(dtype)}", self.type(dtype), *args)

    # Bits.

    def and_(self, dtype: DType, a: LaneValue, b: LaneValue) -> Any:
        if is_constant(a) and is_constant(b):
            return _fold(dtype, np.bitwise_and, a, b)
        for x, y in ((a, b), (b, a)):
            if is_constant(x) and _is_bool(dtype):
                return y if x else np.bool_(False)
        if (out := self._scalar_if_uniform(Lanes.and_, dtype, a, b)) is not None:
            return out
        return self.builder.and_(self.value(a, dtype), self.value(b, dtype))

    def or_(self, dtype: DType, a: LaneValue, b: LaneValue) -> Any:
        if is_constant(a) and is_constant(b):
            return _fold(dtype, np.bitwise_or, a, b)
        for x, y in ((a, b), (b, a)):
            if is_constant(x) and _is_bool(dtype):
                return np.bool_(True) if x else y
        if (out := self._scalar_if_uniform(Lanes.or_, dtype, a, b)) is not None:
            return out
        return self.builder.or_(self.value(a, dtype), self.value(b, dtype))

    def xor(self, dtype: DType, a: LaneValue, b: LaneValue) -> Any:
        if is_constant(a) and is_constant(b):
            return _fold(dtype, np.bitwise_xor, a, b)
        return self.builder.xor(self.value(a, dtype), self.value(b, dtype))

    def not_(self, dtype: DType, a: LaneValue) -> Any:
        if is_constant(a):
            return _fold(dtype, np.invert, a)
        if (out := self._scalar_if_uniform(Lanes.not_, dtype, a)) is not None:
            return out
        return self.builder.not_(a)

    def shift(self, dtype: DType, operation: str, a: LaneValue, shift: LaneValue) -> Any:
        """Shift bits; shifts by the width of the type or more have XLA's result.

        **Arguments:** `operation`, the LLVM instruction: shl, lshr or ashr.
        """
        bits = 8 * np.dtype(dtype).itemsize
        if is_constant(a) and is_constant(shift):
            return _fold_shift(np.dtype(dtype), operation, int(a), int(shift))
        build = getattr(self.builder, operation)
        if is_constant(shift) and 0 <= shift < bits:
            return build(self.value(a, dtype), self.value(shift, dtype))
        a, shift = self.value(a, dtype), self.value(shift, dtype)
        is_in_range = self.builder.icmp_unsigned("<", shift, self.value(bits, dtype))
        beyond = self.value(bits - 1 if operation == "ashr" else 0, dtype)
        out = build(a, self.builder.select(is_in_range, shift, beyond))
        return (
            out
            if operation == "ashr"
            else self.builder.select(is_in_range, out, self.value(0, dtype))
        )

    # Conversions.

    def convert(self, a: LaneValue, old: DType, new: DType) -> Any:
        """Convert an element from dtype `old` to `new`; integers saturate."""
        old, new = np.dtype(old), np.dtype(new)
        if old == new:
            return a
        if self.width > 1 and (pair := self._splat_scalars.get(id(a))) is not None:
            with self.scalar_mode():
                out = self.convert(pair[1], old, new)
            return self.splat_parts(out)
        if is_constant(a):
            a = np.real(a) if is_complex(old) and not is_complex(new) else a
            saturates = new.kind in "iu" and isinstance(a, float | np.floating)
            return _saturate(a, new) if saturates else np.asarray(a).astype(new)[()]
        if is_complex(old) or is_complex(new):
            return self.complex.convert(a, old, new)
        build, type_ = self.builder, self.type(new)
        if new == np.bool_:
            return self.compare(old, "!=", a, _zero_of(old))
        if old == np.bool_:
            if new.kind == "f":
                # LLVM's instruction for this conversion makes code generation slow.
                return self.select(new, a, new.type(1), new.type(0))
            return build.zext(a, type_)
        if old.kind == "f" and new.kind == "f":
            return build.fpext(a, type_) if new.itemsize > old.itemsize else build.fptrunc(a, type_)
        if old.kind == "f":
            name = "fptosi" if new.kind == "i" else "fptoui"
            name = f"llvm.{name}.sat.{self.suffix(new)}.{self.suffix(old)}"
            return self.intrinsic(name, type_, a)
        if new.kind == "f":
            return build.sitofp(a, type_) if old.kind == "i" else build.uitofp(a, type_)
        if new.itemsize < old.itemsize:
            return build.trunc(a, type_)
        if new.itemsize == old.itemsize:
            return a
        return build.sext(a, type_) if old.kind == "i" else build.zext(a, type_)

    def bitcast(self, a: LaneValue, old: DType, new: DType) -> Any:
        """Return an element with the same bits in another type of the same size."""
        if is_constant(a):
            return np.asarray(a, old).view(new)[()]
        if np.dtype(old).kind in "iu" and np.dtype(new).kind in "iu":
            return a
        return self.builder.bitcast(a, self.type(new))

    def unary(
        self, name: str, dtype: DType, a: LaneValue, numpy_function: Callable[..., np.generic]
    ) -> Any:
        """Call an LLVM intrinsic of one operand, such as `sqrt`."""
        if is_constant(a):
            return _fold(dtype, numpy_function, a)
        out = self.intrinsic(f"llvm.{name}.{self.suffix(dtype)}", self.type(dtype), a)
        if name == "sqrt":
            self._definitions[id(out)] = out, name, (a,)
        return out

    def simplify_power(self, x: Any, y: Any) -> tuple[Any, Any, Any, bool]:
        """Rewrite x^y so that no division or square root precedes the power.

        The step-size control of a run waits for such a power of an error norm.

        **Arguments:** `x`; `y`, a compile-time constant.
        **Returns:** base, exponent and factor of the same power; whether a square root was removed,
        which is NaN for a negative operand.
        """
        factor, is_of_root = y.dtype.type(1), False
        while id(x) in self._definitions and np.isfinite(y):
            _, operation, operands = self._definitions[id(x)]
            # Integer powers keep the sign of the square root of -0, or need no logarithm.
            if operation == "sqrt" and not y.is_integer():
                x, y, is_of_root = operands[0], 0.5 * y, True
            elif operation == "div" and is_constant(operands[0]) and operands[0] == 1:
                x, y = operands[1], -y
            elif (
                operation == "div"
                and is_constant(operands[1])
                and 0 < operands[1] < np.inf
                and abs(y) <= 1
            ):
                x, factor = operands[0], factor * operands[1] ** -y
            else:
                break
        return x, y, factor, is_of_root

    def any(self, condition: LaneValue) -> Any:
        """Return whether a condition holds in at least one lane, a single bit."""
        if is_constant(condition):
            return ir.Constant(I1, int(condition))
        if self.width == 1:
            return condition
        return self.intrinsic(f"llvm.vector.reduce.or.v{self.width}i1", I1, condition)

    def all(self, condition: LaneValue) -> Value:
        """Return whether a condition holds in every lane, a single bit."""
        if is_constant(condition) or self.width == 1:
            return self.any(condition)
        return self.intrinsic(f"llvm.vector.reduce.and.v{self.width}i1", I1, condition)

    def max_over_lanes(self, dtype: DType, a: Any) -> Value:
        """Return the maximum of an integer over all lanes, a scalar."""
        if self.width == 1:
            return self.value(a, dtype)
        name = f"llvm.vector.reduce.smax.{self.suffix(dtype)}"
        return self.intrinsic(name, element_type(dtype), self.value(a, dtype))

    def count(self, condition: LaneValue) -> Value:
        """Return the number of lanes in which a condition holds, int64."""
        bits = ir.IntType(self.width)
        popcount = self.intrinsic(
            f"llvm.ctpop.i{self.width}", bits, self.builder.bitcast(condition, bits)
        )
        return self.builder.zext(popcount, I64)


def _fold(dtype: DType, function: Callable[..., Any], *args: LaneValue) -> Any:
    """Evaluate a NumPy function of constants in a dtype."""
    kind = np.dtype(dtype).type
    return kind(function(*(a if type(a) is kind else kind(a) for a in args)))


def _fold_shift(dtype: np.dtype, operation: str, a: int, shift: int) -> Any:
    """Shift a constant; shifts by the width of the type or more, or negative ones, as in XLA."""
    bits = 8 * dtype.itemsize
    # The arithmetic shift of an unsigned integer repeats its highest bit, as that of a signed one.
    unsigned = a % (1 << bits)
    signed = unsigned - (unsigned >> (bits - 1) << bits)
    if operation == "ashr":
        shifted = signed >> (shift if 0 <= shift < bits else bits - 1)
    elif 0 <= shift < bits:
        shifted = unsigned << shift if operation == "shl" else unsigned >> shift
    else:
        shifted = 0
    return np.array(shifted % (1 << bits), f"u{dtype.itemsize}").view(dtype)[()]


def _saturate(a: Any, new: np.dtype) -> np.integer:
    """Convert a constant to the nearest integer of a dtype, NaN to zero."""
    info = np.iinfo(new)
    if not np.isfinite(a):
        return new.type(0 if np.isnan(a) else info.max if a > 0 else info.min)
    return new.type(min(max(int(a), info.min), info.max))


def _zero_of(dtype: DType) -> Any:
    return np.zeros((), dtype)[()]


def _is_equal(x: LaneValue, value: LaneValue) -> bool:
    return is_constant(x) and bool(x == value)


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, np.complexfloating):
        return _is_same(a.real, b.real) and _is_same(a.imag, b.imag)
    return bool(a == b) and math.copysign(1, a) == math.copysign(1, b)


def _is_float(dtype: DType) -> bool:
    return np.dtype(dtype).kind == "f"


def _is_bool(dtype: DType) -> bool:
    return np.dtype(dtype) == np.bool_


COMPARISONS = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
