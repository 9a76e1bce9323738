"""Loops and branches in kernels against XLA: ownership of memory, and waiting lanes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rule_cases import X, Y, check, compare

from rigidjax import native
from rigidjax.native.runtime.kernel import Kernel, Signature


def test_loops_iterate_as_long_as_each_lane_needs():
    def function(x, count):
        def turn(carry):
            k, x, history = carry
            return k + 1, x * 1.1 + jnp.sin(x), history.at[k % 100].set(x)

        start = 0, x, jnp.zeros((100, 3))
        return jax.lax.while_loop(lambda carry: carry[0] < count, turn, start)

    counts = jnp.array([3, 250, 0, 7, 41, 1, 90])
    points = jnp.stack([X * k for k in range(1, 8)])
    kernel = native.jit(function)
    actual = jax.jit(jax.vmap(kernel))(points, counts)
    check(actual, jax.vmap(function)(points, counts), 1e-12)


def each_until_its_own_end(limits, table):
    """Apply `jax.vmap` to a loop, whose condition becomes a stack."""

    def grow_to_limit(limit, row):
        def turn(carry):
            k, x, row = carry
            return k + 1, x * 1.1 + row[k % 3], row.at[k % 3].add(limit)

        return jax.lax.while_loop(lambda carry: carry[1] < limit, turn, (0, 0.1, row))

    return jax.vmap(grow_to_limit)(limits, table)


def test_vmapped_loops_inside_a_kernel():
    count = 6
    limits = jnp.linspace(0.0, 5.0, count)
    table = jnp.abs(jnp.sin(jnp.arange(3.0 * count))).reshape(count, 3) + 0.1
    compare(each_until_its_own_end, limits, table)
    several = 3.0 * limits[None] / jnp.arange(1, 4)[:, None], jnp.tile(table, (3, 1, 1))
    compare(jax.vmap(each_until_its_own_end), *several, tolerance=1e-12)


def test_branches_that_return_an_array_and_a_view_of_it():
    table = jnp.sin(jnp.arange(324.0)).reshape(18, 18)

    def function(which, table):
        here = jnp.cos(table)
        several = [lambda a: a, lambda a: a[::-1], lambda a: a.T, lambda a: a]
        return (
            jax.lax.cond(which > 1, lambda a: a.T, lambda a: a, table),
            jax.lax.cond(which > 1, lambda a: a.T, lambda a: a, here),
            jax.lax.switch(which, several, jnp.sin(table)),
        )

    numbers, tables = jnp.array([2, 0, 1, 3, 2, 1]), jnp.stack([table * k for k in range(1, 7)])
    kernel = native.jit(function)
    expected = jax.vmap(function)(numbers, tables)
    check(jax.jit(jax.vmap(kernel))(numbers, tables), expected, 1e-13)
    for k in range(4):
        check(jax.jit(kernel)(numbers[k], tables[k]), [x[k] for x in expected], 1e-13)


def test_batched_loops_with_known_trip_counts():
    def function(x):
        counts = jax.vmap(lambda q: jax.lax.while_loop(lambda c: c < q, lambda c: c + 1, 0))
        return x * counts(jnp.arange(3))

    compare(function, X)


def write_in_nested_loop(x, inner, same=False):
    """Write tables of 600 elements in a nested loop; all start from the `same` one."""

    def write(j, carry):
        k, a, b = carry
        at = (7 * k + j) % 600
        seen = a[at]
        return k, a.at[at].set(seen + x), b.at[at].set(seen + 1.0)

    def turn(carry):
        k = carry[0]
        if inner == "scan":
            carry = jax.lax.fori_loop(0, 5, write, carry)
        else:
            carry = jax.lax.while_loop(
                lambda c: c[0] < x * k, lambda c: (c[0] + 1, write(*c)), (0, carry)
            )[1]
        return k + 1, *carry[1:]

    first = jnp.linspace(0.0, 1.0, 600) * x
    start = 1, first, first if same else jnp.sin(first)
    return jax.lax.while_loop(lambda c: c[0] < 9 * x, turn, start)[1:]


@pytest.mark.parametrize("inner", ["while", "scan"])
def test_loops_within_loops_change_tables_in_place(inner):
    """A table is copied only if two variables start from one table."""
    x = jnp.array(1.3)
    for same in (False, True):
        function = functools.partial(write_in_nested_loop, inner=inner, same=same)
        compare(function, x)
        text = Kernel(jax.make_jaxpr(function)(x), Signature((False,), False)).text
        # One of them allocates the first table.
        assert text.count('call void @"llvm.memcpy') == 1 + same


def test_scans_and_branches():
    def function(x, y):
        def turn(carry, row):
            carry = jax.lax.cond(row[0] > carry[0], lambda c: jnp.sin(c) + row, jnp.cos, carry)
            return carry, carry.sum()

        rows = jnp.sin(jnp.arange(900.0)).reshape(300, 3) * y
        short = jax.lax.scan(turn, x, rows[:4], reverse=True)
        return (
            short,
            jax.lax.scan(turn, x, rows),
            jax.lax.switch(
                jnp.int32(x[0] > 1.2) + jnp.int32(x[0] > 1.4),
                [lambda v: v, lambda v: v * 2, lambda v: v - 1],
                x,
            ),
        )

    compare(function, X, Y, tolerance=1e-12)


def test_scans_of_large_and_small_variables():
    def function(x):
        def turn(carry, k):
            count, history, total = carry
            history = history.at[k % 100].add(total) * 0.5
            return (count + 1, history, jnp.sin(total) + x), history[3]

        return jax.lax.scan(turn, (0, jnp.zeros((100, 3)), x), jnp.arange(150))

    compare(function, X, tolerance=1e-12)


@pytest.mark.parametrize("taken", [0, 1], ids=["none", "some"])
def test_branches_that_change_an_argument_or_not(taken):
    """No lane takes the branch that changes the argument, which is read again afterwards."""

    def function(big, flag):
        changed = jax.lax.cond(flag > 0, lambda y: y.at[3].set(7.0), lambda y: y, big)
        table = jnp.linspace(0.0, 1.0, 300)
        other = jax.lax.cond(flag > 0, lambda y: 2 * y, lambda y: table, big)
        return changed, other, big.sum()

    big = jnp.arange(5.0)[:, None] + jnp.linspace(0.0, 1.0, 300)
    flags = taken * jnp.array([1, 0, 0, 1, 0])
    found = jax.jit(jax.vmap(native.jit(function)))(big, flags)
    check(found, jax.vmap(function)(big, flags), 1e-13)


@pytest.mark.parametrize("flag", range(4))
def test_branches_in_branches_hand_arrays_on(flag):
    """The result of the inner branch is in memory that is allocated in the outer branch."""

    def inner(y, flag):
        return jax.lax.cond(flag > 1, jnp.cumsum, lambda y: y, jnp.sin(y))

    def function(big, flag):
        big = jax.lax.cond(flag % 2 > 0, lambda y, flag: 2 * y, inner, big, flag)
        return big, big[::-1].cumsum()

    compare(function, jnp.linspace(0.0, 1.0, 300), jnp.array(flag), tolerance=1e-13)


def passed_through_then_looped(n, p, v):
    """The loop may not overwrite its start, which a branch returns as it is."""
    b = jax.lax.cond(p, jnp.exp, lambda v: v, v)

    def step(carry):
        k, (_, second) = carry
        return k + 1, (second, second)

    start = jnp.zeros((), int), (v, jnp.cumsum(v))
    w, _ = jax.lax.while_loop(lambda carry: carry[0] < n % 5, step, start)[1]
    return jnp.sum(w), b


def passed_through_in_a_loop(n, p, v):
    """A carry that is another carry in one branch is copied before that one is overwritten."""

    def body(k, carry):
        a, _ = carry
        return 0.1 * jnp.cumsum(a)[::-1], jax.lax.cond(p, lambda a: jnp.exp(-a), lambda a: a, a)

    return jax.lax.fori_loop(0, n, body, (v, 0 * v))


def passed_through_in_a_scan(n, p, v):
    def body(carry, k):
        a, _ = carry
        c = jax.lax.cond(p, lambda a: jnp.exp(-a), lambda a: a, a)
        return (0.1 * jnp.cumsum(a)[::-1], c), c[3]

    return jax.lax.scan(body, (v, 0 * v), jnp.arange(12.0))


@pytest.mark.parametrize(
    "function", [passed_through_then_looped, passed_through_in_a_loop, passed_through_in_a_scan]
)
def test_arrays_that_branches_pass_through(function, rng):
    """Arrays in memory, which the result of a branch may be."""
    args = np.arange(13), rng.random(13) < 0.5, rng.standard_normal((13, 300))
    assert 2 < args[1].sum() < 11
    expected = jax.jit(jax.vmap(function))(*args)
    actual = jax.jit(jax.vmap(native.jit(function)))(*args)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
