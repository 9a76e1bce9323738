"""Operations on elements: arithmetic, functions, comparisons, bits, conversions."""

import numpy as np

from . import values
from .writer import Writer

# Units in the last place by which XLA's own functions differ from the exact value where the library
# functions of this package do not: measured against multiple precision, large arguments included.
UNARY_FLOAT = {
    "jnp.sin": 4, "jnp.cos": 4, "jnp.tan": 8, "jnp.exp": 4, "jnp.exp2": 8, "jnp.expm1": 8,
    "jnp.log": 4, "jnp.log1p": 200, "jnp.log2": 8, "jnp.sqrt": 1, "lax.rsqrt": 4,
    "jnp.sinh": 400, "jnp.cosh": 400, "jnp.tanh": 8, "jnp.arcsin": 8, "jnp.arccos": 8,
    "jnp.arctan": 8, "lax.logistic": 8, "lax.integer_pow": 8,
}  # fmt: skip
# Expressions that restrict an argument to where the function is finite.
TAMED = {
    "jnp.exp": "jnp.clip({x}, -5, 5)", "jnp.exp2": "jnp.clip({x}, -5, 5)",
    "jnp.expm1": "jnp.clip({x}, -5, 5)", "jnp.sinh": "jnp.clip({x}, -5, 5)",
    "jnp.cosh": "jnp.clip({x}, -5, 5)", "jnp.log": "(jnp.abs({x}) + 0.5)",
    "jnp.log1p": "jnp.abs({x})", "jnp.log2": "(jnp.abs({x}) + 0.5)", "jnp.sqrt": "jnp.abs({x})",
    "lax.rsqrt": "(jnp.abs({x}) + 0.1)", "jnp.arcsin": "(0.9 * jnp.sin({x}))",
    "jnp.arccos": "(0.9 * jnp.sin({x}))",
}  # fmt: skip
EXACT_UNARY = (
    "-{x}", "jnp.abs({x})", "jnp.sign({x})", "jnp.floor({x})", "jnp.ceil({x})", "jnp.round({x})",
    "jnp.trunc({x})", "jnp.isfinite({x})", "lax.stop_gradient({x})",
    "lax.round({x}, lax.RoundingMethod.AWAY_FROM_ZERO)", "lax.optimization_barrier({x})",
)  # fmt: skip
UNARY_COMPLEX = {
    "jnp.sin": 8, "jnp.cos": 8, "jnp.exp": 8, "jnp.log": 8, "jnp.sqrt": 8, "jnp.tanh": 16,
    "jnp.sinh": 16, "jnp.cosh": 16, "jnp.tan": 16, "lax.rsqrt": 16, "jnp.sign": 8, "jnp.square": 4,
    "jnp.expm1": 16, "jnp.log1p": 16, "lax.logistic": 16,
}  # fmt: skip
# Where XLA's own complex functions are wrong, compared with multiple precision on a grid of values
# at the edges of the range, and kernels are right: infinite where a product overflows before its
# result does, without digits near zero, of the wrong sign on a branch cut, undefined for infinite
# arguments that have a limit.
LARGE = "(jnp.maximum(jnp.abs({x}.real), jnp.abs({x}.imag)) > jnp.finfo({x}.dtype).max / 8)"
BEYOND = "(jnp.abs({x}.{part}) > 0.9 * jnp.log(jnp.finfo({x}.dtype).max))"
NOT_FINITE = "~jnp.isfinite({x})"
# Sums of products: kernels compute one of the products exactly (fused multiply-add), so that it
# does not overflow before the other one cancels it.
OVERFLOW = NOT_FINITE.format(x="{result}")
REAL, IMAG = BEYOND.replace("{part}", "real"), BEYOND.replace("{part}", "imag")
DOUBTS = {
    "jnp.expm1": REAL,
    "jnp.sinh": f"({REAL} | (jnp.abs({{x}}.real) < 0.1))",
    "jnp.cosh": f"({REAL} | (jnp.abs({{x}}.real) < 0.1))",
    "jnp.sin": IMAG,
    "jnp.cos": IMAG,
    "jnp.sqrt": "((({x}.imag == 0) & ({x}.real <= 0)) | jnp.isinf({x}.imag))",
    "jnp.sign": LARGE,
}
# Where the derivative of `tanh`, 1 - tanh^2, has few digits or none.
SATURATED = "((jnp.abs({x}) > 5) & (jnp.abs({x}) < 40))"


