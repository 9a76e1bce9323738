"""Outlining: sub-jaxprs that are called in several places are emitted once as functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rigidjax import native
from rigidjax.native.passes import outlining
from rigidjax.native.runtime.kernel import Kernel, Signature

from ..rule_cases import check


@pytest.fixture(autouse=True)
def every_repeated_program_is_a_function(monkeypatch):
    # Cached kernels were compiled without outlined functions.
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", "off")
    monkeypatch.setattr(outlining, "LONG_JAXPR", 0)
    monkeypatch.setattr(outlining, "_SMALLEST_COST", 0)
    monkeypatch.setattr(outlining, "_COST_PER_SCALAR", 0)


def functions_in(function, *args):
    """Return the number of outlined functions in a kernel whose results are checked."""
    kernel = native.jit(function)
    check(jax.jit(kernel)(*args), function(*args), 1e-12)
    closed = jax.make_jaxpr(function)(*args)
    made = Kernel(closed, Signature((False,) * len(jax.tree.leaves(args)), False))
    return made.text.count('define internal void @"shared')


X = jnp.sin(jnp.arange(1.0, 13.0))


def test_sub_jaxpr_called_in_several_places_is_emitted_once():
    @jax.jit
    def field(t, y):
        return jnp.sin(y) * t + y[::-1] ** 2

    def function(x):
        half, one = jnp.array([0.5, 1.0])
        first = field(half, x)
        stages = jax.lax.scan(lambda y, t: (field(t, y), y[0]), x, jnp.arange(9.0))
        either = jax.lax.cond(x[0] > 0.0, lambda y: field(half, y), lambda y: y, first)
        last = jax.lax.while_loop(lambda y: y[0] < 9.0, lambda y: 1.5 + field(one, y) ** 2, x)
        return first, stages, either, last

    assert functions_in(function, X) == 1


def test_arguments_of_all_storage_classes_and_dtypes():
    @jax.jit
    def inner(table, x, z, mark, count, empty):
        out = table @ table.T * x[0] + count
        return out[:, :2], z * x[1], mark & (x > 0), jnp.argmax(table), empty * 2.0, x[::-1]

    def function(table, x, z, mark, count):
        empty = jnp.zeros((0, 3))
        first = inner(table, x, z, mark, count, empty)
        again = inner(table[::-1] * 2.0, x[::-1], first[1], first[2], first[3], empty)
        strided = inner(jnp.broadcast_to(x[:1], (20, 12)), x, z, ~mark, count, empty)
        return first, again, strided

    table = jnp.cos(jnp.arange(240.0)).reshape(20, 12)
    z = X + 1j * jnp.cos(X)
    assert functions_in(function, table, X, z, X > 0.3, jnp.array(3)) == 1


def test_arguments_are_passed_by_reference():
    @jax.jit
    def inner(x, table):
        return jnp.sin(table @ x) * x[0]

    def function(x, table):
        a = inner(x, table)
        # Changed arguments, and iterations of a loop without lanes.
        b = inner(x, 2.0 * table)
        turns = jax.lax.map(lambda k: inner(x * k, table), jnp.arange(9.0))
        return a, b, inner(a, table), turns

    table = jnp.cos(jnp.arange(144.0)).reshape(12, 12)
    assert functions_in(function, X, table) == 1
    closed = jax.make_jaxpr(function)(X, table)
    lines = Kernel(closed, Signature((False, False), False)).text.splitlines()
    # The table is copied once, for its doubled values.
    assert sum(line.strip().startswith("store") for line in lines) < 2 * 144


def test_constant_integers_select_the_function():
    @jax.jit
    def entry(x, places):
        return jnp.take(x, places) * 2.0, places + 1

    def function(x):
        first, following = entry(x, jnp.array([3, 1, 2]))
        again, _ = entry(x * 2.0, jnp.array([3, 1, 2]))
        other, last = entry(x, jnp.array([0, 5, 11]))
        return first, again, other, x[following], x[last - 1]

    assert functions_in(function, X) == 2


def test_functions_that_call_functions():
    @jax.jit
    def inner(x):
        return jnp.cos(x) * x

    @jax.jit
    def outer(x):
        return inner(x) + inner(2.0 * x), x

    def function(x):
        a, b = outer(x)
        c, d = outer(a)
        return a, b, c, d

    assert functions_in(function, X) == 2


def test_derivatives_and_batches_of_outlined_functions():
    @jax.jit
    def inner(x):
        return jnp.sin(x) * jnp.sum(x)

    def function(x):
        return inner(inner(x) + 1.0)

    kernel = native.jit(function)
    check(jax.jit(jax.jacfwd(kernel))(X), jax.jacfwd(function)(X), 1e-12)
    check(
        jax.jit(jax.grad(lambda x: kernel(x)[0]))(X), jax.grad(lambda x: function(x)[0])(X), 1e-12
    )
    many = jnp.stack([X * k for k in range(1, 8)])
    check(jax.jit(jax.vmap(kernel))(many), jax.vmap(function)(many), 1e-12)


def test_short_jaxprs_are_not_outlined(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", "off")

    @jax.jit
    def inner(x):
        return jnp.sin(x)

    assert functions_in(lambda x: inner(inner(x)), np.ones(3)) == 0
