"""Elementary functions of complex elements, in terms of real ones."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ...primitives.expansions import Expansion, expansion


def _complex_expansion(*names: str) -> Callable[[Expansion], Expansion]:
    return expansion(*(f"complex {name}" for name in names))


# Smallest real parts for which exp(x) is exp(x / 2) squared, so that it does not overflow before it
# is multiplied by a sine or cosine.
_LARGE_EXPONENT = 80.0
# Smallest real parts for which cosh(x) and |sinh(x)| equal exp(|x|) / 2 in floating point.
_LARGE_HYPERBOLIC = 40.0


def _polar_exp(x: Array, y: Array, factor: float = 1.0):
    """Return the parts of factor exp(x + i y); the imaginary one has the sign of a zero `y`."""
    is_large = (x > _LARGE_EXPONENT) & (x < jnp.inf)
    exp_part = jnp.exp(jnp.where(is_large, 0.5 * x, x))
    scaled_exp, exp_rest = factor * exp_part, jnp.where(is_large, exp_part, 1.0)
    return scaled_exp * jnp.cos(y) * exp_rest, jnp.where(
        y == 0, y, scaled_exp * jnp.sin(y) * exp_rest
    )


@_complex_expansion("exp")
def _exp(z: Array, **_: Any):
    return jax.lax.complex(*_polar_exp(z.real, z.imag))


@_complex_expansion("log")
def _log(z: Array, **_: Any):
    a, b = jnp.abs(z.real), jnp.abs(z.imag)
    large, small = jnp.maximum(a, b), jnp.minimum(a, b)
    ratio = small / jnp.where((large > 0) & (large < jnp.inf), large, 1.0)
    log_far = jnp.log(large) + 0.5 * jnp.log1p(ratio * ratio)
    log_near_one = 0.5 * jnp.log1p((large - 1.0) * (large + 1.0) + small * small)
    log_modulus = jnp.where((large > 0.5) & (large < 2.0), log_near_one, log_far)
    return jax.lax.complex(log_modulus, jnp.arctan2(z.imag, z.real))


@_complex_expansion("log1p")
def _log1p(z: Array, **_: Any):
    x, y = z.real, z.imag
    log_near_one = 0.5 * jnp.log1p(x * (2.0 + x) + y * y)
    small = (jnp.abs(x) < 0.5) & (jnp.abs(y) < 0.5)
    log_modulus = jnp.where(small, log_near_one, jnp.log(1.0 + z).real)
    return jax.lax.complex(log_modulus, jnp.arctan2(y, 1.0 + x))


@_complex_expansion("expm1")
def _expm1(z: Array, **_: Any):
    x, y = z.real, z.imag
    half = jnp.sin(0.5 * y)
    real, imag = _polar_exp(x, y)
    # exp(x) cos(y) - 1 without cancellation.
    near = jnp.expm1(x) * jnp.cos(y) - 2.0 * half * half
    return jax.lax.complex(jnp.where(x > _LARGE_HYPERBOLIC, real, near), imag)


@_complex_expansion("sqrt")
def _sqrt(z: Array, **_: Any):
    # A quarter of z has a modulus that does not overflow, a multiple of it one without underflow.
    largest = jnp.maximum(jnp.abs(z.real), jnp.abs(z.imag))
    is_large, is_small = largest > 1.0, largest < jnp.finfo(largest.dtype).tiny * 2.0**62
    factor = jnp.where(is_large, 0.25, jnp.where(is_small, 2.0**60, 1.0)).astype(largest.dtype)
    x, y = z.real * factor, z.imag * factor
    half_modulus = jnp.sqrt(0.5 * jnp.abs(jax.lax.complex(x, y)) + 0.5 * jnp.abs(x))
    other_part = y / (2.0 * jnp.where(half_modulus == 0, 1.0, half_modulus))
    is_right = x >= 0
    scale = jnp.where(is_large, 2.0, jnp.where(is_small, 2.0**-30, 1.0)).astype(x.dtype)
    real = scale * jnp.where(is_right, half_modulus, jnp.abs(other_part))
    imag = scale * jnp.where(is_right, other_part, jnp.copysign(half_modulus, y))
    is_infinite = jnp.abs(y) == jnp.inf
    return jax.lax.complex(jnp.where(is_infinite, jnp.inf, real), jnp.where(is_infinite, y, imag))


@_complex_expansion("rsqrt")
def _rsqrt(z: Array, **_: Any):
    is_infinite = (jnp.abs(z.real) == jnp.inf) | (jnp.abs(z.imag) == jnp.inf)
    return jnp.where(is_infinite, 0.0, 1.0 / jnp.sqrt(z))


@_complex_expansion("sin")
def _sin(z: Array, **_: Any):
    hyperbolic = jnp.sinh(jax.lax.complex(-z.imag, z.real))
    return jax.lax.complex(hyperbolic.imag, -hyperbolic.real)


@_complex_expansion("cos")
def _cos(z: Array, **_: Any):
    return jnp.cosh(jax.lax.complex(-z.imag, z.real))


def _even_and_odd(z: Array, odd_in_real_part: bool):
    """Return the parts of cosh(z), or of sinh(z), whose real part is the odd one in x."""
    x, y = z.real, z.imag
    is_far = jnp.abs(x) > _LARGE_HYPERBOLIC
    clipped = jnp.where(is_far, 0.0, x)
    parts = list(_polar_exp(jnp.abs(x), y, 0.5))
    functions = [jnp.sinh, jnp.cosh] if odd_in_real_part else [jnp.cosh, jnp.sinh]
    odd_index = 0 if odd_in_real_part else 1
    parts[odd_index] = jnp.where(x < 0, -parts[odd_index], parts[odd_index])
    # Zero times NaN or infinity is zero here.
    imag = functions[1](clipped) * jnp.sin(y)
    imag = jnp.where(jnp.isnan(x) & (y == 0), y, imag)
    near_parts = functions[0](clipped) * jnp.cos(y), imag
    return [jnp.where(is_far, a, b) for a, b in zip(parts, near_parts, strict=True)]


@_complex_expansion("sinh")
def _sinh(z: Array, **_: Any):
    return jax.lax.complex(*_even_and_odd(z, True))


@_complex_expansion("cosh")
def _cosh(z: Array, **_: Any):
    return jax.lax.complex(*_even_and_odd(z, False))


@_complex_expansion("tanh")
def _tanh(z: Array, **_: Any):
    x, y = z.real, z.imag
    # At an infinite real part the limit does not depend on y.
    y = jnp.where((jnp.abs(x) == jnp.inf) & ~jnp.isfinite(y), 0.0, y)
    # Beyond 20 the real part is 1 in floating point.
    clipped = jnp.clip(x, -20.0, 20.0)
    square = jnp.sinh(clipped) ** 2 + jnp.cos(y) ** 2
    decay = jnp.exp(-2.0 * (jnp.abs(x) - jnp.abs(clipped)))
    real = jnp.sinh(clipped) * jnp.cosh(clipped) / square
    imag = jnp.sin(y) * jnp.cos(y) / square * decay
    return jax.lax.complex(real, jnp.where(jnp.isnan(x) & (y == 0), y, imag))


@_complex_expansion("tan")
def _tan(z: Array, **_: Any):
    hyperbolic = jnp.tanh(jax.lax.complex(-z.imag, z.real))
    return jax.lax.complex(hyperbolic.imag, -hyperbolic.real)


@_complex_expansion("logistic")
def _logistic(z: Array, **_: Any):
    return 1.0 / (1.0 + jnp.exp(-z))


@_complex_expansion("pow")
def _pow(z: Array, power: Array):
    power = power.astype(z.dtype)
    x, y = z.real, z.imag
    # Zero to the power of a number whose real part is not positive is NaN.
    is_zero = z == 0
    power_of_zero = jnp.where(power.real > 0, 0.0, jnp.nan).astype(x.dtype)
    out = jnp.exp(power * jnp.log(jnp.where(is_zero, 1.0, z)))
    out = jnp.where(is_zero, jax.lax.complex(power_of_zero, power_of_zero), out)
    # Positive real numbers keep an imaginary part of zero, also if they are infinite.
    is_real = (x > 0) & (y == 0) & (power.imag == 0)
    power_of_real = jnp.where(is_real, x, 1.0) ** power.real
    out = jnp.where(is_real, jax.lax.complex(power_of_real, jnp.zeros_like(power_of_real)), out)
    return jnp.where((power == 0) | (z == 1), 1.0, out)


@_complex_expansion("sign")
def _sign(z: Array):
    # The modulus of z / 4 does not overflow.
    quarter = jnp.where(jnp.maximum(jnp.abs(z.real), jnp.abs(z.imag)) > 1.0, 0.25, 1.0)
    quarter = quarter.astype(z.real.dtype)
    x, y = z.real * quarter, z.imag * quarter
    modulus = jnp.abs(jax.lax.complex(x, y))
    divisor = jnp.where(modulus == 0, 1.0, modulus)
    return jnp.where(modulus == 0, z, jax.lax.complex(x / divisor, y / divisor))
