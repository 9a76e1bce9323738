"""Elementary functions of complex numbers, by those of real ones."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ..expansions import Expansion, expansion


def _of_complex(*names: str) -> Callable[[Expansion], Expansion]:
    return expansion(*(f"complex {name}" for name in names))


@_of_complex("exp")
def _exp(z, **_):
    x, y = z.real, z.imag
    size = jnp.exp(x)
    # Not infinite times zero.
    return jax.lax.complex(size * jnp.cos(y), jnp.where(y == 0, y, size * jnp.sin(y)))


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
    # exp(x) cos(y) - 1 without its cancellation.
    real = jnp.expm1(x) * jnp.cos(y) - 2.0 * half * half
    return jax.lax.complex(real, jnp.where(y == 0, y, jnp.exp(x) * jnp.sin(y)))


@_of_complex("sqrt")
def _sqrt(z, **_):
    x, y = z.real, z.imag
    size = jnp.sqrt(0.5 * jnp.abs(z) + 0.5 * jnp.abs(x))
    other = y / (2.0 * jnp.where(size == 0, 1.0, size))
    right = x >= 0
    real = jnp.where(right, size, jnp.abs(other))
    return jax.lax.complex(real, jnp.where(right, other, jnp.copysign(size, y)))


@_of_complex("rsqrt")
def _rsqrt(z, **_):
    return 1.0 / jnp.sqrt(z)


@_of_complex("sin")
def _sin(z, **_):
    x, y = z.real, z.imag
    return jax.lax.complex(jnp.sin(x) * jnp.cosh(y), jnp.cos(x) * jnp.sinh(y))


@_of_complex("cos")
def _cos(z, **_):
    x, y = z.real, z.imag
    return jax.lax.complex(jnp.cos(x) * jnp.cosh(y), -jnp.sin(x) * jnp.sinh(y))


@_of_complex("sinh")
def _sinh(z, **_):
    x, y = z.real, z.imag
    return jax.lax.complex(jnp.sinh(x) * jnp.cos(y), jnp.cosh(x) * jnp.sin(y))


@_of_complex("cosh")
def _cosh(z, **_):
    x, y = z.real, z.imag
    return jax.lax.complex(jnp.cosh(x) * jnp.cos(y), jnp.sinh(x) * jnp.sin(y))


@_of_complex("tanh")
def _tanh(z, **_):
    x, y = z.real, z.imag
    # Beyond 20 the real part is 1 to all digits.
    inner = jnp.clip(x, -20.0, 20.0)
    square = jnp.sinh(inner) ** 2 + jnp.cos(y) ** 2
    decay = jnp.exp(-2.0 * (jnp.abs(x) - jnp.abs(inner)))
    real = jnp.sinh(inner) * jnp.cosh(inner) / square
    return jax.lax.complex(real, jnp.sin(y) * jnp.cos(y) / square * decay)


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
    is_zero = z == 0
    out = jnp.exp(power * jnp.log(jnp.where(is_zero, 1.0, z)))
    return jnp.where(is_zero, jnp.where(power == 0, 1.0, 0.0).astype(z.dtype), out)


@_of_complex("sign")
def _sign(z):
    size = jnp.abs(z)
    return jnp.where(size == 0, z, z / jnp.where(size == 0, 1.0, size).astype(z.dtype))
