"""Arithmetic, comparisons, choices, conversions: number by number."""

import math

import numpy as np

from ...libm import powers, special
from ...libm.functions import Functions
from ...ops.division import division_p
from ..complex import is_complex, make_pair, part_dtype, parts
from ..emitter import Emitter
from ..lanes import COMPARISONS, is_constant
from ..registry import rule


def _operands(equation):
    return np.dtype(equation.invars[0].aval.dtype)


def _result(equation):
    return np.dtype(equation.outvars[0].aval.dtype)


def _kinds(equation):
    return [np.dtype(var.aval.dtype) for var in equation.invars]


def _two(*names, method, known=None):
    """A primitive of two numbers by a method of `Lanes`, by `known` of NumPy for known arrays."""

    @rule(*names)
    def emit(em: Emitter, equation, a, b):
        dtype = _operands(equation)
        function = getattr(em.lanes, method)
        return em.map(
            lambda x, y: function(dtype, x, y), _result(equation), a, b,
            dtypes=_kinds(equation), numpy_function=None if is_complex(dtype) else known,
        )  # fmt: skip

    return emit


_two("add", "add_any", method="add", known=np.add)
_two("sub", method="sub", known=np.subtract)
_two("mul", method="mul", known=np.multiply)
_two("rem", method="rem")
_two("max", method="max", known=np.maximum)
_two("min", method="min", known=np.minimum)
_two("and", method="and_", known=np.bitwise_and)
_two("or", method="or_", known=np.bitwise_or)
_two("xor", method="xor", known=np.bitwise_xor)


@rule("div")
def _div(em, equation, a, b):
    """By reciprocals, computed where the divisor is, if that is said to be fixed."""
    dtype, lanes = _operands(equation), em.lanes

    def one(x, y):
        if equation.primitive is not division_p:
            return lanes.div(dtype, x, y)
        with em.builder.at_definition_of(y):
            inverse = lanes.div(dtype, dtype.type(1), y)
        return lanes.mul(dtype, x, inverse)

    return em.map(one, dtype, a, b)


def _comparison(name, operator):
    @rule(name)
    def emit(em, equation, a, b):
        dtype = _operands(equation)
        function = em.lanes.compare
        return em.map(
            lambda x, y: function(dtype, operator, x, y), np.bool_, a, b,
            dtypes=_kinds(equation),
            numpy_function=None if is_complex(dtype) else COMPARISONS[operator],
        )  # fmt: skip


for _name, _operator in dict(lt="<", le="<=", gt=">", ge=">=", eq="==", ne="!=").items():
    _comparison(_name, _operator)


def _shift(name, kind):
    @rule(name)
    def emit(em, equation, a, b):
        dtype = _operands(equation)
        return em.map(lambda x, y: em.lanes.shift(dtype, kind, x, y), dtype, a, b)


for _name, _kind in {
    "shift_left": "shl",
    "shift_right_logical": "lshr",
    "shift_right_arithmetic": "ashr",
}.items():
    _shift(_name, _kind)


def _intrinsic(name, intrinsic, known):
    @rule(name)
    def emit(em, equation, a):
        dtype = _operands(equation)
        return em.map(lambda x: em.lanes.unary(intrinsic, dtype, x, known), dtype, a)


for _name, _intrinsic_name, _known in (
    ("sqrt", "sqrt", np.sqrt),
    ("floor", "floor", np.floor),
    ("ceil", "ceil", np.ceil),
):
    _intrinsic(_name, _intrinsic_name, _known)


def _function(name, function, known):
    """A function of numbers of type float64; others are converted."""

    @rule(name)
    def emit(em, equation, a):
        dtype, double = _operands(equation), np.dtype(np.float64)

        def one(x):
            if is_constant(x):
                return dtype.type(known(x))
            out = function(em.functions, em.lanes.convert(x, dtype, double))
            return em.lanes.convert(out, double, dtype)

        return em.map(one, dtype, a)


def _by_scipy(name):
    """A function of known numbers; loaded when it is needed, which takes as long as LLVM does."""

    def known(x):
        from scipy import special

        return getattr(special, name)(x)

    return known


for _name, _of_lanes, _known in (
    ("exp", powers.exp, np.exp),
    ("log", powers.log, np.log),
    ("sin", Functions.sin, np.sin),
    ("cos", Functions.cos, np.cos),
    ("atan", Functions.atan, np.arctan),
    ("cbrt", special.cbrt, np.cbrt),
    ("asinh", special.asinh, np.arcsinh),
    ("acosh", special.acosh, np.arccosh),
    ("atanh", special.atanh, np.arctanh),
    ("erf", special.erf, _by_scipy("erf")),
    ("erfc", special.erfc, _by_scipy("erfc")),
    ("erf_inv", special.erf_inv, _by_scipy("erfinv")),
):
    _function(_name, _of_lanes, _known)


@rule("abs")
def _abs(em, equation, a):
    dtype = _operands(equation)

    def one(x):
        if is_complex(dtype):
            return em.lanes.complex.abs(dtype, x)
        if dtype.kind == "f":
            return em.lanes.unary("fabs", dtype, x, np.abs)
        if dtype.kind == "u":
            return x
        negative = em.lanes.compare(dtype, "<", x, dtype.type(0))
        return em.lanes.select(dtype, negative, em.lanes.neg(dtype, x), x)

    return em.map(one, _result(equation), a, dtypes=[dtype])


@rule("real")
def _real(em, equation, a):
    return em.map(lambda x: parts(x)[0], _result(equation), a, dtypes=_kinds(equation))


@rule("imag")
def _imag(em, equation, a):
    return em.map(lambda x: parts(x)[1], _result(equation), a, dtypes=_kinds(equation))


