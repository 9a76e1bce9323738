"""Kernels at the ends of the range of floating-point numbers, and the signs of zero."""

import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from rigidjax import native

LARGEST = np.finfo(float).max
# Points where the naive formulas have infinity times zero, or infinity minus infinity.
POINTS = np.array([
    710 + 1j, -0.3 + 711j, 711 - 0.3j, 800 + 0j, -800 + 1e-300j, 1e200 + 0j, 1e200j,
    1.5e308 - 1.7e308j, -1.7e308 + 1.5e308j, 1e-200 + 1e-200j, 0.3 - 0.2j, 42.0 + 2.5j,
    complex(-LARGEST, LARGEST), 2.3e-308j, 2.3e-308 + 0j, -3e-308 + 5e-308j,
])  # fmt: skip
# All pairs of these are parts of numbers whose functions have limits, infinite parts or none.
PARTS = [0.0, 1.0, -0.5, np.inf, -np.inf, np.nan]
UNDEFINED = np.array([complex(x, y) for x in PARTS for y in PARTS])
FUNCTIONS = {
    "exp": mpmath.exp,
    "expm1": lambda z: mpmath.exp(z) - 1,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "sqrt": mpmath.sqrt,
    "sign": lambda z: z / abs(z),
    "square": lambda z: z * z,
    "rsqrt": lambda z: 1 / mpmath.sqrt(z),
    "logistic": lambda z: 1 / (1 + mpmath.exp(-z)),
    "power": lambda z: z**-2,
    "quotient": lambda z: (1 + 1j) / z,
}


def functions(z):
    named = [name for name in FUNCTIONS if name not in ("power", "quotient")]
    values = [(getattr(jnp, name, None) or getattr(jax.lax, name))(z) for name in named]
    return [*values, z**-2, (1 + 1j) / z]


def round_to_float(x):
    """Return a number of mpmath as a float: infinite above the range, zero below it as in XLA."""
    if abs(x) > LARGEST:
        return float(mpmath.sign(x)) * np.inf
    return 0.0 if abs(x) < np.finfo(float).tiny else float(x)


def test_complex_functions():
    actual = jax.jit(native.jit(functions))(jnp.asarray(POINTS))
    with mpmath.workdps(700):
        for exact, values in zip(FUNCTIONS.values(), actual, strict=True):
            for z, value in zip(POINTS.tolist(), np.asarray(values).tolist(), strict=True):
                true = exact(mpmath.mpc(z))
                expected = np.array(
                    [round_to_float(mpmath.re(true)), round_to_float(mpmath.im(true))]
                )
                finite = np.where(np.isfinite(expected), np.abs(expected), 0.0)
                np.testing.assert_allclose(
                    [value.real, value.imag], expected, rtol=1e-13,
                    atol=1e-13 * max(finite), err_msg=f"{exact} of {z}",
                )  # fmt: skip


def assert_same_parts(actual, expected, message=""):
    for part in (np.real, np.imag):
        x, y = (part(np.asarray(z)) for z in (actual, expected))
        np.testing.assert_allclose(x, y, rtol=1e-14, atol=1e-15, err_msg=message)


def test_complex_division():
    """Values are those of XLA for zero or infinite divisors, and correct where its products
    overflow.
    """
    divide = jax.jit(native.jit(jnp.divide))
    divisors = [0, complex(-0.0, 0.0), complex(np.inf, 1), complex(1, -np.inf), 1e-200j, 1 + 1j]
    a, b = np.meshgrid([1 + 0j, -2 + 1j, 3e-308j, 0j, 1e200 - 1e200j, 2.5j], divisors)
    args = jnp.asarray(a), jnp.asarray(b)
    actual, expected = (np.asarray(f(*args)) for f in (divide, jax.jit(jnp.divide)))
    assert_same_parts(actual, expected)
    # Undefined and infinite dividends, and divisors with one part of each kind.
    a, b = np.meshgrid(
        UNDEFINED, [0j, 2 + 0j, -3j, 1 - 1j, complex(np.nan, np.inf), 1 + np.inf * 1j]
    )
    actual, expected = (np.asarray(f(a, b)) for f in (divide, jax.jit(jnp.divide)))
    # XLA returns one NaN part where the other one is defined.
    known = ~(np.isinf(a) & np.isfinite(b) & (np.isnan(expected.real) != np.isnan(expected.imag)))
    assert_same_parts(actual[known], expected[known])
    infinite = divide(jnp.asarray([complex(np.inf, np.inf)]), jnp.asarray([1 - 2j]))
    assert_same_parts(infinite, [complex(-np.inf, np.inf)])
    large = 1.5e308 * np.array([1 - 1j, 1 + 1j, 1 - 1j, 1e-108])
    ratios = divide(jnp.asarray(large), jnp.asarray([large[0], large[0], 1 + 1j, large[0]]))
    np.testing.assert_allclose(ratios, [1, 1j, -1.5e308j, 5e-109 + 5e-109j], rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=lambda t: t.__name__)