def unary_float(w: Writer) -> None:
    x, _ = w.variable("f")
    if w.chance(0.25):
        code = w.choose(EXACT_UNARY).format(x=x)
        w.append(code)
        return
    name = w.choose(list(UNARY_FLOAT))
    inner = x
    if name in TAMED and w.chance(0.7):
        # A line of its own: functions have errors as if their argument were another one.
        result = w.append(TAMED[name].format(x=x), 2.0)
        inner = w.operand(result[0]) if result else x
    if name == "lax.integer_pow":
        w.append(f"lax.integer_pow({inner}, {w.choose([-3, -2, -1, 0, 1, 2, 3, 4, 7])})", 8.0)
    else:
        doubt = SATURATED.format(x=inner) if name == "jnp.tanh" else ""
        w.append(f"{name}({inner})", UNARY_FLOAT[name], "relative", doubt=doubt)


def unary_complex(w: Writer) -> None:
    x, t = w.variable("c")
    kind = w.integer(0, 9)
    if kind < 5:
        name = w.choose(list(UNARY_COMPLEX))
        if name in ("jnp.exp", "jnp.sinh", "jnp.cosh", "jnp.expm1") and w.chance(0.7):
            result = w.append(f"jnp.tanh({x})", 16.0, "relative")
            x = w.operand(result[0]) if result else x
        doubt = DOUBTS.get(name, "").format(x=x)
        w.append(f"{name}({x})", UNARY_COMPLEX[name], "relative", doubt=doubt)
    elif kind == 5:
        w.append(f"jnp.abs({x})", 8.0)
    elif kind == 6:
        power = w.choose([-2, -1, 2, 3])
        doubt = NOT_FINITE.format(x="{result}") if abs(power) > 1 else ""
        w.append(f"lax.integer_pow({x}, {power})", 16.0, doubt=doubt)
    elif kind == 7:
        w.append(w.choose([f"jnp.conj({x})", f"-{x}", f"{x}.real", f"{x}.imag"]))
    elif kind == 8:
        w.append(f"jnp.angle({x})", 8.0)
    else:
        other = w.broadcastable(t)
        doubt = " | ".join([
            LARGE.format(x=x), f"({x} == 0)",
            *(NOT_FINITE.format(x=v) for v in (x, other, "{result}")),
        ])  # fmt: skip
        w.append(f"jnp.power({x}, {other})", 64.0, "relative", doubt=doubt)


def binary_float(w: Writer) -> None:
    x, t = w.variable("f")
    y = w.broadcastable(t)
    if w.chance(0.3):
        x, y = y, x
    code, rounding = w.choose([
        ("{x} + {y}", 1), ("{x} - {y}", 1), ("{x} * {y}", 1), ("{x} / {y}", 1),
        ("{x} + {y}", 1), ("{x} - {y}", 1), ("{x} * {y}", 1), ("{x} * {y} + {x}", 4),
        ("jnp.maximum({x}, {y})", 0), ("jnp.minimum({x}, {y})", 0),
        ("jnp.arctan2({x}, {y})", 8), ("jnp.power({x}, {y})", 16),
        ("jnp.power(jnp.abs({x}) + 0.1, jnp.clip({y}, -4, 4))", 16), ("lax.rem({x}, {y})", 0),
        ("jnp.mod({x}, {y})", 4), ("lax.nextafter(*jnp.broadcast_arrays({x}, {y}))", 0),
        ("jnp.hypot({x}, {y})", 8), ("jnp.copysign({x}, {y})", 0),
        ("jnp.clip({x}, -1.0, {y})", 0),
        # Divisors with a reciprocal, as it asks for.
        ("division.divide_by_invariant({x}, jnp.clip({y}, -1e37, 1e37))", 4),
        ("jnp.logaddexp({x}, {y})", 16),
    ])  # fmt: skip
    doubt = ""
    if code.startswith("{x} * {y}"):
        doubt = f"{OVERFLOW} & jnp.isfinite({x}) & jnp.isfinite({y})"
    if code.startswith("jnp.copysign"):
        doubt = f"jnp.isnan({y})"  # whose sign is not defined
    if "mod(" in code or "rem(" in code:
        # Cancellation makes a divisor exactly zero in one backend alone, and the remainder NaN.
        doubt = f"jnp.abs({y}) < 1e-10"
    # Remainders are exact, but depend on the last bit of both where the quotient is large.
    backward = "relative" if rounding >= 4 else ""
    w.append(code.format(x=x, y=y), rounding, backward, doubt=doubt)


def binary_complex(w: Writer) -> None:
    x, t = w.variable("c")
    y = w.broadcastable(t)
    operator = w.choose("+-*/")
    doubt = {
        "/": f"{LARGE.format(x=y)} | {NOT_FINITE.format(x=x)} | {OVERFLOW}", "*": OVERFLOW
    }.get(operator, "")  # fmt: skip
    w.append(f"{x} {operator} {y}", 4.0, "relative", doubt=doubt)


