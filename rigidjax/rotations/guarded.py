r"""Functions of the squared angle that are smooth at zero, and the guards against it.

Every function of this file that has an angle $\phi$ in its denominator takes $x = \phi^2$ and is an
analytic function of $x$. Below a threshold it is a power series, above it the closed form; the
threshold is far from zero and the series long, so that the closed form, whose derivatives lose
digits like $x^{-k}$, is used only where it is accurate to the third derivative. Both branches of
each `where` get an argument that is harmless in the branch that is not selected, which keeps
derivatives finite.

No other file divides by an angle or takes the root of something that can be zero.
"""

import math
from fractions import Fraction

import jax.numpy as jnp
from jaxtyping import Array, Float

# Closed forms are used above this squared angle (2.4 rad). The 15 terms below it leave a
# remainder of 1e-21 in the value and 1e-17 in the third derivative.
_THRESHOLD = 6.0
_TERMS = 15
# Cancellation in its closed form asks for a later change-over.
_SINE_EXCESS_THRESHOLD = 20.0

_COSINE = tuple((-1.0) ** j / math.factorial(2 * j) for j in range(_TERMS + 1))
_SINE = tuple((-1.0) ** j / math.factorial(2 * j + 1) for j in range(_TERMS))
_SINE_EXCESS = tuple((-1.0) ** j / math.factorial(2 * j + 3) for j in range(17))
_ARCTANGENT = tuple((-1.0) ** j / (2 * j + 1) for j in range(15))

# Half angles within the chart of the rotation vector, up to 2 pi. Where a step of an integrator
# lies inside of it, a series takes a tenth of the time of `where`, sine and cosine in a batch.
_HALF_SINE = tuple(0.5 * (-0.25) ** j / math.factorial(2 * j + 1) for j in range(_TERMS))
_HALF_VERSINE = tuple(0.25 * (-0.25) ** j / math.factorial(2 * j + 2) for j in range(_TERMS))
_HALF_DEFECT = tuple(
    (j + 1) * (-0.25) ** j / (4 * math.factorial(2 * j + 3)) for j in range(_TERMS)
)

# The function of `dexp_inverse` is meromorphic with simple poles at 2 pi k: the first three are
# split off, the rest, 2 (zeta(2 j + 2) - 1 - 2^(-2 j - 2) - 3^(-2 j - 2)) / (2 pi)^(2 j + 2), is a
# power series that converges up to 8 pi. No cancellation anywhere below the third pole, and
# neither a root nor a trigonometric function.
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
# Just above the first pole: every angle up to 2 pi is served by the series.
_DEXP_INVERSE_THRESHOLD = 41.0


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Horner's rule, lowest coefficient first."""
    result = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = result * x + coefficient
    return result


def _split(x: Array, threshold: float) -> tuple[Array, Array, Array]:
    """Whether to use the series, its argument, and the angle for the closed form."""
    small = x < threshold
    return small, jnp.where(small, x, 0.0), jnp.sqrt(jnp.where(small, threshold, x))


def safe_sqrt(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\sqrt{x}$ for $x > 0$, otherwise 0 with derivatives 0."""
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1.0)), 0.0)


def safe_divide(x: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$x / y$ for $y \ne 0$, otherwise 0 with derivatives 0."""
    nonzero = y != 0
    return jnp.where(nonzero, x / jnp.where(nonzero, y, 1.0), 0.0)


def safe_arctan2(y: Float[Array, "..."], x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""`arctan2(y, x)`, but 0 with derivatives 0 where both are zero."""
    defined = (x != 0) | (y != 0)
    return jnp.where(defined, jnp.arctan2(y, jnp.where(defined, x, 1.0)), 0.0)


def arctan2_ratio(y: Float[Array, "..."], x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""`arctan2(y, x) / y`, smooth at $y = 0$, $x > 0$."""
    small = jnp.abs(y) <= 0.19 * x
    tangent = jnp.where(small, y, 0.0) / jnp.where(small, x, 1.0)
    closed = jnp.arctan2(jnp.where(small, 1.0, y), x) / jnp.where(small, 1.0, y)
    series = arctangent_ratio(tangent * tangent) / jnp.where(small, x, 1.0)
    return jnp.where(small, series, closed)


def cosine(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\cos\phi$ of $x = \phi^2$."""
    small, series, angle = _split(x, _THRESHOLD)
    return jnp.where(small, _polynomial(_COSINE, series), jnp.cos(angle))


def sine_ratio(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\sin\phi / \phi$ of $x = \phi^2$."""
    small, series, angle = _split(x, _THRESHOLD)
    return jnp.where(small, _polynomial(_SINE, series), jnp.sin(angle) / angle)


def versine_ratio(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$(1 - \cos\phi) / \phi^2$ of $x = \phi^2$, without cancellation at any angle."""
    half = sine_ratio(0.25 * x)
    return 0.5 * half * half


def sine_excess_ratio(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$(\phi - \sin\phi) / \phi^3$ of $x = \phi^2$."""
    small, series, angle = _split(x, _SINE_EXCESS_THRESHOLD)
    closed = (angle - jnp.sin(angle)) / (angle * angle * angle)
    return jnp.where(small, _polynomial(_SINE_EXCESS, series), closed)


def dexp_inverse_ratio(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\bigl(1 - \tfrac{\phi}{2}\cot\tfrac{\phi}{2}\bigr) / \phi^2$ of $x = \phi^2$.

    The coefficient of the second commutator in $\mathrm{dexp}^{-1}$. Poles at the multiples of
    2 pi except zero.
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
    r"""$\sin(\phi/2) / \phi$ of $x = \phi^2$ for $\phi \le 2\pi$, a series alone."""
    return _polynomial(_HALF_SINE, x)


def half_versine_series(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$(1 - \cos(\phi/2)) / \phi^2$ of $x = \phi^2$ for $\phi \le 2\pi$, a series alone."""
    return _polynomial(_HALF_VERSINE, x)


def dexp_inverse_series(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""`dexp_inverse_ratio` for $\phi < 2\pi$, as $(\sin\frac\phi2 - \frac\phi2\cos\frac\phi2) /
    (\phi^2 \sin\frac\phi2)$: two series, of which `half_sine_series` is one."""
    return _polynomial(_HALF_DEFECT, x) / half_sine_series(x)


def dexp_inverse_polynomial(x: Float[Array, "..."], terms: int) -> Float[Array, "..."]:
    r"""The first terms $|B_{2k}|\,x^{k-1} / (2k)!$ of the power series of `dexp_inverse_ratio`.

    None of them, 0, for `terms=0`.
    """
    coefficients = [float(abs(b) / math.factorial(2 * k)) for k, b in _even_bernoulli(terms)]
    return _polynomial(tuple(coefficients), x) if coefficients else jnp.zeros_like(x)


def _even_bernoulli(count: int) -> list[tuple[int, Fraction]]:
    """The Bernoulli numbers $B_{2k}$, k = 1, ..., `count`."""
    numbers = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        total = sum((math.comb(n + 1, j) * b for j, b in enumerate(numbers)), Fraction(0))
        numbers.append(-total / (n + 1))
    return [(k, numbers[2 * k]) for k in range(1, count + 1)]


def arctangent_ratio(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\arctan u / u$ of $x = u^2$ for $|u| \le \tan(\pi/16)$, a series alone.

    A rotation angle is brought into this range by bisecting it, see `so3.log_quaternion`.
    """
    return _polynomial(_ARCTANGENT, x)
