"""Elementary functions of complex numbers, by those of real ones."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ..expansions import Expansion, expansion


def _of_complex(*names: str) -> Callable[[Expansion], Expansion]:
    return expansion(*(f"complex {name}" for name in names))


# Real parts from which on exp(x) is exp(x / 2) squared, so that it does not overflow before its
# product with a sine or cosine does.
_LARGE = 80.0
# Real parts from which on cosh(x) and |sinh(x)| are exp(|x|) / 2 to all digits.
_FAR = 40.0


def _polar_exp(x, y, factor=1.0):
    """Return the parts of factor exp(x + i y); the imaginary one has the sign of a zero `y`."""
    is_large = (x > _LARGE) & (x < jnp.inf)
    root = jnp.exp(jnp.where(is_large, 0.5 * x, x))
    size, rest = factor * root, jnp.where(is_large, root, 1.0)
    return size * jnp.cos(y) * rest, jnp.where(y == 0, y, size * jnp.sin(y) * rest)


@_of_complex("exp")
def _exp(z, **_):
    return jax.lax.complex(*_polar_exp(z.real, z.imag))


@_of_complex("log")
def _log(z, **_):
    a, b = jnp.abs(z.real), jnp.abs(z.imag)
    large, small = jnp.maximum(a, b), jnp.minimum(a, b)
    ratio = small / jnp.where((large > 0) & (large < jnp.inf), large, 1.0)
    far = jnp.log(large) + 0.5 * jnp.log1p(ratio * ratio)
    near = 0.5 * jnp.log1p((large - 1.0) * (large + 1.0) + small * small)
    size = jnp.where((large > 0.5) & (large < 2.0), near, far)
    return jax.lax.complex(size, jnp.arctan2(z.imag, z.real))


@_of_complex("log1p")
def _log1p(z, **_):
    x, y = z.real, z.imag
    near = 0.5 * jnp.log1p(x * (2.0 + x) + y * y)
    small = (jnp.abs(x) < 0.5) & (jnp.abs(y) < 0.5)
    size = jnp.where(small, near, jnp.log(1.0 + z).real)
    return jax.lax.complex(size, jnp.arctan2(y, 1.0 + x))


@_of_complex("expm1")
def _expm1(z, **_):
    x, y = z.real, z.imag
    half = jnp.sin(0.5 * y)
    real, imag = _polar_exp(x, y)
    # exp(x) cos(y) - 1 without its cancellation.
    near = jnp.expm1(x) * jnp.cos(y) - 2.0 * half * half
    return jax.lax.complex(jnp.where(x > _FAR, real, near), imag)


@_of_complex("sqrt")
def _sqrt(z, **_):
    # The modulus of a quarter does not overflow, and half of a multiple does not underflow.
    largest = jnp.maximum(jnp.abs(z.real), jnp.abs(z.imag))
    is_large, is_small = largest > 1.0, largest < jnp.finfo(largest.dtype).tiny * 2.0**62
    factor = jnp.where(is_large, 0.25, jnp.where(is_small, 2.0**60, 1.0)).astype(largest.dtype)
    x, y = z.real * factor, z.imag * factor
    size = jnp.sqrt(0.5 * jnp.abs(jax.lax.complex(x, y)) + 0.5 * jnp.abs(x))
    other = y / (2.0 * jnp.where(size == 0, 1.0, size))
    right = x >= 0
    root = jnp.where(is_large, 2.0, jnp.where(is_small, 2.0**-30, 1.0)).astype(x.dtype)
    real = root * jnp.where(right, size, jnp.abs(other))
    imag = root * jnp.where(right, other, jnp.copysign(size, y))
    is_infinite = jnp.abs(y) == jnp.inf
    return jax.lax.complex(jnp.where(is_infinite, jnp.inf, real), jnp.where(is_infinite, y, imag))


@_of_complex("rsqrt")
def _rsqrt(z, **_):
    is_infinite = (jnp.abs(z.real) == jnp.inf) | (jnp.abs(z.imag) == jnp.inf)
    return jnp.where(is_infinite, 0.0, 1.0 / jnp.sqrt(z))


@_of_complex("sin")
def _sin(z, **_):
    turned = jnp.sinh(jax.lax.complex(-z.imag, z.real))
    return jax.lax.complex(turned.imag, -turned.real)


@_of_complex("cos")
def _cos(z, **_):
    return jnp.cosh(jax.lax.complex(-z.imag, z.real))


def _even_and_odd(z, odd_in_real_part):
    """Return the parts of cosh(z), or of sinh(z) where the odd one in x is the real part."""
    x, y = z.real, z.imag
    is_far = jnp.abs(x) > _FAR
    near = jnp.where(is_far, 0.0, x)
    parts = list(_polar_exp(jnp.abs(x), y, 0.5))
    functions = [jnp.sinh, jnp.cosh] if odd_in_real_part else [jnp.cosh, jnp.sinh]
    odd = 0 if odd_in_real_part else 1
    parts[odd] = jnp.where(x < 0, -parts[odd], parts[odd])
    # Zero times what is not a number is zero here.
    imag = functions[1](near) * jnp.sin(y)
    imag = jnp.where(jnp.isnan(x) & (y == 0), y, imag)
    close = functions[0](near) * jnp.cos(y), imag
    return [jnp.where(is_far, a, b) for a, b in zip(parts, close, strict=True)]


@_of_complex("sinh")
def _sinh(z, **_):
    return jax.lax.complex(*_even_and_odd(z, True))


@_of_complex("cosh")
def _cosh(z, **_):
    return jax.lax.complex(*_even_and_odd(z, False))


@_of_complex("tanh")
def _tanh(z, **_):
    x, y = z.real, z.imag
    # The limit at an infinite real part has no direction.
    y = jnp.where((jnp.abs(x) == jnp.inf) & ~jnp.isfinite(y), 0.0, y)
    # Beyond 20 the real part is 1 to all digits.
    inner = jnp.clip(x, -20.0, 20.0)
    square = jnp.sinh(inner) ** 2 + jnp.cos(y) ** 2
    decay = jnp.exp(-2.0 * (jnp.abs(x) - jnp.abs(inner)))
    real = jnp.sinh(inner) * jnp.cosh(inner) / square
    imag = jnp.sin(y) * jnp.cos(y) / square * decay
    return jax.lax.complex(real, jnp.where(jnp.isnan(x) & (y == 0), y, imag))


@_of_complex("tan")
def _tan(z, **_):
    turned = jnp.tanh(jax.lax.complex(-z.imag, z.real))
    return jax.lax.complex(turned.imag, -turned.real)


@_of_complex("logistic")
def _logistic(z, **_):
    return 1.0 / (1.0 + jnp.exp(-z))


@_of_complex("pow")
def _pow(z, power):
    power = power.astype(z.dtype)
    x, y = z.real, z.imag
    # Zero to the power of a number without a positive real part has no value.
    is_zero = z == 0
    of_zero = jnp.where(power.real > 0, 0.0, jnp.nan).astype(x.dtype)
    out = jnp.exp(power * jnp.log(jnp.where(is_zero, 1.0, z)))
    out = jnp.where(is_zero, jax.lax.complex(of_zero, of_zero), out)
    # Infinite numbers on the positive axis have no phase.
    is_real = (x > 0) & (y == 0) & (power.imag == 0)
    of_real = jnp.where(is_real, x, 1.0) ** power.real
    out = jnp.where(is_real, jax.lax.complex(of_real, jnp.zeros_like(of_real)), out)
    return jnp.where((power == 0) | (z == 1), 1.0, out)


@_of_complex("sign")
def _sign(z):
    # The modulus of a quarter does not overflow.
    quarter = jnp.where(jnp.maximum(jnp.abs(z.real), jnp.abs(z.imag)) > 1.0, 0.25, 1.0)
    quarter = quarter.astype(z.real.dtype)
    x, y = z.real * quarter, z.imag * quarter
    size = jnp.abs(jax.lax.complex(x, y))
    divisor = jnp.where(size == 0, 1.0, size)
    return jnp.where(size == 0, z, jax.lax.complex(x / divisor, y / divisor))