def made_complex(w: Writer) -> None:
    x, t = w.variable("f")
    w.append(w.choose([f"lax.complex({x}, {w.like(t)})", f"{x} + 1j * {x}", f"{x} * 1j"]), 1.0)


def integer_arithmetic(w: Writer) -> None:
    x, t = w.variable("iu")
    y = w.broadcastable(t, known=0.3)
    signed = np.dtype(t.dtype).kind == "i"
    # XLA's compiler crashes where it finds a divisor to be zero.
    divisor = f"lax.optimization_barrier({y})"
    shift = "lax.shift_right_arithmetic" if signed else "lax.shift_right_logical"
    code = w.choose([
        "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} // {d}", "{x} % {d}", "{x} & {y}", "{x} | {y}",
        "{x} ^ {y}", "jnp.maximum({x}, {y})", "jnp.minimum({x}, {y})", "-{x}", "~{x}",
        "jnp.abs({x})", "jnp.sign({x})", "lax.population_count({x})", "lax.clz({x})",
        "lax.div(*jnp.broadcast_arrays({x}, {d}))", "lax.rem(*jnp.broadcast_arrays({x}, {d}))",
        "lax.shift_left(*jnp.broadcast_arrays({x}, {y}))",
        shift + "(*jnp.broadcast_arrays({x}, {y}))", "jnp.clip({x}, 1, {y})",
        "lax.shift_right_logical(*jnp.broadcast_arrays({x}, {y}))", "lax.integer_pow({x}, 3)",
        "jnp.square({x})",
    ])  # fmt: skip
    _only_used(w, code, x=x, y=y, d=divisor)


def logical(w: Writer) -> None:
    x, t = w.variable("b")
    y = w.broadcastable(t)
    _only_used(w, w.choose(["{x} & {y}", "{x} | {y}", "{x} ^ {y}", "~{x}", "{x} == {y}"]), x=x, y=y)


def _only_used(w: Writer, code: str, **names: str) -> None:
    w.append(code.format(**names))


def comparison(w: Writer) -> None:
    x, t = w.variable("fiub")
    y = w.broadcastable(t)
    w.append(f"{x} {w.choose(['<', '<=', '>', '>=', '==', '!='])} {y}")


def choice(w: Writer) -> None:
    x, t = w.variable()
    y = w.like(t)
    p = w.variable("b", lambda b: b.shape in (t.shape, ()))[0]
    kind = w.integer(0, 3)
    if kind == 0:
        w.append(f"lax.select(jnp.broadcast_to({p}, {t.shape}), {x}, {y})")
    elif kind == 1 and np.dtype(t.dtype).kind in "fiu" and t.shape:
        # JAX has no rule for batches of bounds of one number.
        w.append(f"lax.clamp({y}, {x}, {w.like(t)})")
    else:
        w.append(f"jnp.where({p}, {x}, {y})")


def several_choices(w: Writer) -> None:
    """`select_n` of more than two."""
    k, _ = w.variable("iu", lambda t: t.shape == ())
    x, t = w.variable()
    cases = ", ".join([x, w.like(t), w.like(t)])
    w.append(f"lax.select_n(jnp.int32({k} % 3), {cases})")


def conversion(w: Writer) -> None:
    x, _ = w.variable("fiub")
    kinds = values.FLOATS + values.INTEGERS + ("bool",)
    to = w.choose(kinds + values.COMPLEX)
    w.append(f"lax.convert_element_type({x}, '{to}')")


def bits(w: Writer) -> None:
    x, t = w.variable("fiu", lambda t: len(t.shape) < 3)
    size = np.dtype(t.dtype).itemsize
    kind = w.integer(0, 2)
    if kind == 0 and np.dtype(t.dtype).kind == "f":
        exponent, mantissa = w.choose([(8, 10), (5, 3), (8, 23), (4, 7)])
        w.append(f"lax.reduce_precision({x}, {exponent}, {mantissa})")
        return
    options = [d for d in (*values.FLOATS, *values.INTEGERS) if np.dtype(d).itemsize == size]
    if kind == 1:
        options += [d for d in ("uint8", "int16", "uint32") if np.dtype(d).itemsize < size]
    # NaN has any sign.
    number = f"jnp.where(jnp.isnan({x}), jnp.nan, {x})" if t.dtype.startswith("float") else x
    w.append(f"lax.bitcast_convert_type({number}, '{w.choose(options)}')")


OPERATIONS = {
    unary_float: 6, unary_complex: 2, binary_float: 7, binary_complex: 1, made_complex: 0.5,
    integer_arithmetic: 3, logical: 1, comparison: 2, choice: 2, several_choices: 0.5,
    conversion: 2, bits: 0.7,
}  # fmt: skip
