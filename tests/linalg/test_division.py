"""Division by fixed values: values, derivatives, batches, kernels."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rigidjax import native
from rigidjax.native.ops.division import divide_by_invariant
from rigidjax.native.runtime.kernel import Kernel, Signature

A, B = jnp.array([0.3, -1.2, 0.7]), jnp.array([2.0, 0.4, -0.9])


@pytest.mark.parametrize("a, b", [(A, B), (A, B[0])])
def test_values_and_derivatives(a, b):
    """Broadcast arrays, up to second order."""
    # XLA itself multiplies with the reciprocal here and there.
    np.testing.assert_allclose(divide_by_invariant(a, b), a / b, rtol=3e-16)

    def of(form):
        return lambda a, b: jnp.sum(jnp.sin(form(a, b)))

    for transform in (jax.grad, jax.hessian, lambda f, n: jax.jacrev(jax.grad(f, n), n)):
        found, expected = (
            transform(of(form), (0, 1))(a, b) for form in (divide_by_invariant, lambda a, b: a / b)
        )
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-13), found, expected)


def test_batched_axes():
    both = jnp.outer(A, B)
    for axes, args in (((0, None), (both, B)), ((None, 1), (A, both)), ((1, 0), (both, both))):
        found = jax.vmap(divide_by_invariant, axes)(*args)
        expected = jax.vmap(lambda a, b: a / b, axes)(*args)
        np.testing.assert_allclose(found, expected, rtol=3e-16)


def test_division_in_kernels():
    """In a kernel the division is before the loop; edges are those of a quotient."""
    kernel = native.jit(divide_by_invariant)
    values = jnp.array([1.0, 0.0, -0.0, 49.0, jnp.inf, jnp.nan])
    for b in (49.0, -2.0, jnp.inf, 0.0):
        np.testing.assert_allclose(kernel(values, jnp.asarray(b)), values / b, rtol=3e-16)

    def loop(a, b):
        return jax.lax.while_loop(
            lambda x: x[0] < 1e3, lambda x: divide_by_invariant(x, b) + 1.0, a
        )

    closed = jax.make_jaxpr(loop)(A, B)
    text = Kernel(closed, Signature((False, False), False)).code.optimised_text()
    turn = re.search(r"\nturn[^\n]*:.*?br ", text, re.DOTALL)
    assert turn is not None and "fmul" in turn[0]
    assert "fdiv" in text and "fdiv" not in turn[0]


@jax.numpy_dtype_promotion("standard")
def test_dtypes_are_promoted():
    assert divide_by_invariant(A.astype(jnp.float32), B).dtype == B.dtype
    names = [e.primitive.name for e in jax.make_jaxpr(divide_by_invariant)(A, B).eqns]
    assert names == ["div"]


def test_divisor_per_batch_element():
    """A numerator shared by all batch elements, and an empty one."""
    a, b = jnp.arange(1.0, 7.0).reshape(2, 3), jnp.arange(1.0, 5.0)
    wanted = a[None] / b[:, None, None]
    for form in (
        jax.vmap(lambda y: divide_by_invariant(a, y)),
        jax.jit(jax.vmap(lambda y: divide_by_invariant(a, y))),
    ):
        np.testing.assert_allclose(form(b), wanted, rtol=1e-15)
    kernel = native.jit(lambda ys: jax.vmap(lambda y: divide_by_invariant(a, y))(ys))
    np.testing.assert_allclose(kernel(b), wanted, rtol=1e-15)
    slope = jax.grad(lambda a: jnp.sum(jax.vmap(lambda y: divide_by_invariant(a, y))(b)))(a)
    np.testing.assert_allclose(slope, np.full((2, 3), np.sum(1 / b)), rtol=1e-15)
    assert jax.vmap(lambda y: divide_by_invariant(jnp.zeros((0, 3)), y))(b).shape == (4, 0, 3)
