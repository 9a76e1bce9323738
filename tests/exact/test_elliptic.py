"""Elliptic integrals and functions against 30 digits of mpmath."""

import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from rigidjax.problems.exact.elliptic import (
    carlson_rf,
    carlson_rj,
    complete_first,
    jacobi,
    third_kind,
)

# From circular to as close to the separatrix as a racket disturbed by 1e-10 rad/s.
COMPLEMENTARY = [1.0, 1 - 1e-9, 0.5, 1e-4, 1e-14, 1e-25]


def mp(function):
    """Evaluate elementwise with 45 digits, back in float64."""

    @functools.wraps(function)
    def evaluate(*arguments):
        with mpmath.workdps(45):
            return float(function(*(mpmath.mpf(float(x)) for x in arguments)))

    return np.vectorize(evaluate, otypes=[float])


def test_complete_integral_of_the_first_kind():
    m1 = np.array(COMPLEMENTARY)
    expected = mp(lambda m1: mpmath.ellipk(1 - m1))(m1)
    np.testing.assert_allclose(complete_first(jnp.array(m1)), expected, rtol=5e-16)
    # K = log(4/k') where k' is negligible
    np.testing.assert_allclose(complete_first(jnp.array(1e-280)), np.log(4e140), rtol=1e-15)


@pytest.mark.parametrize("m1", COMPLEMENTARY)
def test_jacobi_functions_against_mpmath(m1, rng):
    quarter = float(complete_first(jnp.array(m1)))
    u = np.concatenate([rng.uniform(-1, 1, 25) * quarter, rng.uniform(-9, 9, 15) * quarter])
    f = jax.jit(jacobi)(jnp.array(u), m1)
    sign = (-1.0) ** np.asarray(f.half_turns)
    for name, found in (("sn", sign * f.sn), ("cn", sign * f.cn), ("dn", f.dn)):
        expected = mp(lambda u, name=name: mpmath.ellipfun(name, u, m=1 - mpmath.mpf(m1)))(u)
        # Rounding of u itself moves the functions by |u| eps.
        np.testing.assert_allclose(found, expected, atol=2e-15 * quarter * 9, rtol=0)
    inner = np.abs(u) < 0.9 * quarter
    for name, found in (("cn", f.cn), ("dn", f.dn)):
        expected = mp(lambda u, name=name: mpmath.ellipfun(name, u, m=1 - mpmath.mpf(m1)))(u)
        # In the central quarter the small ones keep their relative accuracy.
        np.testing.assert_allclose(
            np.asarray(found)[inner], expected[inner], rtol=4e-15 * max(1.0, quarter)
        )


def test_carlson_integrals_against_mpmath(rng):
    x, y, z, p = np.exp(rng.uniform(-12, 3, (4, 40)))
    x[0], y[1], x[2] = 0.0, 0.0, 1e-30
    p[3:6] = x[3:6]
    np.testing.assert_allclose(
        jax.jit(carlson_rf)(x, y, z), mp(mpmath.elliprf)(x, y, z), rtol=2e-15
    )
    np.testing.assert_allclose(
        jax.jit(carlson_rj)(x, y, z, p), mp(mpmath.elliprj)(x, y, z, p), rtol=5e-14
    )


@pytest.mark.parametrize(("n", "m1"), [(-3.0, 0.9), (-1e-3, 0.3), (0.99, 1e-5)])
def test_third_kind_beyond_a_half_period(m1, n):
    quarter = float(complete_first(jnp.array(m1)))
    u = np.linspace(-4.7, 4.7, 9) * quarter
    f = jacobi(jnp.array(u), m1)
    third = third_kind(f, m1, 1 - n * f.sn**2, 1 - n)

    def third_kind_by_amplitude(u, m1):
        # Amplitude by continuation, then Legendre's integrals.
        sn = mpmath.ellipfun("sn", u, m=1 - m1)
        turns = mpmath.nint(u / (2 * mpmath.ellipk(1 - m1)))
        amplitude = (-1) ** int(turns) * mpmath.asin(sn) + turns * mpmath.pi
        return (mpmath.ellippi(n, amplitude, 1 - m1) - mpmath.ellipf(amplitude, 1 - m1)) / n

    np.testing.assert_allclose(third, mp(third_kind_by_amplitude)(u, m1), rtol=2e-13)


def test_derivatives_of_jacobi_functions():
    m1 = 0.3

    def sn(u):
        f = jacobi(u, m1)
        return (1 - 2 * jnp.mod(f.half_turns, 2.0)) * f.sn

    for u in (0.0, 0.7, 3.0):
        f = jacobi(jnp.array(u), m1)
        sign = 1 - 2 * np.mod(f.half_turns, 2.0)
        np.testing.assert_allclose(jax.grad(sn)(u), sign * f.cn * f.dn, rtol=1e-12)
