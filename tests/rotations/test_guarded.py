"""Guarded functions against 50-digit arithmetic, to the third derivative, and the guards."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from rigidjax.rotations import guarded

mpmath.mp.dps = 50


def root(x):
    return mpmath.sqrt(x)


EXACT = {
    "cosine": lambda x: mpmath.cos(root(x)),
    "sine_ratio": lambda x: mpmath.sin(root(x)) / root(x),
    "versine_ratio": lambda x: (1 - mpmath.cos(root(x))) / x,
    "sine_excess_ratio": lambda x: (root(x) - mpmath.sin(root(x))) / root(x) ** 3,
    "dexp_inverse_ratio": lambda x: (1 - root(x) / 2 * mpmath.cot(root(x) / 2)) / x,
}
# Both sides of every change-over (6, 20, 24, 41), zeros and poles avoided.
SQUARES = [1e-12, 1e-6, 1e-3, 0.1, 1.0, 2.0, 3.5, 5.999, 6.001, 8.0, 12.0, 19.99, 20.01, 23.99]
SQUARES += [24.01, 30.0, 38.0, 40.99, 41.01, 70.0]


@pytest.mark.parametrize("function", EXACT)
def test_guarded_functions_and_three_derivatives(function):
    derivatives = [getattr(guarded, function)]
    for _ in range(3):
        derivatives.append(jax.jacfwd(derivatives[-1]))

    @jax.jit
    @jax.vmap
    def compute_derivatives(x):
        return jnp.stack([derivative(x) for derivative in derivatives])

    got = np.asarray(compute_derivatives(jnp.array([0.0, *SQUARES])))
    exact = np.array(
        [
            [float(mpmath.diff(EXACT[function], mpmath.mpf(x), k, h=1e-13)) for k in range(4)]
            for x in SQUARES
        ]
    )
    # Relative to the value, or where it passes through zero to its scale at zero.
    scale = np.maximum(np.abs(exact), np.abs(exact[0]))
    np.testing.assert_array_less(np.abs(got[1:] - exact) / scale, 2e-14)
    np.testing.assert_allclose(got[0], exact[0], rtol=1e-11)


def test_guarded_arctangent():
    u = np.linspace(0.0, np.tan(np.pi / 16), 50)[1:]
    got = guarded.arctangent_ratio(jnp.asarray(u * u))
    np.testing.assert_allclose(got, np.arctan(u) / u, rtol=3e-16)
    assert guarded.arctangent_ratio(jnp.zeros(())) == 1.0


def test_guards_have_finite_derivatives():
    zero = jnp.zeros(())
    for function in (
        guarded.safe_sqrt,
        lambda x: guarded.safe_divide(x, x),
        lambda x: guarded.safe_arctan2(x, x),
    ):
        for derivative in (function, jax.grad(function), jax.grad(jax.grad(function))):
            assert derivative(zero) == 0.0
    assert guarded.safe_sqrt(jnp.array(-1.0)) == 0.0
    assert guarded.safe_sqrt(jnp.array(4.0)) == 2.0
    assert guarded.safe_divide(jnp.array(1.0), jnp.array(-4.0)) == -0.25
    assert guarded.safe_arctan2(jnp.array(1.0), zero) == jnp.pi / 2
    assert guarded.safe_arctan2(zero, jnp.array(-1.0)) == jnp.pi
