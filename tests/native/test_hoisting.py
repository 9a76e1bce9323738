"""Loop-invariant code is computed before a loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rigidjax import native
from rigidjax.native.passes.hoisting import find_invariant_equations


def sum_sines(a, x, turns):
    """Sum sines of loop-invariant and of varying values."""

    def turn(carry):
        k, total = carry
        kept = jnp.exp(jnp.sin(a)) / (1.0 + a * a)
        return k + 1, total + kept * jnp.cos(x * k)

    return jax.lax.while_loop(lambda carry: carry[0] < turns, turn, (0, jnp.zeros_like(x)))[1]


def body_of(function, *args):
    """Return the body of the loop of a jaxpr, and its loop-invariant arguments."""
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    loop = next(e for e in jaxpr.eqns if e.primitive.name == "while")
    body, count = loop.params["body_jaxpr"].jaxpr, loop.params["body_nconsts"]
    return body, tuple(k < count for k in range(len(body.invars)))


def test_loop_invariant_code_is_hoisted():
    """Costly functions and their arguments are hoisted; cheap ones and varying ones are not."""
    found = [e.primitive.name for e in find_invariant_equations(*body_of(sum_sines, 0.3, 0.7, 5))]
    assert found == ["sin", "exp"]

    def sum_in_nested_loop(a, x, turns):
        return jax.lax.while_loop(
            lambda carry: carry[0] < turns,
            lambda carry: (carry[0] + 1, carry[1] + sum_sines(a, x, turns)),
            (0, 0.0),
        )[1]

    assert find_invariant_equations(*body_of(sum_in_nested_loop, 0.3, 0.7, 5)) == ()


@pytest.mark.parametrize("turns", [0, 1, 6])
def test_results_are_unchanged(turns):
    """Alone and as a batch, also for loops without iterations."""
    kernel, a, x = native.jit(sum_sines), jnp.linspace(-2.0, 2.0, 11), jnp.linspace(0.1, 1.0, 11)
    expected = jax.vmap(sum_sines)(a, x, jnp.full(11, turns))
    found = jax.vmap(kernel)(a, x, jnp.full(11, turns))
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    np.testing.assert_allclose(kernel(a[2], x[2], turns), expected[2], rtol=1e-14)


def test_loops_without_iterations_and_empty_arrays():
    """Hoisted code that gives NaN has no effect if no iteration needs it."""

    def root(a, turns):
        return jax.lax.fori_loop(0, turns, lambda k, total: total + jnp.log(a), 1.0)

    kernel = native.jit(root)
    assert kernel(-1.0, 0) == 1.0
    assert np.isnan(kernel(-1.0, 2))
