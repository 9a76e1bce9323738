"""Elementwise primitives: arithmetic, comparisons, selections and conversions."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...libm import powers
from ...libm.functions import Functions
from ...ops.division import division_p
from ...primitives.registry import Equation, rule
from ...values.complex import LaneValue, is_complex, make_pair, part_dtype, parts
from ...values.lanes import COMPARISONS, is_constant
from ...values.memory import EmittedArray
from ..emitter import Emitter


def _operand_dtype(equation: Equation):
    return np.dtype(equation.invars[0].aval.dtype)


def _result_dtype(equation: Equation):
    return np.dtype(equation.outvars[0].aval.dtype)


def _operand_dtypes(equation: Equation):
    return [np.dtype(var.aval.dtype) for var in equation.invars]


def _register_binary(*names: str, method: str, numpy_function: Callable[..., Any] | None = None):
    """Register a rule that applies a method of `Lanes` to two elements.

    **Arguments:** `names` of the primitives; `method`; `numpy_function`, which folds constants.
    """

    @rule(*names)
    def emit(em: Emitter, equation, a, b):
        dtype = _operand_dtype(equation)
        function = getattr(em.lanes, method)
        return em.map(
            lambda x, y: function(dtype, x, y), _result_dtype(equation), a, b,
            dtypes=_operand_dtypes(equation),
            numpy_function=None if is_complex(dtype) else numpy_function,
        )  # fmt: skip

    return emit


_register_binary("add", "add_any", method="add", numpy_function=np.add)
_register_binary("sub", method="sub", numpy_function=np.subtract)
_register_binary("mul", method="mul", numpy_function=np.multiply)
_register_binary("rem", method="rem")
_register_binary("max", method="max", numpy_function=np.maximum)
_register_binary("min", method="min", numpy_function=np.minimum)
_register_binary("and", method="and_", numpy_function=np.bitwise_and)
_register_binary("or", method="or_", numpy_function=np.bitwise_or)
_register_binary("xor", method="xor", numpy_function=np.bitwise_xor)


@rule("div")
def _div(em: Emitter, equation: Equation, a: EmittedArray, b: EmittedArray):
    """Divide; a `division_p` multiplies by the reciprocal, computed once where `y` is defined."""
    dtype, lanes = _operand_dtype(equation), em.lanes

    def compute(x, y):
        if equation.primitive is not division_p:
            return lanes.div(dtype, x, y)
        with em.builder.at_definition_of(y):
            inverse = lanes.div(dtype, dtype.type(1), y)
        return lanes.mul(dtype, x, inverse)

    return em.map(compute, dtype, a, b)


def _register_comparison(name: str, operator: str):
    @rule(name)
    def emit(em, equation, a, b):
        dtype = _operand_dtype(equation)
        function = em.lanes.compare
        return em.map(
            lambda x, y: function(dtype, operator, x, y), np.bool_, a, b,
            dtypes=_operand_dtypes(equation),
            numpy_function=None if is_complex(dtype) else COMPARISONS[operator],
        )  # fmt: skip


for _name, _operator in dict(lt="<", le="<=", gt=">", ge=">=", eq="==", ne="!=").items():
    _register_comparison(_name, _operator)


def _register_shift(name: str, operation: str):
    @rule(name)
    def emit(em, equation, a, b):
        dtype = _operand_dtype(equation)
        return em.map(lambda x, y: em.lanes.shift(dtype, operation, x, y), dtype, a, b)


for _name, _operation in {
    "shift_left": "shl",
    "shift_right_logical": "lshr",
    "shift_right_arithmetic": "ashr",
}.items():
    _register_shift(_name, _operation)


def _register_intrinsic(name: str, intrinsic_name: str, numpy_function: Callable[..., Any]):
    @rule(name)
    def emit(em, equation, a):
        dtype = _operand_dtype(equation)
        return em.map(lambda x: em.lanes.unary(intrinsic_name, dtype, x, numpy_function), dtype, a)


for _name, _intrinsic_name, _numpy_function in (
    ("sqrt", "sqrt", np.sqrt),
    ("floor", "floor", np.floor),
    ("ceil", "ceil", np.ceil),
):
    _register_intrinsic(_name, _intrinsic_name, _numpy_function)


def _register_function(name: str, function: Callable[..., Any], numpy_function: Callable[..., Any]):
    """Register a function of float64 elements; other types are converted."""

    @rule(name)
    def emit(em, equation, a):
        dtype, double = _operand_dtype(equation), np.dtype(np.float64)

        def compute(x):
            if is_constant(x):
                return dtype.type(numpy_function(x))
            out = function(em.functions, em.lanes.convert(x, dtype, double))
            return em.lanes.convert(out, double, dtype)

        return em.map(compute, dtype, a)


for _name, _lanes_function, _numpy_function in (
    ("exp", powers.exp, np.exp),
    ("log", powers.log, np.log),
    ("sin", Functions.sin, np.sin),
    ("cos", Functions.cos, np.cos),
    ("atan", Functions.atan, np.arctan),
):
    _register_function(_name, _lanes_function, _numpy_function)


@rule("abs")
def _abs(em: Emitter, equation: Equation, a: EmittedArray):
    dtype = _operand_dtype(equation)

    def compute(x):
        if is_complex(dtype):
            return em.lanes.complex.abs(dtype, x)
        if dtype.kind == "f":
            return em.lanes.unary("fabs", dtype, x, np.abs)
        if dtype.kind == "u":
            return x
        negative = em.lanes.compare(dtype, "<", x, dtype.type(0))
        return em.lanes.select(dtype, negative, em.lanes.neg(dtype, x), x)

    return em.map(compute, _result_dtype(equation), a, dtypes=[dtype])


@rule("real")
def _real(em: Emitter, equation: Equation, a: EmittedArray):
    return em.map(
        lambda x: parts(x)[0], _result_dtype(equation), a, dtypes=_operand_dtypes(equation)
    )


@rule("imag")
def _imag(em: Emitter, equation: Equation, a: EmittedArray):
    return em.map(
        lambda x: parts(x)[1], _result_dtype(equation), a, dtypes=_operand_dtypes(equation)
    )


@rule("complex")
def _complex(em: Emitter, equation: Equation, a: EmittedArray, b: EmittedArray):
    dtype = _result_dtype(equation)
    return em.map(
        lambda x, y: make_pair(dtype, x, y), dtype, a, b, dtypes=_operand_dtypes(equation)
    )


@rule("conj")
def _conj(em: Emitter, equation: Equation, a: EmittedArray):
    old, new = _operand_dtype(equation), _result_dtype(equation)

    def compute(x):
        x, y = parts(em.lanes.convert(x, old, new))
        return make_pair(new, x, em.lanes.neg(part_dtype(new), y))

    return em.map(compute, new, a, dtypes=[old])


@rule("round")
def _round(em: Emitter, equation: Equation, a: EmittedArray):
    dtype = _operand_dtype(equation)
    to_even = int(equation.params["rounding_method"]) == 1
    name = "roundeven" if to_even else "round"
    numpy_function = np.round if to_even else _round_half_away
    return em.map(lambda x: em.lanes.unary(name, dtype, x, numpy_function), dtype, a)


def _round_half_away(x: np.generic):
    truncated = np.trunc(x)
    return truncated + np.copysign(np.abs(x - truncated) >= 0.5, x)


@rule("neg")
def _neg(em: Emitter, equation: Equation, a: EmittedArray):
    dtype = _operand_dtype(equation)
    return em.map(lambda x: em.lanes.neg(dtype, x), dtype, a)


@rule("not")
def _not(em: Emitter, equation: Equation, a: EmittedArray):
    dtype = _operand_dtype(equation)
    return em.map(lambda x: em.lanes.not_(dtype, x), dtype, a)


@rule("sign")
def _sign(em: Emitter, equation: Equation, a: EmittedArray):
    dtype = _operand_dtype(equation)
    zero, one = dtype.type(0), dtype.type(1)

    def sign(x):
        lanes = em.lanes
        out = lanes.select(dtype, lanes.compare(dtype, ">", x, zero), one, x)
        if dtype.kind == "u":
            return out
        return lanes.select(dtype, lanes.compare(dtype, "<", x, zero), dtype.type(-1), out)

    return em.map(sign, dtype, a)


@rule("square")
def _square(em: Emitter, equation: Equation, a: EmittedArray):
    dtype = _operand_dtype(equation)
    return em.map(lambda x: _square_element(em, dtype, x), dtype, a)


def _square_element(em: Emitter, dtype: np.dtype, x: LaneValue):
    return em.lanes.complex.square(dtype, x) if is_complex(dtype) else em.lanes.mul(dtype, x, x)


@rule("rsqrt")
def _rsqrt(em: Emitter, equation: Equation, a: EmittedArray):
    dtype = _operand_dtype(equation)

    def compute(x):
        return em.lanes.div(dtype, dtype.type(1), em.lanes.unary("sqrt", dtype, x, np.sqrt))

    return em.map(compute, dtype, a)


@rule("integer_pow")
def _integer_pow(em: Emitter, equation: Equation, a: EmittedArray):
    dtype, power = _operand_dtype(equation), equation.params["y"]

    def compute(x):
        lanes, unit = em.lanes, dtype.type(1)
        inverts_first = power < 0 and is_complex(dtype)
        # Negative complex powers invert first: a large power can end as infinity minus infinity,
        # where that of the inverse is zero.
        inverse = lanes.div(dtype, unit, x) if inverts_first else x
        out, base, remaining_power = None, inverse, abs(power)
        while remaining_power:
            if remaining_power & 1:
                out = base if out is None else lanes.mul(dtype, out, base)
            remaining_power >>= 1
            base = _square_element(em, dtype, base) if remaining_power else base
        out = unit if out is None else out
        if inverts_first:
            # The inverse of zero has an infinite and a zero part, and its square would be NaN.
            return lanes.select(dtype, lanes.compare(dtype, "==", x, dtype.type(0)), inverse, out)
        return lanes.div(dtype, unit, out) if power < 0 else out

    return em.map(compute, dtype, a)


@rule("pow")
def _pow(em: Emitter, equation: Equation, a: EmittedArray, b: EmittedArray):
    dtype, exponent_dtype = _operand_dtype(equation), np.dtype(equation.invars[1].aval.dtype)

    def compute(x, y):
        y = em.lanes.convert(y, exponent_dtype, dtype)
        if is_constant(x) and is_constant(y):
            return dtype.type(np.power(x, y))
        double, factor, is_of_root = np.dtype(np.float64), None, False
        if is_constant(y) and dtype == double:
            x, y, factor, is_of_root = em.lanes.simplify_power(x, y)
        x, y = (em.lanes.convert(v, dtype, double) for v in (x, y))
        out = powers.pow(em.functions, x, y, is_of_root)
        out = out if factor is None else em.lanes.mul(double, out, factor)
        return em.lanes.convert(out, double, dtype)

    return em.map(compute, dtype, a, b, dtypes=_operand_dtypes(equation))


@rule("clamp")
def _clamp(em: Emitter, equation: Equation, low: EmittedArray, x: EmittedArray, high: EmittedArray):
    dtype = _result_dtype(equation)

    def compute(low, x, high):
        return em.lanes.min(dtype, em.lanes.max(dtype, x, low), high)

    return em.map(compute, dtype, low, x, high)


@rule("is_finite")
def _is_finite(em: Emitter, equation: Equation, a: EmittedArray):
    dtype = _operand_dtype(equation)

    def compute(x):
        magnitude = em.lanes.unary("fabs", dtype, x, np.abs)
        return em.lanes.compare(dtype, "<", magnitude, dtype.type(math.inf))

    return em.map(compute, np.bool_, a, dtypes=_operand_dtypes(equation))


@rule("select_n")
def _select_n(em: Emitter, equation: Equation, selector: EmittedArray, *cases: EmittedArray):
    dtype, selector_dtype = _result_dtype(equation), _operand_dtype(equation)

    def compute(selector, *values):
        if selector_dtype == np.bool_:
            return em.lanes.select(dtype, selector, values[1], values[0])
        out = values[-1]
        for k in range(len(values) - 2, -1, -1):
            is_case = em.lanes.compare(selector_dtype, "<=", selector, selector_dtype.type(k))
            out = em.lanes.select(dtype, is_case, values[k], out)
        return out

    return em.map(compute, dtype, selector, *cases, dtypes=_operand_dtypes(equation))


@rule("convert_element_type")
def _convert(em: Emitter, equation: Equation, a: EmittedArray):
    old, new = _operand_dtype(equation), _result_dtype(equation)
    if old == new:
        return a
    saturates = old.kind == "f" and new.kind in "iu"
    numpy_function = (
        None if saturates or is_complex(old) or is_complex(new) else lambda x: x.astype(new)
    )
    return em.map(
        lambda x: em.lanes.convert(x, old, new), new, a, dtypes=[old], numpy_function=numpy_function
    )