@rule("complex")
def _complex(em, equation, a, b):
    dtype = _result(equation)
    return em.map(lambda x, y: make_pair(dtype, x, y), dtype, a, b, dtypes=_kinds(equation))


@rule("conj")
def _conj(em, equation, a):
    old, new = _operands(equation), _result(equation)

    def one(x):
        x, y = parts(em.lanes.convert(x, old, new))
        return make_pair(new, x, em.lanes.neg(part_dtype(new), y))

    return em.map(one, new, a, dtypes=[old])


@rule("round")
def _round(em, equation, a):
    dtype = _operands(equation)
    to_even = int(equation.params["rounding_method"]) == 1
    name = "roundeven" if to_even else "round"
    known = np.round if to_even else _rounded_away
    return em.map(lambda x: em.lanes.unary(name, dtype, x, known), dtype, a)


def _rounded_away(x):
    below = np.trunc(x)
    return below + np.copysign(np.abs(x - below) >= 0.5, x)


@rule("neg")
def _neg(em, equation, a):
    dtype = _operands(equation)
    return em.map(lambda x: em.lanes.neg(dtype, x), dtype, a)


@rule("not")
def _not(em, equation, a):
    dtype = _operands(equation)
    return em.map(lambda x: em.lanes.not_(dtype, x), dtype, a)


@rule("sign")
def _sign(em, equation, a):
    dtype = _operands(equation)
    zero, one = dtype.type(0), dtype.type(1)

    def sign(x):
        lanes = em.lanes
        out = lanes.select(dtype, lanes.compare(dtype, ">", x, zero), one, x)
        if dtype.kind == "u":
            return out
        return lanes.select(dtype, lanes.compare(dtype, "<", x, zero), dtype.type(-1), out)

    return em.map(sign, dtype, a)


@rule("square")
def _square(em, equation, a):
    dtype = _operands(equation)
    return em.map(lambda x: _squared(em, dtype, x), dtype, a)


def _squared(em, dtype, x):
    return em.lanes.complex.square(dtype, x) if is_complex(dtype) else em.lanes.mul(dtype, x, x)


@rule("rsqrt")
def _rsqrt(em, equation, a):
    dtype = _operands(equation)

    def one(x):
        return em.lanes.div(dtype, dtype.type(1), em.lanes.unary("sqrt", dtype, x, np.sqrt))

    return em.map(one, dtype, a)


@rule("integer_pow")
def _integer_pow(em, equation, a):
    dtype, power = _operands(equation), equation.params["y"]

    def one(x):
        lanes, unit = em.lanes, dtype.type(1)
        inverse_first = power < 0 and is_complex(dtype)
        # Powers of large complex numbers end as infinity minus infinity, those of inverses as zero.
        inverse = lanes.div(dtype, unit, x) if inverse_first else x
        out, base, rest = None, inverse, abs(power)
        while rest:
            if rest & 1:
                out = base if out is None else lanes.mul(dtype, out, base)
            rest >>= 1
            base = _squared(em, dtype, base) if rest else base
        out = unit if out is None else out
        if inverse_first:
            # The inverse of zero has an infinite part and none, whose square is no number.
            return lanes.select(dtype, lanes.compare(dtype, "==", x, dtype.type(0)), inverse, out)
        return lanes.div(dtype, unit, out) if power < 0 else out

    return em.map(one, dtype, a)


@rule("pow")
def _pow(em, equation, a, b):
    dtype, exponent = _operands(equation), np.dtype(equation.invars[1].aval.dtype)

    def one(x, y):
        y = em.lanes.convert(y, exponent, dtype)
        if is_constant(x) and is_constant(y):
            return dtype.type(np.power(x, y))
        double, factor, of_root = np.dtype(np.float64), None, False
        if is_constant(y) and dtype == double:
            x, y, factor, of_root = em.lanes.simplify_power(x, y)
        x, y = (em.lanes.convert(v, dtype, double) for v in (x, y))
        out = powers.pow(em.functions, x, y, of_root)
        out = out if factor is None else em.lanes.mul(double, out, factor)
        return em.lanes.convert(out, double, dtype)

    return em.map(one, dtype, a, b, dtypes=_kinds(equation))


@rule("clamp")
def _clamp(em, equation, low, x, high):
    dtype = _result(equation)

    def one(low, x, high):
        return em.lanes.min(dtype, em.lanes.max(dtype, x, low), high)

    return em.map(one, dtype, low, x, high)


@rule("is_finite")
def _is_finite(em, equation, a):
    dtype = _operands(equation)

    def one(x):
        size = em.lanes.unary("fabs", dtype, x, np.abs)
        return em.lanes.compare(dtype, "<", size, dtype.type(math.inf))

    return em.map(one, np.bool_, a, dtypes=_kinds(equation))


@rule("select_n")
def _select_n(em, equation, which, *cases):
    dtype, selector = _result(equation), _operands(equation)

    def one(which, *values):
        if selector == np.bool_:
            return em.lanes.select(dtype, which, values[1], values[0])
        out = values[-1]
        for k in range(len(values) - 2, -1, -1):
            here = em.lanes.compare(selector, "<=", which, selector.type(k))
            out = em.lanes.select(dtype, here, values[k], out)
        return out

    return em.map(one, dtype, which, *cases, dtypes=_kinds(equation))


@rule("convert_element_type")
def _convert(em, equation, a):
    old, new = _operands(equation), _result(equation)
    if old == new:
        return a
    saturates = old.kind == "f" and new.kind in "iu"
    known = None if saturates or is_complex(old) or is_complex(new) else lambda x: x.astype(new)
    return em.map(
        lambda x: em.lanes.convert(x, old, new), new, a, dtypes=[old], numpy_function=known
    )
