r"""Elliptic integrals and functions for exact solutions of rigid-body motion.

The functions take the *complementary* parameter $m_1 = 1 - m = k'^2$, because motions such as the
flips of a racket have $m_1$ of $10^{-10}$ and less. All of them are elementwise.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Each step takes the square root of the ratio of the arguments until it is of order one (9 steps
# from 1e-280), and then divides its distance from one by 4 (8 steps to 2e-5, whose sixth power is
# neglected).
_DUPLICATIONS = 18
# The arithmetic-geometric mean needs 9 steps from 1e-140 to order one, and 5 to round-off.
_MEANS = 14


class JacobiFunctions(NamedTuple):
    r"""$\mathrm{sn}, \mathrm{cn}, \mathrm{dn}$ reduced to the central half period.

    `half_turns` is the integer $k$ nearest to $u/2K$, as a floating-point number; `sn`, `cn`
    $\ge 0$ and `dn` belong to $u - 2kK$. The functions at $u$ are $(-1)^k$ `sn`, $(-1)^k$ `cn` and
    `dn`; the amplitude at $u$ is $k\pi + \arctan(\mathrm{sn}/\mathrm{cn})$.
    """

    half_turns: Array
    sn: Array
    cn: Array
    dn: Array


def complete_first(m1: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Compute the complete integral $K$ of the parameter $1 - m_1$, by means of the AGM."""

    def step(_, ab):
        a, b = ab
        return 0.5 * (a + b), jnp.sqrt(a * b)

    a, _ = jax.lax.fori_loop(0, _MEANS, step, (jnp.ones_like(m1), jnp.sqrt(m1)))
    return 0.5 * math.pi / a


def jacobi(u: Float[Array, "..."], m1: Float[Array, ""]) -> JacobiFunctions:
    r"""Compute Jacobi's elliptic functions of the parameter $1 - m_1$.

    Gauss's transformation (DLMF 22.7.2-4) reduces them to circular functions. Only products and
    sums of positive terms occur, so that `cn` and `dn` keep their relative accuracy where they are
    as small as $k'$.

    **Arguments:** `u`, real; `m1`, a scalar in (0, 1].
    """
    m1 = jnp.asarray(m1)
    quarter = complete_first(m1)
    half_turns = jnp.round(u / (2 * quarter))
    reduced = u - half_turns * (2 * quarter)

    def descend(complementary, _):
        total = 1 + complementary
        modulus, one_minus_modulus = (1 - complementary) / total, 2 * complementary / total
        return 2 * jnp.sqrt(complementary) / total, (modulus, one_minus_modulus)

    def ascend(functions, moduli):
        sn, cn, dn = functions
        modulus, one_minus_modulus = moduli
        denominator = 1 + modulus * sn * sn
        # After convergence, further steps would double the rounding errors.
        done = modulus < 2 * jnp.finfo(modulus.dtype).eps
        sn, cn, dn = (
            jnp.where(done, sn, (1 + modulus) * sn / denominator),
            jnp.where(done, cn, cn * dn / denominator),
            jnp.where(done, dn, (cn * cn + one_minus_modulus * sn * sn) / denominator),
        )
        return (sn, cn, dn), None

    _, moduli = jax.lax.scan(descend, jnp.sqrt(m1), length=_MEANS)
    angle = reduced * (0.5 * math.pi) / quarter
    start = (jnp.sin(angle), jnp.cos(angle), jnp.ones_like(angle))
    (sn, cn, dn), _ = jax.lax.scan(ascend, start, moduli, reverse=True)
    return JacobiFunctions(half_turns, sn, jnp.maximum(cn, 0.0), dn)


def carlson_rf(
    x: Float[Array, "..."], y: Float[Array, "..."], z: Float[Array, "..."] | float
) -> Float[Array, "..."]:
    r"""Compute Carlson's symmetric integral of the first kind, $R_F(x, y, z)$, by duplication.

    **Arguments:** not negative, at most one of them zero.
    **Source:** DLMF 19.36.1; Carlson, Numer. Algorithms 10 (1995) 13.
    """
    x, y, z = jnp.broadcast_arrays(x, y, z)

    def step(_, xyz):
        x, y, z = xyz
        rx, ry, rz = jnp.sqrt(x), jnp.sqrt(y), jnp.sqrt(z)
        shift = rx * ry + ry * rz + rz * rx
        return (x + shift) / 4, (y + shift) / 4, (z + shift) / 4

    x, y, z = jax.lax.fori_loop(0, _DUPLICATIONS, step, (x, y, z))
    mean = (x + y + z) / 3
    dx, dy = 1 - x / mean, 1 - y / mean
    dz = -dx - dy
    e2 = dx * dy - dz * dz
    e3 = dx * dy * dz
    return (1 - e2 / 10 + e3 / 14 + e2 * e2 / 24 - 3 * e2 * e3 / 44) / jnp.sqrt(mean)


