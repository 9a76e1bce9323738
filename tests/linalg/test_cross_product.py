"""The cross product: values, derivatives, batches, kernels."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rigidjax import native
from rigidjax.native.ops.cross_product import cross

U, V = jnp.array([0.3, -1.2, 0.7]), jnp.array([2.0, 0.4, -0.9])
MANY = jnp.sin(jnp.arange(60.0)).reshape(4, 5, 3)


def test_values_and_derivatives():
    """Stacks, up to second order."""
    u, v = MANY, MANY[:, ::-1]
    np.testing.assert_allclose(cross(u, v), np.cross(u, v), rtol=1e-15, atol=1e-16)

    def of(product):
        return lambda u, v: jnp.sum(jnp.sin(product(u, v)))

    for transform in (jax.grad, lambda f, n: jax.jacrev(jax.grad(f, n), n), jax.hessian):
        actual, expected = (transform(of(f), (0, 1))(u, v) for f in (cross, jnp.cross))
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14), actual, expected
        )
    tangents = (jax.jvp(lambda v, f=f: f(u, v), (v,), (jnp.cos(v),))[1] for f in (cross, jnp.cross))
    np.testing.assert_allclose(*tangents, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("axes", [(0, None), (None, 1), (1, 0)])
def test_batched_axes(axes):
    u = U if axes[0] is None else MANY[0]
    v = V if axes[1] is None else MANY[1]
    u, v = (jnp.moveaxis(x, 0, a) if a else x for x, a in zip((u, v), axes, strict=True))
    actual = jax.vmap(cross, axes)(u, v)
    np.testing.assert_allclose(actual, jax.vmap(jnp.cross, axes)(u, v), rtol=1e-15, atol=1e-16)


@pytest.mark.parametrize("count", [2, 150])
def test_cross_product_in_kernels(count):
    """In registers, in memory, and in a loop over a stack; also with what is known."""
    u = jnp.cos(jnp.arange(3.0 * count)).reshape(count, 3)

    def function(u, v):
        turned = jax.vmap(cross, (0, None))(u, v)
        return cross(turned, u + 1.0), cross(jnp.array([0.0, 0.0, 1.0]), v), jnp.sum(turned, 0)

    kernel: Any = native.jit(function)
    assert kernel.why_not(u, V) == []
    for actual, expected in zip(kernel(u, V), function(u, V), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-13)
    gradient = jax.grad(lambda u, v: sum(jnp.sum(x**2) for x in kernel(u, v)), (0, 1))(u, V)
    expected = jax.grad(lambda u, v: sum(jnp.sum(x**2) for x in function(u, v)), (0, 1))(u, V)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), gradient, expected)


@jax.numpy_dtype_promotion("standard")
def test_operands_of_two_dtypes():
    assert cross(U.astype(jnp.float32), V).dtype == V.dtype
    np.testing.assert_allclose(cross(jnp.array([1, 0, 0]), V), [0.0, 0.9, 0.4], rtol=1e-15)
