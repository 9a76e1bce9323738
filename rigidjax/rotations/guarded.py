r"""Functions of the squared angle that are smooth at zero, and guarded elementary functions.

Every function of this file with an angle $\phi$ in its denominator takes $x = \phi^2$ and is an
analytic function of $x$. It is a power series below a threshold and the closed form above it.
Derivatives of the closed form lose digits like $x^{-k}$; therefore the threshold is far from zero
and the series is long, so that the closed form is accurate to the third derivative where it is
used. Both branches of each `where` get an argument that is harmless if the branch is not selected,
which keeps derivatives finite.

No other file divides by an angle or takes the square root of a quantity that can be zero.
"""

import math
from fractions import Fraction

import jax.numpy as jnp
from jaxtyping import Array, Float

# Squared angle above which closed forms are used. Below it the remainder of the series is under
# round-off up to the third derivative.
_THRESHOLD = 6.0
_TERMS = 15
# A larger threshold for this function, because its closed form cancels.
_SINE_EXCESS_THRESHOLD = 20.0

_COSINE = tuple((-1.0) ** j / math.factorial(2 * j) for j in range(_TERMS + 1))
_SINE = tuple((-1.0) ** j / math.factorial(2 * j + 1) for j in range(_TERMS))
_SINE_EXCESS = tuple((-1.0) ** j / math.factorial(2 * j + 3) for j in range(17))
_ARCTANGENT = tuple((-1.0) ** j / (2 * j + 1) for j in range(15))

# Series of half angles for rotation vectors up to 2 pi. Within that range a series alone is far
# faster in a batch than `where` with sine and cosine.
_HALF_SINE = tuple(0.5 * (-0.25) ** j / math.factorial(2 * j + 1) for j in range(_TERMS))
_HALF_VERSINE = tuple(0.25 * (-0.25) ** j / math.factorial(2 * j + 2) for j in range(_TERMS))
_HALF_DEFECT = tuple(
    (j + 1) * (-0.25) ** j / (4 * math.factorial(2 * j + 3)) for j in range(_TERMS)
)

# `dexp_inverse_ratio` is meromorphic with simple poles at 2 pi k. The first three poles are split
# off; the remainder is a power series that converges up to 8 pi, with the coefficients
# 2 (zeta(2 j + 2) - 1 - 2^(-2 j - 2) - 3^(-2 j - 2)) / (2 pi)^(2 j + 2). This form does not cancel
# below the third pole, and needs neither a square root nor a trigonometric function.
_POLES = (39.47841760435743, 157.91367041742973, 355.3057584392169)
_DEXP_INVERSE = (
    0.014378638910075684,
    9.595555480779425e-06,
    1.1257143383002609e-08,
    1.5388979565181073e-11,
    2.2473189650804104e-14,
    3.394356459763464e-17,
    5.2237546984822215e-20,
    8.127414828310521e-23,
    1.2728430480242656e-25,
    2.0014589986788544e-28,
    3.155044680287923e-31,
    4.981335263797585e-34,
    7.87255828451073e-37,
)
# Just above the first pole, so that the series serves every angle up to 2 pi.
_DEXP_INVERSE_THRESHOLD = 41.0


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Evaluate a polynomial by Horner's rule, lowest coefficient first."""
    result = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = result * x + coefficient
    return result


def _split(x: Array, threshold: float) -> tuple[Array, Array, Array]:
    """Return whether to use the series, its argument, and the angle for the closed form."""
    small = x < threshold
    return small, jnp.where(small, x, 0.0), jnp.sqrt(jnp.where(small, threshold, x))


