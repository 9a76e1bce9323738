"""Sums of a few products: the same as `jnp.sum`, small and large, with all derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from rigidjax.native.ops.sums import short_sum

# Numbers of products of 3x3 matrices below and above the limit of unrolling.
COUNTS = (2, 400)


def operands(count, seed=0):
    rng = np.random.default_rng(seed)
    return (jnp.asarray(rng.normal(size=(count, 3, 3))) for _ in range(2))


def product(A, B):
    return short_sum(A[:, :, None], B[None], axis=1)


@pytest.mark.parametrize("count", COUNTS)
def test_stacks_of_matrices(count):
    A, B = operands(count)
    np.testing.assert_allclose(jax.jit(jax.vmap(product))(A, B), A @ B, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(
        jax.vmap(product, in_axes=(0, None))(A, B[0]), A @ B[0], rtol=1e-13, atol=1e-14
    )


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_contraction_of_one_array(count, axis):
    A, _ = operands(count)
    total = jax.jit(lambda A: short_sum(A, axis=axis))(A)
    np.testing.assert_allclose(total, jnp.sum(A, axis), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("count", COUNTS)
def test_first_derivatives(count):
    A, B = operands(count)

    def total(A, b):
        return jnp.sum(jnp.sin(jax.vmap(product, in_axes=(0, None))(A, b)))

    def sum_of_sines(A, b):
        return jnp.sum(jnp.sin(A @ b))

    ours, theirs = (jax.grad(f, (0, 1))(A, B[0]) for f in (total, sum_of_sines))
    for found, wanted in zip(
        (*ours, jax.jacfwd(total, 1)(A, B[0])), (*theirs, theirs[1]), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_higher_derivatives():
    A, B = operands(2)
    check_grads(lambda A, B: product(A, B) ** 2, (A[0], B[0]), order=2)


def test_broadcast_shapes():
    A, B = operands(4)
    np.testing.assert_allclose(short_sum(A, B[0, 0], axis=2), A @ B[0, 0], rtol=1e-13)
    gradient = jax.grad(lambda b: jnp.sum(short_sum(A, b, axis=2) ** 2))(B[0, 0])
    np.testing.assert_allclose(gradient, 2 * jnp.einsum("nij,nik,k->j", A, A, B[0, 0]), rtol=1e-12)
    # Summed along an axis that one factor does not have.
    np.testing.assert_allclose(
        short_sum(A[:, :1], B, axis=1), A[:, 0] * jnp.sum(B, axis=1), rtol=1e-13
    )


def test_empty_sums():
    assert short_sum(jnp.zeros((0, 3)), axis=1).shape == (0,)
    np.testing.assert_array_equal(short_sum(jnp.zeros((2, 0)), axis=1), jnp.zeros(2))


def test_single_precision_is_preserved():
    A = jnp.ones((400, 3, 3), jnp.float32)
    assert jax.vmap(product)(A, A).dtype == jnp.float32
