"""Values and tangents by one call, which is split for transposition."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rule_cases import equations

from rigidjax import native

X = jnp.array([0.3, -0.2, 0.5])
MANY = jnp.stack([X, 2 * X, X - 0.1])


def plain(x):
    return jnp.sin(x[0]) * x, jnp.exp(-jnp.sum(x * x)), jnp.argmax(x)


KERNEL = native.jit(plain)


def scalar(function):
    return lambda x: jnp.sum(jnp.cos(function(x)[0])) * function(x)[1]


def tangent(function):
    return lambda x: jax.jvp(scalar(function), (x,), (jnp.cos(x),))


COMPOSITIONS = {
    "jacfwd": (lambda f: jax.jacfwd(scalar(f)), X),
    "batch, several tangents each": (lambda f: jax.vmap(jax.jacfwd(scalar(f))), MANY),
    "grad of a jitted function": (lambda f: jax.grad(jax.jit(scalar(f))), X),
    "grad of a batch": (lambda f: jax.vmap(jax.grad(scalar(f))), MANY),
    "grad of a tangent": (lambda f: jax.grad(lambda x: tangent(f)(x)[1]), X),
    "tangent of a grad": (lambda f: jax.jacfwd(jax.grad(scalar(f))), X),
    "forward twice": (lambda f: jax.jacfwd(jax.jacfwd(scalar(f))), X),
    "backward twice": (lambda f: jax.jacrev(jax.jacrev(scalar(f))), X),
    "checkpoint, all saved": (
        lambda f: jax.grad(
            jax.checkpoint(scalar(f), policy=jax.checkpoint_policies.everything_saveable)
        ),
        X,
    ),
    "grad of a checkpoint in a loop": (
        lambda f: jax.grad(lambda xs: jnp.sum(jax.lax.map(jax.checkpoint(scalar(f)), xs))),
        MANY,
    ),
    "transpose": (
        lambda f: (
            lambda x: jax.linear_transpose(lambda dx: jax.jvp(scalar(f), (x,), (dx,))[1], x)(1.0)
        ),
        X,
    ),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_compositions_of_transformations(name):
    """Derivatives equal those of the original function."""
    form, x = COMPOSITIONS[name]
    for found, expected in zip(
        *(jax.tree.leaves(form(f)(x)) for f in (KERNEL, plain)), strict=True
    ):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def calls(function, *args):
    """Return the equations of a jaxpr by name, including sub-jaxprs."""
    program = jax.make_jaxpr(function)(*args)
    return Counter(equation.primitive.name for equation in equations(program.jaxpr))


def test_forward_mode_is_one_call():
    """Reverse mode is one call for values and one for the transposed part."""
    found = calls(lambda x: jax.jvp(KERNEL, (x,), (x,))[0][:2], X)
    assert (found["native_forward"], found["native_call"]) == (1, 0)
    found = calls(jax.jacfwd(lambda x: KERNEL(x)[0]), X)
    assert (found["native_forward"], found["native_call"]) == (1, 0)
    found = calls(jax.grad(lambda x: KERNEL(x)[1]), X)
    assert (found["native_forward"], found["native_call"]) == (0, 2)


def test_derivatives_by_empty_arrays():
    """There are no tangents, but values."""

    def function(x, y):
        return jnp.sum(x) + jnp.sin(y), 2.0 * x

    def value_and_columns(f):
        return jax.jacfwd(lambda x, y: (f(x, y), f(x, y)), has_aux=True)(jnp.zeros(0), X)

    (columns, empty), (value, _) = jax.jit(lambda: value_and_columns(native.jit(function)))()
    np.testing.assert_allclose(value, jnp.sin(X), rtol=1e-15)
    assert columns.shape == (3, 0)
    assert empty.shape == (0, 0)