def safe_sqrt(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $\sqrt{x}$ for $x > 0$, otherwise 0 with derivatives 0."""
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1.0)), 0.0)


def safe_divide(x: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $x / y$ for $y \ne 0$, otherwise 0 with derivatives 0."""
    nonzero = y != 0
    return jnp.where(nonzero, x / jnp.where(nonzero, y, 1.0), 0.0)


def safe_arctan2(y: Float[Array, "..."], x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return `arctan2(y, x)`, or 0 with derivatives 0 if both are zero."""
    defined = (x != 0) | (y != 0)
    return jnp.where(defined, jnp.arctan2(y, jnp.where(defined, x, 1.0)), 0.0)


def arctan2_ratio(y: Float[Array, "..."], x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return `arctan2(y, x) / y`, smooth at $y = 0$, $x > 0$."""
    small = jnp.abs(y) <= 0.19 * x
    tangent = jnp.where(small, y, 0.0) / jnp.where(small, x, 1.0)
    closed = jnp.arctan2(jnp.where(small, 1.0, y), x) / jnp.where(small, 1.0, y)
    series = arctangent_ratio(tangent * tangent) / jnp.where(small, x, 1.0)
    return jnp.where(small, series, closed)


def cosine(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $\cos\phi$ for $x = \phi^2$."""
    small, series, angle = _split(x, _THRESHOLD)
    return jnp.where(small, _polynomial(_COSINE, series), jnp.cos(angle))


def sine_ratio(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $\sin\phi / \phi$ for $x = \phi^2$."""
    small, series, angle = _split(x, _THRESHOLD)
    return jnp.where(small, _polynomial(_SINE, series), jnp.sin(angle) / angle)


def versine_ratio(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $(1 - \cos\phi) / \phi^2$ for $x = \phi^2$, without cancellation."""
    half = sine_ratio(0.25 * x)
    return 0.5 * half * half


def sine_excess_ratio(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $(\phi - \sin\phi) / \phi^3$ for $x = \phi^2$."""
    small, series, angle = _split(x, _SINE_EXCESS_THRESHOLD)
    closed = (angle - jnp.sin(angle)) / (angle * angle * angle)
    return jnp.where(small, _polynomial(_SINE_EXCESS, series), closed)


def dexp_inverse_ratio(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $\bigl(1 - \tfrac{\phi}{2}\cot\tfrac{\phi}{2}\bigr) / \phi^2$ for $x = \phi^2$.

    This is the coefficient of the second commutator in $\mathrm{dexp}^{-1}$. It has poles at the
    non-zero multiples of 2 pi.
    """
    small = x < _DEXP_INVERSE_THRESHOLD
    series = jnp.where(small, x, 0.0)
    value = _polynomial(_DEXP_INVERSE, series)
    for pole in _POLES:
        value = value + 2.0 / (pole - series)
    large = jnp.where(small, _DEXP_INVERSE_THRESHOLD, x)
    half = 0.5 * jnp.sqrt(large)
    return jnp.where(small, value, (1.0 - half / jnp.tan(half)) / large)


def half_sine_series(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $\sin(\phi/2) / \phi$ for $x = \phi^2$, $\phi \le 2\pi$, by a series alone."""
    return _polynomial(_HALF_SINE, x)


def half_versine_series(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $(1 - \cos(\phi/2)) / \phi^2$ for $x = \phi^2$, $\phi \le 2\pi$, by a series."""
    return _polynomial(_HALF_VERSINE, x)


def dexp_inverse_series(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return `dexp_inverse_ratio` for $\phi < 2\pi$ as the ratio of two series.

    It is $(\sin\frac\phi2 - \frac\phi2\cos\frac\phi2) / (\phi^2 \sin\frac\phi2)$.
    """
    return _polynomial(_HALF_DEFECT, x) / half_sine_series(x)


def dexp_inverse_polynomial(x: Float[Array, "..."], terms: int) -> Float[Array, "..."]:
    r"""Return the first terms $|B_{2k}|\,x^{k-1} / (2k)!$ of the series of `dexp_inverse_ratio`.

    The result is 0 for `terms=0`.
    """
    coefficients = [float(abs(b) / math.factorial(2 * k)) for k, b in _even_bernoulli(terms)]
    return _polynomial(tuple(coefficients), x) if coefficients else jnp.zeros_like(x)


def _even_bernoulli(count: int) -> list[tuple[int, Fraction]]:
    """Return $k$ and the Bernoulli number $B_{2k}$ for k = 1, ..., `count`."""
    values = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        total = sum((math.comb(n + 1, j) * b for j, b in enumerate(values)), Fraction(0))
        values.append(-total / (n + 1))
    return [(k, values[2 * k]) for k in range(1, count + 1)]


def arctangent_ratio(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $\arctan u / u$ for $x = u^2$, $|u| \le \tan(\pi/16)$, by a series alone.

    `so3.log_quaternion` reduces a rotation angle to this range by bisection.
    """
    return _polynomial(_ARCTANGENT, x)