def carlson_rj(
    x: Float[Array, "..."] | float,
    y: Float[Array, "..."],
    z: Float[Array, "..."] | float,
    p: Float[Array, "..."],
) -> Float[Array, "..."]:
    r"""Compute Carlson's symmetric integral of the third kind, $R_J(x, y, z, p)$, by duplication.

    **Arguments:** not negative, at most one of `x`, `y`, `z` zero, `p` positive.
    **Source:** DLMF 19.36.2; Carlson, Numer. Algorithms 10 (1995) 13.
    """
    x, y, z, p = jnp.broadcast_arrays(x, y, z, p)
    delta = (p - x) * (p - y) * (p - z)

    def step(_, carry):
        x, y, z, p, delta, weight, total = carry
        rx, ry, rz, rp = jnp.sqrt(x), jnp.sqrt(y), jnp.sqrt(z), jnp.sqrt(p)
        shift = rx * ry + ry * rz + rz * rx
        d = (rp + rx) * (rp + ry) * (rp + rz)
        total = total + weight / d * _carlson_rc(delta / (d * d))
        return (
            (x + shift) / 4,
            (y + shift) / 4,
            (z + shift) / 4,
            (p + shift) / 4,
            delta / 64,
            weight / 4,
            total,
        )

    start = (x, y, z, p, delta, jnp.ones_like(x), jnp.zeros_like(x))
    x, y, z, p, _, weight, total = jax.lax.fori_loop(0, _DUPLICATIONS, step, start)
    mean = (x + y + z + 2 * p) / 5
    dx, dy, dz = 1 - x / mean, 1 - y / mean, 1 - z / mean
    dp = -(dx + dy + dz) / 2
    e2 = dx * dy + dy * dz + dz * dx - 3 * dp * dp
    e3 = dx * dy * dz + 2 * e2 * dp + 4 * dp * dp * dp
    e4 = (2 * dx * dy * dz + e2 * dp + 3 * dp * dp * dp) * dp
    e5 = dx * dy * dz * dp * dp
    series = (
        1 - 3 * e2 / 14 + e3 / 6 + 9 * e2 * e2 / 88 - 3 * e4 / 22 - 9 * e2 * e3 / 52 + 3 * e5 / 26
    )
    return weight * series / (mean * jnp.sqrt(mean)) + 6 * total


def third_kind(f: JacobiFunctions, m1: Array, p: Array, p_complete: Array) -> Array:
    r"""Compute $\frac13 \mathrm{sn}^3 R_J(\mathrm{cn}^2, \mathrm{dn}^2, 1, p)$, continued in $u$.

    With $p = 1 - n\,\mathrm{sn}^2$ the result is $(\Pi(n) - F)/n$, which is finite for $n = 0$.

    **Arguments:** `f`, functions at $u$; `m1`, their complementary parameter; `p` at $u$ and at
    $u = K$.
    """
    complete = carlson_rj(0.0, m1, 1.0, p_complete) / 3
    central = f.sn**3 * carlson_rj(f.cn**2, f.dn**2, 1.0, p) / 3
    return central + 2 * f.half_turns * complete


def _carlson_rc(e: Array) -> Array:
    r"""Compute $R_C(1, 1 + e)$ for $e > -1$: arctan or artanh of $\sqrt{|e|}$ over $\sqrt{|e|}$."""
    small = jnp.abs(e) < 1e-3
    above = jnp.where(small | (e < 0), 1.0, e)
    below = jnp.where(small | (e > 0), 0.5, -e)
    series = 1 - e / 3 * (1 - 3 * e / 5 * (1 - 5 * e / 7 * (1 - 7 * e / 9 * (1 - 9 * e / 11))))
    root_above, root_below = jnp.sqrt(above), jnp.sqrt(below)
    large = jnp.where(
        e > 0, jnp.arctan(root_above) / root_above, jnp.arctanh(root_below) / root_below
    )
    return jnp.where(small, series, large)
