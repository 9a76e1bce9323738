"""Loop fusion: elementwise equations over stacks are one loop, with the results of XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rigidjax import native
from rigidjax.native.ops.sums import short_sum
from rigidjax.native.passes.analysis import sub_jaxprs
from rigidjax.native.passes.loop_fusion import fuse_loops
from rigidjax.native.primitives.variants import variants

LENGTH = 40
ROWS = jnp.sin(jnp.arange(LENGTH * 9.0)).reshape(LENGTH, 9)
ORDER = np.random.default_rng(0).permutation(LENGTH)


def count(jaxpr) -> int:
    """Count the loops over stacks in a jaxpr."""
    return sum(
        (equation.primitive.name == "for_each") + sum(map(count, sub_jaxprs(equation)))
        for equation in jaxpr.eqns
    )


def loops(function, *args) -> int:
    return count(fuse_loops(jax.make_jaxpr(function)(*args)).jaxpr)


def many(x):
    """Compute a function that is long enough for a loop."""
    for _ in range(4):
        x = 1.1 * jnp.sin(x) + 0.1 * x * jnp.cos(x)
    return x


def shapes(x):
    a = many(x).reshape(LENGTH, 3, 3)
    b = jnp.swapaxes(a, 1, 2)[:, ::2, 1:]
    c = jnp.concatenate([b, -b], axis=1)
    d = jnp.stack([c[:, 0], c[:, 1]], axis=2)
    e = jnp.pad(d, ((0, 0), (1, 0), (0, 2)))
    f = e[:, ::-1] + jnp.arange(4.0)
    return f.sum(axis=(1, 2)), jnp.max(f, axis=1), jnp.squeeze(f[:, :1], 1)


def products(x):
    a = many(x).reshape(LENGTH, 3, 3)
    M = jnp.arange(9.0).reshape(3, 3)
    sums = short_sum(a[:, :, :, None], a[:, None], axis=2)
    return jnp.einsum("lij,ljk->lik", a, sums), a @ M, jnp.einsum("ij,ljk->lik", M, a)


def neighbours(x):
    """Combine neighbours along the stack, which is done outside loops."""
    a = many(x)
    moved = a[ORDER] - jnp.concatenate([a[1:], a[:1]])
    along = jnp.cumsum(moved[:, :3], axis=0)
    return many(along[:, :1] + moved), along.sum(0)


def branches(x):
    """Combine nested loops and branches, with indices that are constant outside them."""
    order = jnp.asarray(ORDER)

    def turn(carry):
        k, a = carry
        return k + 1, many(0.1 * a[order]) + x

    _, a = jax.lax.while_loop(lambda carry: carry[0] < 3 + (x[0, 1] > 1.0), turn, (0, x))
    return jax.lax.cond(a[0, 0] > 0.05, many, lambda a: a[order] + 1.0, a)


@pytest.mark.parametrize("function", [shapes, products, neighbours, branches])
def test_fused_loops_equal_xla(function):
    kernel = native.jit(function)
    assert loops(function, ROWS) >= 1
    batch = jnp.stack([ROWS * (1 + 0.1 * k) for k in range(5)])
    for actual, expected in (
        (jax.jit(kernel)(ROWS), function(ROWS)),
        (jax.jit(jax.vmap(kernel))(batch), jax.vmap(function)(batch)),
    ):
        for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_derivatives_of_fused_loops():
    kernel = native.jit(shapes)
    _, expected = jax.jvp(shapes, (ROWS,), (jnp.cos(ROWS),))
    _, actual = jax.jvp(kernel, (ROWS,), (jnp.cos(ROWS),))
    cotangent = jax.tree.map(jnp.sin, expected)
    forth = jax.vjp(shapes, ROWS)[1](cotangent)
    back = jax.vjp(kernel, ROWS)[1](cotangent)
    for a, b in zip(
        jax.tree.leaves((actual, back)), jax.tree.leaves((expected, forth)), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_dependent_equations_share_a_loop():
    assert loops(many, ROWS) == loops(shapes, ROWS) == loops(products, ROWS) == 1
    assert loops(neighbours, ROWS) == 2


def test_short_stacks_are_not_fused():
    assert loops(many, ROWS[:5]) == 0


def test_kernel_and_xla_variants():
    """Kernels use the first variant, XLA the second; derivatives too."""

    def function(x):
        return variants(sequential=lambda: jnp.sin(x), batched=lambda: 2.0 * jnp.sin(x))

    x = jnp.linspace(0.1, 1.0, 5)
    kernel = native.jit(function)
    for transform, expected in (
        (lambda f: f(x), jnp.sin(x)),
        (lambda f: jax.jit(jax.vmap(f))(x), jnp.sin(x)),
        (lambda f: jax.jvp(f, (x,), (x,))[1], x * jnp.cos(x)),
        (lambda f: jax.grad(lambda x: f(x).sum())(x), jnp.cos(x)),
    ):
        np.testing.assert_allclose(transform(kernel), expected, rtol=1e-15)
        np.testing.assert_allclose(transform(function), 2.0 * expected, rtol=1e-15)


PLACES = np.arange(300) * 7 % 130 - 5
VALUES = jnp.asarray(np.cos(np.arange(900.0)).reshape(300, 3))


def sum_at_indices(values):
    """Add rows at constant indices, some out of bounds, and read and write others there."""
    added = jnp.zeros((120, 3)).at[PLACES].add(values)
    written = jnp.ones((310, 3)).at[jnp.arange(300) + 5].set(values, mode="drop")
    return added, written[np.arange(280)[::-1] + 20] * 2.0


def summed_in_a_loop(values):
    """Sum in a loop that lanes leave at different times."""

    def turn(carry):
        k, x = carry
        return k + 1, x.at[PLACES % 120].add(0.1 * values)

    start = 0, jnp.zeros((120, 3))
    return jax.lax.while_loop(lambda c: c[0] < 3 + (values[0, 0] > 0), turn, start)


@pytest.mark.parametrize("function", [sum_at_indices, summed_in_a_loop])
def test_many_constant_indices(function):
    kernel = native.jit(function)
    assert kernel.why_not(VALUES) == []
    batch = jnp.stack([VALUES, -VALUES, 2.0 * VALUES])
    for actual, expected in (
        (kernel(VALUES), function(VALUES)),
        (jax.jit(jax.vmap(kernel))(batch), jax.vmap(function)(batch)),
    ):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-14), actual, expected)