def test_signs_of_zero(dtype):
    zero, minus = dtype(0.0), dtype(-0.0)
    a = jnp.asarray([0.0, -0.0, 0.0, -0.0, 1.0, np.nan, -0.0], dtype)
    b = jnp.asarray([0.0, 0.0, -0.0, -0.0, -0.0, 0.0, np.nan], dtype)

    def function(a, b):
        return (
            *(jnp.maximum(a, b), jnp.minimum(a, b), jax.lax.clamp(a, b, b + 1)),
            *(jnp.maximum(a, zero), jnp.minimum(a, zero), jnp.maximum(minus, a)),
            *(jnp.minimum(minus, a), jax.lax.clamp(minus, a, dtype(1.0))),
        )

    kernel = native.jit(function)
    for actual in (kernel(a, b), jax.vmap(kernel)(a, b)):
        for x, y in zip(actual, jax.jit(function)(a, b), strict=True):
            np.testing.assert_array_equal(x, y)
            known = ~np.isnan(y)
            np.testing.assert_array_equal(np.signbit(x)[known], np.signbit(y)[known])


def test_powers_of_roots_and_division_of_zeros():
    x = jnp.asarray([0.0, -0.0, np.inf, 4.0, -1.0])

    def function(x):
        root, inverse = jnp.sqrt(x), 1.0 / jnp.sqrt(x)
        return [jnp.power(y, jnp.float64(p)) for y in (root, inverse) for p in (1.0, -3.0, 0.5)]

    for actual, expected in zip(native.jit(function)(x), jax.jit(function)(x), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-15)
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual)[known], np.signbit(expected)[known])


def test_uniform_real_values_become_complex():
    """Floats, integers and Booleans are uniform over the batch."""

    def function(x, y, k):
        return x + 1j * y, x * k.astype(complex), jnp.where(y > 1, 1j * y, y), (k > 0) + 1j * x

    x, y, k = jnp.arange(5.0), jnp.array(2.0), jnp.array(3)
    actual = jax.vmap(native.jit(function), in_axes=(0, None, None))(x, y, k)
    for a, b in zip(actual, jax.vmap(function, (0, None, None))(x, y, k), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_shifts_of_compile_time_constants(dtype):
    """Arrays in registers, and large arrays, which are folded as a whole."""
    bits = 8 * np.dtype(dtype).itemsize
    by = np.array([0, 1, bits - 1, bits, bits + 3, -1]).astype(dtype)
    info = np.iinfo(dtype)
    a = np.array([info.min, info.max, 5, info.max // 2 + 1], dtype)
    a, by = (np.tile(x.ravel(), 20) for x in np.meshgrid(a, by))
    names = "shift_left", "shift_right_logical", "shift_right_arithmetic"

    def function(start, a, by):
        shifted = [getattr(jax.lax, name)(jnp.asarray(a), jnp.asarray(by)) for name in names]
        return [start + x for x in shifted]

    start = jnp.zeros((), dtype)
    for size in (24, 480):
        one = functools.partial(function, a=a[:size], by=by[:size])
        for actual, expected in zip(native.jit(one)(start), jax.jit(one)(start), strict=True):
            np.testing.assert_array_equal(actual, expected)


def test_rarely_used_rules_equal_xla():
    """Complex powers and logarithms, halves away from zero, updates by a function, shifts."""

    def function(z, x, k):
        rows = jnp.arange(5.0)
        updated = jax.lax.scatter_apply(
            rows, k[:2, None], lambda v: 3.0 * v + 1.0,
            jax.lax.ScatterDimensionNumbers((), (0,), (0,)), update_shape=(2,),
        )  # fmt: skip
        shifted = jnp.uint32(7) << jnp.arange(3, dtype=jnp.uint32)
        rounded = jax.lax.round(x, jax.lax.RoundingMethod.AWAY_FROM_ZERO)
        extremes = jnp.argmin(jnp.sin(jnp.arange(300.0) * x[0]))
        return jnp.conj(z) * 2, z ** (0.3 + 0.1j), jnp.log(z), rounded, updated, shifted, extremes

    z = jnp.array([0.3 - 0.2j, -1.5 + 2j, 2.0 + 0j])
    args = z, jnp.array([0.5, -1.5, 2.4]), jnp.array([1, 3])
    for found, wanted in zip(native.jit(function)(*args), jax.jit(function)(*args), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
