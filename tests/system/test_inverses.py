"""The pseudo-inverse and its derivatives, also of matrices without full rank."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations.cases import error, round_off

from rigidjax.system.inverses import pseudo_inverse

CASES = {"wide": (3, 5, 3), "tall": (5, 3, 3), "square": (4, 4, 4), "redundant": (5, 4, 2)}


def factors(name, rng):
    """Matrices whose product has the shape and the rank of the case."""
    m, n, rank = CASES[name]
    # Near to matrices with orthogonal columns: well conditioned.
    shapes = ((m, rank), (rank, n))
    return tuple(jnp.asarray(0.2 * rng.normal(size=s) + np.eye(*s)) for s in shapes)


@pytest.mark.parametrize("name", CASES)
def test_value_and_derivatives_at_constant_rank(name, rng):
    at, along = factors(name, rng), factors(name, rng)
    weights = jnp.asarray(rng.normal(size=(CASES[name][1], CASES[name][0])))

    def value(s):
        B, C = (a + s * d for a, d in zip(at, along, strict=True))
        return jnp.sum(weights * pseudo_inverse(B @ C))

    both = jax.jit(lambda s: (value(s), jax.jacfwd(value)(s), jax.grad(value)(s)))
    wanted = np.linalg.pinv(at[0] @ at[1])
    assert error(pseudo_inverse(at[0] @ at[1]), wanted) < round_off(1000)
    h = 1e-3
    # Central differences of order 4.
    outside = [both(k * h)[0] for k in (-2.0, -1.0, 1.0, 2.0)]
    slope = (outside[0] - 8 * outside[1] + 8 * outside[2] - outside[3]) / (12 * h)
    _, forward, reverse = both(0.0)
    assert error(forward, reverse) < round_off(1000)
    assert error(forward, slope) < 1e-8


def test_matrices_of_zeros_and_without_rows():
    for A in (jnp.zeros((3, 2)), jnp.zeros((0, 4))):
        assert pseudo_inverse(A).shape == A.shape[::-1]
        change = jax.jvp(pseudo_inverse, (A,), (jnp.ones_like(A),))[1]
        assert np.array_equal(change, jnp.zeros(A.shape[::-1]))


def test_second_derivative_of_a_number():
    # 1/a has the second derivative 2/a^3.
    second = jax.grad(jax.grad(lambda a: pseudo_inverse(a[None, None])[0, 0]))(jnp.array(2.0))
    assert error(second, 0.25) < round_off(10)
